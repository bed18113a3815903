import { type Job, JobPhaseSchema } from '../api/gen/gnnd/v1/job_pb.ts';
import { shortName } from '../spec/enum-names.ts';
import { Chart, type Line } from './chart.tsx';
import { duration, idOf, percent } from './format.ts';
import type { FeedState, JobFeed } from './job-feed.ts';
import { StateBadge } from './jobs-view.tsx';
import { useFeed } from './use-feed.ts';

const metricLines: readonly Line[] = [
  { label: 'loss', color: '--loss' },
  { label: 'training accuracy', color: '--train-accuracy', share: true, dashed: true },
  { label: 'validation accuracy', color: '--val-accuracy', share: true },
];

/** One job, followed. */
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
  return (
    <>
      <Head job={job} />
      <Chart title="Loss and accuracy" x="epoch" lines={metricLines} data={feed} />
    </>
  );
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

function Head({ job }: { readonly job: Job }) {
  const { progress, result, effectiveSpec } = job;
  const planned = effectiveSpec?.training?.epochs ?? 0;
  const remainingMs = Number(progress?.remainingMs ?? 0n);
  return (
    <section class="head" aria-label="State">
      <p>
        <StateBadge job={job} />
        {job.phase !== 0 && <span>{shortName(JobPhaseSchema, job.phase).toLowerCase()}</span>}
        <span>{job.message}</span>
      </p>
      <p>
        <progress max={Math.max(1, planned)} value={job.numEpochs} aria-label="Epochs that ended" />
        <span>
          {job.numEpochs} of {planned} epochs
        </span>
        {remainingMs > 0 && <span>{duration(remainingMs)} left</span>}
        {result !== undefined && <span>test accuracy {percent(result.testAccuracyBest)}</span>}
      </p>
    </section>
  );
}
