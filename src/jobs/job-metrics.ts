import type { QueueSide, Stage } from '../metrics/labels.ts';
import type { JobMetricsInput, Metrics, RawHistogram } from '../metrics/metrics.ts';
import {
  counters,
  type ExecutorSnapshot,
  type SegmentSnapshot,
  stageBoundsSeconds,
  stages,
  waitBoundsSeconds,
  waitSides,
} from '../native/contract.ts';
import type { EpochReport, ExecutorRole, JobProgress, JobRecord } from '../records/job-record.ts';
import { keepsHistory } from '../spec/rules/history.ts';
import { favours, scaleParts } from '../spec/rules/locality.ts';
import { ExecutorUsage, type JobAttempt } from '../supervisor/supervisor.ts';

/**
 * What `/metrics` says about running jobs: an attempt's segment, translated. An attempt holds a
 * slot; its last values stay until the slot is used again: a short job can still be scraped.
 */

/** Letter of each stage, in the order of native `stages`. */
const stageLetters: readonly Stage[] = ['S', 'M', 'C', 'P', 'E', 'T', 'A', 'V'];

/** Number of buckets of levels and ages in native/core/ledger/layout.h. */
const historyBuckets = 8;

export interface JobMetrics {
  started(attempt: JobAttempt): void;
  ended(attempt: JobAttempt): void;
  epochEnded(attempt: JobAttempt, seconds: number): void;
  /** Brings the slots up to date; called before a scrape is rendered. */
  update(nowMs: number): void;
}

interface Slot {
  readonly attempt: JobAttempt;
  readonly usage: ExecutorUsage;
}

export function createJobMetrics(
  metrics: Metrics,
  jobOf: (id: string) => JobRecord | null,
): JobMetrics {
  const slots: (Slot | null)[] = [];
  const used = new Set<number>();
  const indexOf = (attempt: JobAttempt) => slots.findIndex((slot) => slot?.attempt === attempt);
  const inputNow = (index: number, { attempt, usage }: Slot, nowMs: number) => {
    const job = jobOf(attempt.input.jobId);
    return job === null ? null : inputOf(index, job, attempt, usage, nowMs);
  };
  return {
    started: (attempt) => {
      const free = slots.indexOf(null);
      const slot = free === -1 ? slots.length : free;
      if (used.has(slot)) metrics.releaseSlot(slot);
      slots[slot] = { attempt, usage: new ExecutorUsage() };
      used.add(slot);
    },
    ended: (attempt) => {
      const index = indexOf(attempt);
      const slot = slots[index] ?? null;
      if (slot === null) return;
      const input = inputNow(index, slot, attempt.seen.lastLookMs);
      // The last look was before the end: its sums hold, its executors are gone.
      if (input !== null) metrics.updateJob({ ...input, executors: [] });
      slots[index] = null;
    },
    epochEnded: (attempt, seconds) => {
      const index = indexOf(attempt);
      if (index !== -1) metrics.epochEnded(index, seconds);
    },
    update: (nowMs) => {
      slots.forEach((slot, index) => {
        if (slot === null) return;
        slot.usage.look(slot.attempt.seen.snapshot?.executors ?? []);
        const input = inputNow(index, slot, nowMs);
        if (input !== null) metrics.updateJob(input);
      });
    },
  };
}

