import type { EpochReport } from '../../api/gen/gnnd/v1/epoch_report_pb.ts';
import type { ExecutorTimes } from '../../api/gen/gnnd/v1/executor_pb.ts';
import {
  type Attempt,
  type Job,
  JobPhaseSchema,
  type JobProgress,
  JobStateSchema,
  type ResumePoint,
} from '../../api/gen/gnnd/v1/job_pb.ts';
import type { MemoryPlan } from '../../api/gen/gnnd/v1/memory_plan_pb.ts';
import { TopologySourceSchema } from '../../api/gen/gnnd/v1/resources_pb.ts';
import { formatCount } from '../../spec/counted.ts';
import { shortName } from '../../spec/enum-names.ts';
import {
  lossOf,
  type Metric,
  metricLabel,
  metricText,
  metricTitle,
  testMetricsOf,
} from '../../spec/metrics.ts';
import type { Session } from '../session/session.ts';
import { printable } from '../session/terminal.ts';
import { formatAge, formatBytes, formatDuration, formatPercent } from '../session/units.ts';
import {
  evaluationLeft,
  evaluationShare,
  evaluationTitle,
  idOf,
  inferenceText,
  isoTime,
  modelText,
  paintState,
  phaseText,
  predictionsText,
  reasonText,
  relationsText,
  roleText,
  runMs,
  runTimeText,
  specOf,
  stalenessText,
  wallMs,
} from './job-text.ts';
import { bestValMetric, epochText, evaluationText } from './kind-views.ts';
import { featuresText, memorySummary, topologyText } from './memory-text.ts';
import { type Column, type Fact, tableOf, warningFacts } from './output.ts';
import { choiceFacts, paceFacts } from './plan-view.ts';

/** How jobs look in tables. */

function ageText(job: Job, nowMs: number): string {
  const createdMs = wallMs(job.createTime);
  return createdMs === null ? '' : formatAge(nowMs - createdMs);
}

export function jobColumns(session: Session): readonly Column<Job>[] {
  const nowMs = session.io.clock.wallMs();
  return [
    { title: 'JOB', shown: ({ name }) => idOf(name) },
    {
      title: 'STATE',
      shown: ({ state }) => paintState(state, session.style),
      plain: ({ state }) => shortName(JobStateSchema, state),
    },
    { title: 'EPOCH', align: 'right', shown: epochText },
    {
      title: 'VALIDATION',
      align: 'right',
      shown(job) {
        const best = bestValMetric(job);
        return best === null ? '' : metricLabel(best);
      },
      plain: (job) => String(bestValMetric(job)?.value ?? ''),
    },
    { title: 'DATASET', shown: (job) => specOf(job)?.dataset ?? '' },
    {
      title: 'TIME',
      plainTitle: 'RUN MS',
      align: 'right',
      shown: (job) => runTimeText(job, nowMs),
      plain: (job) => `${runMs(job, nowMs) ?? ''}`,
    },
    {
      title: 'AGE',
      plainTitle: 'CREATED',
      align: 'right',
      shown: (job) => ageText(job, nowMs),
      plain: ({ createTime }) => isoTime(createTime),
    },
    { title: 'MODEL', isWide: true, shown: (job) => modelText(specOf(job)) },
    {
      title: 'S',
      isWide: true,
      align: 'right',
      shown: (job) => stalenessText(specOf(job)).replace('S = ', ''),
      plain: (job) => `${specOf(job)?.training?.staleness ?? ''}`,
    },
    {
      title: 'PRIORITY',
      isWide: true,
      align: 'right',
      shown: (job) => `${specOf(job)?.priority ?? ''}`,
    },
    { title: 'BY', isWide: true, shown: ({ createdBy }) => printable(createdBy) },
    { title: 'REASON', isWide: true, shown: ({ reason }) => reasonText(reason) },
    { title: 'MESSAGE', isWide: true, shown: ({ message }) => printable(message) },
    { title: 'METRIC', isWide: true, shown: (job) => bestValMetric(job)?.name ?? '' },
  ];
}

