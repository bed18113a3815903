import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, renameSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { syncFolder } from '../base/atomic-file.ts';
import { GnndError, messageOf } from '../base/errors.ts';
import { canonicalSha256 } from '../base/ids.ts';
import type { Log } from '../base/log.ts';
import type { DatasetRecord } from '../records/dataset-record.ts';
import type { OperationStore, RequestKey, Store } from '../store/store.ts';
import { readWritten } from './adopt.ts';

/**
 * Deletion of datasets. The folder is renamed first, then the record goes, then the files: what a
 * crash leaves under the other name is either undone (the record is still there) or removed at the
 * next start, and the id is free as soon as the call is answered.
 */

export interface DeleteDataset {
  readonly id: string;
  readonly allowMissing: boolean;
  readonly requestId: string | null;
}

export type DeletionStore = Pick<Store, 'getDataset' | 'replayOf'> &
  Pick<Store, 'jobsUsing' | 'deleteDataset'> &
  Pick<OperationStore, 'unfinishedOperations'>;

const method = 'DeleteDataset';
const asidePrefix = '.deleted-';
/** Jobs that an error names at most; `and more` stands for the rest. */
const jobsNamed = 10;

/**
 * Deletes the record and answers what was there, with its files under another name for
 * `removeFiles`; null when it had gone before. Throws DATASET_NOT_FOUND, DATASET_IN_USE,
 * REQUEST_ID_REUSED.
 */
export function deleteDataset(
  store: DeletionStore,
  { id, allowMissing, requestId }: DeleteDataset,
): { readonly dataset: DatasetRecord; readonly aside: string | null } | null {
  const key = requestKey(id, requestId);
  if (key !== null && store.replayOf(key) !== null) return null;
  const dataset = store.getDataset(id);
  if (dataset === null && allowMissing) return null;
  if (dataset === null) {
    const resource = `datasets/${id}`;
    throw new GnndError('DATASET_NOT_FOUND', `there is no dataset ${id}`, { resource });
  }
  refuseWhileInUse(store, id);
  const aside = setAside(dataset.path);
  try {
    store.deleteDataset(id, ...(key === null ? [] : [key]));
  } catch (error) {
    if (aside !== null) renameSync(aside, dataset.path);
    throw error;
  }
  return { dataset, aside };
}

function requestKey(id: string, requestId: string | null): RequestKey | null {
  return requestId === null ? null : { method, requestId, sha256: canonicalSha256({ id }) };
}

function refuseWhileInUse(store: DeletionStore, id: string): void {
  const resource = `datasets/${id}`;
  const operation = store.unfinishedOperations().find(({ target }) => target === id);
  if (operation !== undefined) {
    const message = `dataset '${id}' is being worked on by operation ${operation.id}: wait for it`;
    throw new GnndError('DATASET_IN_USE', message, { resource });
  }
  const jobs = store.jobsUsing(id, jobsNamed + 1);
  if (jobs.length === 0) return;
  const more = jobs.length > jobsNamed ? ' and more' : '';
  const named = `${jobs.slice(0, jobsNamed).join(', ')}${more}`;
  const message = `dataset '${id}' is in use: wait for these jobs or cancel them: ${named}`;
  throw new GnndError('DATASET_IN_USE', message, { resource, metadata: { jobs: named } });
}

/** Null when there is no such folder. Durable, so that no start takes it for a dataset. */
function setAside(path: string): string | null {
  if (!existsSync(path)) return null;
  const aside = join(dirname(path), `${asidePrefix}${basename(path)}-${randomUUID()}`);
  renameSync(path, aside);
  syncFolder(dirname(path));
  return aside;
}

/** Never rejects: what stays is tried again at the next start. */
export async function removeFiles(aside: string, log: Log): Promise<void> {
  try {
    await rm(aside, { recursive: true, force: true });
  } catch (error) {
    log.warn('dataset.files_stay', { path: aside, error: messageOf(error) });
  }
}

/**
 * At the start: puts back what was renamed by a deletion that never was stored, and answers the
 * other folders, whose records are gone.
 */
export function undoUnstored(folder: string, store: DeletionStore, log: Log): readonly string[] {
  const uuidLength = 36;
  const names = readdirSync(folder).filter((name) => name.startsWith(asidePrefix));
  return names.flatMap((name) => {
    const aside = join(folder, name);
    const dataset = store.getDataset(name.slice(asidePrefix.length, -uuidLength - 1));
    const isItsOwn = dataset !== null && readWritten(aside)?.digest === dataset.digest;
    if (!isItsOwn || existsSync(dataset.path)) return [aside];
    renameSync(aside, dataset.path);
    log.warn('dataset.deletion_undone', { id: dataset.id });
    return [];
  });
}

/** What becomes of a dataset whose folder went away, or came back, while no daemon looked. */
export function presenceChange(
  dataset: DatasetRecord,
): Pick<DatasetRecord, 'state' | 'message'> | null {
  const { state, path, digest } = dataset;
  if (state === 'READY' && !existsSync(join(path, 'dataset.json'))) {
    const message =
      `its folder ${path} was gone when the daemon started: put it back and start the daemon ` +
      'again, import it again, or delete it';
    return { state: 'FAILED', message };
  }
  // Only what was READY once has a digest.
  const written = state === 'FAILED' && digest !== '' ? readWritten(path) : null;
  if (written === null || written.digest !== digest) return null;
  return { state: 'READY', message: written.notices.join('\n') };
}
