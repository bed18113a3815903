import { writeFileAtomic } from '../base/atomic-file.ts';
import { sleep } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import type { SegmentSnapshot, StandbyEstimates } from '../native/contract.ts';
import type { JobProgress, JobTimeline } from '../records/job-record.ts';
import type { AttemptContext, LaunchPlan } from './attempt-types.ts';
import type { EndedEpochs, RunningWork } from './attempt-work.ts';
import type { Crew } from './crew.ts';
import { type CheckpointCounts, Finish } from './finalize.ts';
import { isAlive, type Look } from './look.ts';
import { Timeline, timelineText } from './timeline.ts';
import { timingsOf } from './timings.ts';
import { workStalls } from './watchdog.ts';

/** A launched crew, watched from its start until its work is complete and its result durable. */

export interface AttemptRunOptions {
  readonly crew: Crew;
  readonly plan: LaunchPlan;
  readonly work: RunningWork;
  /** Whether Trainers extract a batch ahead. */
  readonly prefetch: boolean;
  /** Runs a step; what it throws ends the attempt. */
  readonly perform: (step: () => Promise<void>) => void;
}

export const lookEveryMs = 100;
/** Progress rates are taken over about this long. */
const rateWindowMs = 1000;
/** Most time to keep work at a stop; less than an attempt has beyond its executors' grace. */
const keepMs = 20_000;
/** Looks come every 100 ms: in a longer gap nobody could have seen a commit. */
const frozenMs = 2000;

/** Facts seen of an attempt's executors since its launch, for people and metrics. */
export interface SeenRun {
  readonly progress: JobProgress | null;
  /** What the executors did so far; null before the launch. */
  readonly timeline: JobTimeline | null;
  /** The latest look at the segment; null before the first. */
  readonly snapshot: SegmentSnapshot | null;
  readonly epochs: EndedEpochs;
  /** Monotonic ms of the latest look; 0 before the first. */
  readonly lastLookMs: number;
  /** Wall time of the last commit; null before the first. */
  readonly lastCommitWallMs: number | null;
  /** Checkpoints that were written. */
  readonly checkpoints: CheckpointCounts;
}

export class AttemptRun implements SeenRun {
  readonly #context: AttemptContext;
  readonly #options: AttemptRunOptions;
  readonly #finish: Finish;
  readonly #timeline: Timeline;
  /** Looks; null until there is something to look at. */
  #timer: NodeJS.Timeout | null = null;
  #looks: Look[] = [];
  #progress: JobProgress | null = null;
  /** 0 until `begin`. */
  #startedMs = 0;
  #lastCommit: { readonly batches: number; readonly atMs: number };
  #lastCommitWallMs: number | null = null;
  /** When commits were last looked at. */
  #seenMs = 0;
  #held = false;
  #closed = false;

  constructor(context: AttemptContext, options: AttemptRunOptions) {
    this.#context = context;
    this.#options = options;
    this.#timeline = new Timeline(context.input.devices.map(({ name }) => name));
    this.#finish = new Finish(context, options.work);
    this.#lastCommit = { batches: -1, atMs: context.clock.monotonicMs() };
  }

  get progress(): JobProgress | null {
    return this.#progress;
  }

  get timeline(): JobTimeline {
    return this.#timeline.record;
  }

  get snapshot(): SegmentSnapshot | null {
    return this.#looks.at(-1)?.snapshot ?? null;
  }

  get lastLookMs(): number {
    return this.#looks.at(-1)?.atMs ?? 0;
  }

  get lastCommitWallMs(): number | null {
    return this.#lastCommitWallMs;
  }

  get checkpoints(): CheckpointCounts {
    return this.#finish.counts;
  }

  get epochs(): EndedEpochs {
    return this.#options.work.epochs;
  }

