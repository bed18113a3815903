import type { EpochReport } from '../api/gen/gnnd/v1/epoch_report_pb.ts';
import { type Job, JobState } from '../api/gen/gnnd/v1/job_pb.ts';
import { JobService, type WatchJobResponse, WatchType } from '../api/gen/gnnd/v1/job_service_pb.ts';
import { ApiError, call, stream } from './api.ts';
import { Thinned } from './thinned.ts';

/** A job as WatchJob tells it, with its epochs in bounded memory; no DOM here. */

/** Points of a chart: more than a screen has columns for. */
const pointsMax = 1000;
/** Older epochs are fetched up to here; a chart of more begins with those that the watch tells. */
const olderMax = 2000;
const retryMs = { first: 500, last: 10_000 } as const;

export type FeedState =
  | { readonly kind: 'CONNECTING' }
  | { readonly kind: 'LIVE' }
  | { readonly kind: 'LOST'; readonly message: string }
  | { readonly kind: 'GONE'; readonly message: string };

export interface FeedTime {
  readonly sleep: (delayMs: number, signal: AbortSignal) => Promise<void>;
}

export class JobFeed {
  readonly #name: string;
  readonly #time: FeedTime;
  readonly #listeners = new Set<() => void>();
  #job: Job | null = null;
  #state: FeedState = { kind: 'CONNECTING' };
  #revision = 0n;
  #attempt = 0;
  #epochs = newEpochs();
  #epochCount = 0;

  constructor(name: string, time: FeedTime) {
    this.#name = name;
    this.#time = time;
  }

  get job(): Job | null {
    return this.#job;
  }

  get state(): FeedState {
    return this.#state;
  }

  /** Number of epochs that ended in the attempt, as far as was told. */
  get epochCount(): number {
    return Math.max(this.#epochCount, this.#job?.numEpochs ?? 0);
  }

  /** Epoch, loss, training and validation accuracy, or two other metrics: a column each. */
  points(): (number | null)[][] {
    return this.#epochs.points();
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Until the job is deleted or the signal aborts; from where it was when it runs again. */
  async run(signal: AbortSignal): Promise<void> {
    let waitMs: number = retryMs.first;
    while (!signal.aborted && this.#state.kind !== 'GONE') {
      try {
        await this.#watch(signal);
        waitMs = retryMs.first;
      } catch (error) {
        if (signal.aborted) return;
        if (this.#isOver(error)) return;
      }
      await this.#time.sleep(waitMs, signal).catch(() => {});
      waitMs = Math.min(retryMs.last, 2 * waitMs);
    }
  }

  /** Whether it makes no sense to try again. */
  #isOver(error: unknown): boolean {
    const message = error instanceof Error ? error.message : String(error);
    const isRefused = error instanceof ApiError && [401, 403, 404].includes(error.status);
    const isForgotten = error instanceof ApiError && error.reason.startsWith('REVISION_');
    if (isForgotten) this.#revision = 0n;
    this.#become(isRefused ? { kind: 'GONE', message } : { kind: 'LOST', message });
    return isRefused;
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const request = { name: this.#name, startRevision: this.#revision };
    for await (const event of stream(JobService.method.watchJob, request, signal)) {
      await this.#take(event, signal);
      if (this.#state.kind === 'GONE') return;
    }
  }

  async #take(event: WatchJobResponse, signal: AbortSignal): Promise<void> {
    if (event.job !== undefined) this.#job = event.job;
    if (event.type === WatchType.SNAPSHOT) await this.#begin(event, signal);
    else if (event.epochs.length > 0) this.#addEpochs(event.attempt, event.epochs);
    this.#revision = event.revision;
    const isDeleted = event.type === WatchType.DELETED;
    this.#become(isDeleted ? { kind: 'GONE', message: 'the job was deleted' } : { kind: 'LIVE' });
  }

  /** Fetches the first epochs if the snapshot lacks them and they are not too many. */
  async #begin({ attempt, epochs, job }: WatchJobResponse, signal: AbortSignal): Promise<void> {
    this.#epochs = newEpochs();
    this.#attempt = attempt;
    const first = epochs[0]?.epoch ?? 0;
    if (first > 0 && (job?.numEpochs ?? 0) <= olderMax) {
      let pageToken = '';
      do {
        const request = { name: this.#name, attempt, pageSize: 500, pageToken };
        const page = await call(JobService.method.listEpochs, request, signal);
        this.#addEpochs(
          attempt,
          page.epochs.filter(({ epoch }) => epoch < first),
        );
        const last = page.epochs.at(-1)?.epoch ?? first;
        pageToken = last < first - 1 ? page.nextPageToken : '';
      } while (pageToken !== '');
    }
    this.#addEpochs(attempt, epochs);
  }

  #addEpochs(attempt: number, epochs: readonly EpochReport[]): void {
    if (attempt !== this.#attempt) {
      // An attempt that goes on tells its own epochs only; the chart keeps earlier ones.
      this.#attempt = attempt;
      if (epochs[0]?.epoch === 0) this.#epochs = newEpochs();
    }
    this.#epochCount = 1 + (epochs.at(-1)?.epoch ?? -1);
    for (const report of epochs) this.#epochs.add(pointOf(report));
  }

  #become(state: FeedState): void {
    this.#state = state;
    for (const listener of this.#listeners) listener();
  }
}

/**
 * A point of the chart; epochs count from 1. Without accuracy the deciding metric comes last,
 * and a second metric before it.
 */
function pointOf({ epoch, loss, trainAccuracy, valAccuracy, valMetrics }: EpochReport) {
  const [first, second] = valMetrics;
  if (first === undefined || first.name === 'accuracy') {
    return [epoch + 1, loss, trainAccuracy, valAccuracy ?? null];
  }
  return [epoch + 1, loss, second?.value ?? null, first.value];
}

function newEpochs(): Thinned {
  return new Thinned(4, pointsMax);
}

export function isTerminal(state: JobState): boolean {
  return [JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED].includes(state);
}
