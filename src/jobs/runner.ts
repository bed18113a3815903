import { existsSync } from 'node:fs';
import type { Clock } from '../base/clock.ts';
import { messageOf, unreachable } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { CoreAddon } from '../native/contract.ts';
import type { JobRecord, JobResult, Reason } from '../records/job-record.ts';
import type { DevicePlan } from '../scheduler/plan.ts';
import { jobRequestOf } from '../scheduler/request.ts';
import { judgeLost } from '../scheduler/restart.ts';
import { decide, initialState, nextWakeMs, planOf } from '../scheduler/scheduler.ts';
import type { Command, SchedulerEvent, SchedulerState } from '../scheduler/state.ts';
import type { Store } from '../store/store.ts';
import type { AttemptEvent, AttemptInput, LaunchFacts } from '../supervisor/attempt-types.ts';
import { attemptFailureOf, JobAttempt } from '../supervisor/job-attempt.ts';
import type { CrewDevice } from '../supervisor/seat.ts';
import { attemptInputOf } from './attempt-input.ts';
import { completionMessage } from './completion.ts';
import type { RunnerObserver } from './runner-observer.ts';
import { StoreQueue } from './store-queue.ts';
import { storedTally, storeTally } from './tally.ts';
import { isSameQueue } from './waiting.ts';

/**
 * The loop around the scheduler: hands it what happens, performs what it commands, and writes every
 * transition before it shows. The scheduler's state lives here; what must survive is in the store.
 */

export interface RunnerOptions {
  readonly store: Store;
  readonly native: CoreAddon;
  readonly clock: Clock;
  readonly log: Log;
  readonly devices: readonly CrewDevice[];
  /** Folders of a job's attempts and checkpoint. */
  readonly jobsFolder: string;
  readonly cacheFolder: string;
  /** Uniform in [0, 1): spreads back-offs. */
  readonly random: () => number;
  readonly observe: RunnerObserver;
}

type AttemptName = Pick<AttemptInput, 'jobId' | 'ordinal'>;
type WithoutAttempt<E> = E extends unknown ? Omit<E, 'jobId' | 'attempt' | 'nowMs'> : never;
type OwnEvent = WithoutAttempt<Extract<SchedulerEvent, { readonly attempt: number }>>;

/** A job is held when so many of its writes wait for the store; one has at most 100 epochs. */
const unstoredMax = 100;

export class Runner {
  readonly #options: RunnerOptions;
  #state: SchedulerState = initialState;
  readonly #attempts = new Map<string, JobAttempt>();
  readonly #facts = new Map<string, LaunchFacts>();
  readonly #listeners = new Set<() => void>();
  readonly #inbox: SchedulerEvent[] = [];
  #deciding = false;
  #timer: NodeJS.Timeout | null = null;
  readonly #writes: StoreQueue;
  #drained: (() => void) | null = null;
  /** Jobs found at the start that may be what killed the daemon. */
  #suspects = 0;

