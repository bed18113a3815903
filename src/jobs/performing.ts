import { messageOf, unreachable } from '../base/errors.ts';
import type { JobRecord } from '../records/job-record.ts';
import type { Command } from '../scheduler/state.ts';
import { type AttemptEvent, JobAttempt } from '../supervisor/supervisor.ts';
import { workOf } from '../work/work.ts';
import { attemptInputOf } from './attempt-input.ts';
import { dropWork } from './inference-work.ts';
import { dropImages, goingOnMessage } from './job-images.ts';
import type { Recording } from './recording.ts';
import type { RunnerEvent } from './runner-loop.ts';
import type { RunnerOptions } from './runner-options.ts';
import { storeTally } from './tally.ts';

/** Performs what the scheduler commands: on the attempts, which live here, and in the store. */

export interface PerformingHooks {
  readonly onFailed: (jobId: string, attempt: number, error: unknown) => void;
  readonly onDrained: () => void;
  /** A job that rested only for as long as the store could not take it. */
  readonly onWanted: (job: JobRecord) => void;
  /** Posts an event that is handled after the commands of the present one are performed. */
  readonly post: (event: RunnerEvent) => void;
  readonly hear: (attempt: JobAttempt, event: AttemptEvent) => void;
}

type CommandOf<K extends Command['kind']> = Extract<Command, { readonly kind: K }>;

export class Performing {
  readonly attempts = new Map<string, JobAttempt>();
  readonly #options: RunnerOptions;
  readonly #recording: Recording;
  readonly #hooks: PerformingHooks;

  constructor(options: RunnerOptions, recording: Recording, hooks: PerformingHooks) {
    this.#options = options;
    this.#recording = recording;
    this.#hooks = hooks;
  }

  /**
   * Steps that are a transition first (an attempt's begin and end) wait for the store, and all that
   * is commanded for the job behind them. What executors are told does not: a record follows.
   */
  perform(command: Command): void {
    const { kind } = command;
    const isEnd = kind === 'requeue' || kind === 'suspend' || kind === 'finish';
    const jobId = 'jobId' in command ? command.jobId : null;
    if (jobId !== null && (isEnd || kind === 'prepare' || this.#recording.hasStep(jobId))) {
      const write = () => this.#perform(command);
      const refused = (error: unknown) => this.#failed(command, error);
      this.#recording.step(jobId, { kind, mustHappen: isEnd, write, refused });
      return;
    }
    try {
      this.#perform(command);
    } catch (error) {
      this.#options.log.error('command.failed', { kind, error: messageOf(error) });
      this.#failed(command, error);
    }
  }

  /** Lets go on who was held for writes that are done by now. */
  releaseHeld(): void {
    for (const [jobId, attempt] of this.attempts) {
      if (this.#recording.countOf(jobId) === 0) attempt.hold(false);
    }
  }

  #failed(command: Command, error: unknown): void {
    if ('jobId' in command) this.#hooks.onFailed(command.jobId, command.attempt, error);
  }

  #perform(command: Command): void {
    switch (command.kind) {
      case 'prepare':
        this.#prepare(command);
        return;
      case 'calibrate':
        this.attempts.get(command.jobId)?.calibrate(command.executors);
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
      case 'suspend':
        this.#suspend(command);
        return;
      case 'finish':
        this.#finish(command);
        return;
      case 'drained':
        this.#hooks.onDrained();
        return;
      case 'releaseDevices':
      case 'quarantineDevice':
        // The scheduler's own state says who has which device; there is nothing to do on a CPU.
        return;
      default:
        unreachable(command);
    }
  }

  #prepare(command: CommandOf<'prepare'>): void {
    const { jobId } = command;
    const { store } = this.#options;
    const { job, number } = store.atomically(() => {
      const opened = store.openAttempt(jobId);
      const change = { state: 'PREPARING', reason: 'NONE', message: '', plan: null } as const;
      return { job: this.#recording.transition(jobId, change), number: opened.number };
    });
    const input = attemptInputOf(this.#options, job, { ...command, number });
    const { native, clock, log, topologies, witness, propagations } = this.#options;
    const attempt: JobAttempt = new JobAttempt(
      input,
      {
        ...{ native, clock, log: log.with({ job: jobId, attempt: number }) },
        emit: (event) => {
          if (this.attempts.get(jobId) === attempt) this.#hooks.hear(attempt, event);
        },
      },
      (context) =>
        workOf(input.spec, input.dataset.schema).attempt({
          ...context,
          topologies,
          witness,
          propagations,
        }),
    );
    this.attempts.set(jobId, attempt);
    this.#recording.observe((observer) => observer.attemptStarted(attempt));
    attempt.prepare();
  }

  #launch({ jobId, plan, executors }: CommandOf<'launch'>): void {
    const attempt = this.attempts.get(jobId);
    if (attempt === undefined) return;
    const { samplerBatchNs, trainerBatchNs, standbyBatchNs, standby } = plan;
    const timings = { samplerBatchNs, trainerBatchNs, standbyBatchNs };
    const facts = attempt.launch({ executors, standby, timings });
    const change = { plan: { ...plan, ...facts } };
    const write = () => void this.#recording.transition(jobId, change);
    this.#recording.record('plan', attempt.input, write);
  }

