import {
  counters,
  type ExecutorSnapshot,
  evaluationMetrics,
  type SegmentEpoch,
  type SegmentSnapshot,
  stages,
  waitSides,
} from '../native/contract.ts';
import type {
  EpochReport,
  EvaluationProgress,
  ExecutorStatus,
  ExecutorTimes,
  JobProgress,
} from '../records/job-record.ts';
import { type DecidingMetric, type Metric, nameOf } from '../spec/metrics.ts';
import { scaleParts } from '../spec/rules/locality.ts';
import { isAlive, type ProgressFacts } from '../supervisor/supervisor.ts';

/** What people see of a running job, computed from two looks at its segment. Pure. */

/** Facts that progress of any working crew is computed from. */
export interface CrewFacts extends ProgressFacts {
  readonly deviceNames: readonly string[];
  /** Process ids by incarnation. */
  readonly pids: ReadonlyMap<number, number>;
}

export interface ProgressInput extends CrewFacts {
  /** Number of planned epochs. */
  readonly epochs: number;
  readonly batchesPerEpoch: number;
  /** The epoch in progress and the last one that ended; null before. */
  readonly current: SegmentEpoch;
  readonly lastReport: EpochReport | null;
  /** Metrics of the last evaluation; none before. */
  readonly valMetrics: readonly Metric[];
  /** Batches that were committed when the attempt began to train. */
  readonly startedBatches: number;
}

export function progressOf(input: ProgressInput): JobProgress {
  const { snapshot, atMs } = input.now;
  const before = input.before;
  const elapsedSeconds = secondsBetween(input);
  const rate = (counter: number) =>
    before === null || elapsedSeconds <= 0
      ? 0
      : (sumOf(snapshot, counter) - sumOf(before.snapshot, counter)) / elapsedSeconds;
  const total = snapshot.totalBatches;
  const done = snapshot.committedBatches;
  const spentMs = atMs - input.startedMs;
  const doneHere = done - input.startedBatches;
  const { current, lastReport } = input;
  return {
    epoch: snapshot.epoch,
    epochs: input.epochs,
    batchesCommitted: done - snapshot.epoch * input.batchesPerEpoch,
    batchesPerEpoch: input.batchesPerEpoch,
    version: snapshot.version,
    loss: current.seeds > 0 ? current.lossSum / current.seeds : (lastReport?.loss ?? 0),
    valAccuracy: accuracyIn(input.valMetrics) ?? 0,
    valMetrics: input.valMetrics,
    seedsPerSecond: rate(counters.seeds),
    edgesPerSecond: rate(counters.edges),
    remainingMs: doneHere <= 0 ? 0 : Math.round((spentMs / doneHere) * (total - done)),
    queueDepth: snapshot.queueDepth,
    queueCapacity: snapshot.numSlots,
    executors: statusesOf(input),
    evaluation: evaluationProgressOf(input),
  };
}

function secondsBetween({ before, now }: ProgressFacts): number {
  return before === null ? 0 : (now.atMs - before.atMs) / 1000;
}

function statusesOf(input: CrewFacts): readonly ExecutorStatus[] {
  return input.now.snapshot.executors
    .filter(isAlive)
    .map((executor) => statusOf(executor, input, secondsBetween(input)));
}

/** Progress of a job without batches, which is only how far its one evaluation is. */
export function inferenceProgressOf(input: CrewFacts): JobProgress {
  const evaluation = evaluationProgressOf(input);
  return {
    ...{ epoch: 0, epochs: 0, batchesCommitted: 0, batchesPerEpoch: 0, version: 0 },
    ...{ loss: 0, valAccuracy: 0, valMetrics: [], seedsPerSecond: 0, edgesPerSecond: 0 },
    ...{ queueDepth: 0, queueCapacity: 0, remainingMs: evaluation?.remainingMs ?? 0 },
    executors: statusesOf(input),
    evaluation: evaluation === null ? null : { ...evaluation, kind: 'PREDICTION' },
  };
}

/** Progress of an evaluation; its end is expected at the rate between the two looks. */
function evaluationProgressOf(input: CrewFacts): EvaluationProgress | null {
  const now = input.now.snapshot.evaluation;
  if (now === null) return null;
  const { kind, epoch, done, total } = now;
  const before = input.before?.snapshot.evaluation ?? null;
  const isSame = before?.kind === kind && before.epoch === epoch;
  const elapsedMs = 1000 * secondsBetween(input);
  const rows = done - (isSame ? before.done : 0);
  const remainingMs = rows > 0 && total > 0 ? ((total - done) / rows) * elapsedMs : 0;
  return { kind, epoch, rowsDone: done, rowsTotal: total, remainingMs: Math.round(remainingMs) };
}

