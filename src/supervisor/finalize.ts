import { sleep } from '../base/clock.ts';
import { isScarcity } from '../base/descriptors.ts';
import { messageOf } from '../base/errors.ts';
import type { AttemptContext } from './attempt-types.ts';
import type { RunningWork } from './attempt-work.ts';

/** The end of an attempt's work: its result, a model or predictions, made durable. */

export interface CheckpointCounts {
  readonly ok: number;
  readonly failed: number;
  /** Size of the newest checkpoint; 0 before the first. */
  readonly bytes: number;
  readonly lastSuccessAtMs: number | null;
}

export const noCheckpoints: CheckpointCounts = {
  ok: 0,
  failed: 0,
  bytes: 0,
  lastSuccessAtMs: null,
};

/** Writes the result of a complete segment, until that is durable or nobody wants it. */
export class Finish {
  readonly #context: AttemptContext;
  readonly #work: Pick<RunningWork, 'final' | 'stop'>;
  /** Ends waiting for a disk that is full. */
  readonly #stop = new AbortController();
  #writing: Promise<void> | null = null;
  #counts = noCheckpoints;

  constructor(context: AttemptContext, work: Pick<RunningWork, 'final' | 'stop'>) {
    this.#context = context;
    this.#work = work;
  }

  /** Checkpoints written. */
  get counts(): CheckpointCounts {
    return this.#counts;
  }

  /** Writes at the first call, after all epochs were reported. Rejects if writing fails. */
  async once(): Promise<void> {
    if (this.#writing !== null) return;
    this.#writing = this.#write();
    await this.#writing;
  }

  /** Resolves when nothing is being written: the model is durable, or its failure was told. */
  async stop(): Promise<void> {
    this.#stop.abort();
    // A long write that nobody wants any more is stopped, not awaited.
    await this.#work.stop();
    await this.#writing?.catch(() => {});
  }

  async #write(): Promise<void> {
    const { clock, log, emit } = this.#context;
    const { signal } = this.#stop;
    emit({ kind: 'phase', phase: 'FINALIZING' });
    const final = await this.#work.final();
    let startMs = 0;
    const write = async () => {
      startMs = clock.monotonicMs();
      try {
        return await final.write();
      } catch (error) {
        this.#counts = { ...this.#counts, failed: this.#counts.failed + 1 };
        throw error;
      }
    };
    const result = await written(write, {
      onFailed: (error) => log.warn('checkpoint.failed', { error: messageOf(error) }),
      sleep: (delayMs) => sleep(delayMs, signal).catch(() => {}),
      isStopped: () => signal.aborted,
    });
    if (result === null) return;
    const lastSuccessAtMs = clock.wallMs();
    this.#counts = { ...this.#counts, ok: 1, bytes: final.bytes, lastSuccessAtMs };
    emit({ kind: 'completed', result, checkpointMs: clock.monotonicMs() - startMs });
  }
}

export class CheckpointError extends Error {
  constructor(message: string, cause: unknown) {
    super(message, { cause });
  }
}

export interface Retries {
  /** Told of each failure that is followed by another try. */
  readonly onFailed: (error: unknown) => void;
  readonly sleep: (delayMs: number) => Promise<void>;
  /** Asked after each wait; true ends it without a result. */
  readonly isStopped: () => boolean;
}

/** Ten minutes: a disk that is full for a while must not cost the whole job. */
export const checkpointDelaysMs = [1, 2, 4, 8, 15, ...Array.from({ length: 19 }, () => 30)].map(
  (seconds) => seconds * 1000,
);

/** Whether a file could not be written for a reason that passes, such as a full disk. */
function mayPass(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    const code = 'code' in at ? String(at.code) : '';
    if (isScarcity(at) || ['ENOSPC', 'EDQUOT', 'EIO', 'EROFS'].includes(code)) return true;
  }
  return false;
}

/**
 * What `write` answered; null when it was stopped. Throws what the last try threw, or at once what
 * would be no other at the next try.
 */
export async function written<T>(write: () => Promise<T>, retries: Retries): Promise<T | null> {
  for (const delayMs of checkpointDelaysMs) {
    try {
      return await write();
    } catch (error) {
      if (!mayPass(error)) throw error;
      retries.onFailed(error);
    }
    await retries.sleep(delayMs);
    if (retries.isStopped()) return null;
  }
  return await write();
}
