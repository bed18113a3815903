import { create, type MessageInitShape } from '@bufbuild/protobuf';
import type { AttemptTimeline } from '../jobs/jobs.ts';
import type {
  Attempt,
  EpochReport,
  ExecutorTimes,
  JobProgress,
  JobRecord,
  JobState,
  ResumePoint,
} from '../records/job-record.ts';
import { jobStates } from '../records/job-record.ts';
import type { MemoryPlan } from '../records/memory-plan.ts';
import { measurementOf } from '../records/plan-measurement.ts';
import { surpriseOf } from '../records/plan-surprise.ts';
import { kindText } from '../spec/automatic-kind.ts';
import { stepsText } from '../spec/batches-per-step.ts';
import { warningsOf } from '../spec/spec-warnings.ts';
import { int64, optionalTimestamp, timestamp } from './convert.ts';
import { memoryInit } from './convert-memory.ts';
import { paceInit, plannedTrainers } from './convert-plan.ts';
import { embed } from './embed.ts';
import type { EpochReportSchema } from './gen/gnnd/v1/epoch_report_pb.ts';
import { ExecutorRole, type ExecutorTimesSchema } from './gen/gnnd/v1/executor_pb.ts';
import * as pb from './gen/gnnd/v1/job_pb.ts';
import type { JobTimelineSchema } from './gen/gnnd/v1/timeline_pb.ts';
import { Reason } from './gen/gnnd/v1/types_pb.ts';

/** Jobs and their progress as messages. */

/** How much of a job a message carries; it stays far below the largest one either way. */
export type JobView =
  /** With the logs of dead executors. */
  | 'FULL'
  /** Without them: for lists, and for messages that are sent again and again. */
  | 'LIST';

const attemptsMax = 20;
const exitsMax = 20;

/** What is told with a job and is no part of its record. */
export interface BesideJob {
  /** Null unless the job is being worked on. */
  readonly progress: JobProgress | null;
  /** That ended in its attempt. */
  readonly numEpochs: number;
  /** The last of them, as many as are to be shown. */
  readonly epochs: readonly EpochReport[];
  /** Where it is to be told. */
  readonly memory?: MemoryPlan | null;
}

export function jobToProto(job: JobRecord, beside: BesideJob, view: JobView): pb.Job {
  const { progress, numEpochs, epochs, memory = null } = beside;
  const isWhole = view === 'FULL';
  const measured = job.plan === null || !isWhole ? null : measurementOf(epochs, job.plan);
  const surprise = job.plan === null ? null : surpriseOf(job.plan, measured);
  const surprises = surprise === null ? [] : [surprise];
  const message = create(pb.JobSchema, {
    name: `jobs/${job.id}`,
    uid: job.uid,
    state: pb.JobState[job.state],
    phase: job.phase === null ? pb.JobPhase.UNSPECIFIED : pb.JobPhase[job.phase],
    intent: pb.JobIntent[job.intent],
    reason: Reason[job.reason],
    message: job.message,
    progress: progress === null ? undefined : progressInit(progress),
    attempts: job.attempts
      .slice(-attemptsMax)
      .map((attempt) => attemptInit(attempt, view === 'FULL')),
    epochs: epochs.map((report) => epochInit(report, isWhole ? report.executorTimes : [])),
    numEpochs,
    pace: paceInit(job.plan, measured),
    memory: memory === null ? undefined : memoryInit(memory),
    // It is stored before executors are stopped: until then the job has not ended.
    result: job.state === 'SUCCEEDED' ? resultInit(job.result) : undefined,
    createTime: timestamp(job.createAtMs),
    startTime: optionalTimestamp(job.startAtMs),
    endTime: optionalTimestamp(job.endAtMs),
    revision: int64(job.revision),
    datasetDigest: job.datasetDigest,
    createdBy: job.createdBy,
    warnings:
      view === 'LIST'
        ? []
        : [...warningsOf(job.effectiveSpec, plannedTrainers(job.plan)), ...surprises],
    deviceKindChoice: view === 'LIST' ? '' : kindText(job.spec, job.effectiveSpec),
    standardizeChoice: view === 'LIST' ? '' : job.choices.standardize,
    precisionChoice: view === 'LIST' ? '' : job.choices.precision,
    scheduleChoice: view === 'LIST' ? '' : job.choices.schedule,
    batchesPerStepChoice: view === 'LIST' ? '' : stepsText(job.spec, job.effectiveSpec),
  });
  embed(message, pb.JobSchema.field.spec, job.encoded.spec);
  embed(message, pb.JobSchema.field.effectiveSpec, job.encoded.effectiveSpec);
  return message;
}

function resultInit(
  result: JobRecord['result'],
): MessageInitShape<typeof pb.JobResultSchema> | undefined {
  if (result === null) return undefined;
  const { predictions, ...others } = result;
  const trained = {
    ...others,
    testMetricsLast: [...result.testMetricsLast],
    testMetricsBest: [...result.testMetricsBest],
    bestValMetrics: [...result.bestValMetrics],
  };
  if (predictions === undefined) return trained;
  const { nodes, bytes, ...files } = predictions;
  return { ...trained, predictions: { ...files, nodes: int64(nodes), bytes: int64(bytes) } };
}

