import { ExecutorRole } from '../api/gen/gnnd/v1/executor_pb.ts';
import { CachePolicySchema } from '../api/gen/gnnd/v1/features_pb.ts';
import {
  type JobPlan,
  PlanLimitSchema,
  type PlanMeasurement,
  type PlannedWay,
  PlanWaySchema,
} from '../api/gen/gnnd/v1/job_plan_pb.ts';
import { counted } from '../spec/counted.ts';
import { shortName } from '../spec/enum-names.ts';
import { bytes, count, duration, percent, sentence } from './format.ts';
import { roleName } from './lanes.ts';

/** How devices are split and why, beside what was measured. */
export function PlanView({ plan }: { readonly plan: JobPlan }) {
  const { measurement: measured } = plan;
  return (
    <section aria-labelledby="plan">
      <h2 id="plan">Plan</h2>
      <p>{sentence(plan.explanation)}</p>
      {plan.estimated && <p class="empty">Estimated: nothing was measured yet.</p>}
      <ul class="roles" aria-label="Roles">
        {plan.executors.map(({ role, device }) => (
          <li key={`${device} ${role}`}>
            <b>{device}</b> {roleName(role)}
          </li>
        ))}
      </ul>
      <PerBatch plan={plan} measured={measured} />
      {plan.ways.length > 0 && <Ways plan={plan} measured={measured} />}
      {plan.warnings.map((warning) => (
        <p key={warning}>{warning}</p>
      ))}
    </section>
  );
}

interface PlanProps {
  readonly plan: JobPlan;
  readonly measured: PlanMeasurement | undefined;
}

function PerBatch({ plan, measured }: PlanProps) {
  const rows = [
    ['Sampler (S + M + C)', plan.samplerBatchNs, measured?.samplerBatchNs],
    ['Trainer (E, T)', plan.trainerBatchNs, measured?.trainerBatchNs],
    ['standby Trainer', plan.standbyBatchNs, measured?.standbyBatchNs],
  ] as const;
  // An inference has no batches.
  if (rows.every(([, planned, seen]) => planned + (seen ?? 0n) === 0n)) return null;
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">A batch takes a</th>
          <th scope="col">planned</th>
          <th scope="col">measured</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(([who, planned, seen]) => (
          <tr key={who}>
            <th scope="row">{who}</th>
            <td>{timeOf(planned)}</td>
            <td>{timeOf(seen)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Ways({ plan, measured }: PlanProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it is scrolled with arrow keys.
    <section class="wide" tabIndex={0} aria-label="Ways that were compared">
      <table>
        <thead>
          <tr>
            <th scope="col">Way</th>
            <th scope="col">a batch</th>
            <th scope="col">an epoch</th>
            <th scope="col">limited by</th>
            <th scope="col">measured epoch</th>
          </tr>
        </thead>
        <tbody>
          {plan.ways.map((way, index) => (
            <tr key={wayText(way)} class={index === 0 ? 'chosen' : ''}>
              <th scope="row">
                {wayText(way)} {index === 0 && <small>followed</small>}
              </th>
              <td>{timeOf(way.batchNs)}</td>
              <td>{timeOf(way.epochNs)}</td>
              <td>{shortName(PlanLimitSchema, way.limit).toLowerCase()}</td>
              <td>{index === 0 ? timeOf(measured?.epochNs) : '–'}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function wayText({ way, samplers, trainers }: PlannedWay): string {
  const name = shortName(PlanWaySchema, way).toLowerCase();
  if (trainers === 0) return `${name}, ${counted(samplers, 'device')}`;
  return `${name}, ${counted(samplers, 'Sampler')} + ${counted(trainers, 'Trainer')}`;
}

function timeOf(ns: bigint | undefined): string {
  return ns === undefined || ns === 0n ? '–' : duration(Number(ns) / 1e6);
}

/** Which ranks of the hottest-first order lie where; of how many nodes, null where unknown. */
export function HotRanks({
  plan,
  nodes,
  hits,
}: {
  readonly plan: JobPlan;
  readonly nodes: number | null;
  readonly hits: number | null;
}) {
  const { cache } = plan;
  if (cache === undefined) return <p class="empty">Not planned yet.</p>;
  const hasStandby = plan.executors.some(({ role }) => role === ExecutorRole.STANDBY);
  const all = [
    ['Trainers keep', Number(cache.trainerRows), 'kept'],
    ['standby Trainers keep', hasStandby ? Number(cache.standbyRows) : 0, 'kept'],
    ['pinned in the host’s memory', Number(cache.pinnedRows), 'pinned'],
  ] as const;
  const kept = all.filter(([, rows]) => rows > 0);
  const rowBytes = Number(cache.rowBytes);
  const share = nodes === null ? 0 : Number(cache.trainerRows) / nodes;
  return (
    <>
      <p>
        {sentence(cache.explanation)}
        {kept.length > 0 && `; ordered by ${shortName(CachePolicySchema, cache.policy)}`}
        {kept.length > 0 &&
          hits !== null &&
          `: the hottest ${percent(share)} of the rows answered ${percent(hits)} of the reads.`}
      </p>
      {nodes !== null && nodes > 0 && kept.length > 0 && (
        <ul class="ranks">
          {kept.map(([who, rows, kind]) => (
            <li key={who}>
              <span>
                {who} ranks 0 to {count(rows - 1)} of {count(nodes)}, {bytes(rows * rowBytes)}
              </span>
              <svg class="rank-map" data-kind={kind} aria-hidden="true">
                <rect class="all" width="100%" height="100%" />
                <rect
                  class="part"
                  width={`${(100 * Math.min(nodes, rows)) / nodes}%`}
                  height="100%"
                />
              </svg>
            </li>
          ))}
        </ul>
      )}
      <p>
        Prefetch {cache.prefetch ? 'on' : 'off'}: {cache.prefetchExplanation}
      </p>
      {cache.reservedBytes > 0n && (
        <p>Reserved for PyTorch: {bytes(Number(cache.reservedBytes))} of each device</p>
      )}
      {cache.pinnedExplanation !== '' && <p>Pinned rows: {cache.pinnedExplanation}</p>}
    </>
  );
}