function inputOf(
  slot: number,
  job: JobRecord,
  attempt: JobAttempt,
  usage: ExecutorUsage,
  nowMs: number,
): JobMetricsInput {
  const { snapshot, progress, epochs, lastCommitWallMs, checkpoints } = attempt.seen;
  const executors = snapshot?.executors ?? [];
  const total = (counter: keyof typeof counters) => sumOf(executors, counters[counter]);
  const last = epochs.last;
  const deviceName = (index: number) => attempt.input.devices[index]?.name ?? String(index);
  const spec = job.effectiveSpec;
  return {
    slot,
    job: job.id,
    uid: job.uid,
    dataset: spec.dataset,
    model: spec.model.type,
    state: job.state,
    phase: job.phase,
    attempt: attempt.input.number,
    restartBudgetRemaining: attempt.input.failuresLeft,
    lastProgressAtMs: lastCommitWallMs,
    remainingSeconds: remainingSecondsOf(job, progress),
    evaluation: evaluationOf(progress),
    epoch: snapshot?.epoch ?? 0,
    epochsTarget: spec.training.epochs,
    epochsCompleted: epochs.count,
    batches: batchesOf(attempt),
    steps: snapshot?.version ?? 0,
    parameterVersion: snapshot?.version ?? 0,
    sampledEdges: total('edges'),
    sampledNodes: total('nodes'),
    trainedSeeds: total('seeds'),
    evaluatedChunks: total('evaluationChunks'),
    evaluatedRows: total('evaluationRows'),
    stageSeconds: secondsOf(executors, 'stages', stageLetters, deviceName).map(
      ({ name, ...rest }) => ({ ...rest, stage: name }),
    ),
    waitSeconds: secondsOf(executors, 'waits', waitSides, deviceName).map(({ name, ...rest }) => ({
      ...rest,
      wait: name,
    })),
    stageDurations: Object.fromEntries(
      stageLetters.map((letter, i) => [letter, stageTimesOf(executors, i)]),
    ),
    loss: progress?.loss ?? last?.loss ?? null,
    evaluated: evaluatedOf(epochs, job.result),
    queue: queueOf(attempt),
    cache: cacheOf(attempt, executors),
    ...{ history: historyOf(attempt, executors), locality: localityOf(attempt) },
    deviceUse: deviceUseOf(attempt, executors),
    placement: placementOf(job, attempt),
    switches: {
      toStandby: sumOf(ofRole(executors, 'SAMPLER'), counters.turnSwitches),
      toSampler: sumOf(ofRole(executors, 'STANDBY'), counters.turnSwitches),
    },
    standbyWakeups: {
      USEFUL: total('standbyTakes'),
      EMPTY: total('standbyRefusals'),
    },
    executors: executors
      .filter(({ phase }) => phase !== 'REAPED')
      .map((executor) => ({
        role: executor.role,
        device: deviceName(executor.device),
        hasTurn: executor.hasTurn,
        heartbeatAgeSeconds:
          executor.heartbeatNs === 0 ? 0 : Math.max(0, nowMs / 1000 - executor.heartbeatNs / 1e9),
        residentBytes: usage.residentBytes(executor),
      })),
    cpuSeconds: usage.cpuSeconds,
    checkpoints,
  };
}

function cacheOf(
  attempt: JobAttempt,
  executors: readonly ExecutorSnapshot[],
): JobMetricsInput['cache'] {
  const total = (counter: keyof typeof counters) => sumOf(executors, counters[counter]);
  const largest = (counter: number) =>
    Math.max(0, ...executors.map((executor) => executor.counters[counter] ?? 0));
  const device = { rows: total('deviceRows'), bytes: total('deviceBytes') };
  const host = { rows: total('hostRows'), bytes: total('hostBytes') };
  const disk = { rows: total('diskRows'), bytes: total('diskBytes') };
  const peer = { rows: total('peerRows'), bytes: total('peerBytes') };
  const behind = { rows: host.rows + disk.rows, bytes: host.bytes + disk.bytes };
  const beyond = { rows: peer.rows + behind.rows, bytes: peer.bytes + behind.bytes };
  const capacityRows = largest(counters.cacheRows);
  return {
    capacityRows,
    ratio: capacityRows / attempt.input.dataset.counts.numNodes,
    givenUpRows: largest(counters.cacheGivenUpRows),
    lookups: {
      DEVICE: { HIT: device, MISS: beyond },
      PEER: { HIT: peer, MISS: behind },
      HOST: { HIT: host, MISS: disk },
      DISK: { HIT: disk, MISS: { rows: 0, bytes: 0 } },
    },
    fillSeconds: largest(counters.cacheFillNs) / 1e9,
    presampleSeconds: attempt.cachePlan.rankMs / 1000,
  };
}

