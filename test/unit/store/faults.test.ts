import { existsSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { GnndError } from '../../../src/base/errors.ts';
import { createPool } from '../../../src/pool/pool.ts';
import { Database, errorCodeOf, ownError } from '../../../src/store/database.ts';
import { diskReserve } from '../../../src/store/disk-reserve.ts';
import { metaTable } from '../../../src/store/meta-table.ts';
import { makeTables } from '../../../src/store/schema.ts';
import { openStore, type StoreOp } from '../../../src/store/store.ts';
import { newJob } from './job-values.ts';
import {
  countingClock,
  crashImage,
  openTestStore,
  storeOptions,
  temporaryFolder,
  temporaryStorePath,
} from './store-fixtures.ts';

const pageBytes = 4096;

function errorOf(work: () => unknown): GnndError {
  try {
    work();
  } catch (error) {
    if (error instanceof GnndError) return error;
    throw error;
  }
  throw new Error('expected an error');
}

/** The page where the rows of `table` begin. */
function rootPage(path: string, table: string): number {
  const raw = new Sqlite(path, { readonly: true });
  const row = raw.prepare('SELECT rootpage AS page FROM sqlite_schema WHERE name = ?').get(table);
  raw.close();
  return Number(Object(row).page);
}

function damage(path: string, page: number): void {
  const bytes = readFileSync(path);
  bytes.fill(0xff, (page - 1) * pageBytes, page * pageBytes);
  writeFileSync(path, bytes);
}

describe('a store whose files are taken away', () => {
  test('acknowledges nothing more, says why, and ends the daemon', () => {
    const folder = temporaryFolder();
    const path = join(folder, 'state', 'gnnd.db');
    const fatal: string[] = [];
    const store = openTestStore(path, { onFatal: ({ message }) => void fatal.push(message) });
    store.insertJob(newJob('a'));
    rmSync(join(folder, 'state'), { recursive: true });
    const error = errorOf(() => store.insertJob(newJob('b')));
    expect(error.reason).toBe('STORE_UNAVAILABLE');
    expect(error.message).toContain(`${path} was removed while it was in use`);
    expect(fatal).toEqual([error.message]);
    expect(errorOf(() => store.insertJob(newJob('c')))).toBe(error);
  });
});

describe('a store that was not closed', () => {
  test('has in its file what is older than a few seconds: a damaged log loses the rest', () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const path = temporaryStorePath();
    const store = openTestStore(path);
    store.insertJob(newJob('old'));
    vi.advanceTimersByTime(5000);
    store.insertJob(newJob('new'));
    const image = crashImage(path);
    rmSync(`${image}-wal`);
    const after = openTestStore(image);
    expect(after.getJob('old')?.id).toBe('old');
    expect(after.getJob('new')).toBeNull();
  });

  test('has all that was acknowledged, says so, and counts the daemon', () => {
    const path = temporaryStorePath();
    const store = openTestStore(path);
    expect([store.incarnation, store.lastStopWasClean]).toEqual([1, true]);
    store.insertJob(newJob('a'));
    const after = openTestStore(crashImage(path));
    expect([after.incarnation, after.lastStopWasClean]).toEqual([2, false]);
    expect(after.getJob('a')).toEqual(store.getJob('a'));
    store.close();
    const clean = openTestStore(path);
    expect([clean.incarnation, clean.lastStopWasClean]).toEqual([2, true]);
  });

  test('holds a prefix of the commits wherever its log is cut', () => {
    const path = temporaryStorePath();
    const store = openTestStore(path);
    for (let i = 0; i < 20; i++) store.insertJob(newJob(`j${i}`));
    const walBytes = store.sizes().walBytes;
    expect(walBytes).toBeGreaterThan(20 * pageBytes);
    for (let cut = 0; cut <= 10; cut++) {
      const image = crashImage(path);
      truncateSync(`${image}-wal`, Math.floor((walBytes * cut) / 10));
      const after = openTestStore(image);
      const revisions = after
        .nonTerminalJobs()
        .flatMap((job) => after.events(job.id, 0, 9).map((event) => event.revision));
      const kept = after.revision();
      expect(revisions.sort((a, b) => a - b)).toEqual([...Array(kept).keys()].map((i) => i + 1));
      expect(after.nonTerminalJobs().map((job) => job.id)).toEqual(
        [...Array(kept).keys()].map((i) => `j${i}`),
      );
      if (cut === 10) expect(kept).toBe(20);
      after.close();
    }
  });

  test('is checked before it is used, and refused when it is damaged', () => {
    const path = temporaryStorePath();
    const store = openTestStore(path);
    for (let i = 0; i < 20; i++) store.insertJob(newJob(`j${i}`));
    store.close();
    const second = openTestStore(path);
    second.setMeta('x', 'y');
    const image = crashImage(path);
    damage(image, rootPage(image, 'epochs'));
    const error = errorOf(() => openStore(image, storeOptions()));
    expect(error.reason).toBe('STORE_CORRUPT');
    expect(error.message).toMatch(/damaged.*\.recover/);
  });
});

