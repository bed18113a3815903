import { closeSync } from 'node:fs';
import { type Clock, sleep } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type {
  CoreAddon,
  DatasetLocation,
  SegmentSnapshot,
  StandbyEstimates,
} from '../native/contract.ts';
import { nativeCodeOf } from '../native/load.ts';
import type { CachePlan, JobProgress } from '../records/job-record.ts';
import type {
  AttemptEvent,
  AttemptFailure,
  AttemptInput,
  LaunchFacts,
  LaunchPlan,
} from './attempt-types.ts';
import { parameterCountOf } from './checkpoint.ts';
import { Crew } from './crew.ts';
import { EpochReports, epochsAtOnce } from './epoch-reports.ts';
import { type EvaluationPlan, evaluationPlanOf } from './evaluation-plan.ts';
import { CheckpointError, finalModelOf, written } from './finalize.ts';
import { JobCache } from './job-cache.ts';
import { type JobLayout, jobSegment, layoutOf, queueSlots, trialSegment } from './job-layout.ts';
import { DatasetLoad } from './load-dataset.ts';
import { ModelProbe } from './model-probe.ts';
import { isAlive, type Look, progressOf } from './progress.ts';
import type { LivingSeat, Seat } from './seat.ts';
import { type MeasuredTimings, timingsOf } from './timings.ts';
import { runTrial } from './trial.ts';