function localityOf({ input: { spec }, seen }: JobAttempt): JobMetricsInput['locality'] {
  if (!favours(spec)) return null;
  const { maxScale, schedule } = spec.sampling.locality;
  const work = seen.epochs.last?.work;
  const next = (work?.next?.scale ?? scaleParts) / scaleParts;
  return {
    scale: schedule === 'ADAPTIVE' ? next : maxScale,
    extractShare: work === undefined ? null : shareOf(work),
  };
}

function shareOf({ extractNs, trainNs }: EpochReport['work']): number | null {
  const both = extractNs + trainNs;
  return both === 0 ? null : extractNs / both;
}

function historyOf(
  { input: { spec } }: JobAttempt,
  executors: readonly ExecutorSnapshot[],
): JobMetricsInput['history'] {
  if (!keepsHistory(spec)) return null;
  const total = (counter: number) => sumOf(executors, counter);
  const from = (first: number) =>
    Array.from({ length: historyBuckets }, (_, index) => total(first + index));
  // Trainers that share a history all report the same memory: only the largest counts.
  const largest = (counter: number) =>
    Math.max(0, ...executors.map((executor) => executor.counters[counter] ?? 0));
  const pruneAt = stages.indexOf('PRUNE');
  const pruneNs = executors.reduce((sum, { stages: of }) => sum + (of[pruneAt]?.totalNs ?? 0), 0);
  return {
    lookups: total(counters.historyLookUps),
    hitsByLevel: from(counters.historyHits1),
    hitsByAge: from(counters.historyAge1),
    events: {
      ADMITTED: total(counters.historyAdmitted),
      EVICTED: total(counters.historyEvicted),
      OVERWRITTEN: largest(counters.historyOverwritten),
    },
    prunedRows: total(counters.prunedRows),
    places: largest(counters.historyRows),
    compared: {
      rows: total(counters.historyCompared),
      similar: total(counters.historySimilar),
      cosine: total(counters.historyCosine) / 1e6,
      lagSteps: total(counters.historyLag),
    },
    pruneSeconds: pruneNs / 1e9,
    updateSeconds: total(counters.historyUpdateNs) / 1e9,
  };
}

/** Executors that share a device hold what they hold beside each other. */
function deviceUseOf(
  { input: { devices } }: JobAttempt,
  executors: readonly ExecutorSnapshot[],
): JobMetricsInput['deviceUse'] {
  return devices.flatMap(({ name, accelerator }, index) => {
    if (accelerator === undefined) return [];
    const here = executors.filter((executor) => executor.device === index);
    const alive = here.filter(({ phase }) => phase !== 'REAPED');
    const trainers = here.filter(({ role }) => role !== 'SAMPLER');
    return [
      {
        device: name,
        memoryBytes: {
          TOPOLOGY: sumOf(alive, counters.heldTopologyBytes),
          CACHE: sumOf(alive, counters.heldCacheBytes),
          WORKSPACE: sumOf(alive, counters.heldWorkspaceBytes),
          MODEL: sumOf(alive, counters.heldModelBytes),
        },
        copiedBytes: {
          IN: sumOf(here, counters.copiedInBytes),
          OUT: sumOf(here, counters.copiedOutBytes),
        },
        features: {
          CACHE: readBy(here, 'deviceRows', 'deviceBytes'),
          PEER: readBy(here, 'peerRows', 'peerBytes'),
          BUS: readBy(here, 'busRows', 'busBytes'),
          STAGED: readBy(here, 'stagedRows', 'stagedBytes'),
        },
        stageSeconds: {
          SAMPLE: sumOf(ofRole(here, 'SAMPLER'), counters.deviceNs) / 1e9,
          MARK: sumOf(here, counters.deviceMarkNs) / 1e9,
          COPY: sumOf(here, counters.deviceCopyNs) / 1e9,
          EXTRACT: sumOf(here, counters.deviceExtractNs) / 1e9,
          TRAIN: sumOf(trainers, counters.deviceNs) / 1e9,
          EVALUATE: sumOf(here, counters.deviceEvalNs) / 1e9,
        },
        rowWaitSeconds: sumOf(here, counters.rowWaitNs) / 1e9,
        evaluatedChunks: sumOf(here, counters.deviceEvalChunks),
        registeredBytes: sumOf(alive, counters.registeredBytes),
      },
    ];
  });
}