function memoryFacts(plan: MemoryPlan | undefined): readonly Fact[] {
  if (plan === undefined) return [];
  const { surelyBytes, topology, featuresOnDisk } = plan;
  const place = shortName(TopologySourceSchema, topology);
  return [
    ['Memory', memorySummary(plan), String(surelyBytes), 'memory_surely_bytes'],
    ['Topology', topologyText(plan), place],
    ['Features', featuresText(plan), featuresOnDisk ? 'DISK' : 'PAGE_CACHE'],
  ];
}

function runningEvaluationFacts(progress: JobProgress | undefined): readonly Fact[] {
  const evaluation = progress?.evaluation;
  if (evaluation === undefined) return [];
  const share = evaluationShare(evaluation);
  const parts = [evaluationTitle(evaluation), formatPercent(share, 0), evaluationLeft(evaluation)];
  return [['Now', parts.filter((part) => part !== '').join(', '), `${share}`, 'evaluation_done']];
}

export function jobFacts(session: Session, job: Job): readonly Fact[] {
  const { progress } = job;
  const nowMs = session.io.clock.wallMs();
  const loss = lossOf(job);
  const state = paintState(job.state, session.style);
  const phase = phaseText(job.phase);
  return [
    ['Job', session.style.bold(idOf(job.name)), job.name],
    ['State', phase === '' ? state : `${state}, ${phase}`, shortName(JobStateSchema, job.state)],
    ['Phase', '', job.phase === 0 ? '' : shortName(JobPhaseSchema, job.phase)],
    ['Reason', reasonText(job.reason)],
    ['Message', printable(job.message)],
    ['Dataset', specOf(job)?.dataset ?? ''],
    ['Predicts', inferenceText(specOf(job))],
    ['Model', modelText(specOf(job))],
    ['Relations', relationsText(specOf(job))],
    ['Staleness', stalenessText(specOf(job)), `${specOf(job)?.training?.staleness ?? ''}`],
    ['Evaluation', evaluationText(specOf(job))],
    ...choiceFacts(job),
    ...memoryFacts(job.memory),
    ...runningEvaluationFacts(progress),
    ['Created', `${ageText(job, nowMs)} ago`, isoTime(job.createTime), 'create_time'],
    ['By', printable(job.createdBy), job.createdBy, 'created_by'],
    ['Ran for', runTimeText(job, nowMs), `${runMs(job, nowMs) ?? ''}`, 'run_ms'],
    ['Ended', '', isoTime(job.endTime), 'end_time'],
    ['Epochs', epochText(job)],
    ...paceFacts(session, job.pace),
    ...(loss === null ? [] : ([['Loss', loss.toFixed(4), String(loss)]] as const)),
    ...resultFacts(job),
    ...warningFacts(session, job.warnings),
  ];
}

function resultFacts(job: Job): readonly Fact[] {
  const { result } = job;
  if (result === undefined) return [];
  const { best, last } = testMetricsOf(result);
  const metrics = result.testMetricsBest.length === 0 && best ? [best] : result.testMetricsBest;
  const { predictions } = result;
  if (predictions !== undefined) {
    return [
      ['Predictions', predictionsText(predictions, specOf(job)), predictions.folder],
      ['Bytes', formatBytes(Number(predictions.bytes)), String(predictions.bytes)],
      ['Predictions SHA-256', '', predictions.sha256],
      parametersFact(result.parametersSha256),
    ];
  }
  return [
    ...metrics.map((metric) => metricFact(metric, '')),
    ...(last === undefined ? [] : [metricFact(last, ' last')]),
    ['Best epoch', String(result.bestEpoch + 1)],
    ['Checkpoint', result.checkpointDir],
    parametersFact(result.parametersSha256),
  ];
}

/** "Test macro F1 last". */
function metricFact(metric: Metric, suffix: string): Fact {
  return [`Test ${metricTitle(metric.name)}${suffix}`, metricText(metric), `${metric.value}`];
}

