import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Database } from '../../../src/store/database.ts';
import { StoreOfAnotherVersion, schemaVersion } from '../../../src/store/schema.ts';
import { openStore } from '../../../src/store/store.ts';
import { newJob } from './job-values.ts';
import {
  countingClock,
  openTestStore,
  storeOptions,
  temporaryFolder,
  temporaryStorePath,
} from './store-fixtures.ts';

function database(path: string): Database {
  const opened = new Database(path, {
    clock: countingClock(),
    observe: () => {},
    onFatal: () => {},
  });
  onTestFinished(() => opened.close());
  return opened;
}

function sqlite(path: string): Sqlite.Database {
  const opened = new Sqlite(path);
  onTestFinished(() => void opened.close());
  return opened;
}

function schemaOf(path: string): unknown {
  return sqlite(path).prepare('SELECT name, sql FROM sqlite_schema ORDER BY name').all();
}

describe('the schema of the store', () => {
  test('opening a store again changes nothing of its schema', () => {
    const path = temporaryStorePath();
    openTestStore(path).close();
    const before = schemaOf(path);
    openTestStore(path).close();
    expect(schemaOf(path)).toEqual(before);
    expect(sqlite(path).pragma('user_version', { simple: true })).toBe(schemaVersion);
  });

  test('a store syncs every commit and checks foreign keys', () => {
    const opened = database(temporaryStorePath());
    opened.useWriteAheadLog();
    const settings = ['journal_mode', 'synchronous', 'foreign_keys', 'trusted_schema'];
    expect(settings.map((name) => opened.pragma(name))).toEqual(['wal', 2, 1, 0]);
  });

  test.each([-1, 1])('a store whose schema is by %i another is refused by name', (change) => {
    const path = temporaryStorePath();
    const store = openTestStore(path);
    store.insertJob(newJob('a'));
    store.close();
    const raw = sqlite(path);
    raw.pragma(`user_version = ${schemaVersion + change}`);
    raw.exec('DROP TABLE meta');
    raw.close();
    const before = readFileSync(path);
    const open = () => openStore(path, storeOptions());
    expect(open).toThrow(StoreOfAnotherVersion);
    expect(open).toThrow(
      `was made by another version of gnnd (schema ${schemaVersion + change}; this one reads ` +
        `${schemaVersion}): start that version, or start this one with an empty state directory`,
    );
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test("another program's database is refused and left alone", () => {
    const path = join(temporaryFolder(), 'other.db');
    const raw = sqlite(path);
    raw.exec('CREATE TABLE songs (title TEXT)');
    raw.close();
    const before = readFileSync(path);
    expect(() => openStore(path, storeOptions())).toThrow(/not a store of gnnd/);
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test('events can be neither changed nor deleted', () => {
    const path = temporaryStorePath();
    const store = openTestStore(path);
    store.insertJob(newJob('a'));
    store.close();
    const raw = sqlite(path);
    expect(() => raw.exec("UPDATE events SET status = '{}'")).toThrow(/append-only/);
    expect(() => raw.exec('DELETE FROM events')).toThrow(/append-only/);
  });

  test('an empty file, as a crash at the very start leaves it, becomes a store', () => {
    const path = join(temporaryFolder(), 'gnnd.db');
    writeFileSync(path, '');
    expect(openTestStore(path).incarnation).toBe(1);
  });
});
