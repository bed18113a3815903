import { useState } from 'preact/hooks';
import { DeviceState, DeviceStateSchema, HostService } from '../api/gen/gnnd/v1/host_service_pb.ts';
import { InferenceOutput, JobKind } from '../api/gen/gnnd/v1/inference_pb.ts';
import { type Job, JobStateSchema } from '../api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../api/gen/gnnd/v1/job_service_pb.ts';
import { counted } from '../spec/counted.ts';
import { shortName } from '../spec/enum-names.ts';
import { firstOf, lossOf, type Metric, metricLabel, valMetricOf } from '../spec/metrics.ts';
import { call } from './api.ts';
import { wallMs } from './clock.ts';
import { age, count, idOf, msOf, short } from './format.ts';
import { Trouble } from './trouble.tsx';
import { usePolled } from './use-feed.ts';

const periodMs = 2000;
const pageSize = 50;

/** Devices and jobs: what runs where, and what the others wait for. */
export function JobsView() {
  const [tokens, setTokens] = useState<readonly string[]>(['']);
  const pageToken = tokens.at(-1) ?? '';
  const jobs = usePolled(
    (signal) => call(JobService.method.listJobs, { pageSize, pageToken }, signal),
    periodMs,
    [pageToken],
  );
  const next = jobs.value?.nextPageToken ?? '';
  return (
    <main>
      <Devices />
      <h1>Jobs</h1>
      <Trouble error={jobs.error} />
      {jobs.value !== null && <JobTable jobs={jobs.value.jobs} />}
      <nav class="pages" aria-label="Pages of jobs">
        {tokens.length > 1 && (
          <button type="button" onClick={() => setTokens(tokens.slice(0, -1))}>
            Newer
          </button>
        )}
        {next !== '' && (
          <button type="button" onClick={() => setTokens([...tokens, next])}>
            Older
          </button>
        )}
      </nav>
    </main>
  );
}

function JobTable({ jobs }: { readonly jobs: readonly Job[] }) {
  if (jobs.length === 0) return <p class="empty">No job yet: gnnctl job create -f job.yaml</p>;
  return (
    <table class="jobs">
      <thead>
        <tr>
          <th scope="col">Job</th>
          <th scope="col">State</th>
          <th scope="col">Epochs</th>
          <th scope="col">Loss</th>
          <th scope="col">Validation</th>
          <th scope="col">Made</th>
        </tr>
      </thead>
      <tbody>
        {jobs.map((job) => (
          <JobRow key={job.uid} job={job} />
        ))}
      </tbody>
    </table>
  );
}

function JobRow({ job }: { readonly job: Job }) {
  const { progress } = job;
  const planned = job.effectiveSpec?.training?.epochs ?? progress?.epochs ?? 0;
  const loss = lossOf(job);
  const validation = validationOf(job);
  const madeMs = msOf(job.createTime);
  return (
    <tr>
      <td data-label="Job">
        <a href={`#/${job.name}`}>{idOf(job.name)}</a>
        <small>{job.effectiveSpec?.dataset ?? ''}</small>
      </td>
      <td data-label="State">
        <StateBadge job={job} />
        {job.message !== '' && <small>{job.message}</small>}
      </td>
      <td data-label="Epochs">
        {viewOf(job).unit === 'NODES' ? (
          <small>{predictedText(job)}</small>
        ) : (
          <>
            <progress
              max={Math.max(1, planned)}
              value={job.numEpochs}
              aria-label="Epochs that ended"
            />
            <small>
              {count(job.numEpochs)} of {count(planned)}
            </small>
          </>
        )}
      </td>
      <td data-label="Loss" class="number">
        {loss === null ? '–' : short(loss)}
      </td>
      <td data-label="Validation" class="number">
        {validation === undefined ? '–' : metricLabel(validation)}
      </td>
      <td data-label="Made" class="number">
        {madeMs === null ? '–' : `${age(Math.max(0, wallMs() - madeMs))} ago`}
      </td>
    </tr>
  );
}

/** The deciding metric of the best parameters once they exist, else of the last evaluation. */
function validationOf(job: Job): Metric | undefined {
  if (!viewOf(job).learns) return undefined;
  const { result, progress, epochs } = job;
  if (result !== undefined) return firstOf(result.bestValMetrics, result.bestValAccuracy);
  const running = firstOf(progress?.valMetrics ?? [], progress?.valAccuracy ?? 0);
  const last = epochs.at(-1);
  return running ?? (last && valMetricOf(last));
}

/** What views show of jobs of one kind. */
interface KindView {
  /** How far a job is: epochs that ended, or nodes that were predicted. */
  readonly unit: 'EPOCHS' | 'NODES';
  /** Whether it is validated, and has charts of what it learns and of the batches it waits for. */
  readonly learns: boolean;
}

const training: KindView = { unit: 'EPOCHS', learns: true };
const predicting: KindView = { unit: 'NODES', learns: false };

const lending: KindView = { unit: 'EPOCHS', learns: false };

export function viewOf({ effectiveSpec }: Job): KindView {
  switch (effectiveSpec?.kind) {
    case JobKind.INFERENCE:
      return predicting;
    case JobKind.LOAD:
      return lending;
    default:
      return training;
  }
}

export function predictedText({ result, effectiveSpec }: Job): string {
  const rows = result?.predictions?.nodes;
  const asked = effectiveSpec?.inference?.outputs ?? [];
  const what = asked.includes(InferenceOutput.SCORES) ? 'pair' : 'node';
  return rows === undefined ? 'predicts' : `predicted ${counted(rows, what)}`;
}

export function StateBadge({ job }: { readonly job: Job }) {
  const name = shortName(JobStateSchema, job.state);
  return (
    <span class="badge" data-state={name}>
      {name.toLowerCase()}
    </span>
  );
}

function Devices() {
  const { value, error } = usePolled(
    (signal) => call(HostService.method.listDevices, {}, signal),
    periodMs,
    [],
  );
  return (
    <section aria-labelledby="devices">
      <h2 id="devices">Devices</h2>
      <Trouble error={error} />
      <ul class="devices">
        {(value?.devices ?? []).map((device) => (
          <li key={device.name} data-state={shortName(DeviceStateSchema, device.state)}>
            <b>{idOf(device.name)}</b>
            {device.state === DeviceState.ALLOCATED ? (
              <a href={`#/${device.job}`}>{idOf(device.job)}</a>
            ) : (
              <span>{shortName(DeviceStateSchema, device.state).toLowerCase()}</span>
            )}
            {device.note !== '' && <small>{device.note}</small>}
          </li>
        ))}
      </ul>
    </section>
  );
}