describe('a large store that was not closed', () => {
  /** 20 jobs and an epoch, as a crash left them; any file counts as large. */
  function largeImage(): string {
    const path = temporaryStorePath();
    const store = openTestStore(path);
    for (let i = 0; i < 20; i++) store.insertJob(newJob(`j${i}`));
    store.close();
    openTestStore(path).setMeta('x', 'y');
    return crashImage(path);
  }
  const pool = createPool();
  const large = { checkAtOpenMaxBytes: 0, pool } as const;
  afterAll(() => pool.close());

  test('is there before it has been read, and read in the background', async () => {
    const image = largeImage();
    const store = openTestStore(image, large);
    expect(store.lastStopWasClean).toBe(false);
    expect(store.countJobs().PENDING).toBe(20);
    await store.checked;
    store.close();
    expect(openTestStore(image, large).lastStopWasClean).toBe(true);
  });

  test('that is damaged ends all service; the next start finds it first', async () => {
    const image = largeImage();
    damage(image, rootPage(image, 'epochs'));
    const fatal: GnndError[] = [];
    const store = openTestStore(image, { ...large, onFatal: (error) => fatal.push(error) });
    store.insertJob(newJob('more'));
    await store.checked;
    expect(fatal.map(({ reason }) => reason)).toEqual(['STORE_CORRUPT']);
    expect(fatal[0]?.message).toContain('is damaged: ');
    expect(errorOf(() => store.getJob('more')).reason).toBe('STORE_CORRUPT');
    store.close();
    const next = errorOf(() => openStore(image, storeOptions(large)));
    expect(next.message).toMatch(/damaged.*\.recover/);
  });

  test('that is closed before it was read is read by the next daemon', async () => {
    const image = largeImage();
    openTestStore(image, large).close();
    const store = openTestStore(image, large);
    expect(store.lastStopWasClean).toBe(false);
    await store.checked;
  });
});

describe('a damaged store', () => {
  test('a file that is no database is refused and left alone', () => {
    const path = join(temporaryFolder(), 'gnnd.db');
    const garbage = Buffer.alloc(8192, 'not a database ');
    writeFileSync(path, garbage);
    expect(errorOf(() => openStore(path, storeOptions())).reason).toBe('STORE_CORRUPT');
    expect(readFileSync(path).equals(garbage)).toBe(true);
  });

  test('a page that turns out bad at run time ends all service, once and for all', () => {
    const path = temporaryStorePath();
    const store = openTestStore(path);
    store.insertJob(newJob('a'));
    store.close();
    damage(path, rootPage(path, 'jobs'));
    const fatal: string[] = [];
    const broken = openTestStore(path, { onFatal: (error) => fatal.push(error.reason) });
    expect(errorOf(() => broken.getJob('a')).reason).toBe('STORE_CORRUPT');
    expect(errorOf(() => broken.setMeta('x', 'y')).reason).toBe('STORE_CORRUPT');
    expect(errorOf(() => broken.revision()).reason).toBe('STORE_CORRUPT');
    expect(fatal).toEqual(['STORE_CORRUPT']);
    broken.close();
    expect(errorOf(() => openStore(path, storeOptions())).message).toMatch(/\.recover/);
  });

  test('a value that is not what its column holds is named', () => {
    const path = temporaryStorePath();
    const store = openTestStore(path);
    store.insertJob(newJob('a'));
    store.close();
    const raw = new Sqlite(path);
    raw.exec("UPDATE jobs SET effective_spec = x'0aff', plan = '{}'");
    const again = openTestStore(path);
    const error = errorOf(() => again.getJob('a'));
    expect(error.reason).toBe('STORE_CORRUPT');
    expect(error.message).toMatch(/holds \{\} in job a\.plan, expected a member estimated/);
    raw.exec('UPDATE jobs SET plan = NULL');
    raw.close();
    const specError = errorOf(() => again.getJob('a')?.effectiveSpec);
    expect(specError.reason).toBe('STORE_CORRUPT');
    expect(specError.message).toMatch(/holds no spec in job a\.effective_spec/);
  });
});

