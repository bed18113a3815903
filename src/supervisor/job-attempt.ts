import { GnndError, messageOf } from '../base/errors.ts';
import type { LivingSeat, Seat } from '../devices/seat.ts';
import { parameterCountOf } from '../files/checkpoint.ts';
import type { SegmentSnapshot, SegmentSpec } from '../native/contract.ts';
import { nativeCodeOf } from '../native/load.ts';
import { standbyRoomOf } from '../plan/device-memory.ts';
import { type EvaluationPlan, evaluationPlanOf, inferencePlanOf } from '../plan/evaluation-plan.ts';
import { jobSegment, queueSlots, type SegmentRequest } from '../plan/job-layout.ts';
import type { CachePlan, JobProgress, JobTimeline } from '../records/job-record.ts';
import { infers } from '../spec/rules/inference.ts';
import { crewOf, segmentRequestOf } from './attempt-crew.ts';
import { AttemptRun, lookEveryMs } from './attempt-run.ts';
import type {
  AttemptContext,
  AttemptFailure,
  AttemptInput,
  LaunchFacts,
  LaunchPlan,
} from './attempt-types.ts';
import type { Crew } from './crew.ts';
import type { EpochReports } from './epoch-reports.ts';
import { type CheckpointCounts, CheckpointError } from './finalize.ts';
import { inferenceSegment } from './inference.ts';
import { Preparation } from './preparation.ts';
import { TaskDied, TaskStalled } from './task.ts';
import { timingsOf } from './timings.ts';
import { measure } from './trial.ts';

/**
 * One attempt at running a job: it is prepared (preparation.ts), tried (trial.ts), run
 * (attempt-run.ts) and finished (finalize.ts). It performs what it is told and reports what
 * happens; it decides nothing.
 */
export class JobAttempt {
  readonly input: AttemptInput;
  readonly #context: AttemptContext;
  readonly #preparation: Preparation;
  /** The trial's, then the run's; null while there is none. */
  #crew: Crew | null = null;
  /** From its launch on. */
  #run: AttemptRun | null = null;
  /** What a trial saw a record take; 0 = unknown. */
  #recordBytes = 0;
  #ended = false;
  #stopping = false;

  constructor(input: AttemptInput, parts: Omit<AttemptContext, 'input'>) {
    this.input = input;
    this.#context = { input, ...parts };
    this.#preparation = new Preparation(this.#context);
  }

  /** What devices keep, as far as it is known. */
  get cachePlan(): CachePlan {
    return this.#preparation.cache.plan;
  }

  get progress(): JobProgress | null {
    return this.#run?.progress ?? null;
  }

  /** What its executors did since they train; null before launch. */
  get timeline(): JobTimeline | null {
    return this.#run?.timeline ?? null;
  }

  /** The latest look at the segment, for metrics; null before launch. */
  get snapshot(): SegmentSnapshot | null {
    return this.#run?.snapshot ?? null;
  }

  /** Epochs that ended: their number and the last report. */
  get epochs(): Pick<EpochReports, 'count' | 'last' | 'valMetrics'> {
    return this.#run?.reports ?? { count: 0, last: null, valMetrics: [] };
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
    return this.#run?.lastLookMs ?? 0;
  }

  /** Wall time of the last commit; null before the first. */
  get lastCommitWallMs(): number | null {
    return this.#run?.lastCommitWallMs ?? null;
  }

  /** Checkpoints written by this attempt. */
  get checkpoints(): CheckpointCounts {
    return this.#run?.checkpoints ?? { ok: 0, failed: 0, bytes: 0, lastSuccessAtMs: null };
  }

