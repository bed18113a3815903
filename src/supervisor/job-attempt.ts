import { closeSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import {
  type CoreAddon,
  type DatasetCounts,
  type DatasetLocation,
  type SegmentSnapshot,
  type StandbyEstimates,
  stages,
} from '../native/contract.ts';
import { nativeCodeOf } from '../native/load.ts';
import type {
  EpochReport,
  ExecutorExit,
  ExecutorRole,
  JobPhase,
  JobProgress,
  JobResult,
  Reason,
} from '../spec/job-record.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import { parametersSha256, writeCheckpoint } from './checkpoint.ts';
import { Crew, type CrewDevice, type Seat } from './crew.ts';
import type { ExecutorOutcome } from './exit-reason.ts';
import { type JobLayout, jobSegment, layoutOf, trialSegment } from './job-layout.ts';
import { epochReportOf, type Look, progressOf } from './progress.ts';

/**
 * One attempt at running a job: prepare, calibrate, launch, begin, watch, stop. It performs what it
 * is told and reports what happens; it decides nothing.
 */

export interface AttemptInput {
  readonly jobId: string;
  readonly uid: string;
  readonly number: number;
  readonly spec: JobSpec;
  readonly dataset: { readonly folder: string; readonly counts: DatasetCounts };
  readonly datasetDigest: string;
  /** In the order granted. */
  readonly devices: readonly CrewDevice[];
  /** Logs of this attempt. */
  readonly logFolder: string;
  /** The job's checkpoint. */
  readonly checkpointFolder: string;
  /** Derived files, keyed by their inputs. */
  readonly cacheFolder: string;
}

/** What an attempt reports; times are the receiver's. */
export type AttemptEvent =
  | { readonly kind: 'phase'; readonly phase: JobPhase }
  | { readonly kind: 'prepared' }
  | { readonly kind: 'calibrated'; readonly timings: MeasuredTimings }
  | { readonly kind: 'executorSpawned'; readonly role: ExecutorRole }
  | { readonly kind: 'executorReady'; readonly executor: string }
  | {
      readonly kind: 'executorExited';
      readonly executor: string;
      readonly outcome: ExecutorOutcome | { readonly kind: 'UNKILLABLE'; readonly message: string };
      readonly exit: ExecutorExit | null;
    }
  | { readonly kind: 'progress'; readonly committedBatches: number }
  | { readonly kind: 'epochEnded'; readonly report: EpochReport; readonly timings: MeasuredTimings }
  | { readonly kind: 'attemptFailed'; readonly reason: AttemptFailure; readonly message: string }
  | { readonly kind: 'completed'; readonly result: JobResult }
  | { readonly kind: 'stopped' };

export type AttemptFailure = Extract<
  Reason,
  | 'SPEC_INVALID'
  | 'DATASET_CORRUPT'
  | 'PLAN_INFEASIBLE'
  | 'SHM_ALLOCATION_FAILED'
  | 'SHM_CORRUPTED'
  | 'CHECKPOINT_WRITE_FAILED'
  | 'EXECUTOR_STALLED'
  | 'EXECUTOR_CRASHED'
  | 'NUMERIC_DIVERGENCE'
  | 'INTERNAL'
>;

/** Medians per batch, nanoseconds: T_s, T_t, T_t'. */
export interface MeasuredTimings {
  readonly samplerBatchNs: number;
  readonly trainerBatchNs: number;
  readonly standbyBatchNs: number;
}

export interface LaunchPlan {
  readonly executors: readonly Seat[];
  readonly standby: 'AUTO' | 'OFF' | 'ALWAYS';
  readonly timings: MeasuredTimings;
}

/** What the plan view shows beside the split. */
export interface LaunchFacts {
  readonly queueCapacity: number;
  readonly slotBytes: number;
  readonly parameterCount: number;
}

export interface CheckpointCounts {
  readonly ok: number;
  readonly failed: number;
  readonly bytes: number;
  readonly lastSuccessAtMs: number | null;
}

interface Dependencies {
  readonly native: CoreAddon;
  readonly log: Log;
  readonly clock: Clock;
  readonly emit: (event: AttemptEvent) => void;
}

const lookEveryMs = 100;
/** Progress rates are taken over about this long. */
const rateWindowMs = 1000;
/** A job that commits nothing for so many stall times is stuck, whatever its executors say. */
const stuckStalls = 10;

export class JobAttempt {
  readonly input: AttemptInput;
  readonly #deps: Dependencies;
  #layout: JobLayout | null = null;
  #dataset: DatasetLocation | null = null;
  #topologyFd: number | null = null;
  #crew: Crew | null = null;
  #recordBytes = 0;
  #timer: NodeJS.Timeout | null = null;
  #looks: Look[] = [];
  #reported: EpochReport[] = [];
  #progress: JobProgress | null = null;
  #startedMs = 0;
  #lastCommit = { batches: -1, atMs: 0 };
  #lastCommitWallMs: number | null = null;
  #checkpoints: CheckpointCounts = { ok: 0, failed: 0, bytes: 0, lastSuccessAtMs: null };
  #completing = false;
  #ended = false;
  #stopping = false;

  constructor(input: AttemptInput, deps: Dependencies) {
    this.input = input;
    this.#deps = deps;
  }

  get progress(): JobProgress | null {
    return this.#progress;
  }

  /** The latest look at the segment, for metrics; null before launch. */
  get snapshot(): SegmentSnapshot | null {
    return this.#looks.at(-1)?.snapshot ?? null;
  }

  get epochs(): readonly EpochReport[] {
    return this.#reported;
  }

  get reclaimed(): { readonly CLAIMED: number; readonly TAKEN: number } {
    return this.#crew?.reclaimed ?? { CLAIMED: 0, TAKEN: 0 };
  }

  /** Bytes of the queue's records now; the segment itself is sparse. */
  get segmentBytes(): number {
    return this.snapshot?.queueBytes ?? 0;
  }

  /** Monotonic ms of the latest look; 0 before launch. */
  get lastLookMs(): number {
    return this.#looks.at(-1)?.atMs ?? 0;
  }

  /** Wall time of the last commit; null before the first. */
  get lastCommitWallMs(): number | null {
    return this.#lastCommitWallMs;
  }

  /** Checkpoints written by this attempt. */
  get checkpoints(): CheckpointCounts {
    return this.#checkpoints;
  }

  /** Standardised features, sizes, the topology in shared memory. */
  prepare(): void {
    this.#perform(async () => {
      this.#deps.emit({ kind: 'phase', phase: 'LOADING_DATASET' });
      const { native } = this.#deps;
      const { spec, dataset } = this.input;
      this.#layout = layoutOf(native, spec, dataset.counts);
      this.#dataset = { ...dataset, featuresPath: await this.#features() };
      const byWeight = spec.sampling.algorithm === 'KHOP_WEIGHTED';
      this.#topologyFd = await native.topologyCreate(this.#dataset, byWeight);
      this.#deps.emit({ kind: 'prepared' });
    });
  }

  /** Runs the first batches of the reserved epoch on one executor of each kind. */
  calibrate(seats: readonly Seat[]): void {
    this.#perform(async () => {
      this.#deps.emit({ kind: 'phase', phase: 'CALIBRATING' });
      const crew = this.#makeCrew('trial', seats.length, (request) => trialSegment(request));
      try {
        const anybody = { samplerBatchNs: 0, trainerBatchNs: 0, standbyBatchNs: 0, trainers: 0 };
        this.#deps.native.segmentStandby(crew.segment, 'ALWAYS', true, anybody);
        for (const seat of seats) await crew.spawn(seat);
        const snapshot = await this.#untilComplete(crew);
        if (snapshot === null) return;
        this.#recordBytes = snapshot.largestRecordBytes;
        await crew.stop(this.input.spec.timeouts.cancelGraceMs);
        this.#crew = null;
        if (this.#stopping) return;
        this.#deps.emit({ kind: 'calibrated', timings: timingsOf(snapshot) });
      } finally {
        if (this.#crew === null) crew.close();
      }
    });
  }

  /** Makes the job's segment and spawns its executors; nothing trains before `begin`. */
  launch(plan: LaunchPlan): LaunchFacts {
    this.#deps.emit({ kind: 'phase', phase: 'STARTING' });
    const { native, clock } = this.#deps;
    const layout = this.#requireLayout();
    let numSlots = 0;
    const crew = this.#makeCrew('', plan.executors.length, (request) => {
      const segment = jobSegment(native, request, this.#recordBytes);
      numSlots = segment.numSlots;
      return segment;
    });
    native.segmentCommand(crew.segment, 'PAUSE');
    const trainers = plan.executors.filter(({ role }) => role === 'TRAINER').length;
    const estimates: StandbyEstimates = { ...plan.timings, trainers };
    native.segmentStandby(crew.segment, plan.standby, plan.standby !== 'OFF', estimates);
    this.#lastCommit = { batches: -1, atMs: clock.monotonicMs() };
    this.#timer = setInterval(() => this.#perform(async () => this.#tick()), lookEveryMs);
    this.#perform(async () => {
      for (const seat of plan.executors) await crew.spawn(seat);
    });
    const parameterCount = layout.manifest.tensors.reduce(
      (sum, tensor) => sum + tensor.rows * Math.max(1, tensor.cols),
      0,
    );
    return { queueCapacity: numSlots, slotBytes: layout.slotBytes, parameterCount };
  }

  begin(): void {
    if (this.#crew === null) return;
    this.#startedMs = this.#deps.clock.monotonicMs();
    this.#lastCommit = { batches: -1, atMs: this.#startedMs };
    this.#deps.emit({ kind: 'phase', phase: 'TRAINING' });
    this.#deps.native.segmentCommand(this.#crew.segment, 'RUN');
  }

  respawn(seat: Seat): void {
    this.#perform(async () => {
      await this.#crew?.spawn(seat);
    });
  }

  /** Asks, waits, kills, reaps; then `stopped`. */
  stop(graceMs: number): void {
    if (this.#stopping) return;
    this.#stopping = true;
    void (async () => {
      const crew = this.#crew;
      const unkillable = crew === null ? [] : await crew.stop(graceMs);
      for (const seat of unkillable) {
        const message = `${seat.role} on ${seat.device} could not be killed`;
        const outcome = { kind: 'UNKILLABLE', message } as const;
        this.#deps.emit({
          kind: 'executorExited',
          executor: seat.executor,
          outcome,
          exit: null,
        });
      }
      this.#end();
      this.#deps.emit({ kind: 'stopped' });
    })();
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#crew?.close();
    this.#crew = null;
    this.#progress = null;
    if (this.#topologyFd !== null) closeSync(this.#topologyFd);
    this.#topologyFd = null;
  }

  /** Runs a step; what it throws becomes `attemptFailed`. */
  #perform(step: () => Promise<void>): void {
    step().catch((error: unknown) => {
      if (this.#stopping) return;
      this.#deps.log.error('attempt.failed', { message: messageOf(error) });
      const reason = attemptFailureOf(error);
      this.#deps.emit({ kind: 'attemptFailed', reason, message: messageOf(error) });
    });
  }

  #requireLayout(): JobLayout {
    if (this.#layout === null) throw new Error('the attempt was not prepared');
    return this.#layout;
  }

  /** Path of the standardised features, made when it is not there yet; '' for the raw ones. */
  async #features(): Promise<string> {
    const { spec, dataset, datasetDigest, cacheFolder } = this.input;
    if (!spec.features.standardize) return '';
    mkdirSync(cacheFolder, { recursive: true });
    const path = join(cacheFolder, `${datasetDigest.slice(0, 32)}-standardized.npy`);
    if (!existsSync(path)) {
      await this.#deps.native.datasetStandardize(join(dataset.folder, 'features.npy'), path);
    }
    return path;
  }

  #makeCrew(
    logSubfolder: string,
    executorCount: number,
    segmentOf: (request: Parameters<typeof trialSegment>[0]) => ReturnType<typeof trialSegment>,
  ): Crew {
    const { spec, devices, dataset, logFolder } = this.input;
    const layout = this.#requireLayout();
    if (this.#dataset === null || this.#topologyFd === null) {
      throw new Error('the attempt was not prepared');
    }
    const counts = dataset.counts;
    const segment = segmentOf({
      spec,
      counts,
      layout,
      deviceCount: devices.length,
      executorCount,
    });
    const isTrial = logSubfolder !== '';
    this.#crew = new Crew({
      native: this.#deps.native,
      log: this.#deps.log,
      clock: this.#deps.clock,
      segment,
      topologyFd: this.#topologyFd,
      dataset: this.#dataset,
      spec,
      layout,
      devices,
      logFolder: join(logFolder, logSubfolder),
      onSpawned: (role) => this.#deps.emit({ kind: 'executorSpawned', role }),
      onReady: (executor) => {
        if (!isTrial) this.#deps.emit({ kind: 'executorReady', executor });
      },
      onExited: (executor, outcome, exit) => {
        // A trial's orderly ends are told by `calibrated`.
        if (isTrial && outcome.kind === 'DONE') return;
        this.#deps.emit({ kind: 'executorExited', executor, outcome, exit });
      },
    });
    return this.#crew;
  }

  /** Watches a trial until all its batches are committed; null when it was stopped before. */
  async #untilComplete(crew: Crew): Promise<SegmentSnapshot | null> {
    for (;;) {
      if (this.#stopping || this.#crew !== crew) return null;
      const snapshot = crew.look();
      crew.watch(snapshot);
      if (snapshot.complete) return snapshot;
      await new Promise((resolve) => setTimeout(resolve, lookEveryMs));
    }
  }

  #tick(): void {
    const crew = this.#crew;
    if (crew === null || this.#stopping || this.#ended) return;
    const nowMs = this.#deps.clock.monotonicMs();
    const snapshot = crew.look();
    crew.watch(snapshot);
    this.#looks.push({ atMs: nowMs, snapshot });
    while (this.#looks.length > 2 && nowMs - (this.#looks[1]?.atMs ?? 0) >= rateWindowMs) {
      this.#looks.shift();
    }
    this.#noteCommits(snapshot, nowMs);
    this.#reportEpochs(crew, snapshot);
    this.#noteProgress(crew, snapshot, nowMs);
    if (snapshot.complete && !this.#completing) {
      this.#completing = true;
      this.#perform(async () => this.#complete(crew));
    }
  }

  #noteCommits(snapshot: SegmentSnapshot, nowMs: number): void {
    if (snapshot.committedBatches !== this.#lastCommit.batches) {
      this.#lastCommit = { batches: snapshot.committedBatches, atMs: nowMs };
      if (snapshot.committedBatches > 0) this.#lastCommitWallMs = this.#deps.clock.wallMs();
      this.#deps.emit({ kind: 'progress', committedBatches: snapshot.committedBatches });
      return;
    }
    const limitMs = stuckStalls * this.input.spec.timeouts.stallMs;
    if (this.#startedMs === 0 || snapshot.complete || snapshot.evaluating) return;
    if (nowMs - this.#lastCommit.atMs <= limitMs) return;
    this.#lastCommit = { ...this.#lastCommit, atMs: nowMs };
    const message = `no batch was committed for ${Math.round(limitMs / 1000)} s`;
    this.#deps.emit({ kind: 'attemptFailed', reason: 'EXECUTOR_STALLED', message });
  }

  #reportEpochs(crew: Crew, snapshot: SegmentSnapshot): void {
    const { native } = this.#deps;
    while (this.#reported.length < this.input.spec.training.epochs) {
      const epoch = native.segmentEpoch(crew.segment, this.#reported.length);
      if (!epoch.committed || epoch.evaluation === null) return;
      if (epoch.ledgerDigest !== epoch.expectedLedgerDigest) {
        throw new Error(
          `epoch ${epoch.epoch}: the ledger shows a batch not committed exactly once`,
        );
      }
      const hash = snapshot.version === epoch.finalVersion ? this.#hashAt(epoch.finalVersion) : '';
      const names = this.input.devices.map(({ name }) => name);
      const report = epochReportOf(epoch, names, hash);
      this.#reported.push(report);
      this.#deps.emit({ kind: 'epochEnded', report, timings: timingsOf(snapshot) });
    }
  }

  /** SHA-256 of the newest parameters, or '' when they are not of `version` any more. */
  #hashAt(version: number): string {
    const crew = this.#crew;
    if (crew === null) return '';
    const { at, data } = this.#deps.native.segmentParameters(crew.segment, 'LAST');
    return at === version ? parametersSha256(this.#requireLayout().manifest, data) : '';
  }

  #noteProgress(crew: Crew, snapshot: SegmentSnapshot, nowMs: number): void {
    if (this.#startedMs === 0) return;
    const epochs = this.input.spec.training.epochs;
    const before = this.#looks.length > 1 ? (this.#looks[0] ?? null) : null;
    this.#progress = progressOf({
      before,
      now: { atMs: nowMs, snapshot },
      deviceNames: this.input.devices.map(({ name }) => name),
      pids: crew.pids,
      epochs,
      batchesPerEpoch: this.#requireLayout().batchesPerEpoch,
      current: this.#deps.native.segmentEpoch(crew.segment, Math.min(snapshot.epoch, epochs - 1)),
      lastReport: this.#reported.at(-1) ?? null,
      startedMs: this.#startedMs,
    });
  }

  #complete(crew: Crew): void {
    this.#deps.emit({ kind: 'phase', phase: 'FINALIZING' });
    const { native } = this.#deps;
    const { manifest } = this.#requireLayout();
    const last = native.segmentParameters(crew.segment, 'LAST');
    const best = native.segmentParameters(crew.segment, 'BEST');
    const lastReport = this.#reported.at(-1);
    const bestReport = this.#reported[best.at];
    if (lastReport === undefined || bestReport === undefined) {
      throw new Error('the job is complete, but its epochs are not');
    }
    const result: JobResult = {
      parametersSha256: parametersSha256(manifest, last.data),
      checkpointDir: this.input.checkpointFolder,
      testAccuracyLast: lastReport.testAccuracy,
      testAccuracyBest: bestReport.testAccuracy,
      bestEpoch: best.at,
      bestValAccuracy: bestReport.valAccuracy,
    };
    this.#writeCheckpoint(last.data, best.data, result);
    this.#deps.emit({ kind: 'completed', result });
  }

  #writeCheckpoint(last: Float32Array, best: Float32Array, result: JobResult): void {
    const { jobId, uid, spec, datasetDigest, checkpointFolder } = this.input;
    const { testAccuracyLast, testAccuracyBest, bestEpoch, bestValAccuracy } = result;
    try {
      writeCheckpoint(checkpointFolder, this.#requireLayout().manifest, {
        last,
        best,
        facts: {
          job: jobId,
          uid,
          datasetDigest,
          spec,
          testAccuracyLast,
          testAccuracyBest,
          bestEpoch,
          bestValAccuracy,
        },
      });
      const bytes = 2 * last.byteLength;
      const lastSuccessAtMs = this.#deps.clock.wallMs();
      this.#checkpoints = { ...this.#checkpoints, ok: 1, bytes, lastSuccessAtMs };
    } catch (error) {
      this.#checkpoints = { ...this.#checkpoints, failed: this.#checkpoints.failed + 1 };
      throw new CheckpointError(`writing ${checkpointFolder}: ${messageOf(error)}`, error);
    }
  }
}

