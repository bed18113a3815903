import { GnndError, messageOf } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { Database } from './database.ts';
import { datasetTable } from './dataset-table.ts';
import { diskReserve } from './disk-reserve.ts';
import { eventTable } from './event-table.ts';
import {
  checkAtOpen,
  checkAtOpenMaxBytes,
  checkInBackground,
  type FileCheck,
  noCheck,
} from './file-check.ts';
import { jobTable } from './job-table.ts';
import { type MetaTable, metaTable } from './meta-table.ts';
import { operationTable } from './operation-table.ts';
import { requestTable } from './request-table.ts';
import { retentionTable } from './retention-table.ts';
import { isEmptyDatabase, makeTables } from './schema.ts';
import { requireOwnSpecWords, writeSpecWords } from './spec-words.ts';
import type { Store, StoreOptions } from './store-types.ts';

export type * from './store-types.ts';

/**
 * Opens the store at `path`; makes it where there is none. Only one daemon may have it open:
 * whoever calls holds the lock of the state directory.
 *
 * Throws StoreOfAnotherVersion (exit code 65), and GnndError STORE_CORRUPT, STORE_UNAVAILABLE or
 * STATE_DISK_FULL (exit code 74). After a stop that was not clean the whole file is checked, a
 * large one in the background: damage that is found then is told by `StoreOptions.onFatal`.
 */
export function openStore(path: string, options: StoreOptions): Store {
  const { log, reserveBytes = 0 } = options;
  let isOpen = false;
  const reserve = reserveBytes > 0 ? diskReserve(`${path}.reserve`, reserveBytes, log) : null;
  const database = new Database(path, {
    clock: options.clock,
    ...(reserve === null ? {} : { reserve }),
    observe: (observation) => options.observe?.(observation),
    onFatal: (error) => {
      // While it opens, the caller gets the error itself.
      if (!isOpen) return;
      log.error('store.failed', { reason: error.reason, error: error.message });
      options.onFatal?.(error);
    },
  });
  try {
    const { lastStopWasClean, check } = recover(database, path, options);
    const meta = metaTable(database);
    const incarnation = beginIncarnation(database, meta);
    log.info('store.opened', { path, incarnation, lastStopWasClean });
    const store = storeOn(database, meta, options, { incarnation, lastStopWasClean, check });
    isOpen = true;
    return store;
  } catch (error) {
    database.close();
    throw error;
  }
}

const cleanStopKey = 'clean_stop';
const incarnationKey = 'incarnation';

/** Checks the store, or makes it in an empty file; says whether the last stop was clean. */
function recover(database: Database, path: string, options: StoreOptions) {
  const { log, pool } = options;
  const isNew = isEmptyDatabase(database, path);
  const lastStopWasClean = isNew || metaTable(database).get(cleanStopKey) === 'yes';
  let check = noCheck;
  if (!lastStopWasClean) {
    log.warn('store.unclean_stop', { path });
    const maxBytes = options.checkAtOpenMaxBytes ?? checkAtOpenMaxBytes;
    const atOpenMaxBytes = pool !== undefined ? maxBytes : Number.POSITIVE_INFINITY;
    const onDamage = (error: GnndError) => database.fail(error);
    const isLater = checkAtOpen(database, { path, log, atOpenMaxBytes }) === 'LATER';
    if (isLater && pool !== undefined) {
      check = checkInBackground({ path, log, atOpenMaxBytes, pool, onDamage });
    }
  }
  if (!isNew) requireOwnSpecWords(database, path);
  database.useWriteAheadLog();
  if (isNew) {
    database.write('META', null, () => {
      makeTables(database);
      writeSpecWords(database);
    });
  }
  return { lastStopWasClean, check };
}

function beginIncarnation(database: Database, meta: MetaTable): number {
  return database.write('META', null, () => {
    const incarnation = Number(meta.get(incarnationKey) ?? '0') + 1;
    meta.set(incarnationKey, String(incarnation));
    meta.set(cleanStopKey, 'no');
    return incarnation;
  });
}

function storeOn(
  database: Database,
  meta: MetaTable,
  options: StoreOptions,
  { check, ...start }: Pick<Store, 'incarnation' | 'lastStopWasClean'> & { check: FileCheck },
): Store {
  const { clock, log, assertTransition } = options;
  const events = eventTable(database, meta);
  const requests = requestTable(database, clock);
  return {
    ...start,
    ...jobTable({ database, clock, events, requests, assertTransition }),
    ...datasetTable(database, clock),
    ...operationTable({ database, clock, events, requests }),
    ...retentionTable({ database, meta, clock, events, requests }),
    atomically: (work) => database.write('GROUP', null, work),
    onCommit: (listener) =>
      database.onCommit((changed) => {
        try {
          listener(changed);
        } catch (error) {
          // The commit stands whatever a listener does, and the writer must hear that it does.
          log.error('store.listener_failed', { error: messageOf(error) });
        }
      }),
    revision: events.revision,
    sizes: () => database.sizes(),
    getMeta: (key) => meta.get(`user:${key}`),
    setMeta: (key, value) => database.write('META', null, () => meta.set(`user:${key}`, value)),
    findRequest: requests.find,
    replayOf: (request) => {
      const first = requests.replayOf(request);
      if (first !== null) options.onReplay?.(request.method);
      return first;
    },
    checked: check.ended,
    close: () => closeStore(database, meta, { log, check }),
  };
}

function closeStore(
  database: Database,
  meta: MetaTable,
  { log, check }: { readonly log: Log; readonly check: FileCheck },
): void {
  if (!database.isOpen) return;
  check.stop();
  try {
    if (database.isUsable) {
      if (check.isDone()) database.write('META', null, () => meta.set(cleanStopKey, 'yes'));
      database.pragma('wal_checkpoint(TRUNCATE)');
    }
  } catch (error) {
    // The next start checks the file instead; nothing that was acknowledged depends on it.
    if (!(error instanceof GnndError)) throw error;
    log.warn('store.close_unclean', { error: error.message });
  } finally {
    database.close();
  }
}
