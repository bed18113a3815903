import { status } from '@grpc/grpc-js';
import type { EpochReport } from '../../api/gen/gnnd/v1/epoch_report_pb.ts';
import type { Job } from '../../api/gen/gnnd/v1/job_pb.ts';
import {
  JobService,
  type WatchJobResponse,
  WatchType,
} from '../../api/gen/gnnd/v1/job_service_pb.ts';
import { sleep } from '../../base/clock.ts';
import { type ApiClient, ApiError } from '../session/client.ts';
import { isTerminal } from '../session/exit.ts';

/** What a watch tells: the server's events, and that the connection is gone for now. */
export type WatchUpdate =
  | {
      readonly kind: 'event';
      readonly response: WatchJobResponse;
      /** The job as it is known now, with the epochs seen of its attempt; null before the first. */
      readonly job: Job | null;
    }
  | { readonly kind: 'lost'; readonly attempt: number; readonly retryDelayMs: number };

export interface WatchOptions {
  readonly signal: AbortSignal;
  /** Monotonic milliseconds. */
  readonly nowMs: () => number;
  /** How long a lost daemon is looked for. */
  readonly retryLimitMs?: number;
}

const firstRetryDelayMs = 250;
const retryDelayMsMax = 4000;
const retryLimitDefaultMs = 120_000;
/** Epochs that the job of an update carries, for a curve; each comes in a response of its own. */
const epochsKept = 1000;

/**
 * A job's events until it is terminal or deleted, over as many connections as it takes: each
 * continues after the last revision seen. A daemon that was never reached is an error at once; one
 * that goes away is looked for with back-off up to a limit. Throws ApiError and the signal's
 * reason.
 */
export async function* watchJob(
  client: ApiClient,
  name: string,
  options: WatchOptions,
): AsyncGenerator<WatchUpdate, void, void> {
  const limitMs = options.retryLimitMs ?? retryLimitDefaultMs;
  const known = new KnownJob();
  let revision = 0n;
  let lostAtMs = 0;
  let attempt = 0;
  let hasBeenReached = false;
  for (;;) {
    let failure: ApiError | null = null;
    try {
      const request = { name, startRevision: revision, untilTerminal: true };
      const events = client.stream(JobService.method.watchJob, request, { signal: options.signal });
      for await (const response of events) {
        attempt = 0;
        hasBeenReached = true;
        if (response.revision > revision) revision = response.revision;
        const job = known.after(response);
        yield { kind: 'event', response, job };
        if (response.type === WatchType.DELETED) return;
        if (job !== null && isTerminal(job.state)) return;
      }
      // The server ended the stream, as it does with connections of some age.
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      failure = error;
    }
    if (failure !== null) {
      if (failure.code === status.OUT_OF_RANGE && revision !== 0n) {
        // The past was compacted, or it is another store: begin with what is now.
        revision = 0n;
        continue;
      }
      if (!isPassing(failure) || !(hasBeenReached || failure.reason !== '')) throw failure;
    }
    attempt += 1;
    if (attempt === 1) lostAtMs = options.nowMs();
    if (failure !== null && options.nowMs() - lostAtMs >= limitMs) throw failure;
    const backOffMs = firstRetryDelayMs * 2 ** Math.min(attempt - 1, 10);
    const retryDelayMs = Math.min(backOffMs, retryDelayMsMax);
    if (failure !== null) yield { kind: 'lost', attempt, retryDelayMs };
    await sleep(retryDelayMs, options.signal);
  }
}

/** The job that responses tell of in parts. */
class KnownJob {
  #job: Job | null = null;
  #epochs: readonly EpochReport[] = [];
  #attempt = 0;
  /** Epochs of earlier attempts. */
  #before: readonly EpochReport[] = [];

  after({ type, job, attempt, epochs }: WatchJobResponse): Job | null {
    this.#job = job ?? this.#job;
    const newest = epochs.length > 0 ? attempt : (job?.attempts.at(-1)?.number ?? this.#attempt);
    // Another attempt begins with its first epoch again, or goes on with those of one before it.
    if (type === WatchType.SNAPSHOT) this.#before = [];
    else if (newest !== this.#attempt) this.#before = [...this.#before, ...this.#epochs];
    if (type === WatchType.SNAPSHOT || newest !== this.#attempt) this.#epochs = [];
    this.#attempt = newest;
    const resumed = this.#job?.attempts.at(-1)?.resumed;
    if (resumed !== undefined && this.#before.length > 0) {
      this.#epochs = this.#before.filter(({ epoch }) => epoch < resumed.epochs);
      this.#before = [];
    }
    if (epochs.length > 0) this.#epochs = [...this.#epochs, ...epochs].slice(-epochsKept);
    return this.#job === null ? null : { ...this.#job, epochs: [...this.#epochs] };
  }
}

/** A daemon that dies in mid-stream ends it with any of these; one that lives gives a reason. */
function isPassing({ code, reason }: ApiError): boolean {
  const isBroken = code === status.CANCELLED || code === status.INTERNAL || code === status.UNKNOWN;
  return code === status.UNAVAILABLE || (isBroken && reason === '');
}