  /**
   * Goes on where an earlier attempt stopped; no executor is spawned before that, and nobody looks:
   * what another thread reads into the segment is not this attempt's work.
   */
  async resume(): Promise<void> {
    await this.#options.work.resume();
    if (this.#closed) return;
    this.#timer = setInterval(() => this.#look(), lookEveryMs);
  }

  /**
   * Once no executor is left: ends what is being written and, if the job is to go on, writes down
   * where it is. A disk that takes longer keeps nobody waiting: the file appears then, or never.
   */
  async keep({ goesOn }: { readonly goesOn: boolean }): Promise<void> {
    const isWorthIt = goesOn && this.#startedMs > 0 && this.checkpoints.ok === 0;
    const waiting = new AbortController();
    const all = Promise.all([this.#options.work.keep(isWorthIt), this.#keepTimeline()]);
    await Promise.race([all, sleep(keepMs, waiting.signal).catch(() => {})]);
    waiting.abort();
  }

  /** Keeps the timeline, which is for people only: the job does without it. */
  async #keepTimeline(): Promise<void> {
    if (this.#startedMs === 0) return;
    const { input, log } = this.#context;
    try {
      await writeFileAtomic(input.timelineFile, [timelineText(this.timeline)]);
    } catch (error) {
      log.warn('attempt.no_timeline', { file: input.timelineFile, error: messageOf(error) });
    }
  }

  /** Executors work from now on. */
  begin(): void {
    const { native, clock, emit } = this.#context;
    const { crew, work } = this.#options;
    this.#startedMs = clock.monotonicMs();
    const look = { atMs: this.#startedMs, snapshot: crew.look() };
    work.begin(look);
    this.#timeline.start(look, clock.wallMs());
    this.#lastCommit = { batches: -1, atMs: this.#startedMs };
    emit({ kind: 'phase', phase: work.phase });
    native.segmentCommand(crew.segment, 'RUN');
  }

  /** While it holds, batches in hand are finished and no others begun. */
  hold(holds: boolean): void {
    if (this.#startedMs === 0 || this.#held === holds) return;
    this.#held = holds;
    this.#context.log.warn('attempt.held', { holds });
    this.#context.native.segmentCommand(this.#options.crew.segment, holds ? 'PAUSE' : 'RUN');
  }

  /** Looks no more. Resolves when no checkpoint is being written: it is durable, or was told. */
  async stop(): Promise<void> {
    this.#closed = true;
    this.#endLooks();
    await this.#finish.stop();
  }

  close(): void {
    this.#closed = true;
    this.#endLooks();
    this.#progress = null;
  }

  #endLooks(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  #look(): void {
    this.#options.perform(async () => this.#tick());
  }

  #tick(): void {
    if (this.#closed) return;
    const { crew, work } = this.#options;
    const nowMs = this.#context.clock.monotonicMs();
    const snapshot = crew.look();
    crew.watch(snapshot);
    this.#looks.push({ atMs: nowMs, snapshot });
    while (this.#looks.length > 2 && nowMs - (this.#looks[1]?.atMs ?? 0) >= rateWindowMs) {
      this.#looks.shift();
    }
    if (this.#startedMs > 0) this.#timeline.look({ atMs: nowMs, snapshot });
    this.#noteCommits(snapshot, nowMs);
    this.#followEstimates(snapshot);
    const told = work.look({ atMs: nowMs, snapshot }, this.#startedMs > 0);
    if (told.againMs !== null) setTimeout(() => this.#look(), told.againMs);
    this.#noteProgress(snapshot, nowMs);
    // An attempt that resumes from its very end is complete before it has begun; it ends after.
    if (this.#startedMs === 0) return;
    if (work.standing(snapshot) === 'COMPLETE' && told.all)
      this.#options.perform(() => this.#finish.once());
  }

  /** The profit rule works with what the run shows: medians, and the Trainers that live. */
  #followEstimates(snapshot: SegmentSnapshot): void {
    const { plan, crew, prefetch } = this.#options;
    if (plan.standby !== 'AUTO') return;
    const seen = timingsOf(snapshot, prefetch);
    const or = (measured: number, planned: number) => (measured === 0 ? planned : measured);
    const estimates: StandbyEstimates = {
      samplerBatchNs: or(seen.samplerBatchNs, plan.timings.samplerBatchNs),
      trainerBatchNs: or(seen.trainerBatchNs, plan.timings.trainerBatchNs),
      standbyBatchNs: or(seen.standbyBatchNs, plan.timings.standbyBatchNs),
      trainers: snapshot.executors.filter((e) => e.role === 'TRAINER' && isAlive(e)).length,
    };
    this.#context.native.segmentStandby(crew.segment, plan.standby, true, estimates);
  }

  #noteCommits(snapshot: SegmentSnapshot, nowMs: number): void {
    const { clock, emit, input } = this.#context;
    const isFrozen = this.#seenMs !== 0 && nowMs - this.#seenMs > frozenMs;
    this.#seenMs = nowMs;
    const awaitsUser = this.#options.work.standing(snapshot) === 'AWAITS_USER';
    if (this.#held || isFrozen || awaitsUser)
      this.#lastCommit = { ...this.#lastCommit, atMs: nowMs };
    const committed = this.#options.work.done(snapshot);
    if (committed !== this.#lastCommit.batches) {
      this.#lastCommit = { batches: committed, atMs: nowMs };
      if (committed > 0) this.#lastCommitWallMs = clock.wallMs();
      emit({ kind: 'progress', committedBatches: committed });
      return;
    }
    const { timeouts, training } = input.spec;
    // All batches of a step may be as long as a batch may be, and one Trainer may have them all.
    const limitMs = (1 + training.batchesPerStep) * workStalls * timeouts.stallMs;
    if (this.#startedMs === 0 || snapshot.complete || snapshot.evaluation !== null) return;
    if (nowMs - this.#lastCommit.atMs <= limitMs) return;
    this.#lastCommit = { ...this.#lastCommit, atMs: nowMs };
    const message = `no batch was committed for ${Math.round(limitMs / 1000)} s`;
    emit({ kind: 'attemptFailed', reason: 'EXECUTOR_STALLED', message });
  }

  #noteProgress(snapshot: SegmentSnapshot, nowMs: number): void {
    if (this.#startedMs === 0) return;
    this.#progress = this.#options.work.progress({
      before: this.#looks.length > 1 ? (this.#looks[0] ?? null) : null,
      now: { atMs: nowMs, snapshot },
      startedMs: this.#startedMs,
    });
  }
}