  /** Standardised features, sizes, the topology in shared memory. */
  prepare(): void {
    this.#perform(async () => {
      const isPrepared = await this.#preparation.prepare(() => this.#stopping || this.#ended);
      if (isPrepared) this.#context.emit({ kind: 'prepared' });
    });
  }

  /** Runs the first batches of the reserved epoch on one executor of each kind. */
  calibrate(seats: readonly Seat[]): void {
    this.#perform(async () => {
      const { emit } = this.#context;
      const { cache, made } = this.#preparation;
      emit({ kind: 'phase', phase: 'CALIBRATING' });
      const snapshot = await measure(this.#context, this.#preparation, seats, {
        onCrew: (crew) => {
          this.#crew = crew;
        },
        isStopped: () => this.#stopping,
        // Once the attempt stops, that is told by `stop`.
        onUnkillable: (left) => (this.#stopping ? undefined : this.#tellUnkillable(left)),
        lookEveryMs,
      });
      if (snapshot === null || this.#stopping) return;
      this.#recordBytes = snapshot.largestRecordBytes;
      cache.measured(snapshot, made.layout);
      const timings = timingsOf(snapshot, cache.plan.prefetch);
      const request = segmentRequestOf(this.#context, made.layout, seats.length);
      const slots = queueSlots(this.#context.native, request, this.#recordBytes);
      const epoch = { batches: made.layout.batchesPerEpoch, slots };
      const standbyRoom = standbyRoomOf(
        snapshot.executors,
        this.#context.input.devices,
        cache.plan.reservedBytes,
      );
      const samplerSets = cache.samplerSets();
      emit({ kind: 'calibrated', timings, epoch, standbyRoom, samplerSets });
    });
  }

  /** Makes the job's segment and spawns its executors; nothing trains before `begin`. */
  launch(plan: LaunchPlan): LaunchFacts {
    const { native, emit, input } = this.#context;
    emit({ kind: 'phase', phase: 'STARTING' });
    const { cache, made } = this.#preparation;
    const { layout } = made;
    const trainersOf = plan.executors.filter(({ role }) => role === 'TRAINER');
    cache.place(new Set(trainersOf.map(({ device }) => device)), layout);
    const request = segmentRequestOf(this.#context, layout, plan.executors.length);
    const recordBytes = this.#recordBytes;
    const isInference = infers(input.spec);
    const numSlots = isInference ? 0 : queueSlots(native, request, recordBytes);
    const { evaluation, segment } = isInference
      ? this.#inferencePlan(request)
      : this.#trainingPlan(request, { numSlots, recordBytes });
    const onUnkillable = (seat: LivingSeat) => this.#tellUnkillable([seat]);
    const parts = { segment, evaluation, onUnkillable };
    const crew = crewOf(this.#context, this.#preparation, parts);
    this.#crew = crew;
    if (isInference) {
      const { parameters } = this.#preparation.inference.work;
      native.segmentBeginTrained(crew.segment, parameters);
    }
    native.segmentCommand(crew.segment, 'PAUSE');
    const timings = { ...plan.timings, trainers: trainersOf.length };
    native.segmentStandby(crew.segment, plan.standby, plan.standby !== 'OFF', timings);
    const { prefetch } = cache.plan;
    const perform = this.#perform.bind(this);
    const { inference } = this.#preparation;
    const checkDataset = () => this.#preparation.checkDataset();
    const options = { crew, plan, layout, prefetch, cache, perform, inference, checkDataset };
    const run = new AttemptRun(this.#context, options);
    this.#run = run;
    this.#perform(async () => {
      await run.resume();
      for (const seat of plan.executors) await crew.spawn(seat);
    });
    const parameterCount = parameterCountOf(layout.manifest);
    const { slotBytes } = layout;
    return { queueCapacity: numSlots, slotBytes, parameterCount, cache: cache.plan };
  }

  #trainingPlan(
    request: SegmentRequest,
    sizes: { readonly numSlots: number; readonly recordBytes: number },
  ): SegmentPlan {
    const { native, input } = this.#context;
    const evaluation = evaluationPlanOf(native, request.layout, input);
    const cached = this.#preparation.cache.sharedRows;
    return { evaluation, segment: jobSegment(request, { ...sizes, evaluation, cached }) };
  }

  #inferencePlan(request: SegmentRequest): SegmentPlan {
    const { native, input } = this.#context;
    const { nodes } = this.#preparation.inference.work;
    const facts = { spec: input.spec, counts: input.dataset.counts, nodes };
    const evaluation = inferencePlanOf(native, request.layout, facts);
    return { evaluation, segment: inferenceSegment(request, evaluation) };
  }

  begin(): void {
    if (!this.#ended) this.#run?.begin();
  }

  respawn(seat: Seat): void {
    this.#crew?.spawn(seat).catch((error: unknown) => {
      if (this.#stopping || this.#ended) return;
      const message = `${seat.executor} could not be started: ${messageOf(error)}`;
      this.#context.emit({ kind: 'attemptFailed', reason: 'EXECUTOR_CRASHED', message });
    });
  }

  /** While it holds, batches in hand are finished and no others begun. */
  hold(holds: boolean): void {
    if (!this.#ended) this.#run?.hold(holds);
  }

  /** Asks, waits, kills, reaps, writes down where it was if the job goes on; then `stopped`. */
  stop(graceMs: number, { goesOn }: { readonly goesOn: boolean }): void {
    if (this.#stopping) return;
    this.#stopping = true;
    const stopped = async () => {
      try {
        await this.#run?.stop();
        await this.#preparation.stop();
        if (this.#crew !== null) this.#tellUnkillable(await this.#crew.stop(graceMs));
        await this.#run?.keep({ goesOn });
        this.#end();
      } catch (error) {
        this.#context.log.error('attempt.stop', { error: messageOf(error) });
      }
      this.#context.emit({ kind: 'stopped' });
    };
    void stopped();
  }

  #tellUnkillable(seats: readonly LivingSeat[]): void {
    for (const { executor, role, device, pid } of seats) {
      const message = `${role} on ${device} could not be killed`;
      const outcome = { kind: 'UNKILLABLE', message } as const;
      const reason = 'EXECUTOR_UNKILLABLE';
      const how = { exitCode: null, signal: null, reason, logTail: '' } as const;
      const exit = { role, device, pid, ...how };
      this.#context.emit({ kind: 'executorExited', executor, outcome, exit });
    }
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#run?.close();
    this.#crew?.close();
    this.#crew = null;
    this.#preparation.close();
    this.#context.native.hostReturnMemory();
  }

  /** Runs a step; what it throws becomes `attemptFailed`. */
  #perform(step: () => Promise<void>): void {
    step().catch((error: unknown) => {
      if (this.#stopping || this.#ended) return;
      const { log } = this.#context;
      const reason = attemptFailureOf(error);
      // What the job's owner asked for cannot be, or the owner's module failed.
      const isTheirs = reason === 'SPEC_INVALID' || reason === 'PLUGIN_FAILED';
      log[isTheirs ? 'warn' : 'error']('attempt.failed', { error: messageOf(error) });
      this.#context.emit({ kind: 'attemptFailed', reason, message: messageOf(error) });
    });
  }
}

interface SegmentPlan {
  readonly evaluation: EvaluationPlan;
  readonly segment: SegmentSpec;
}

const ownReasons = ['DATASET_CORRUPT', 'CHECKPOINT_CORRUPT', 'SPEC_INVALID'] as const;

/** What a thrown error of a step means for the attempt. */
export function attemptFailureOf(error: unknown): AttemptFailure {
  if (error instanceof CheckpointError) return 'CHECKPOINT_WRITE_FAILED';
  if (error instanceof TaskStalled) return 'EXECUTOR_STALLED';
  if (error instanceof TaskDied) return 'EXECUTOR_CRASHED';
  // Of a Propagator or an inference, which are told apart by their reasons.
  const own = error instanceof GnndError ? error.reason : '';
  for (const reason of ownReasons) if (own === reason) return reason;
  const code = nativeCodeOf(error);
  switch (code) {
    case 'SPEC_INVALID':
    case 'DATASET_CORRUPT':
    case 'SHM_ALLOCATION_FAILED':
    case 'SHM_CORRUPTED':
    case 'PLUGIN_FAILED':
    case 'DEVICE_UNAVAILABLE':
    case 'DEVICE_OUT_OF_MEMORY':
    case 'DEVICE_FAILED':
    case 'DEVICE_LOST':
      return code;
    case 'DATASET_NOT_FOUND':
      return 'DATASET_CORRUPT';
    default:
      return 'INTERNAL';
  }
}
