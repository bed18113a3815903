import { GnndError, messageOf } from '../base/errors.ts';
import type { Log } from '../base/log.ts';

/**
 * Writes about jobs that wait while the store refuses (a full disk, a lock held for too long): a
 * job's writes happen in their order, and nobody's training ends for it.
 */

export interface StoreQueueOptions {
  readonly log: Log;
  /** Told after each round of trying again; by then some jobs may have nothing left to write. */
  readonly onRetried: () => void;
  /** Told when the first write is refused, and when the last one was taken. */
  readonly onFailing: (isFailing: boolean) => void;
}

interface Entry {
  readonly kind: string;
  /** Other steps of the job wait for a step; what executors are to do waits for no record. */
  readonly isStep: boolean;
  /** Whether the write is repeated until it succeeds, whatever the store says. */
  readonly mustHappen: boolean;
  readonly write: () => void;
  /** Told of an error of a write that the store will never take, or of another kind. */
  readonly refused: (error: unknown) => void;
}

const retryMs = 1000;

export class StoreQueue {
  readonly #options: StoreQueueOptions;
  readonly #waiting = new Map<string, Entry[]>();
  #timer: NodeJS.Timeout | null = null;

  constructor(options: StoreQueueOptions) {
    this.#options = options;
  }

  /** True while the store refuses something. */
  get isFailing(): boolean {
    return this.#waiting.size > 0;
  }

  /** Writes of a job that wait. */
  countOf(jobId: string): number {
    return this.#waiting.get(jobId)?.length ?? 0;
  }

  hasStep(jobId: string): boolean {
    return this.#waiting.get(jobId)?.some(({ isStep }) => isStep) ?? false;
  }

  /** Does it now, or after what waits for the job already. */
  put(jobId: string, entry: Entry): void {
    const waiting = this.#waiting.get(jobId);
    if (waiting !== undefined) {
      waiting.push(entry);
      return;
    }
    if (this.#isDone(entry)) return;
    // Entries that `write` itself queued stay behind this one.
    const wasFailing = this.isFailing;
    this.#waiting.set(jobId, [entry, ...(this.#waiting.get(jobId) ?? [])]);
    if (!wasFailing) this.#options.onFailing(true);
    this.#arm();
  }

  #isDone(entry: Entry): boolean {
    try {
      entry.write();
      return true;
    } catch (error) {
      this.#options.log.error('store.refused', { kind: entry.kind, error: messageOf(error) });
      if (entry.mustHappen || isTrouble(error)) return false;
      entry.refused(error);
      return true;
    }
  }

  #arm(): void {
    this.#timer ??= setTimeout(() => this.#retry(), retryMs);
  }

  #retry(): void {
    this.#timer = null;
    for (const [jobId, entries] of [...this.#waiting]) {
      for (let head = entries[0]; head !== undefined && this.#isDone(head); head = entries[0]) {
        entries.shift();
      }
      if (entries.length === 0) this.#waiting.delete(jobId);
    }
    if (this.isFailing) this.#arm();
    else this.#options.onFailing(false);
    this.#options.onRetried();
  }
}

/** Whether the store may take the same write later. */
function isTrouble(error: unknown): boolean {
  if (!(error instanceof GnndError)) return false;
  return error.reason === 'STATE_DISK_FULL' || error.reason === 'STORE_UNAVAILABLE';
}
