import type { QueueSide, Stage } from '../metrics/labels.ts';
import type { JobMetricsInput, Metrics, RawHistogram } from '../metrics/metrics.ts';
import { counters, type ExecutorSnapshot, stages, waitSides } from '../native/contract.ts';
import type { ExecutorRole, JobRecord } from '../spec/job-record.ts';
import type { JobAttempt } from '../supervisor/job-attempt.ts';

/**
 * What `/metrics` says about running jobs: an attempt's segment, translated. An attempt holds a
 * slot; its last values stay until the slot is used again, so that a short job can still be scraped.
 */

/** Letter of each stage, in the order of native `stages`. */
const stageLetters: readonly Stage[] = ['S', 'M', 'C', 'P', 'E', 'T', 'A', 'V'];

export interface JobMetrics {
  started(attempt: JobAttempt): void;
  ended(attempt: JobAttempt): void;
  epochEnded(attempt: JobAttempt, seconds: number): void;
  /** Brings the slots up to date; called before a scrape is rendered. */
  update(nowMs: number): void;
}

export function createJobMetrics(
  metrics: Metrics,
  jobOf: (id: string) => JobRecord | null,
): JobMetrics {
  const slots: (JobAttempt | null)[] = [];
  const used = new Set<number>();
  const tell = (slot: number, attempt: JobAttempt, nowMs: number) => {
    const job = jobOf(attempt.input.jobId);
    if (job !== null) metrics.updateJob(inputOf(slot, job, attempt, nowMs));
  };
  return {
    started: (attempt) => {
      const free = slots.indexOf(null);
      const slot = free === -1 ? slots.length : free;
      if (used.has(slot)) metrics.releaseSlot(slot);
      slots[slot] = attempt;
      used.add(slot);
    },
    ended: (attempt) => {
      const slot = slots.indexOf(attempt);
      if (slot === -1) return;
      tell(slot, attempt, attempt.lastLookMs);
      slots[slot] = null;
    },
    epochEnded: (attempt, seconds) => {
      const slot = slots.indexOf(attempt);
      if (slot !== -1) metrics.epochEnded(slot, seconds);
    },
    update: (nowMs) => {
      slots.forEach((attempt, slot) => {
        if (attempt !== null) tell(slot, attempt, nowMs);
      });
    },
  };
}

