import { useEffect, useState } from 'preact/hooks';
import { DatasetService } from '../api/gen/gnnd/v1/dataset_service_pb.ts';
import { type Job, JobPhaseSchema, JobState } from '../api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../api/gen/gnnd/v1/job_service_pb.ts';
import { ModelTypeSchema } from '../api/gen/gnnd/v1/model_pb.ts';
import { Reason, ReasonSchema } from '../api/gen/gnnd/v1/types_pb.ts';
import { shortName } from '../spec/enum-names.ts';
import { isError, type Metric, metricPhrase, metricTitle, testMetricsOf } from '../spec/metrics.ts';
import { call } from './api.ts';
import { Chart, type ChartData, type Line } from './chart.tsx';
import { wallMs } from './clock.ts';
import { age, count, duration, idOf, msOf } from './format.ts';
import { type FeedState, isTerminal, type JobFeed } from './job-feed.ts';
import { predictedText, StateBadge, viewOf } from './jobs-view.tsx';
import { hitRate, hitRatesOf, queueOf } from './lanes.ts';
import { LanesView, StagesTable } from './lanes-view.tsx';
import { LogsView } from './logs-view.tsx';
import { HotRanks, PlanView } from './plan-view.tsx';
import { ReportView } from './report-view.tsx';
import { Trouble } from './trouble.tsx';
import { useFeed, usePolled } from './use-feed.ts';

const metricLines: readonly Line[] = [
  { label: 'loss', color: '--loss' },
  { label: 'training accuracy', color: '--train-accuracy', share: true, dashed: true },
  { label: 'validation accuracy', color: '--val-accuracy', share: true },
];
/** Lines of a job; not by accuracy: the metric that decides and the next one (job-feed.ts). */
function linesOf(job: Job): readonly Line[] {
  const metrics = job.result?.bestValMetrics ?? job.progress?.valMetrics ?? [];
  const [first, second] = metrics;
  if (first === undefined || first.name === 'accuracy') return metricLines;
  const line = ({ name }: Metric) => ({
    label: `validation ${metricTitle(name)}`,
    share: !isError(name),
  });
  return [
    { label: 'loss', color: '--loss' },
    { ...line(second ?? first), color: '--train-accuracy', dashed: true },
    { ...line(first), color: '--val-accuracy' },
  ];
}

const queueLines: readonly Line[] = [
  { label: 'batches', color: '--sample' },
  { label: 'capacity', color: '--muted', dashed: true },
];
const cacheLines: readonly Line[] = [
  { label: 'rows that caches had', color: '--extract', share: true },
];

const pollMs = 2000;

/** The view of one job, which follows it. */
export function JobView({ name }: { readonly name: string }) {
  const feed = useFeed(name);
  const { job } = feed;
  return (
    <main>
      <h1>
        <a href="#/">Jobs</a> / {idOf(name)}
      </h1>
      <Link state={feed.state} />
      {job !== null && <Parts job={job} feed={feed} />}
    </main>
  );
}

function Parts({ job, feed }: { readonly job: Job; readonly feed: JobFeed }) {
  const { name, attempts } = job;
  const attempt = attempts.at(-1)?.number ?? 0;
  const isOver = isTerminal(job.state);
  const keys = [name, attempt, isOver];
  const periodMs = isOver ? Number.POSITIVE_INFINITY : pollMs;
  const { getJobTimeline, getJobPlan } = JobService.method;
  const timeline = usePolled((signal) => call(getJobTimeline, { name }, signal), periodMs, keys);
  const plan = usePolled((signal) => call(getJobPlan, { name }, signal), periodMs, keys);
  const dataset = job.effectiveSpec?.dataset ?? '';
  const nodes = usePolled(
    (signal) => call(DatasetService.method.getDataset, { name: `datasets/${dataset}` }, signal),
    Number.POSITIVE_INFINITY,
    [dataset],
  );
  const queue = useColumns(timeline.value === null ? null : queueOf(timeline.value), 3);
  const hits = useColumns(timeline.value === null ? null : hitRatesOf(timeline.value), 2);
  const all = timeline.value?.stretches.flatMap(({ executors }) => executors) ?? [];
  const rate = hitRate(all);
  const lines = linesOf(job);
  const { learns } = viewOf(job);
  return (
    <>
      <Head job={job} epochs={feed.epochCount} />
      {learns && (
        <Chart
          key={lines.map(({ label }) => label).join()}
          title={lines === metricLines ? 'Loss and accuracy' : 'Loss and metrics'}
          x="epoch"
          lines={lines}
          data={feed}
        />
      )}
      <section aria-labelledby="roles">
        <h2 id="roles">Who did what</h2>
        <Trouble error={timeline.error} />
        {timeline.value !== null && <LanesView timeline={timeline.value} />}
        {timeline.value !== null && <StagesTable timeline={timeline.value} />}
      </section>
      {learns && (
        <>
          <Chart title="Queue" x="second" lines={queueLines} data={queue} />
          <section aria-labelledby="cache">
            <h2 id="cache">Cache</h2>
            {rate !== null && rate > 0 && (
              <Chart title="Hit rate" x="second" lines={cacheLines} data={hits} />
            )}
            {plan.value !== null && (
              <HotRanks
                plan={plan.value}
                nodes={nodes.value === null ? null : Number(nodes.value.numNodes)}
                hits={rate}
              />
            )}
          </section>
        </>
      )}
      <Trouble error={plan.error} />
      {plan.value !== null && <PlanView plan={plan.value} />}
      <Attempts job={job} />
      {learns && job.state === JobState.SUCCEEDED && <ReportView name={name} />}
      <LogsView name={name} />
    </>
  );
}