  #begin(jobId: string): void {
    const attempt = this.attempts.get(jobId);
    if (attempt === undefined) return;
    // The message stays, so that people can read what the job went on from.
    const change = { state: 'RUNNING', reason: 'NONE' } as const;
    const write = () => void this.#recording.transition(jobId, change);
    this.#recording.record('begin', attempt.input, write);
    attempt.begin();
  }

  #respawn({ jobId, seat }: CommandOf<'respawn'>): void {
    const attempt = this.attempts.get(jobId);
    if (attempt === undefined) return;
    const { store } = this.#options;
    const { input } = attempt;
    const write = () => store.addExecutorRestart(jobId, input.number);
    this.#recording.record('restart', input, write);
    attempt.respawn(seat);
  }

  #stop({ jobId, attempt, shows }: CommandOf<'stopExecutors'>): void {
    const running = this.attempts.get(jobId);
    if (shows !== null) {
      const input = running?.input ?? { jobId, ordinal: attempt };
      const write = () => void this.#recording.transition(jobId, shows);
      this.#recording.record(shows.state, input, write);
    }
    if (running !== undefined) {
      const goesOn = shows?.state !== 'CANCELLING';
      running.stop(running.input.spec.timeouts.cancelGraceMs, { goesOn });
      return;
    }
    // Preparing failed before anything was started.
    this.#hooks.post({ kind: 'stopped', jitter: this.#options.random(), jobId, attempt });
  }

  #requeue({ jobId, failure, delayMs, tally }: CommandOf<'requeue'>): void {
    const { store, clock } = this.#options;
    const { reason, message } = failure;
    store.atomically(() => {
      const job = store.getJob(jobId);
      storeTally(store, job, tally);
      if (job !== null) this.#recording.closeOpenAttempt(job, reason, message);
      this.#recording.transition(jobId, {
        state: 'PENDING',
        reason: delayMs > 0 ? 'BACKOFF' : reason,
        message,
        result: null,
        nextAttemptAtMs: delayMs > 0 ? clock.wallMs() + delayMs : null,
      });
    });
    this.#forget(jobId);
  }

  #suspend({ jobId, tally }: CommandOf<'suspend'>): void {
    const { store, jobsFolder } = this.#options;
    const recording = this.#recording;
    const wanted = store.atomically(() => {
      const job = store.getJob(jobId);
      if (job === null) return null;
      storeTally(store, job, tally);
      recording.closeOpenAttempt(job, 'USER_SUSPENDED', 'suspended on request');
      const message = `suspended; ${goingOnMessage(jobsFolder, job.uid)}`;
      const change = { state: 'SUSPENDED', reason: 'USER_SUSPENDED', message } as const;
      const rests = recording.transition(jobId, { ...change, result: null });
      // The user may want something else by now, if the store has refused this for a while.
      if (job.intent === 'SUSPEND') return null;
      return job.intent === 'RUN' ? recording.wake(rests) : recording.endResting(rests);
    });
    this.#forget(jobId);
    if (wanted?.state === 'PENDING') this.#hooks.onWanted(wanted);
  }

  #finish({ jobId, attempt, outcome, reason, message }: CommandOf<'finish'>): void {
    const { store } = this.#options;
    const recording = this.#recording;
    store.atomically(() => {
      const job = store.getJob(jobId);
      if (outcome === 'SUCCEEDED' && job !== null) return recording.succeed(job, job.result);
      if (attempt > 0 && job !== null) recording.closeOpenAttempt(job, reason, message);
      // A cancel that met a queued job: no executors existed.
      if (outcome === 'CANCELLED' && job?.state !== 'CANCELLING' && job?.state !== 'PENDING') {
        recording.transition(jobId, { state: 'CANCELLING' });
      }
      recording.transition(jobId, { state: outcome, reason, message, result: null });
    });
    this.#forget(jobId);
    const ended = store.getJob(jobId);
    if (ended?.state === 'SUCCEEDED') void dropImages(this.#options, ended.uid);
    if (ended !== null) void dropWork(this.#options.jobsFolder, ended);
  }

  #forget(jobId: string): void {
    const attempt = this.attempts.get(jobId);
    this.attempts.delete(jobId);
    if (attempt !== undefined)
      this.#recording.observe((observer) => observer.attemptEnded(attempt));
  }
}