export function jobSections(session: Session, job: Job): readonly string[] {
  const sections: string[] = [];
  const attempts = job.attempts.filter(
    ({ endTime, exits }) => endTime !== undefined || exits.length > 0,
  );
  if (job.epochs.length > 0) {
    sections.push(tableOf(session, epochColumnsOf(job.epochs), job.epochs));
  }
  if (job.numEpochs > job.epochs.length) {
    const id = idOf(job.name);
    sections.push(
      `the last ${job.epochs.length} of ${job.numEpochs} epochs: gnnctl job epochs ${id}`,
    );
  }
  const times = job.epochs.findLast(({ executorTimes }) => executorTimes.length > 0);
  if (times !== undefined) {
    const title = `Where the time of epoch ${times.epoch + 1} went`;
    sections.push(`${title}\n${tableOf(session, timesColumns, times.executorTimes)}`);
  }
  if (attempts.length > 0 && job.attempts.length > 1) {
    sections.push(tableOf(session, attemptColumns, attempts));
  }
  const exits = attempts.flatMap((attempt) => attempt.exits);
  for (const exit of exits.slice(-3)) {
    const how = exit.signal === '' ? `exit code ${exit.exitCode ?? '?'}` : exit.signal;
    const who = `${roleText(exit.role)} on ${exit.device}`;
    const head = `${who} ended: ${how}, ${reasonText(exit.reason)}`;
    const tail = exit.logTail.trimEnd().split('\n').slice(-10);
    sections.push([head, ...tail.map((line) => `  ${printable(line)}`)].join('\n').trimEnd());
  }
  return sections;
}

const firstColumns: readonly Column<EpochReport>[] = [
  { title: 'EPOCH', align: 'right', shown: ({ epoch }) => String(epoch + 1) },
  { title: 'LOSS', align: 'right', shown: ({ loss }) => loss.toFixed(4) },
];
const accuracyColumns: readonly Column<EpochReport>[] = [
  { title: 'TRAIN ACC', align: 'right', shown: (report) => formatPercent(report.trainAccuracy) },
  {
    title: 'VAL ACC',
    align: 'right',
    shown: ({ valAccuracy }) => (valAccuracy === undefined ? '-' : formatPercent(valAccuracy)),
  },
];
const lastColumns: readonly Column<EpochReport>[] = [
  { title: 'BATCHES', align: 'right', shown: ({ batches }) => formatCount(batches) },
  { title: 'RETRIES', align: 'right', shown: ({ retries }) => formatCount(retries) },
  { title: 'TIME', align: 'right', shown: ({ durationMs }) => formatDuration(Number(durationMs)) },
];

/** Where some neighbours are favoured: how much, and what follows from the times. */
const localityColumns: readonly Column<EpochReport>[] = [
  { title: 'SCALE', align: 'right', shown: ({ localityScale }) => String(localityScale) },
  {
    title: 'EXTRACT',
    align: 'right',
    shown({ extractNs, trainNs }) {
      const both = Number(extractNs + trainNs);
      return both === 0 ? '' : formatPercent(Number(extractNs) / both);
    },
  },
  {
    title: 'STALLED',
    align: 'right',
    shown({ executorTimes }) {
      const trainers = executorTimes.filter(({ trainNs }) => trainNs > 0n);
      const sum = (of: (times: ExecutorTimes) => bigint) =>
        Number(trainers.reduce((total, times) => total + of(times), 0n));
      const whole = sum(({ durationNs }) => durationNs);
      return whole === 0 ? '' : formatPercent(sum(({ waitExtractNs }) => waitExtractNs) / whole);
    },
  },
];

/** Where embeddings have taken cached rows' place: the border, and what lies beyond it now. */
const borderColumns: readonly Column<EpochReport>[] = [
  {
    title: 'BORDER',
    align: 'right',
    shown(report) {
      const caches = cachesOf(report).map(({ cacheBorder }) => Number(cacheBorder));
      return caches.length === 0 ? '' : formatCount(Math.min(...caches));
    },
  },
  {
    title: 'GIVEN UP',
    align: 'right',
    shown: (report) => formatCount(givenUpRowsOf(report)),
  },
];

function cachesOf({ executorTimes }: EpochReport): readonly ExecutorTimes[] {
  return executorTimes.filter((times) => times.cacheBorder + times.cacheGivenUpRows > 0n);
}