/** A chart's data of columns that are polled as a whole. */
function useColumns(columns: (number | null)[][] | null, width: number): ChartData {
  const [holder] = useState(() => {
    const listeners = new Set<() => void>();
    let points: (number | null)[][] = Array.from({ length: width }, () => []);
    return {
      points: () => points,
      onChange: (listener: () => void) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
      set(next: (number | null)[][]) {
        points = next;
        for (const listener of listeners) listener();
      },
    };
  });
  useEffect(() => {
    if (columns !== null) holder.set(columns);
  }, [columns?.[0]?.length, columns?.[0]?.at(-1)]);
  return holder;
}

/** Whether what is shown is what is. */
function Link({ state }: { readonly state: FeedState }) {
  if (state.kind === 'LIVE') return null;
  const text =
    state.kind === 'CONNECTING'
      ? 'Asking the daemon …'
      : state.kind === 'LOST'
        ? `Not live, tries again: ${state.message}`
        : state.message;
  return (
    <p class={state.kind === 'CONNECTING' ? 'empty' : 'trouble'} role="status">
      {text}
    </p>
  );
}

function Head({ job, epochs }: { readonly job: Job; readonly epochs: number }) {
  const { progress, result, effectiveSpec } = job;
  const planned = effectiveSpec?.training?.epochs ?? 0;
  const remainingMs = Number(progress?.remainingMs ?? 0n);
  const model = effectiveSpec?.model?.type;
  const tested = result === undefined ? undefined : testMetricsOf(result).best;
  const { unit } = viewOf(job);
  return (
    <section class="head" aria-label="State">
      <p>
        <StateBadge job={job} />
        {job.phase !== 0 && <span>{shortName(JobPhaseSchema, job.phase).toLowerCase()}</span>}
        <span>{job.message}</span>
      </p>
      <p>
        {unit === 'NODES' ? (
          <span>{predictedText(job)}</span>
        ) : (
          <>
            <progress max={Math.max(1, planned)} value={epochs} aria-label="Epochs that ended" />
            <span>
              {count(epochs)} of {count(planned)} epochs
            </span>
          </>
        )}
        {remainingMs > 0 && <span>{duration(remainingMs)} left</span>}
        {progress !== undefined && (
          <span>{count(Math.round(progress.seedsPerSecond))} seeds a second</span>
        )}
        {tested !== undefined && <span>{metricPhrase('test', tested)}</span>}
      </p>
      <dl>
        <Fact name="Dataset" text={effectiveSpec?.dataset ?? ''} />
        <Fact name="Model" text={model === undefined ? '' : shortName(ModelTypeSchema, model)} />
        <Fact name="Devices" text={job.deviceKindChoice} />
        <Fact name="Batches a step" text={job.batchesPerStepChoice} />
        <Fact name="Standardise" text={job.standardizeChoice} />
        <Fact name="Precision" text={job.precisionChoice} />
        <Fact name="Schedule" text={job.scheduleChoice} />
        <Fact name="Made" text={msOf(job.createTime) === null ? '' : madeText(job)} />
      </dl>
    </section>
  );
}

function reasonOf(reason: Reason): string {
  return reason > Reason.NONE ? shortName(ReasonSchema, reason) : '';
}

function Fact({ name, text }: { readonly name: string; readonly text: string }) {
  if (text === '') return null;
  return (
    <div>
      <dt>{name}</dt>
      <dd>{text}</dd>
    </div>
  );
}

/** When, and how long it ran where it has ended. */
function madeText({ createTime, startTime, endTime }: Job): string {
  const [madeMs, startMs, endMs] = [createTime, startTime, endTime].map(msOf);
  const made = `${age(Math.max(0, wallMs() - (madeMs ?? 0)))} ago`;
  return startMs == null || endMs == null ? made : `${made}, ran ${duration(endMs - startMs)}`;
}

/** Why there was more than one. */
function Attempts({ job }: { readonly job: Job }) {
  const told = job.attempts.filter(({ message, exits }) => message !== '' || exits.length > 0);
  if (told.length === 0) return null;
  return (
    <section aria-labelledby="attempts">
      <h2 id="attempts">Attempts</h2>
      <ul class="attempts">
        {told.map(({ number, message, exits, endReason }) => (
          <li key={number}>
            <b>Attempt {number}</b> {reasonOf(endReason)} {message}
            {exits.map(({ device, pid, reason, signal }) => (
              <small key={pid}>
                {device}: {shortName(ReasonSchema, reason)} {signal}
              </small>
            ))}
          </li>
        ))}
      </ul>
    </section>
  );
}
