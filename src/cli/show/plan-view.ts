import { create } from '@bufbuild/protobuf';
import { CachePolicySchema } from '../../api/gen/gnnd/v1/features_pb.ts';
import type { JobPace } from '../../api/gen/gnnd/v1/job_pb.ts';
import {
  type CachePlan,
  type JobPlan,
  type PlacedDevice,
  PlanLimitSchema,
  type PlanMeasurement,
  type PlannedWay,
  PlanWay,
  PlanWaySchema,
  type RowPlacement,
  type RowShares,
} from '../../api/gen/gnnd/v1/job_plan_pb.ts';
import { JobSpecSchema } from '../../api/gen/gnnd/v1/job_spec_pb.ts';
import { StandbyPolicySchema } from '../../api/gen/gnnd/v1/resources_pb.ts';
import { counted, formatCount } from '../../spec/counted.ts';
import { shortName } from '../../spec/enum-names.ts';
import type { Session } from '../session/session.ts';
import { printable } from '../session/terminal.ts';
import { formatBytes, formatNs } from '../session/units.ts';
import { idOf, policyText, roleText, stalenessText } from './job-text.ts';
import { rowsText } from './memory-text.ts';
import { type Column, type Fact, tableOf, warningFacts } from './output.ts';

/** How plans look: what was predicted, of which ways, and what was measured. */

export function planFacts(session: Session, plan: JobPlan): readonly Fact[] {
  const ns = (title: string, value: bigint, key: string): Fact => [
    title,
    value === 0n ? '' : `${formatNs(Number(value))} a batch`,
    String(value),
    key,
  ];
  const devices = plan.executors.map(({ role, device }) => `${roleText(role)} ${device}`);
  return [
    ['Job', session.style.bold(idOf(plan.job)), plan.job],
    [
      'Based on',
      plan.estimated
        ? session.style.yellow('guesses, before calibration')
        : 'measured trial batches',
      plan.estimated ? 'estimated' : 'measured',
    ],
    ['Executors', devices.join(', ')],
    ...choiceFacts(plan),
    ['Way', wayText(plan.way), plan.way === 0 ? '' : shortName(PlanWaySchema, plan.way)],
    ...predictionFacts(session, plan),
    ['Policy', policyText(plan.policy)],
    ['Standby', shortName(StandbyPolicySchema, plan.standby)],
    ns('T_s, Sampler', plan.samplerBatchNs, 'sampler_batch_ns'),
    ns('T_t, Trainer', plan.trainerBatchNs, 'trainer_batch_ns'),
    ns('T_t, standby', plan.standbyBatchNs, 'standby_batch_ns'),
    ['K = T_t / T_s', plan.k === 0 ? '' : plan.k.toFixed(2), String(plan.k), 'k'],
    ['Queue slots', String(plan.queueCapacity)],
    ['Slot size', formatBytes(Number(plan.slotBytes)), String(plan.slotBytes), 'slot_bytes'],
    ['Parameters', formatCount(plan.parameterCount), String(plan.parameterCount)],
    ...cacheFacts(plan.cache),
    ...(plan.rows === undefined ? [] : [['Rows', rowsText(plan.rows)] as const]),
    ['Staleness', planStaleness(plan), String(plan.staleness)],
    ['Why', printable(plan.explanation)],
    ...warningFacts(session, plan.warnings),
  ];
}

type Choices =
  | 'deviceKindChoice'
  | 'batchesPerStepChoice'
  | 'standardizeChoice'
  | 'precisionChoice'
  | 'scheduleChoice';

/** What may have been left open and was decided at creation: only what there is to say. */
export function choiceFacts(choices: Pick<JobPlan, Choices>): readonly Fact[] {
  const facts: readonly Fact[] = [
    ['Device kind', printable(choices.deviceKindChoice)],
    ['Batches a step', printable(choices.batchesPerStepChoice)],
    ['Standardise', printable(choices.standardizeChoice)],
    ['Precision', printable(choices.precisionChoice)],
    ['Schedule', printable(choices.scheduleChoice)],
  ];
  return facts.filter(([, text]) => text !== '');
}

const wayNames: Readonly<Record<PlanWay, string>> = {
  [PlanWay.UNSPECIFIED]: '',
  [PlanWay.SPLIT]: 'split',
  [PlanWay.SWITCHING]: 'split with switching',
  [PlanWay.SHARING]: 'time sharing',
};