describe('a store in trouble', () => {
  test('a full disk refuses the write, keeps what was there, and heals when there is room', () => {
    const path = temporaryStorePath();
    const fatal: string[] = [];
    const database = new Database(path, {
      clock: countingClock(),
      observe: () => {},
      onFatal: (error) => fatal.push(error.reason),
    });
    onTestFinished(() => database.close());
    database.useWriteAheadLog();
    database.write('META', null, () => makeTables(database));
    const meta = metaTable(database);
    const put = (key: string, bytes: number) =>
      database.write('META', null, () => meta.set(key, 'x'.repeat(bytes)));
    put('small', 10);
    database.pragma(`max_page_count = ${Number(database.pragma('page_count'))}`);
    expect(errorOf(() => put('large', 100_000)).reason).toBe('STATE_DISK_FULL');
    expect(meta.get('large')).toBeNull();
    expect(meta.get('small')).toHaveLength(10);
    database.pragma('max_page_count = 100000');
    put('large', 100_000);
    expect(meta.get('large')).toHaveLength(100_000);
    expect(fatal).toEqual([]);
  });

  test('a full disk has something kept back for all but new jobs', () => {
    let isReleased = false;
    const reserve = {
      get isReleased() {
        return isReleased;
      },
      release: () => {
        database.pragma('max_page_count = 100000');
        isReleased = true;
        return true;
      },
      restore: () => {},
    };
    const database = new Database(temporaryStorePath(), {
      ...{ clock: countingClock(), observe: () => {}, onFatal: () => {}, reserve },
    });
    onTestFinished(() => database.close());
    database.write('META', null, () => makeTables(database));
    const meta = metaTable(database);
    const put = (op: StoreOp, key: string) =>
      database.write('GROUP', null, () =>
        database.write(op, null, () => meta.set(key, 'x'.repeat(100_000))),
      );
    database.pragma(`max_page_count = ${Number(database.pragma('page_count'))}`);
    expect(errorOf(() => put('INSERT_JOB', 'new')).reason).toBe('STATE_DISK_FULL');
    put('EPOCH', 'running');
    expect(meta.get('running')).toHaveLength(100_000);
    expect(errorOf(() => put('INSERT_JOB', 'new')).message).toMatch(/for jobs that run/);
    expect(meta.get('new')).toBeNull();
    put('RETENTION', 'more');
  });

  test('the reserve is on the disk, given up, and taken again when there is room', () => {
    const path = temporaryStorePath();
    const { log } = storeOptions();
    const reserve = diskReserve(path, 3_000_000, log);
    const sizes = () => [reserve.isReleased, statSync(path).size, statSync(path).blocks > 0];
    expect(sizes()).toEqual([false, 3_000_000, true]);
    expect([reserve.release(), ...sizes()]).toEqual([true, true, 0, false]);
    expect(reserve.release()).toBe(false);
    reserve.restore();
    expect(sizes()).toEqual([false, 3_000_000, true]);
    // A disk that has no room, from the beginning.
    expect(diskReserve('/dev/full', 1000, log).isReleased).toBe(true);
    // Where it cannot be for another reason there is none, and nobody is refused for it.
    const none = diskReserve(join(path, 'below-a-file'), 1000, log);
    expect([none.isReleased, none.release()]).toEqual([false, false]);
  });

  test('nothing is written on after a full disk ended the transaction', () => {
    const database = new Database(temporaryStorePath(), {
      clock: countingClock(),
      observe: () => {},
      onFatal: () => {},
    });
    onTestFinished(() => database.close());
    database.execute('CREATE TABLE t (x INTEGER)');
    const insert = database.prepare('INSERT INTO t VALUES (1)');
    expect(() => database.run(insert)).toThrow(/outside a transaction/);
  });

  test('errors of the database are told in the words of the API', () => {
    const told = (code: string) => {
      const own = ownError(new Sqlite.SqliteError('why', code));
      return [errorCodeOf(own), own instanceof GnndError ? own.reason : 'itself'];
    };
    expect(told('SQLITE_FULL')).toEqual(['FULL', 'STATE_DISK_FULL']);
    expect(told('SQLITE_IOERR_SHMSIZE')).toEqual(['FULL', 'STATE_DISK_FULL']);
    expect(told('SQLITE_BUSY_SNAPSHOT')).toEqual(['BUSY', 'STORE_UNAVAILABLE']);
    expect(told('SQLITE_IOERR_FSYNC')).toEqual(['IOERR', 'STORE_UNAVAILABLE']);
    expect(told('SQLITE_READONLY_DBMOVED')).toEqual(['IOERR', 'STORE_UNAVAILABLE']);
    expect(told('SQLITE_CORRUPT_INDEX')).toEqual(['CORRUPT', 'STORE_CORRUPT']);
    expect(told('SQLITE_NOTADB')).toEqual(['CORRUPT', 'STORE_CORRUPT']);
    expect(told('SQLITE_CONSTRAINT_CHECK')).toEqual(['OTHER', 'itself']);
  });

  test('a store that is closed says so', () => {
    const store = openTestStore(temporaryStorePath());
    store.close();
    store.close();
    expect(errorOf(() => store.getJob('a')).reason).toBe('STORE_UNAVAILABLE');
  });

  test('another connection sees what was acknowledged', () => {
    const path = temporaryStorePath();
    const store = openTestStore(path);
    const other = new Sqlite(path, { readonly: true });
    onTestFinished(() => void other.close());
    for (let revision = 1; revision <= 5; revision++) {
      store.insertJob(newJob(`j${revision}`));
      expect(other.prepare('SELECT max(revision) AS r FROM events').get()).toEqual({ r: revision });
    }
  });

  test('closing empties the log', () => {
    const path = temporaryStorePath();
    const store = openTestStore(path);
    store.insertJob(newJob('a'));
    expect(store.sizes().walBytes).toBeGreaterThan(0);
    store.close();
    expect(existsSync(`${path}-wal`)).toBe(false);
  });
});