/** Rows given up by the cache that gave up most. */
export function givenUpRowsOf(report: EpochReport): number {
  return Math.max(0, ...cachesOf(report).map(({ cacheGivenUpRows }) => Number(cacheGivenUpRows)));
}

/**
 * The columns of epochs, with those of locality where an epoch has a scale above 1, and with
 * those of the border where embeddings took the place of cached rows.
 */
export function epochColumnsOf(epochs: readonly EpochReport[]): readonly Column<EpochReport>[] {
  const favours = epochs.some(({ localityScale }) => localityScale > 1);
  const givesUp = epochs.some((report) => givenUpRowsOf(report) > 0);
  const names = epochs.find(({ valMetrics }) => valMetrics.length > 0)?.valMetrics ?? [];
  const hasAccuracy = epochs.some(
    (each) => each.trainAccuracy > 0 || each.valAccuracy !== undefined,
  );
  const classifies = names.length === 0 ? hasAccuracy : names[0]?.name === 'accuracy';
  return [
    ...firstColumns,
    ...(classifies ? accuracyColumns : names.map(({ name }) => metricColumn(name))),
    ...lastColumns,
    ...(favours ? localityColumns : []),
    ...(givesUp ? borderColumns : []),
  ];
}

function metricColumn(wanted: string): Column<EpochReport> {
  return {
    title: `VAL ${metricTitle(wanted).toUpperCase()}`,
    align: 'right',
    shown({ valMetrics }) {
      const metric = valMetrics.find(({ name }) => name === wanted);
      return metric === undefined ? '-' : metricText(metric);
    },
  };
}

function shareColumn(
  title: string,
  partOf: (times: ExecutorTimes) => bigint,
  wholeOf: (times: ExecutorTimes) => bigint = ({ durationNs }) => durationNs,
): Column<ExecutorTimes> {
  return {
    title,
    align: 'right',
    shown(times) {
      const [part, whole] = [Number(partOf(times)), Number(wholeOf(times))];
      return part <= 0 || whole === 0 ? '' : formatPercent(part / whole);
    },
  };
}

/** Shares of an executor's time; HIDDEN is the share of its extraction that ran beside training. */
const timesColumns: readonly Column<ExecutorTimes>[] = [
  { title: 'ROLE', shown: ({ role }) => roleText(role) },
  { title: 'DEVICE', shown: ({ device }) => printable(device) },
  shareColumn('SAMPLE', ({ sampleNs }) => sampleNs),
  shareColumn('MARK', ({ markNs }) => markNs),
  shareColumn('EXTRACT', ({ extractNs }) => extractNs),
  shareColumn(
    'HIDDEN',
    ({ extractNs, waitExtractNs }) => extractNs - waitExtractNs,
    ({ extractNs }) => extractNs,
  ),
  shareColumn('TRAIN', ({ trainNs }) => trainNs),
  shareColumn('APPLY', ({ applyNs }) => applyNs),
  shareColumn('EVALUATE', ({ evaluateNs }) => evaluateNs),
  shareColumn('WAIT', (times) => times.waitEnqueueNs + times.waitDequeueNs),
  shareColumn('WAIT DUE', ({ waitDueNs }) => waitDueNs),
  shareColumn('WAIT TURN', ({ waitTurnNs }) => waitTurnNs),
];

const attemptColumns: readonly Column<Attempt>[] = [
  { title: 'ATTEMPT', align: 'right', shown: ({ number }) => String(number) },
  { title: 'FROM', shown: ({ resumed }) => resumedText(resumed) },
  { title: 'ENDED', shown: ({ endReason }) => reasonText(endReason) },
  { title: 'RESPAWNS', align: 'right', shown: ({ executorRestarts }) => String(executorRestarts) },
  { title: 'MESSAGE', shown: ({ message }) => printable(message) },
];

/** Where an attempt began; epochs and batches count from 1 to people. */
function resumedText(point: ResumePoint | undefined): string {
  if (point === undefined) return 'the beginning';
  const build = point.otherBuild ? ', another build' : '';
  return `epoch ${point.epochs + 1}, batch ${point.batches + 1n}${build}`;
}

function parametersFact(sha256: string): Fact {
  return ['Parameters SHA-256', sha256, sha256, 'parameters_sha256'];
}