/**
 * One attempt at running a job: prepare, calibrate, launch, begin, watch, stop. It performs what it
 * is told and reports what happens; it decides nothing.
 */

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
  readonly #load = new DatasetLoad();
  readonly #cache: JobCache;
  readonly #probe = new ModelProbe();
  #plan: LaunchPlan | null = null;
  #timer: NodeJS.Timeout | null = null;
  #looks: Look[] = [];
  readonly #reports: EpochReports;
  readonly #deviceNames: readonly string[];
  #progress: JobProgress | null = null;
  #startedMs = 0;
  #lastCommit = { batches: -1, atMs: 0 };
  #lastCommitWallMs: number | null = null;
  #checkpoints: CheckpointCounts = { ok: 0, failed: 0, bytes: 0, lastSuccessAtMs: null };
  #completing = false;
  #held = false;
  #finalizing: Promise<void> = Promise.resolve();
  /** Ends waiting for a disk that is full. */
  readonly #stop = new AbortController();
  #ended = false;
  #stopping = false;

  constructor(input: AttemptInput, deps: Dependencies) {
    this.input = input;
    this.#deps = deps;
    this.#cache = new JobCache(input, deps);
    this.#deviceNames = input.devices.map(({ name }) => name);
    this.#reports = new EpochReports(deps.native, this.#deviceNames);
  }

  /** What devices keep, as far as it is known. */
  get cachePlan(): CachePlan {
    return this.#cache.plan;
  }

  get progress(): JobProgress | null {
    return this.#progress;
  }

  /** The latest look at the segment, for metrics; null before launch. */
  get snapshot(): SegmentSnapshot | null {
    return this.#looks.at(-1)?.snapshot ?? null;
  }

  /** Epochs that ended: their number and the last report. */
  get epochs(): Pick<EpochReports, 'count' | 'last' | 'valAccuracy'> {
    return this.#reports;
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
      const { location, topologyFd } = await this.#load.start(this.input, native);
      this.#dataset = location;
      if (this.#ended || this.#stopping) {
        closeSync(topologyFd);
        return;
      }
      this.#topologyFd = topologyFd;
      const layout = this.#layout;
      this.#layout = await this.#probe.complete(layout, { input: this.input, native, topologyFd });
      await this.#cache.prepare(this.#dataset, this.#layout.sampling, topologyFd);
      if (this.#stopping) return;
      this.#deps.emit({ kind: 'prepared' });
    });
  }

  /** Runs the first batches of the reserved epoch on one executor of each kind. */
  calibrate(seats: readonly Seat[]): void {
    this.#perform(async () => {
      this.#deps.emit({ kind: 'phase', phase: 'CALIBRATING' });
      const snapshot = await this.#measure(seats);
      if (snapshot === null || this.#stopping) return;
      this.#recordBytes = snapshot.largestRecordBytes;
      this.#cache.measured(snapshot, this.#requireLayout());
      this.#deps.emit({ kind: 'calibrated', timings: this.#timingsOf(snapshot) });
    });
  }

  /** The end of a trial; null when the attempt was stopped before. */
  async #measure(seats: readonly Seat[]): Promise<SegmentSnapshot | null> {
    const crew = this.#makeCrew(null, seats.length, (request) => trialSegment(request));
    const anybody = { samplerBatchNs: 0, trainerBatchNs: 0, standbyBatchNs: 0, trainers: 0 };
    try {
      this.#deps.native.segmentStandby(crew.segment, 'ALWAYS', true, anybody);
      return await runTrial(crew, seats, {
        lookEveryMs,
        graceMs: this.input.spec.timeouts.cancelGraceMs,
        isStopped: () => this.#stopping || this.#crew !== crew,
        // Once the attempt stops, that is told by `stop`.
        onUnkillable: (left) => (this.#stopping ? undefined : this.#tellUnkillable(left)),
      });
    } finally {
      crew.close();
      if (this.#crew === crew) this.#crew = null;
    }
  }

  /** Makes the job's segment and spawns its executors; nothing trains before `begin`. */
  launch(plan: LaunchPlan): LaunchFacts {
    this.#deps.emit({ kind: 'phase', phase: 'STARTING' });
    const { native, clock } = this.#deps;
    const layout = this.#requireLayout();
    const evaluation = evaluationPlanOf(native, layout, this.input);
    let numSlots = 0;
    const crew = this.#makeCrew(evaluation, plan.executors.length, (request) => {
      numSlots = queueSlots(native, request, this.#recordBytes);
      return jobSegment(request, { numSlots, evaluation });
    });
    native.segmentCommand(crew.segment, 'PAUSE');
    const trainers = plan.executors.filter(({ role }) => role === 'TRAINER').length;
    native.segmentStandby(crew.segment, plan.standby, plan.standby !== 'OFF', {
      ...plan.timings,
      trainers,
    });
    this.#plan = plan;
    this.#lastCommit = { batches: -1, atMs: clock.monotonicMs() };
    this.#timer = setInterval(() => this.#perform(async () => this.#tick()), lookEveryMs);
    this.#perform(async () => {
      for (const seat of plan.executors) await crew.spawn(seat);
    });
    const parameterCount = parameterCountOf(layout.manifest);
    const { slotBytes } = layout;
    return { queueCapacity: numSlots, slotBytes, parameterCount, cache: this.#cache.plan };
  }

  begin(): void {
    if (this.#crew === null) return;
    this.#startedMs = this.#deps.clock.monotonicMs();
    this.#reports.start({ atMs: this.#startedMs, snapshot: this.#crew.look() });
    this.#lastCommit = { batches: -1, atMs: this.#startedMs };
    this.#deps.emit({ kind: 'phase', phase: 'TRAINING' });
    this.#deps.native.segmentCommand(this.#crew.segment, 'RUN');
  }

  respawn(seat: Seat): void {
    this.#crew?.spawn(seat).catch((error: unknown) => {
      if (this.#stopping || this.#ended) return;
      const message = `${seat.executor} could not be started: ${messageOf(error)}`;
      this.#deps.emit({ kind: 'attemptFailed', reason: 'EXECUTOR_CRASHED', message });
    });
  }

  /** While it holds, batches in hand are finished and no others begun. */
  hold(holds: boolean): void {
    if (this.#crew === null || this.#startedMs === 0 || this.#held === holds) return;
    this.#held = holds;
    this.#deps.log.warn('attempt.held', { holds });
    this.#deps.native.segmentCommand(this.#crew.segment, holds ? 'PAUSE' : 'RUN');
  }

  /** Asks, waits, kills, reaps; then `stopped`. */
  stop(graceMs: number): void {
    if (this.#stopping) return;
    this.#stopping = true;
    this.#stop.abort();
    const stopped = async () => {
      try {
        // A model that is being written becomes durable, or its failure was told.
        await this.#finalizing.catch(() => {});
        await Promise.all([this.#load.stop(), this.#cache.stop(), this.#probe.stop()]);
        if (this.#crew !== null) this.#tellUnkillable(await this.#crew.stop(graceMs));
        this.#end();
      } catch (error) {
        this.#deps.log.error('attempt.stop', { message: messageOf(error) });
      }
      this.#deps.emit({ kind: 'stopped' });
    };
    void stopped();
  }

  #tellUnkillable(seats: readonly LivingSeat[]): void {
    for (const { executor, role, device, pid } of seats) {
      const message = `${role} on ${device} could not be killed`;
      const outcome = { kind: 'UNKILLABLE', message } as const;
      const reason = 'EXECUTOR_UNKILLABLE';
      const exit = {
        role,
        device,
        pid,
        exitCode: null,
        signal: null,
        reason,
        logTail: '',
      } as const;
      this.#deps.emit({ kind: 'executorExited', executor, outcome, exit });
    }
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
      if (this.#stopping || this.#ended) return;
      this.#deps.log.error('attempt.failed', { message: messageOf(error) });
      const reason = attemptFailureOf(error);
      this.#deps.emit({ kind: 'attemptFailed', reason, message: messageOf(error) });
    });
  }

  #requireLayout(): JobLayout {
    if (this.#layout === null) throw new Error('the attempt was not prepared');
    return this.#layout;
  }

  #makeCrew(
    evaluation: EvaluationPlan | null, // null: a trial, which evaluates nothing
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
    this.#crew = new Crew({
      native: this.#deps.native,
      log: this.#deps.log,
      clock: this.#deps.clock,
      segment,
      topologyFd: this.#topologyFd,
      evaluation,
      dataset: this.#dataset,
      spec,
      layout,
      orderPath: this.#cache.orderPath,
      cache: this.#cache.plan,
      devices,
      logFolder,
      onSpawned: (role) => this.#deps.emit({ kind: 'executorSpawned', role }),
      onReady: (executor) => {
        if (evaluation !== null) this.#deps.emit({ kind: 'executorReady', executor });
      },
      onExited: (executor, outcome, exit) => {
        // A trial's orderly ends are told by `calibrated`.
        if (evaluation === null && outcome.kind === 'DONE') return;
        this.#deps.emit({ kind: 'executorExited', executor, outcome, exit });
      },
    });
    return this.#crew;
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
    this.#followEstimates(crew, snapshot);
    this.#reportEpochs(crew, { atMs: nowMs, snapshot });
    this.#noteProgress(crew, snapshot, nowMs);
    const allReported = this.#reports.count >= snapshot.epochsToTrain;
    if (snapshot.complete && allReported && !this.#completing) {
      this.#completing = true;
      this.#finalizing = this.#complete(crew);
      this.#perform(() => this.#finalizing);
    }
  }

  /** The profit rule works with what the run shows: medians, and the Trainers that live. */
  #followEstimates(crew: Crew, snapshot: SegmentSnapshot): void {
    const plan = this.#plan;
    if (plan === null || plan.standby !== 'AUTO') return;
    const seen = this.#timingsOf(snapshot);
    const or = (measured: number, planned: number) => (measured === 0 ? planned : measured);
    const estimates: StandbyEstimates = {
      samplerBatchNs: or(seen.samplerBatchNs, plan.timings.samplerBatchNs),
      trainerBatchNs: or(seen.trainerBatchNs, plan.timings.trainerBatchNs),
      standbyBatchNs: or(seen.standbyBatchNs, plan.timings.standbyBatchNs),
      trainers: snapshot.executors.filter((e) => e.role === 'TRAINER' && isAlive(e)).length,
    };
    this.#deps.native.segmentStandby(crew.segment, plan.standby, true, estimates);
  }

  #noteCommits(snapshot: SegmentSnapshot, nowMs: number): void {
    if (this.#held) this.#lastCommit = { ...this.#lastCommit, atMs: nowMs };
    if (snapshot.committedBatches !== this.#lastCommit.batches) {
      this.#lastCommit = { batches: snapshot.committedBatches, atMs: nowMs };
      if (snapshot.committedBatches > 0) this.#lastCommitWallMs = this.#deps.clock.wallMs();
      this.#deps.emit({ kind: 'progress', committedBatches: snapshot.committedBatches });
      return;
    }
    const limitMs = stuckStalls * this.input.spec.timeouts.stallMs;
    if (this.#startedMs === 0 || snapshot.complete || snapshot.evaluation !== null) return;
    if (nowMs - this.#lastCommit.atMs <= limitMs) return;
    this.#lastCommit = { ...this.#lastCommit, atMs: nowMs };
    const message = `no batch was committed for ${Math.round(limitMs / 1000)} s`;
    this.#deps.emit({ kind: 'attemptFailed', reason: 'EXECUTOR_STALLED', message });
  }

  #reportEpochs(crew: Crew, look: Look): void {
    const reports = this.#reports.take(crew.segment, look);
    if (reports.length === 0) return;
    const timings = this.#timingsOf(look.snapshot);
    this.#deps.emit({ kind: 'epochsEnded', reports, timings });
    if (reports.length < epochsAtOnce) return;
    // More may have ended already. Others get as much of the loop first as these took.
    const tookMs = this.#deps.clock.monotonicMs() - look.atMs;
    setTimeout(() => this.#perform(async () => this.#tick()), tookMs);
  }

  #timingsOf(snapshot: SegmentSnapshot): MeasuredTimings {
    return timingsOf(snapshot, this.#cache.plan.prefetch);
  }

  #noteProgress(crew: Crew, snapshot: SegmentSnapshot, nowMs: number): void {
    if (this.#startedMs === 0) return;
    const epochs = this.input.spec.training.epochs;
    const before = this.#looks.length > 1 ? (this.#looks[0] ?? null) : null;
    this.#progress = progressOf({
      before,
      now: { atMs: nowMs, snapshot },
      deviceNames: this.#deviceNames,
      pids: crew.pids,
      epochs,
      batchesPerEpoch: this.#requireLayout().batchesPerEpoch,
      current: this.#deps.native.segmentEpoch(crew.segment, snapshot.epoch),
      lastReport: this.#reports.last,
      valAccuracy: this.#reports.valAccuracy ?? 0,
      startedMs: this.#startedMs,
    });
  }

  async #complete(crew: Crew): Promise<void> {
    this.#deps.emit({ kind: 'phase', phase: 'FINALIZING' });
    const { native, clock, log } = this.#deps;
    const at = { native, segment: crew.segment };
    const model = finalModelOf(at, this.#requireLayout(), this.#reports, this.input);
    let startMs = 0;
    const write = async () => {
      startMs = clock.monotonicMs();
      try {
        return await model.write();
      } catch (error) {
        this.#checkpoints = { ...this.#checkpoints, failed: this.#checkpoints.failed + 1 };
        throw error;
      }
    };
    const result = await written(write, {
      onFailed: (error) => log.warn('checkpoint.failed', { message: messageOf(error) }),
      sleep: (delayMs) => sleep(delayMs, this.#stop.signal).catch(() => {}),
      isStopped: () => this.#stopping || this.#ended,
    });
    if (result === null) return;
    const lastSuccessAtMs = clock.wallMs();
    this.#checkpoints = { ...this.#checkpoints, ok: 1, bytes: model.bytes, lastSuccessAtMs };
    const checkpointMs = clock.monotonicMs() - startMs;
    this.#deps.emit({ kind: 'completed', result, checkpointMs });
  }
}

/** What a thrown error of a step means for the attempt. */
export function attemptFailureOf(error: unknown): AttemptFailure {
  if (error instanceof CheckpointError) return 'CHECKPOINT_WRITE_FAILED';
  const code = nativeCodeOf(error);
  switch (code) {
    case 'SPEC_INVALID':
    case 'DATASET_CORRUPT':
    case 'SHM_ALLOCATION_FAILED':
    case 'SHM_CORRUPTED':
    case 'PLUGIN_FAILED':
      return code;
    case 'DATASET_NOT_FOUND':
      return 'DATASET_CORRUPT';
    default:
      return 'INTERNAL';
  }
}
