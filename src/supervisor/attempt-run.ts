import { writeFileAtomic } from '../base/atomic-file.ts';
import { sleep } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import { readStartFile } from '../files/start-file.ts';
import type { SegmentHandle, SegmentSnapshot, StandbyEstimates } from '../native/contract.ts';
import { isHistoryWarm } from '../plan/history.ts';
import type { JobLayout } from '../plan/job-layout.ts';
import type { JobProgress, JobTimeline } from '../records/job-record.ts';
import { infers } from '../spec/rules/inference.ts';
import type { AttemptContext, LaunchPlan } from './attempt-types.ts';
import type { Crew } from './crew.ts';
import { EpochReports, epochsAtOnce } from './epoch-reports.ts';
import { type CheckpointCounts, Finish } from './finalize.ts';
import { Images, resume } from './images.ts';
import type { JobCache } from './job-cache.ts';
import type { JobInference } from './job-inference.ts';
import { isAlive, type Look, progressOf } from './progress.ts';
import { Timeline, timelineText } from './timeline.ts';
import { type MeasuredTimings, timingsOf } from './timings.ts';
import { workStalls } from './watchdog.ts';

/** A launched crew, watched from its start until its job is complete and its model durable. */

export interface AttemptRunOptions {
  readonly crew: Crew;
  readonly plan: LaunchPlan;
  readonly layout: JobLayout;
  /** Of a job that infers. */
  readonly inference: Pick<JobInference, 'publish' | 'stop'>;
  /** Rejects where the dataset is not any more what it was as the job began. */
  readonly checkDataset: () => Promise<void>;
  /** Whether Trainers extract a batch ahead. */
  readonly prefetch: boolean;
  readonly cache: Pick<JobCache, 'plan' | 'seen' | 'read'>;
  /** Runs a step; what it throws ends the attempt. */
  readonly perform: (step: () => Promise<void>) => void;
}

export const lookEveryMs = 100;
/** Progress rates are taken over about this long. */
const rateWindowMs = 1000;
/** Less than what an attempt may take to stop, beyond its executors' grace. */
const keepMs = 20_000;
/** Looks come every 100 ms: in a longer gap nobody could have seen a commit. */
const frozenMs = 2000;

export class AttemptRun {
  readonly reports: EpochReports;
  readonly #context: AttemptContext;
  readonly #options: AttemptRunOptions;
  readonly #deviceNames: readonly string[];
  readonly #finish: Finish;
  readonly #images: Images;
  readonly #timeline: Timeline;
  /** Looks; null until there is something to look at. */
  #timer: NodeJS.Timeout | null = null;
  #looks: Look[] = [];
  #progress: JobProgress | null = null;
  /** 0 until `begin`. */
  #startedMs = 0;
  /** Committed when the attempt went on from an image. */
  #startedBatches = 0;
  #lastCommit: { readonly batches: number; readonly atMs: number };
  #lastCommitWallMs: number | null = null;
  /** When commits were last looked at. */
  #seenMs = 0;
  #held = false;
  #closed = false;