export function wayText(way: PlanWay): string {
  return wayNames[way];
}

function predictionFacts(session: Session, plan: JobPlan): readonly Fact[] {
  const [followed] = plan.ways;
  if (followed === undefined) return [];
  const { batchNs, epochNs } = followed;
  const times = `${formatNs(Number(batchNs))} a batch, ${formatNs(Number(epochNs))} an epoch`;
  return [
    ['Predicted', times, String(batchNs), 'predicted_batch_ns'],
    ...measuredFacts(session, { predictedNs: batchNs, measured: plan.measurement }),
  ];
}

/** A job's epochs beside what was predicted of them. */
export function paceFacts(session: Session, pace: JobPace | undefined): readonly Fact[] {
  if (pace === undefined) return [];
  const { predictedBatchNs, predictedEpochNs, way, measured } = pace;
  const times = `${formatNs(Number(predictedBatchNs))} a batch`;
  const epoch = predictedEpochNs === 0n ? '' : `, ${formatNs(Number(predictedEpochNs))} an epoch`;
  const text = `${times}${epoch} (${wayText(way)})`;
  return [
    ['Predicted', text, String(predictedBatchNs), 'predicted_batch_ns'],
    ...measuredFacts(session, { predictedNs: predictedBatchNs, measured }),
  ];
}

/** So far off a prediction stands out. */
const surprisingShare = 0.2;

function measuredFacts(
  session: Session,
  {
    predictedNs,
    measured,
  }: { readonly predictedNs: bigint; readonly measured: PlanMeasurement | undefined },
): readonly Fact[] {
  if (measured === undefined) return [];
  const { batchNs, epochNs, epochs } = measured;
  const off = Number(batchNs) / Number(predictedNs) - 1;
  const percent = `${Math.abs(100 * off).toFixed(0)} % ${off < 0 ? 'less' : 'more'}`;
  const shown = Math.abs(off) > surprisingShare ? session.style.yellow(percent) : percent;
  const times = `${formatNs(Number(batchNs))} a batch, ${formatNs(Number(epochNs))} an epoch`;
  const of = counted(epochs, 'epoch');
  return [['Measured', `${times}, ${shown} (${of})`, String(batchNs), 'measured_batch_ns']];
}

function planStaleness({ staleness, stalenessCompensation }: JobPlan): string {
  return stalenessText(create(JobSpecSchema, { training: { staleness, stalenessCompensation } }));
}

function cacheFacts(cache: CachePlan | undefined): readonly Fact[] {
  if (cache === undefined) return [];
  const rows = (title: string, count: bigint, key: string): Fact => [
    title,
    `${counted(count, 'row')}, ${formatBytes(Number(count * cache.rowBytes))}`,
    String(count),
    key,
  ];
  const why = printable(cache.explanation);
  return [
    ['Cache order', shortName(CachePolicySchema, cache.policy)],
    rows('Cache, Trainer', cache.trainerRows, 'cache_trainer_rows'),
    rows('Cache, standby', cache.standbyRows, 'cache_standby_rows'),
    ['Cache, why', why, why, 'cache_why'],
    ...reservedFacts(cache),
    ...pinnedFacts(cache),
    ...placementFacts(cache.placement),
    ...(cache.favoured === '' ? [] : [['Favoured', printable(cache.favoured)] as const]),
    ['Prefetch', `${cache.prefetch ? 'on' : 'off'}: ${printable(cache.prefetchExplanation)}`],
  ];
}

/** Device memory that no cache takes: of jobs on devices that have memory of their own. */
function reservedFacts({ reservedBytes }: CachePlan): readonly Fact[] {
  if (reservedBytes === 0n) return [];
  const text = `${formatBytes(Number(reservedBytes))} of each device, for PyTorch`;
  return [['Reserved', text, String(reservedBytes), 'cache_reserved_bytes']];
}

/** Pinned rows, for jobs on devices that have memory of their own. */
function pinnedFacts({ pinnedRows, pinnedExplanation, rowBytes }: CachePlan): readonly Fact[] {
  if (pinnedExplanation === '') return [];
  const size = formatBytes(Number(pinnedRows * rowBytes));
  const why = printable(pinnedExplanation);
  const text = pinnedRows === 0n ? why : `${counted(pinnedRows, 'row')}, ${size}: ${why}`;
  return [['Pinned rows', text, String(pinnedRows), 'cache_pinned_rows']];
}