function readBy(
  executors: readonly ExecutorSnapshot[],
  rows: keyof typeof counters,
  bytes: keyof typeof counters,
) {
  return { rows: sumOf(executors, counters[rows]), bytes: sumOf(executors, counters[bytes]) };
}

function batchesOf({ seen: { snapshot } }: JobAttempt): JobMetricsInput['batches'] {
  const executors = snapshot?.executors ?? [];
  return {
    SAMPLED: sumOf(executors, counters.batchesSampled),
    EXTRACTED: sumOf(executors, counters.batchesTaken),
    PREFETCHED: sumOf(executors, counters.batchesAhead),
    TRAINED: sumOf(executors, counters.batchesTrained),
    COMMITTED: snapshot?.committedBatches ?? 0,
    REDELIVERED: sumOf(executors, counters.batchesGivenBack),
    DISCARDED: snapshot?.reclaimed ?? 0,
  };
}

function queueOf({ seen: { snapshot }, reclaimed }: JobAttempt): JobMetricsInput['queue'] {
  const executors = snapshot?.executors ?? [];
  return {
    depth: snapshot?.queueDepth ?? 0,
    capacity: snapshot?.numSlots ?? 0,
    inflight: { ENQUEUE: snapshot?.claimed ?? 0, DEQUEUE: snapshot?.taken ?? 0 },
    bytes: snapshot?.queueBytes ?? 0,
    slotBytes: snapshot?.largestRecordBytes ?? 0,
    ops: {
      ENQUEUE: sumOf(executors, counters.batchesSampled),
      DEQUEUE: sumOf(executors, counters.batchesTaken),
    },
    waits: { ENQUEUE: waitsOf(executors, 'ENQUEUE'), DEQUEUE: waitsOf(executors, 'DEQUEUE') },
    reclaimed,
    corruptRecords: sumOf(executors, counters.corruptRecords),
    lockOwnersDied: sumOf(executors, counters.lockOwnersDied),
  };
}

function placementOf({ plan }: JobRecord, attempt: JobAttempt): JobMetricsInput['placement'] {
  // Before it is calibrated a plan has no times.
  if (plan === null || plan.estimated) return null;
  const predictedNs = plan.ways[0]?.batchNs ?? null;
  const { last } = attempt.seen.epochs;
  return {
    predictedBatchSeconds: predictedNs === null ? null : predictedNs / 1e9,
    measuredBatchSeconds: last === null ? null : last.durationMs / 1000 / last.batches,
    k: plan.k,
    samplerBatchSeconds: plan.samplerBatchNs / 1e9,
    trainerBatchSeconds: plan.trainerBatchNs / 1e9,
    standbyBatchSeconds: plan.standbyBatchNs / 1e9,
    standbyProfitSeconds: standbyProfitOf(attempt.seen.snapshot),
  };
}

function evaluationOf(progress: JobProgress | null): JobMetricsInput['evaluation'] {
  const evaluation = progress?.evaluation ?? null;
  if (evaluation === null || evaluation.rowsTotal === 0) return null;
  const { rowsDone, rowsTotal, remainingMs } = evaluation;
  const remainingSeconds = remainingMs > 0 ? remainingMs / 1000 : null;
  return { doneRatio: rowsDone / rowsTotal, remainingSeconds };
}