  constructor(options: RunnerOptions) {
    this.#options = options;
    this.#writes = new StoreQueue({
      log: options.log,
      onRetried: () => this.#storeTried(),
      onFailing: (isFailing) => this.#observe((observer) => observer.storeFailing(isFailing)),
    });
  }

  /** True while the store refuses what jobs have to write. */
  get storeIsFailing(): boolean {
    return this.#writes.isFailing;
  }

  /** Takes up what an earlier daemon left, then lets jobs start. */
  start(): void {
    const { store } = this.#options;
    const names = this.#options.devices.map(({ name }) => name);
    this.#handle({ kind: 'devicesFound', names, nowMs: this.#nowMs() });
    const left = store
      .nonTerminalJobs()
      .map((job) => this.#recover(job))
      .filter((job) => job !== null);
    this.submit(left);
  }

  get state(): SchedulerState {
    return this.#state;
  }

  get attempts(): ReadonlyMap<string, JobAttempt> {
    return this.#attempts;
  }

  /** Called when somebody has come into the queue or left it, got devices or given them back. */
  onQueueChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  submit(jobs: readonly JobRecord[]): void {
    const requests = jobs.map((job) =>
      jobRequestOf({
        jobId: job.id,
        spec: job.effectiveSpec,
        createdAtMs: job.createAtMs,
        tally: storedTally(this.#options.store, job),
        delayMs: Math.max(0, (job.nextAttemptAtMs ?? 0) - this.#options.clock.wallMs()),
      }),
    );
    this.#handle({ kind: 'submitted', jobs: requests, nowMs: this.#nowMs() });
  }

  cancel(jobId: string): void {
    this.#handle({ kind: 'cancelled', jobId, nowMs: this.#nowMs() });
  }

  planOf(jobId: string): DevicePlan | null {
    return planOf(this.#state, jobId);
  }

  factsOf(jobId: string): LaunchFacts | null {
    return this.#facts.get(jobId) ?? null;
  }

  /** Stops every attempt; jobs go back to PENDING. Resolves when no executor is left. */
  drain(): Promise<void> {
    return new Promise((resolve) => {
      this.#drained = resolve;
      this.#handle({ kind: 'drain', nowMs: this.#nowMs() });
    });
  }

  // A dead daemon's executors are dead: the job starts again from its beginning, unless its model
  // was finished.
  #recover(job: JobRecord): JobRecord | null {
    const { store } = this.#options;
    if (job.result !== null && existsSync(job.result.checkpointDir)) {
      store.atomically(() => this.#succeed(job, job.result));
      return null;
    }
    if (job.intent === 'CANCEL') {
      store.atomically(() => {
        this.#closeOpenAttempt(job, 'DAEMON_RESTARTED', 'the daemon died while it was cancelled');
        if (job.state !== 'CANCELLING' && job.state !== 'PENDING') {
          this.#transition(job.id, { state: 'CANCELLING' });
        }
        const message = 'cancelled by the user';
        this.#transition(job.id, { state: 'CANCELLED', reason: 'USER_CANCELLED', message });
      });
      return null;
    }
    if (job.state === 'PENDING') return job;
    const attempt = job.attempts.at(-1)?.number ?? 0;
    const verdict = judgeLost({
      tally: storedTally(this.#options.store, job),
      madeProgress: attempt > 0 && store.epochs(job.id, attempt, 0, 1).length > 0,
      suspectsBefore: this.#suspects,
    });
    return store.atomically(() => {
      storeTally(store, job, verdict.tally);
      const reason = 'DAEMON_RESTARTED';
      const why = 'the daemon died while the job ran';
      this.#closeOpenAttempt(job, reason, why);
      if (verdict.kind === 'FAIL') {
        const end = { state: 'FAILED', reason: 'RESTART_BUDGET_EXHAUSTED', result: null } as const;
        this.#transition(job.id, { ...end, message: verdict.message });
        return null;
      }
      if (verdict.isSuspect) this.#suspects += 1;
      const { delayMs } = verdict;
      const nextAttemptAtMs = delayMs > 0 ? this.#options.clock.wallMs() + delayMs : null;
      const change = { state: 'PENDING', reason, nextAttemptAtMs, result: null } as const;
      const message = `${why}; it starts again from its beginning`;
      return this.#transition(job.id, { ...change, message });
    });
  }

  #succeed(job: JobRecord, result: JobResult | null): void {
    const reason = 'COMPLETED';
    const message = result === null ? '' : completionMessage(job.effectiveSpec.training, result);
    this.#closeOpenAttempt(job, reason, message);
    this.#transition(job.id, { state: 'SUCCEEDED', reason, message, result });
  }

  #closeOpenAttempt(job: JobRecord, reason: Reason, message: string): void {
    const last = job.attempts.at(-1);
    if (last === undefined || last.endAtMs !== null) return;
    this.#options.store.closeAttempt(job.id, last.number, { reason, message });
  }

  #nowMs(): number {
    return this.#options.clock.monotonicMs();
  }

  /** Events that arrive while commands are performed wait for their turn. */
  #handle(event: SchedulerEvent): void {
    this.#inbox.push(event);
    this.#decideAll();
  }

  #decideAll(): void {
    if (this.#deciding) return;
    this.#deciding = true;
    const before = this.#state;
    try {
      for (let next = this.#inbox.shift(); next !== undefined; next = this.#inbox.shift()) {
        const { state, commands } = decide(this.#state, next);
        this.#state = state;
        for (const command of commands) this.#performSafely(command);
      }
    } finally {
      this.#deciding = false;
    }
    this.#armTimer();
    if (isSameQueue(before, this.#state)) return;
    for (const listener of this.#listeners) listener();
  }

  /**
   * Steps that are a transition first (an attempt's begin and end) wait for the store, and all that
   * is commanded for the job behind them. What executors are told does not: a record follows.
   */
  #performSafely(command: Command): void {
    const { kind } = command;
    const isEnd = kind === 'requeue' || kind === 'finish';
    const jobId = 'jobId' in command ? command.jobId : null;
    if (jobId !== null && (isEnd || kind === 'prepare' || this.#writes.hasStep(jobId))) {
      const write = () => this.#perform(command);
      const refused = (error: unknown) => this.#performFailed(command, error);
      this.#writes.put(jobId, { kind, isStep: true, mustHappen: isEnd, write, refused });
      return;
    }
    try {
      this.#perform(command);
    } catch (error) {
      this.#options.log.error('command.failed', { kind, message: messageOf(error) });
      this.#performFailed(command, error);
    }
  }

  #performFailed(command: Command, error: unknown): void {
    if (!('jobId' in command)) return;
    const { jobId, attempt } = command;
    this.#fail(jobId, attempt, error);
  }

  #fail(jobId: string, attempt: number, error: unknown): void {
    const failure = { reason: attemptFailureOf(error), message: messageOf(error) } as const;
    this.#handle({ kind: 'attemptFailed', jobId, attempt, nowMs: this.#nowMs(), ...failure });
  }

  /** Writes what is known of a job, now or when the store takes it, in order. */
  #record(kind: string, { jobId, ordinal }: AttemptName, write: () => void): void {
    const refused = (error: unknown) => this.#fail(jobId, ordinal, error);
    this.#writes.put(jobId, { kind, isStep: false, mustHappen: false, write, refused });
  }

  #storeTried(): void {
    for (const [jobId, attempt] of this.#attempts) {
      if (this.#writes.countOf(jobId) === 0) attempt.hold(false);
    }
    this.#decideAll();
  }

  #perform(command: Command): void {
    switch (command.kind) {
      case 'prepare':
        this.#prepare(command);
        return;
      case 'calibrate':
        this.#attempts.get(command.jobId)?.calibrate(command.executors);
        return;
      case 'launch':
        this.#launch(command);
        return;
      case 'begin':
        this.#begin(command.jobId);
        return;
      case 'respawn':
        this.#respawn(command);
        return;
      case 'stopExecutors':
        this.#stop(command);
        return;
      case 'requeue':
        this.#requeue(command);
        return;
      case 'finish':
        this.#finish(command);
        return;
      case 'drained':
        this.#drained?.();
        return;
      case 'releaseDevices':
      case 'quarantineDevice':
        // The scheduler's own state says who has which device; there is nothing to do on a CPU.
        return;
      default:
        unreachable(command);
    }
  }

  #begin(jobId: string): void {
    const attempt = this.#attempts.get(jobId);
    if (attempt === undefined) return;
    const change = { state: 'RUNNING', reason: 'NONE', message: '' } as const;
    this.#record('begin', attempt.input, () => void this.#transition(jobId, change));
    attempt.begin();
  }

  #prepare(command: Extract<Command, { kind: 'prepare' }>): void {
    const { jobId } = command;
    const { store } = this.#options;
    const { job, number } = store.atomically(() => {
      const opened = store.openAttempt(jobId);
      const change = { state: 'PREPARING', reason: 'NONE', message: '', plan: null } as const;
      return { job: this.#transition(jobId, change), number: opened.number };
    });
    const input = attemptInputOf(this.#options, job, { ...command, number });
    const attempt: JobAttempt = new JobAttempt(input, {
      native: this.#options.native,
      clock: this.#options.clock,
      log: this.#options.log.with({ job: jobId, attempt: number }),
      emit: (event) => this.#attemptSaid(attempt, event),
    });
    this.#attempts.set(jobId, attempt);
    this.#observe((observer) => observer.attemptStarted(attempt));
    attempt.prepare();
  }

  #launch({ jobId, plan, executors }: Extract<Command, { kind: 'launch' }>): void {
    const attempt = this.#attempts.get(jobId);
    if (attempt === undefined) return;
    const { samplerBatchNs, trainerBatchNs, standbyBatchNs, standby } = plan;
    const timings = { samplerBatchNs, trainerBatchNs, standbyBatchNs };
    const facts = attempt.launch({ executors, standby, timings });
    this.#facts.set(jobId, facts);
    const change = { plan: { ...plan, ...facts } };
    this.#record('plan', attempt.input, () => void this.#transition(jobId, change));
  }

  #respawn({ jobId, seat }: Extract<Command, { kind: 'respawn' }>): void {
    const attempt = this.#attempts.get(jobId);
    if (attempt === undefined) return;
    const { store } = this.#options;
    const { input } = attempt;
    this.#record('restart', input, () => store.addExecutorRestart(jobId, input.number));
    attempt.respawn(seat);
  }

  #stop({ jobId, attempt, toCancel }: Extract<Command, { kind: 'stopExecutors' }>): void {
    const running = this.#attempts.get(jobId);
    if (toCancel) {
      const message = 'executors are being stopped';
      const change = { state: 'CANCELLING', reason: 'USER_CANCELLED', message } as const;
      const input = running?.input ?? { jobId, ordinal: attempt };
      this.#record('cancel', input, () => void this.#transition(jobId, change));
    }
    if (running !== undefined) {
      running.stop(running.input.spec.timeouts.cancelGraceMs);
      return;
    }
    // Preparing failed before anything was started.
    const stopped = { kind: 'stopped', jitter: this.#options.random() } as const;
    this.#inbox.push({ ...stopped, jobId, attempt, nowMs: this.#nowMs() });
  }

  #requeue(command: Extract<Command, { kind: 'requeue' }>): void {
    const { jobId, failure, delayMs, tally } = command;
    const { store, clock } = this.#options;
    const { reason, message } = failure;
    store.atomically(() => {
      const job = store.getJob(jobId);
      storeTally(store, job, tally);
      if (job !== null) this.#closeOpenAttempt(job, reason, message);
      this.#transition(jobId, {
        state: 'PENDING',
        reason: delayMs > 0 ? 'BACKOFF' : reason,
        message,
        result: null,
        nextAttemptAtMs: delayMs > 0 ? clock.wallMs() + delayMs : null,
      });
    });
    this.#forget(jobId);
  }

  #finish(command: Extract<Command, { kind: 'finish' }>): void {
    const { jobId, attempt, outcome, reason, message } = command;
    const { store } = this.#options;
    store.atomically(() => {
      const job = store.getJob(jobId);
      if (outcome === 'SUCCEEDED' && job !== null) return this.#succeed(job, job.result);
      if (attempt > 0 && job !== null) this.#closeOpenAttempt(job, reason, message);
      // A cancel that met a queued job: no executors existed.
      if (outcome === 'CANCELLED' && job?.state !== 'CANCELLING' && job?.state !== 'PENDING') {
        this.#transition(jobId, { state: 'CANCELLING' });
      }
      this.#transition(jobId, { state: outcome, reason, message, result: null });
    });
    this.#forget(jobId);
  }

  #forget(jobId: string): void {
    const attempt = this.#attempts.get(jobId);
    this.#attempts.delete(jobId);
    this.#facts.delete(jobId);
    if (attempt !== undefined) this.#observe((observer) => observer.attemptEnded(attempt));
  }

  /** What watches must not change what it watches. */
  #observe(tell: (observer: RunnerObserver) => void): void {
    try {
      tell(this.#options.observe);
    } catch (error) {
      this.#options.log.error('observer.failed', { message: messageOf(error) });
    }
  }

  #transition(jobId: string, change: Parameters<Store['transition']>[1]): JobRecord {
    const { store } = this.#options;
    const before = store.getJob(jobId);
    const after = store.transition(jobId, change);
    if (before !== null) this.#observe((observer) => observer.transitioned(before, after));
    return after;
  }

  #attemptSaid(attempt: JobAttempt, event: AttemptEvent): void {
    const { store } = this.#options;
    const { jobId, number } = attempt.input;
    if (this.#attempts.get(jobId) !== attempt) return;
    const record = (write: () => void) => this.#record(event.kind, attempt.input, write);
    switch (event.kind) {
      case 'phase':
        record(() => void this.#transition(jobId, { phase: event.phase }));
        return;
      case 'executorSpawned':
        this.#observe((observer) => observer.executorStarted(event.role));
        return;
      case 'calibrated':
        this.#tell(attempt, { ...event, standbyRoom: [] });
        return;
      case 'executorExited': {
        const { exit, executor, outcome } = event;
        this.#observe((observer) => observer.executorExited(exit));
        if (outcome.kind !== 'DONE') record(() => store.addExecutorExit(jobId, number, exit));
        this.#tell(attempt, { kind: 'executorExited', executor, outcome });
        return;
      }
      case 'epochsEnded': {
        const { reports, timings } = event;
        record(() => store.recordEpochs(jobId, number, reports));
        if (this.#writes.countOf(jobId) >= unstoredMax) attempt.hold(true);
        for (const report of reports) {
          this.#observe((observer) => observer.epochEnded(attempt, report));
        }
        // One look, one piece of evidence, however many epochs it saw.
        this.#tell(attempt, { kind: 'epochEnded', epoch: reports.at(-1)?.epoch ?? 0, timings });
        return;
      }
      case 'completed':
        // Before anybody is stopped: from here on the job has succeeded, whatever dies.
        record(() => void this.#transition(jobId, { result: event.result }));
        this.#observe((observer) => observer.checkpointWritten(event.checkpointMs / 1000));
        this.#tell(attempt, { kind: 'completed' });
        return;
      case 'stopped':
        this.#tell(attempt, { kind: 'stopped', jitter: this.#options.random() });
        return;
      case 'prepared':
      case 'executorReady':
      case 'progress':
      case 'attemptFailed':
        this.#tell(attempt, event);
        return;
      default:
        unreachable(event);
    }
  }

  #tell(attempt: JobAttempt, event: OwnEvent): void {
    const { jobId, ordinal } = attempt.input;
    this.#handle({ ...event, jobId, attempt: ordinal, nowMs: this.#nowMs() } as SchedulerEvent);
  }

  #armTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const wakeMs = nextWakeMs(this.#state);
    if (wakeMs === null) return;
    const tick = () =>
      this.#handle({ kind: 'tick', jitter: this.#options.random(), nowMs: this.#nowMs() });
    const longestMs = 2 ** 31 - 1;
    const delayMs = Math.min(longestMs, Math.max(1, Math.ceil(wakeMs - this.#nowMs())));
    this.#timer = setTimeout(tick, delayMs);
    this.#timer.unref();
  }
}
