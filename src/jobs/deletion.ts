import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as yieldToLoop } from 'node:timers/promises';
import { syncFolder } from '../base/atomic-file.ts';
import { GnndError, messageOf } from '../base/errors.ts';
import { canonicalSha256 } from '../base/ids.ts';
import type { Log } from '../base/log.ts';
import type { Removal, RequestKey, Store } from '../store/store.ts';
import type { Runner } from './runner.ts';

/**
 * Deletion of jobs. The call hides the job in one transaction; what is left of it goes here, files
 * first and rows last, in slices between which the event loop turns. The store knows how far each
 * one is, so the next daemon goes on where this one died.
 */
export interface Deletion {
  /**
   * Throws JOB_NOT_FOUND, JOB_NOT_TERMINAL, REQUEST_ID_REUSED. Repeating a call with its request id
   * answers what became of the job.
   */
  delete(request: DeleteJob): DeletedJob;
  /** Deletes ended jobs, in slices; those that are gone meanwhile are left out. */
  deleteAll(ids: readonly string[]): Promise<void>;
  /** Resolves when nothing is left of the jobs that are deleted, or cannot be removed now. */
  settle(): Promise<void>;
  /** Resolves when it has stopped, within a slice. */
  close(): Promise<void>;
}

export interface DeleteJob {
  readonly id: string;
  /** Cancels a job that has not ended, and deletes it once it has. */
  readonly force: boolean;
  readonly keepCheckpoint: boolean;
  readonly allowMissing: boolean;
  readonly requestId: string | null;
}

export interface DeletedJob {
  /** Whether the job still has executors and is deleted as soon as they have ended. */
  readonly isPending: boolean;
  /** Null: nothing was kept, or there was nothing. */
  readonly keptCheckpoint: string | null;
}

export interface DeletionOptions {
  readonly store: Store;
  readonly runner: Pick<Runner, 'attempts' | 'cancel'>;
  readonly jobsFolder: string;
  readonly log: Log;
}

/** Most jobs and rows that one transaction, and one turn of the event loop, may delete. */
export const deletionSlice = { jobs: 50, rows: 1000 } as const;

const method = 'DeleteJob';

export function createDeletion(options: DeletionOptions): Deletion {
  const { store, runner, jobsFolder, log } = options;
  const remains = new Remains(options);
  /** Whether a job is to be deleted at its end: spares a look at every commit. */
  let isAwaiting = store.removalsAt('WAITING', 1).length > 0;
  const off = store.onCommit(() => {
    if (!isAwaiting || store.endedRemovals(1).length === 0) return;
    isAwaiting = false;
    void settle();
  });
  const settle = async () => {
    try {
      await remains.remove();
      isAwaiting = store.removalsAt('WAITING', 1).length > 0;
    } catch (error) {
      // A full disk, say: the next sweep tries again.
      log.error('deletion.failed', { error: messageOf(error) });
    }
  };
  const checkpointOf = (uid: string) => join(jobsFolder, uid, 'checkpoint');
  const answer = (id: string, afterRevision: number): DeletedJob => {
    const deletion = store.deletionOf(id, afterRevision);
    const isKept = deletion?.keepCheckpoint === true && deletion.job.result !== null;
    return {
      isPending: deletion === null && store.getJob(id) !== null,
      keptCheckpoint: isKept ? checkpointOf(deletion.job.uid) : null,
    };
  };
  return {
    delete(request) {
      const { id, force, keepCheckpoint, allowMissing } = request;
      const key = requestKey(request);
      const first = key === null ? null : store.replayOf(key);
      if (first !== null) return answer(id, first.revision - 1);
      if (allowMissing && store.getJob(id) === null) {
        return { isPending: false, keptCheckpoint: null };
      }
      const before = store.revision();
      const revision = store.atomically(() => {
        const deleted = store.deleteJob(id, { force, keepCheckpoint }, ...(key ? [key] : []));
        if (deleted === null) store.setIntent(id, 'CANCEL');
        return deleted;
      });
      log.info('job.deleted', { job: id, force, keepCheckpoint });
      if (revision === null) {
        isAwaiting = true;
        runner.cancel(id);
      } else void settle();
      return answer(id, before);
    },
    async deleteAll(ids) {
      for (let at = 0; at < ids.length && !remains.isClosed; at += deletionSlice.jobs) {
        store.atomically(() => {
          for (const id of ids.slice(at, at + deletionSlice.jobs)) deleteEnded(store, id, false);
        });
        await yieldToLoop();
      }
      await settle();
    },
    settle,
    async close() {
      off();
      await remains.close();
    },
  };
}