function statusOf(
  executor: ExecutorSnapshot,
  input: CrewFacts,
  elapsedSeconds: number,
): ExecutorStatus {
  const before = input.before?.snapshot.executors.find((e) => e.row === executor.row);
  const busyNs = busyOf(executor) - (before === undefined ? 0 : busyOf(before));
  const isSampler = executor.role === 'SAMPLER';
  const batches = isSampler ? counters.batchesSampled : counters.batchesTrained;
  return {
    role: executor.role,
    device: input.deviceNames[executor.device] ?? `device ${executor.device}`,
    pid: input.pids.get(executor.incarnation) ?? 0,
    busy: elapsedSeconds <= 0 ? 0 : Math.min(1, busyNs / 1e9 / elapsedSeconds),
    batches: executor.counters[batches] ?? 0,
    stage: executor.stage,
    cacheHitRate: hitRateOf(executor),
  };
}

function hitRateOf(executor: ExecutorSnapshot): number {
  const rows = (counter: number) => executor.counters[counter] ?? 0;
  const hits = rows(counters.deviceRows);
  const behind = rows(counters.peerRows) + rows(counters.hostRows) + rows(counters.diskRows);
  const all = hits + behind;
  return all === 0 ? 0 : hits / all;
}

/** What the reports of a job's epochs are made with. */
export interface ReportedJob {
  readonly deviceNames: readonly string[];
  readonly decides: DecidingMetric;
  /** What ranks are among, by which their names go; empty: there are none. */
  readonly negatives: string;
}

/**
 * The report of an epoch that is over; `previous` is the one before it, null for the first. Throws
 * when its ledger is not as it must be.
 */
export function epochReportOf(
  epoch: SegmentEpoch,
  previous: SegmentEpoch | null,
  { deviceNames, ...naming }: ReportedJob,
  executorTimes: readonly ExecutorTimes[],
): EpochReport {
  const { evaluation } = epoch;
  if (epoch.ledgerDigest !== epoch.expectedLedgerDigest) {
    throw new Error(`epoch ${epoch.epoch}: the ledger shows a batch not committed exactly once`);
  }
  const valMetrics = evaluation === null ? [] : metricsOf(evaluation.metrics, naming);
  return {
    epoch: epoch.epoch,
    batches: epoch.batches,
    steps: epoch.steps,
    retries: epoch.retries,
    loss: share(epoch.lossSum, epoch.seeds),
    trainAccuracy: share(epoch.correct, epoch.seeds),
    valAccuracy: accuracyIn(valMetrics),
    valMetrics,
    durationMs: Math.round((epoch.endNs - beginNs(epoch, previous)) / 1e6),
    version: epoch.finalVersion,
    parametersSha256: epoch.parametersSha256,
    ledgerDigest: epoch.ledgerDigest,
    batchesByDevice: Object.fromEntries(
      deviceNames.map((name, index) => [name, epoch.deviceBatches[index] ?? 0]),
    ),
    executorTimes,
    work: {
      extractNs: epoch.extractNs,
      trainNs: epoch.trainNs,
      scale: epoch.localityScale / scaleParts,
      next: epoch.nextScale,
    },
  };
}

/** Samplers begin while the epoch before is evaluated; nothing is trained until that is over. */
function beginNs({ startNs }: SegmentEpoch, previous: SegmentEpoch | null): number {
  return Math.max(startNs, previous?.evaluation?.endNs ?? 0);
}

function sumOf(snapshot: SegmentSnapshot, counter: number): number {
  return snapshot.executors.reduce((sum, e) => sum + (e.counters[counter] ?? 0), 0);
}

/** Extraction counts as long as it was waited for: beside training the process is busy anyway. */
function busyOf(executor: ExecutorSnapshot): number {
  const all = executor.stages.reduce((sum, stage) => sum + stage.totalNs, 0);
  const extractNs = executor.stages[stages.indexOf('EXTRACT')]?.totalNs ?? 0;
  const waitedNs = executor.waits[waitSides.indexOf('EXTRACT')]?.totalNs ?? 0;
  return all - extractNs + waitedNs;
}

/** The accuracy; null where there are no classes or nothing was evaluated. */
export function accuracyIn(metrics: readonly Metric[]): number | null {
  return metrics.find(({ name }) => name === 'accuracy')?.value ?? null;
}

/** Existing metrics by name, in the order in which they are shown: the deciding one is first. */
export function metricsOf(
  values: readonly number[],
  { decides, negatives }: Omit<ReportedJob, 'deviceNames'>,
): readonly Metric[] {
  const metrics = new Set([decides, ...evaluationMetrics]);
  return [...metrics]
    .map((metric) => ({
      name: nameOf(metric, negatives),
      value: values[evaluationMetrics.indexOf(metric)] ?? Number.NaN,
    }))
    .filter(({ value }) => !Number.isNaN(value));
}

function share(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole;
}