/** Placement of rows, for jobs whose Trainers could hold rows for each other. */
function placementFacts(placement: RowPlacement | undefined): readonly Fact[] {
  if (placement === undefined) return [];
  const why = printable(placement.explanation);
  return [['Placement', why, why, 'cache_placement']];
}

function sharesText({ own, peer, host }: RowShares): string {
  return [own, peer, host].map((share) => `${(100 * share).toFixed(1)}`).join(' / ');
}

function waitText({ waitNs }: RowShares): string {
  return waitNs === 0n ? '-' : formatNs(Number(waitNs));
}

const placedColumns: readonly Column<PlacedDevice>[] = [
  { title: 'DEVICE', shown: ({ device }) => printable(device) },
  { title: 'COPIED', align: 'right', shown: ({ copiedRows }) => formatCount(copiedRows) },
  { title: 'DEALT', align: 'right', shown: ({ dealtRows }) => formatCount(dealtRows) },
  {
    title: 'OWN / PEER / HOST, %',
    align: 'right',
    shown: ({ expected }) => (expected === undefined ? '' : sharesText(expected)),
  },
  {
    title: 'EXTRACT',
    align: 'right',
    shown: ({ expected }) => (expected === undefined ? '' : waitText(expected)),
  },
  {
    title: 'MEASURED, %',
    align: 'right',
    shown: ({ measured }) => (measured === undefined ? '-' : sharesText(measured)),
  },
  {
    title: 'EXTRACT',
    align: 'right',
    shown: ({ measured }) => (measured === undefined ? '-' : waitText(measured)),
  },
];

export function wayColumns(plan: JobPlan): readonly Column<PlannedWay>[] {
  const [followed] = plan.ways;
  return [
    { title: 'WAY', shown: ({ way }) => wayText(way) },
    { title: 'SAMPLERS', align: 'right', shown: ({ samplers }) => String(samplers) },
    { title: 'TRAINERS', align: 'right', shown: ({ trainers }) => String(trainers) },
    { title: 'PREDICTED', align: 'right', shown: ({ batchNs }) => formatNs(Number(batchNs)) },
    { title: 'LIMIT', shown: ({ limit }) => shortName(PlanLimitSchema, limit).toLowerCase() },
    { title: 'AT ONCE', align: 'right', shown: ({ batchesAtOnce }) => String(batchesAtOnce) },
    { title: '', shown: (way) => (way === followed ? 'followed' : '') },
  ];
}

interface TimeOfKind {
  readonly kind: string;
  readonly predictedNs: bigint;
  readonly measuredNs: bigint;
}

/** T_s, T_t and T_t' of calibration beside those of the run. */
function kindsOf(plan: JobPlan, measured: PlanMeasurement): readonly TimeOfKind[] {
  const kind = (name: string, predictedNs: bigint, measuredNs: bigint): TimeOfKind => ({
    kind: name,
    predictedNs,
    measuredNs,
  });
  return [
    kind('batch', plan.ways[0]?.batchNs ?? 0n, measured.batchNs),
    kind('T_s, Sampler', plan.samplerBatchNs, measured.samplerBatchNs),
    kind('T_t, Trainer', plan.trainerBatchNs, measured.trainerBatchNs),
    kind('T_t, standby', plan.standbyBatchNs, measured.standbyBatchNs),
  ];
}

const kindColumns: readonly Column<TimeOfKind>[] = [
  { title: 'PER BATCH', shown: ({ kind }) => kind },
  { title: 'PREDICTED', align: 'right', shown: ({ predictedNs }) => timeText(predictedNs) },
  { title: 'MEASURED', align: 'right', shown: ({ measuredNs }) => timeText(measuredNs) },
];

function timeText(nanoseconds: bigint): string {
  return nanoseconds === 0n ? '-' : formatNs(Number(nanoseconds));
}

export function planSections(session: Session, plan: JobPlan): readonly string[] {
  const { ways, measurement } = plan;
  const placed = plan.cache?.placement?.devices ?? [];
  return [
    ...(placed.length === 0 ? [] : [tableOf(session, placedColumns, placed)]),
    ...(ways.length === 0 ? [] : [tableOf(session, wayColumns(plan), ways)]),
    ...(measurement === undefined
      ? []
      : [tableOf(session, kindColumns, kindsOf(plan, measurement))]),
  ];
}