  constructor(context: AttemptContext, options: AttemptRunOptions) {
    this.#context = context;
    this.#options = options;
    this.#deviceNames = context.input.devices.map(({ name }) => name);
    this.reports = new EpochReports(context.native, this.#deviceNames);
    this.#timeline = new Timeline(this.#deviceNames);
    const { segment } = options.crew;
    this.#finish = new Finish(context, { ...options, segment, reports: this.reports });
    this.#images = new Images(context, segment);
    this.#lastCommit = { batches: -1, atMs: context.clock.monotonicMs() };
  }

  get progress(): JobProgress | null {
    return this.#progress;
  }

  /** What the executors did so far. */
  get timeline(): JobTimeline {
    return this.#timeline.record;
  }

  /** The latest look at the segment, for metrics; null before the first. */
  get snapshot(): SegmentSnapshot | null {
    return this.#looks.at(-1)?.snapshot ?? null;
  }

  /** Monotonic ms of the latest look; 0 before the first. */
  get lastLookMs(): number {
    return this.#looks.at(-1)?.atMs ?? 0;
  }

  /** Wall time of the last commit; null before the first. */
  get lastCommitWallMs(): number | null {
    return this.#lastCommitWallMs;
  }

  get checkpoints(): CheckpointCounts {
    return this.#finish.counts;
  }

  get #infers(): boolean {
    return infers(this.#context.input.spec);
  }

  /**
   * Goes on where the newest image was taken, if there is one; nobody is spawned before that, and
   * nobody looks: what another thread reads into the segment is not this attempt's work.
   */
  async resume(): Promise<void> {
    // What an inference has done is in its own journal.
    if (!this.#infers) await this.#resume();
    if (this.#closed) return;
    this.#timer = setInterval(() => this.#look(), lookEveryMs);
  }

  async #resume(): Promise<void> {
    const { crew, layout } = this.#options;
    const { segment } = crew;
    const { native, input } = this.#context;
    if (input.scalesRecorded.length > 0) native.segmentRecordScales(segment, input.scalesRecorded);
    const resumed = await resume(this.#context, { segment, layout });
    if (resumed === null) {
      await this.#beginWith(segment);
      return;
    }
    const { point, facts } = resumed;
    const epochs = Math.min(this.#context.input.epochsReported, facts.epochs);
    this.reports.resume(segment, epochs);
    this.#images.resume(facts);
    this.#startedBatches = facts.batches;
    this.#context.emit({ kind: 'resumed', point, epochs });
  }

  /** Of a job that begins from another one: with that one's parameters. */
  async #beginWith(segment: SegmentHandle): Promise<void> {
    const { native, input, log } = this.#context;
    const { startFrom, startParametersSha256: sha256 } = input.spec.training;
    if (sha256 === '') return;
    const { manifest } = this.#options.layout;
    native.segmentBeginWith(segment, await readStartFile(input.jobFolder, manifest, sha256));
    log.info('attempt.begins_with', { startFrom, sha256 });
  }

  /**
   * Once no executor is left: ends what is being written and, if the job is to go on, writes down
   * where it is. A disk that takes longer keeps nobody waiting: the file appears then, or never.
   */
  async keep({ goesOn }: { readonly goesOn: boolean }): Promise<void> {
    const trains = !this.#infers && this.#startedMs > 0;
    const isWorthIt = goesOn && trains && this.checkpoints.ok === 0;
    const images = this.#images;
    const work = isWorthIt ? images.writeLast(this.#options.crew.look()) : images.settled();
    const waiting = new AbortController();
    const all = Promise.all([work, this.#keepTimeline()]);
    await Promise.race([all, sleep(keepMs, waiting.signal).catch(() => {})]);
    waiting.abort();
  }

  /** For people only: without it the job is what it is. */
  async #keepTimeline(): Promise<void> {
    if (this.#startedMs === 0) return;
    const { input, log } = this.#context;
    try {
      await writeFileAtomic(input.timelineFile, [timelineText(this.timeline)]);
    } catch (error) {
      log.warn('attempt.no_timeline', { file: input.timelineFile, error: messageOf(error) });
    }
  }

  /** Executors may train from now on. */
  begin(): void {
    const { native, clock, emit } = this.#context;
    const { crew } = this.#options;
    this.#startedMs = clock.monotonicMs();
    const look = { atMs: this.#startedMs, snapshot: crew.look() };
    this.reports.start(look);
    this.#timeline.start(look, clock.wallMs());
    this.#lastCommit = { batches: -1, atMs: this.#startedMs };
    emit({ kind: 'phase', phase: this.#infers ? 'PREDICTING' : 'TRAINING' });
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
    const { crew } = this.#options;
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
    this.#noteCache(snapshot);
    if (!this.#infers) this.#reportEpochs({ atMs: nowMs, snapshot });
    this.#noteProgress(snapshot, nowMs);
    // One that went on from its very end is complete before it has begun, and ends after that.
    if (this.#startedMs === 0) return;
    if (!this.#infers) this.#images.look(snapshot, this.reports.count);
    const allReported = this.#infers || this.reports.count >= snapshot.epochsToTrain;
    if (snapshot.complete && allReported) this.#options.perform(() => this.#finish.once());
  }

  #noteCache({ executors }: SegmentSnapshot): void {
    const { cache } = this.#options;
    if (cache.seen(executors)) this.#context.emit({ kind: 'cacheSeen', cache: cache.plan });
  }

  /** The profit rule works with what the run shows: medians, and the Trainers that live. */
  #followEstimates(snapshot: SegmentSnapshot): void {
    const { plan, crew } = this.#options;
    if (plan.standby !== 'AUTO') return;
    const seen = this.#timingsOf(snapshot);
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
    if (this.#held || isFrozen) this.#lastCommit = { ...this.#lastCommit, atMs: nowMs };
    // Of an inference: rows, which are what it does in place of batches.
    const committed = this.#infers ? (snapshot.evaluation?.done ?? 0) : snapshot.committedBatches;
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

  #reportEpochs(look: Look): void {
    const reports = this.reports.take(this.#options.crew.segment, look);
    if (reports.length === 0) return;
    const timings = this.#isWarm() ? this.#timingsOf(look.snapshot) : null;
    this.#context.emit({ kind: 'epochsEnded', reports, timings });
    const { cache } = this.#options;
    if (cache.read(look.snapshot.executors)) {
      this.#context.emit({ kind: 'cacheSeen', cache: cache.plan });
    }
    if (reports.length < epochsAtOnce) return;
    // More may have ended already. Others get as much of the loop first as these took.
    const tookMs = this.#context.clock.monotonicMs() - look.atMs;
    setTimeout(() => this.#look(), tookMs);
  }

  #isWarm(): boolean {
    const { spec } = this.#context.input;
    const { batchesPerEpoch } = this.#options.layout;
    const stepsPerEpoch = Math.ceil(batchesPerEpoch / spec.training.batchesPerStep);
    return isHistoryWarm(spec, { steps: this.reports.count * stepsPerEpoch, stepsPerEpoch });
  }

  #timingsOf(snapshot: SegmentSnapshot): MeasuredTimings {
    return timingsOf(snapshot, this.#options.prefetch);
  }

  #noteProgress(snapshot: SegmentSnapshot, nowMs: number): void {
    if (this.#startedMs === 0) return;
    const { native, input } = this.#context;
    const { crew, layout } = this.#options;
    this.#progress = progressOf({
      before: this.#looks.length > 1 ? (this.#looks[0] ?? null) : null,
      now: { atMs: nowMs, snapshot },
      deviceNames: this.#deviceNames,
      pids: crew.pids,
      epochs: input.spec.training.epochs,
      batchesPerEpoch: layout.batchesPerEpoch,
      current: native.segmentEpoch(crew.segment, snapshot.epoch),
      lastReport: this.reports.last,
      valMetrics: this.reports.valMetrics,
      startedMs: this.#startedMs,
      infers: this.#infers,
      startedBatches: this.#startedBatches,
    });
  }
}