function inputOf(
  slot: number,
  job: JobRecord,
  attempt: JobAttempt,
  nowMs: number,
): JobMetricsInput {
  const { snapshot, progress, epochs } = attempt;
  const executors = snapshot?.executors ?? [];
  const total = (counter: keyof typeof counters) => sumOf(executors, counters[counter]);
  const last = epochs.at(-1);
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
    restartBudgetRemaining:
      spec.restart.executorRestarts - (job.attempts.at(-1)?.executorRestarts ?? 0),
    lastProgressAtMs: attempt.lastCommitWallMs,
    epoch: snapshot?.epoch ?? 0,
    epochsTarget: spec.training.epochs,
    epochsCompleted: epochs.length,
    batches: {
      SAMPLED: total('batchesSampled'),
      EXTRACTED: total('batchesTaken'),
      TRAINED: total('batchesTrained'),
      COMMITTED: snapshot?.committedBatches ?? 0,
      REPLAYED: 0,
      REDELIVERED: total('batchesGivenBack'),
      DISCARDED: snapshot?.reclaimed ?? 0,
    },
    steps: snapshot?.version ?? 0,
    parameterVersion: snapshot?.version ?? 0,
    sampledEdges: total('edges'),
    sampledNodes: total('nodes'),
    trainedSeeds: total('seeds'),
    stageSeconds: stageSecondsOf(executors, deviceName),
    stageDurations: Object.fromEntries(
      stageLetters.map((letter, i) => [letter, mergedOf(executors.map((e) => e.stages[i]))]),
    ),
    loss: progress?.loss ?? last?.loss ?? null,
    accuracy:
      last === undefined
        ? {}
        : { TRAIN: last.trainAccuracy, VAL: last.valAccuracy, TEST: last.testAccuracy },
    queue: {
      depth: snapshot?.queueDepth ?? 0,
      capacity: snapshot?.numSlots ?? 0,
      inflight: { ENQUEUE: snapshot?.claimed ?? 0, DEQUEUE: snapshot?.taken ?? 0 },
      bytes: snapshot?.queueBytes ?? 0,
      slotBytes: snapshot?.largestRecordBytes ?? 0,
      ops: { ENQUEUE: total('batchesSampled'), DEQUEUE: total('batchesTaken') },
      waits: { ENQUEUE: waitsOf(executors, 'ENQUEUE'), DEQUEUE: waitsOf(executors, 'DEQUEUE') },
      reclaimed: attempt.reclaimed,
      corruptRecords: total('corruptRecords'),
      lockOwnersDied: total('lockOwnersDied'),
    },
    cache: cacheOf(attempt, executors),
    placement:
      job.plan === null
        ? null
        : {
            k: job.plan.k,
            samplerBatchSeconds: job.plan.samplerBatchNs / 1e9,
            trainerBatchSeconds: job.plan.trainerBatchNs / 1e9,
            standbyBatchSeconds: job.plan.standbyBatchNs / 1e9,
            standbyProfitSeconds: (snapshot?.standbyProfitNs ?? 0) / 1e9,
          },
    switches: {
      toStandby: sumOf(ofRole(executors, 'SAMPLER'), counters.turnSwitches),
      toSampler: sumOf(ofRole(executors, 'STANDBY'), counters.turnSwitches),
    },
    standbyWakeups: {
      USEFUL: total('standbyTakes'),
      EMPTY: total('standbyRefusals'),
      TIMEOUT: 0,
    },
    executors: executors
      .filter(({ phase }) => phase !== 'REAPED')
      .map((executor) => ({
        role: executor.role,
        device: deviceName(executor.device),
        hasTurn: true,
        heartbeatAgeSeconds:
          executor.heartbeatNs === 0 ? 0 : Math.max(0, nowMs / 1000 - executor.heartbeatNs / 1e9),
        residentBytes: 0,
      })),
    cpuSeconds: { SAMPLER: 0, TRAINER: 0, STANDBY: 0 },
    checkpoints: attempt.checkpoints,
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
  const behind = { rows: host.rows + disk.rows, bytes: host.bytes + disk.bytes };
  const capacityRows = largest(counters.cacheRows);
  return {
    capacityRows,
    ratio: capacityRows / attempt.input.dataset.counts.numNodes,
    lookups: {
      DEVICE: { HIT: device, MISS: behind },
      HOST: { HIT: host, MISS: disk },
      DISK: { HIT: disk, MISS: { rows: 0, bytes: 0 } },
    },
    fillSeconds: largest(counters.cacheFillNs) / 1e9,
    presampleSeconds: attempt.cachePlan.rankMs / 1000,
  };
}

function sumOf(executors: readonly ExecutorSnapshot[], counter: number): number {
  return executors.reduce((sum, executor) => sum + (executor.counters[counter] ?? 0), 0);
}

function ofRole(executors: readonly ExecutorSnapshot[], role: ExecutorRole) {
  return executors.filter((executor) => executor.role === role);
}

function stageSecondsOf(
  executors: readonly ExecutorSnapshot[],
  deviceName: (index: number) => string,
): JobMetricsInput['stageSeconds'] {
  const seconds = new Map<string, number>();
  for (const executor of executors) {
    stages.forEach((_, i) => {
      const key = `${executor.device} ${i}`;
      const busy = (executor.stages[i]?.totalNs ?? 0) / 1e9;
      seconds.set(key, (seconds.get(key) ?? 0) + busy);
    });
  }
  return [...seconds].map(([key, value]) => {
    const [device = 0, stage = 0] = key.split(' ').map(Number);
    return { device: deviceName(device), stage: stageLetters[stage] ?? 'S', seconds: value };
  });
}

function waitsOf(executors: readonly ExecutorSnapshot[], side: QueueSide): RawHistogram {
  const index = waitSides.indexOf(side);
  return mergedOf(executors.map((executor) => executor.waits[index]));
}

function mergedOf(
  times: readonly ({ totalNs: number; buckets: readonly number[] } | undefined)[],
): RawHistogram {
  const counts: number[] = [];
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