function progressInit(progress: JobProgress): MessageInitShape<typeof pb.JobProgressSchema> {
  return {
    ...progress,
    valMetrics: [...progress.valMetrics],
    batchesCommitted: int64(progress.batchesCommitted),
    batchesPerEpoch: int64(progress.batchesPerEpoch),
    version: int64(progress.version),
    remainingMs: int64(progress.remainingMs),
    evaluation: evaluationInit(progress.evaluation),
    executors: progress.executors.map((executor) => ({
      ...executor,
      role: ExecutorRole[executor.role],
      batches: int64(executor.batches),
    })),
  };
}

function evaluationInit(
  evaluation: JobProgress['evaluation'],
): MessageInitShape<typeof pb.EvaluationProgressSchema> | undefined {
  if (evaluation === null) return undefined;
  const { kind, epoch, rowsDone, rowsTotal, remainingMs } = evaluation;
  return {
    kind: pb.EvaluationKind[kind],
    epoch,
    rowsDone: int64(rowsDone),
    rowsTotal: int64(rowsTotal),
    remainingMs: int64(remainingMs),
  };
}

function attemptInit(
  attempt: Attempt,
  withLogTails: boolean,
): MessageInitShape<typeof pb.AttemptSchema> {
  return {
    number: attempt.number,
    startTime: timestamp(attempt.startAtMs),
    endTime: optionalTimestamp(attempt.endAtMs),
    endReason: Reason[attempt.endReason],
    message: attempt.message,
    executorRestarts: attempt.executorRestarts,
    exits: attempt.exits.slice(-exitsMax).map((exit) => ({
      role: ExecutorRole[exit.role],
      device: exit.device,
      pid: exit.pid,
      exitCode: exit.exitCode ?? undefined,
      signal: exit.signal ?? '',
      reason: Reason[exit.reason],
      logTail: withLogTails ? exit.logTail : '',
    })),
    resumed: attempt.resumed === null ? undefined : resumedInit(attempt.resumed),
  };
}

function resumedInit(point: ResumePoint): MessageInitShape<typeof pb.ResumePointSchema> {
  return { ...point, batches: int64(point.batches) };
}

function executorTimesInit(times: ExecutorTimes): MessageInitShape<typeof ExecutorTimesSchema> {
  return {
    role: ExecutorRole[times.role],
    device: times.device,
    durationNs: int64(times.durationNs),
    sampleNs: int64(times.sampleNs),
    markNs: int64(times.markNs),
    copyNs: int64(times.copyNs),
    extractNs: int64(times.extractNs),
    trainNs: int64(times.trainNs),
    applyNs: int64(times.applyNs),
    evaluateNs: int64(times.evaluateNs),
    waitEnqueueNs: int64(times.waitEnqueueNs),
    waitDequeueNs: int64(times.waitDequeueNs),
    waitDueNs: int64(times.waitDueNs),
    waitTurnNs: int64(times.waitTurnNs),
    waitExtractNs: int64(times.waitExtractNs),
    pruneNs: int64(times.pruneNs),
    historyNs: int64(times.historyNs),
    cachedRows: int64(times.cachedRows),
    peerRows: int64(times.peerRows),
    readRows: int64(times.readRows),
    prunedRows: int64(times.prunedRows),
    historyLookups: int64(times.historyLookups),
    historyHits: int64(times.historyHits),
    historyCompared: int64(times.historyCompared),
    historySimilar: int64(times.historySimilar),
    historyCosine: times.historyCosine,
    historyLag: int64(times.historyLag),
    cacheBorder: int64(times.cacheBorder),
    cacheGivenUpRows: int64(times.cacheGivenUpRows),
  };
}

export function timelineToProto(
  timeline: AttemptTimeline,
): MessageInitShape<typeof JobTimelineSchema> {
  return {
    attempt: timeline.attempt,
    queueCapacity: timeline.queueCapacity,
    stretches: timeline.stretches.map(({ startAtMs, durationNs, queueDepth, executors }) => ({
      startTime: timestamp(startAtMs),
      durationNs: int64(durationNs),
      queueDepth,
      executors: executors.map(executorTimesInit),
    })),
  };
}

/** `executorTimes` may be left out where they would be too much. */
export function epochInit(
  epoch: EpochReport,
  executorTimes: readonly ExecutorTimes[],
): MessageInitShape<typeof EpochReportSchema> {
  const batchesByDevice = Object.entries(epoch.batchesByDevice).map(
    ([device, batches]) => [device, int64(batches)] as const,
  );
  const { work: _, ...report } = epoch;
  return {
    ...report,
    valAccuracy: epoch.valAccuracy ?? undefined,
    valMetrics: [...epoch.valMetrics],
    batches: int64(epoch.batches),
    steps: int64(epoch.steps),
    retries: int64(epoch.retries),
    durationMs: int64(epoch.durationMs),
    version: int64(epoch.version),
    batchesByDevice: Object.fromEntries(batchesByDevice),
    executorTimes: executorTimes.map(executorTimesInit),
    extractNs: int64(epoch.work.extractNs),
    trainNs: int64(epoch.work.trainNs),
    localityScale: epoch.work.scale,
  };
}

/** Undefined for a number that is no state of this version, 0 among them. */
export function jobStateFromProto(value: pb.JobState): JobState | undefined {
  return jobStates.find((state) => pb.JobState[state] === value);
}