/** Deletes an ended job; does nothing when it is gone, or has begun anew under its id. */
function deleteEnded(store: Store, id: string, keepCheckpoint: boolean): void {
  try {
    store.deleteJob(id, { force: false, keepCheckpoint });
  } catch (error) {
    const reason = error instanceof GnndError ? error.reason : null;
    if (reason !== 'JOB_NOT_FOUND' && reason !== 'JOB_NOT_TERMINAL') throw error;
  }
}

function requestKey({ requestId, ...request }: DeleteJob): RequestKey | null {
  return requestId === null ? null : { method, requestId, sha256: canonicalSha256(request) };
}

/** Files and rows of deleted jobs; one pass at a time, and one more for who comes meanwhile. */
class Remains {
  readonly #options: DeletionOptions;
  #current: Promise<void> | null = null;
  #next: Promise<void> | null = null;
  #closed = false;

  constructor(options: DeletionOptions) {
    this.#options = options;
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  remove(): Promise<void> {
    if (this.#current === null) {
      this.#current = this.#pass().finally(() => {
        this.#current = null;
      });
      return this.#current;
    }
    this.#next ??= this.#current
      .catch(() => {})
      .then(() => {
        this.#next = null;
        return this.remove();
      });
    return this.#next;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#next?.catch(() => {});
    await this.#current?.catch(() => {});
  }

  async #pass(): Promise<void> {
    const { store } = this.#options;
    /** Removals that failed in this pass and are not tried twice. */
    const stuck = new Set<number>();
    // Told before the first slice: the caller has not answered yet.
    await yieldToLoop();
    while (!this.#closed) {
      const ended = store.endedRemovals(deletionSlice.jobs);
      if (ended.length > 0) {
        store.atomically(() => {
          for (const { id, keepCheckpoint } of ended) deleteEnded(store, id, keepCheckpoint);
        });
      }
      const withFiles = store
        .removalsAt('FILES', deletionSlice.jobs + stuck.size)
        .filter(({ seq }) => !stuck.has(seq));
      if (withFiles.length > 0) await this.#removeFiles(withFiles, stuck);
      const withRows = store.removalsAt('ROWS', deletionSlice.jobs);
      this.#removeRows(withRows);
      if (ended.length + withFiles.length + withRows.length === 0) break;
      await yieldToLoop();
    }
  }

  async #removeFiles(removals: readonly Removal[], stuck: Set<number>): Promise<void> {
    const { store, runner, jobsFolder, log } = this.#options;
    const done: Removal[] = [];
    const busy = new Set([...runner.attempts.values()].map(({ input }) => input.uid));
    for (const removal of removals) {
      const folder = join(jobsFolder, removal.uid);
      try {
        // Executors that are being reaped still write their logs.
        if (busy.has(removal.uid)) throw new Error('its executors have not ended yet');
        await removeJobFolder(folder, removal.keepCheckpoint);
        done.push(removal);
      } catch (error) {
        stuck.add(removal.seq);
        log.warn('deletion.files_stay', { job: removal.id, folder, error: messageOf(error) });
      }
    }
    if (done.length === 0) return;
    // Without this a power failure could bring back files that no row knows.
    syncFolder(jobsFolder);
    store.filesRemoved(done);
  }

  #removeRows(removals: readonly Removal[]): void {
    const { store } = this.#options;
    if (removals.length === 0) return;
    store.atomically(() => {
      let left: number = deletionSlice.rows;
      for (const removal of removals) {
        left -= store.removeRows(removal, left);
        if (left <= 0) return;
      }
    });
  }
}

async function removeJobFolder(folder: string, keepCheckpoint: boolean): Promise<void> {
  if (!keepCheckpoint) {
    await rm(folder, { recursive: true, force: true });
    return;
  }
  const names = await readdir(folder).catch(() => []);
  for (const name of names.filter((entry) => entry !== 'checkpoint')) {
    await rm(join(folder, name), { recursive: true, force: true });
  }
}