/** The API's estimate; 0 there is "unknown". */
function remainingSecondsOf({ state }: JobRecord, progress: JobProgress | null): number | null {
  const ms = progress?.remainingMs ?? 0;
  return state === 'RUNNING' && ms > 0 ? ms / 1000 : null;
}

/** The segment says INT64_MAX where no normal Trainer drains the queue: no number to draw. */
const unboundedNs = 2 ** 63;

export function standbyProfitOf(
  snapshot: Pick<SegmentSnapshot, 'executors' | 'standbyProfitNs'> | null,
): number | null {
  const hasStandby = snapshot?.executors.some(
    ({ role, phase }) => role === 'STANDBY' && phase !== 'REAPED',
  );
  if (hasStandby !== true || snapshot === null) return null;
  return snapshot.standbyProfitNs >= unboundedNs ? null : snapshot.standbyProfitNs / 1e9;
}

function sumOf(executors: readonly ExecutorSnapshot[], counter: number): number {
  return executors.reduce((sum, executor) => sum + (executor.counters[counter] ?? 0), 0);
}

function ofRole(executors: readonly ExecutorSnapshot[], role: ExecutorRole) {
  return executors.filter((executor) => executor.role === role);
}

/** Sums by device and name; `names` are those of the times, in their order. */
function secondsOf<N extends string>(
  executors: readonly ExecutorSnapshot[],
  times: 'stages' | 'waits',
  names: readonly N[],
  deviceName: (index: number) => string,
): { readonly device: string; readonly name: N; readonly seconds: number }[] {
  const devices = new Set(executors.map(({ device }) => device));
  return [...devices].flatMap((device) =>
    names.map((name, i) => ({
      device: deviceName(device),
      name,
      seconds: executors
        .filter((executor) => executor.device === device)
        .reduce((sum, executor) => sum + (executor[times][i]?.totalNs ?? 0) / 1e9, 0),
    })),
  );
}

function waitsOf(executors: readonly ExecutorSnapshot[], side: QueueSide): RawHistogram {
  const index = waitSides.indexOf(side);
  const times = executors.map((executor) => executor.waits[index]);
  return mergedOf(times, waitBoundsSeconds.length + 1);
}

function stageTimesOf(executors: readonly ExecutorSnapshot[], stage: number): RawHistogram {
  const times = executors.map((executor) => executor.stages[stage]);
  return mergedOf(times, stageBoundsSeconds.length + 1);
}

/** Sums over executors; of none, zeros in every bucket. */
function mergedOf(
  times: readonly ({ totalNs: number; buckets: readonly number[] } | undefined)[],
  buckets: number,
): RawHistogram {
  const counts: number[] = Array(buckets).fill(0);
  let sum = 0;
  for (const time of times) {
    if (time === undefined) continue;
    sum += time.totalNs / 1e9;
    time.buckets.forEach((count, i) => {
      counts[i] = (counts[i] ?? 0) + count;
    });
  }
  return { counts, sum };
}

/** Metrics of the last epoch (TRAIN), the last evaluation (VAL) and the job's end (TEST). */
function evaluatedOf(
  { last, valMetrics }: JobAttempt['seen']['epochs'],
  result: JobRecord['result'],
): JobMetricsInput['evaluated'] {
  // Where there are no classes, there is no accuracy of training either.
  const classifies = valMetrics.length === 0 || valMetrics[0]?.name === 'accuracy';
  const train = { name: 'accuracy', value: last?.trainAccuracy ?? 0 };
  return {
    ...(last === null || !classifies ? {} : { TRAIN: [train] }),
    VAL: valMetrics,
    ...(result === null ? {} : { TEST: result.testMetricsLast }),
  };
}
