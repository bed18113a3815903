import { messageOf } from '../base/errors.ts';
import type { JobRecord } from '../records/job-record.ts';
import type { DevicePlan } from '../scheduler/plan.ts';
import { jobRequestOf } from '../scheduler/request.ts';
import type { SchedulerState } from '../scheduler/state.ts';
import type { RequestKey } from '../store/store.ts';
import { attemptFailureOf, type JobAttempt } from '../supervisor/supervisor.ts';
import { workOf } from '../work/work.ts';
import { drainedDevices } from './drained-devices.ts';
import { createHearing } from './hearing.ts';
import { sweepImages } from './job-images.ts';
import { Performing } from './performing.ts';
import { Recording } from './recording.ts';
import { recoverJobs } from './recovery.ts';
import { RunnerLoop } from './runner-loop.ts';
import type { RunnerOptions } from './runner-options.ts';
import { storedTally } from './tally.ts';

/**
 * Runs jobs. What happens goes to the scheduler (runner-loop.ts), what it commands is performed
 * (performing.ts), what attempts say is heard (hearing.ts), and every transition is written before
 * it shows (recording.ts). The scheduler's state lives here; what must survive is in the store.
 */
export class Runner {
  readonly #options: RunnerOptions;
  readonly #recording: Recording;
  readonly #performing: Performing;
  readonly #loop: RunnerLoop;
  #drained: (() => void) | null = null;

  constructor(options: RunnerOptions) {
    this.#options = options;
    const { store, clock, random } = options;
    const onFailed = (jobId: string, attempt: number, error: unknown) => {
      const failure = { reason: attemptFailureOf(error), message: messageOf(error) } as const;
      this.#loop.handle({ kind: 'attemptFailed', jobId, attempt, ...failure });
    };
    this.#recording = new Recording(options, {
      onRefused: onFailed,
      onRetried: () => {
        this.#performing.releaseHeld();
        this.#loop.decideAll();
      },
    });
    this.#performing = new Performing(options, this.#recording, {
      onFailed,
      onDrained: () => this.#drained?.(),
      onWanted: (job) => this.submit([job]),
      post: (event) => this.#loop.post(event),
      hear: createHearing({
        store,
        recording: this.#recording,
        random,
        handle: (event) => this.#loop.handle(event),
      }),
    });
    const perform = this.#performing.perform.bind(this.#performing);
    this.#loop = new RunnerLoop({ clock, random, perform });
  }

  /** True while the store refuses what jobs have to write. */
  get storeIsFailing(): boolean {
    return this.#recording.isFailing;
  }

  /** Takes up what an earlier daemon left, then lets jobs start. */
  start(): void {
    const names = this.#options.devices.map(({ name }) => name);
    this.#loop.handle({ kind: 'devicesFound', names });
    for (const name of drainedDevices(this.#options.store)) this.drainDevice(name, true);
    this.submit(recoverJobs(this.#options, this.#recording));
    sweepImages(this.#options).catch((error: unknown) => {
      this.#options.log.warn('images.unswept', { error: messageOf(error) });
    });
  }

  get state(): SchedulerState {
    return this.#loop.state;
  }

  get attempts(): ReadonlyMap<string, JobAttempt> {
    return this.#performing.attempts;
  }

  /** Called when somebody has come into the queue or left it, got devices or given them back. */
  onQueueChange(listener: () => void): () => void {
    return this.#loop.onQueueChange(listener);
  }

  submit(jobs: readonly JobRecord[]): void {
    const requests = jobs.map((job) =>
      jobRequestOf({
        jobId: job.id,
        spec: job.effectiveSpec,
        work: workOf(job.effectiveSpec).schedule,
        createdAtMs: job.createAtMs,
        tally: storedTally(this.#options.store, job),
        delayMs: Math.max(0, (job.nextAttemptAtMs ?? 0) - this.#options.clock.wallMs()),
      }),
    );
    this.#loop.handle({ kind: 'submitted', jobs: requests });
  }

  cancel(jobId: string): void {
    const job = this.#options.store.getJob(jobId);
    if (job?.state === 'SUSPENDED') this.#recording.endResting(job);
    else this.#loop.handle({ kind: 'cancelled', jobId });
  }

  /** Stops a job's executors; a job that waits leaves the queue at once. */
  suspend(jobId: string): void {
    this.#loop.handle({ kind: 'suspended', jobId });
  }

  /** Makes a suspended job PENDING, to be resumed after the transaction. */
  wake(job: JobRecord): JobRecord {
    return this.#recording.wake(job);
  }

  /** Queues a PENDING job; a job that is being stopped is queued after that. */
  resume(job: JobRecord): void {
    if (job.state === 'PENDING') this.submit([job]);
    else this.#loop.handle({ kind: 'resumed', jobId: job.id });
  }

  /** Queues a job that has ended, with new budgets. */
  retry(job: JobRecord, message: string, request: RequestKey | undefined): void {
    this.submit([this.#recording.reopen(job, message, request)]);
  }

  /** Moves the device's job elsewhere; no job gets the device until it is given back. */
  drainDevice(device: string, drained: boolean): void {
    this.#loop.handle({ kind: 'deviceDrained', device, drained });
  }

  planOf(jobId: string): DevicePlan | null {
    return this.#loop.planOf(jobId);
  }

  /** Stops every attempt; jobs go back to PENDING. Resolves when no executor is left. */
  drain(): Promise<void> {
    return new Promise((resolve) => {
      this.#drained = resolve;
      this.#loop.handle({ kind: 'drain' });
    });
  }
}