class CheckpointError extends Error {
  constructor(message: string, cause: unknown) {
    super(message, { cause });
  }
}

function attemptFailureOf(error: unknown): AttemptFailure {
  if (error instanceof CheckpointError) return 'CHECKPOINT_WRITE_FAILED';
  switch (nativeCodeOf(error)) {
    case 'SPEC_INVALID':
      return 'SPEC_INVALID';
    case 'DATASET_NOT_FOUND':
    case 'DATASET_CORRUPT':
    case 'IO':
      return 'DATASET_CORRUPT';
    case 'SHM_ALLOCATION_FAILED':
      return 'SHM_ALLOCATION_FAILED';
    case 'SHM_CORRUPTED':
      return 'SHM_CORRUPTED';
    default:
      return 'INTERNAL';
  }
}

/** T_s = S + M + C; T_t = E + T, as extraction does not overlap training; medians, 0 = not seen. */
export function timingsOf(snapshot: SegmentSnapshot): MeasuredTimings {
  const medianOf = (role: string, names: readonly (typeof stages)[number][]) => {
    const sums = snapshot.executors
      .filter((executor) => executor.role === role)
      .map((executor) =>
        names.reduce(
          (sum, name) => sum + (executor.stages[stages.indexOf(name)]?.medianNs ?? 0),
          0,
        ),
      )
      .filter((sum) => sum > 0)
      .sort((a, b) => a - b);
    return sums[Math.floor(sums.length / 2)] ?? 0;
  };
  const trainer = medianOf('TRAINER', ['EXTRACT', 'TRAIN']);
  const standby = medianOf('STANDBY', ['EXTRACT', 'TRAIN']);
  return {
    samplerBatchNs: medianOf('SAMPLER', ['SAMPLE', 'MARK', 'COPY']),
    trainerBatchNs: trainer === 0 ? standby : trainer,
    standbyBatchNs: standby === 0 ? trainer : standby,
  };
}
