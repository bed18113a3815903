import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createLog } from '../../../src/base/log.ts';
import { Database } from '../../../src/store/database.ts';
import { migrate, migrations, SchemaTooNew } from '../../../src/store/schema.ts';
import { openStore } from '../../../src/store/store.ts';
import { newJob, somePlan, someResult, someSpec } from './job-values.ts';
import {
  countingClock,
  openTestStore,
  storeOptions,
  temporaryFolder,
  temporaryStorePath,
} from './store-fixtures.ts';

const quiet = createLog({ level: 'error', write: () => {} });

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
    expect(sqlite(path).pragma('user_version', { simple: true })).toBe(migrations.length);
  });

  test('a store syncs every commit and checks foreign keys', () => {
    const opened = database(temporaryStorePath());
    opened.useWriteAheadLog();
    const settings = ['journal_mode', 'synchronous', 'foreign_keys', 'trusted_schema'];
    expect(settings.map((name) => opened.pragma(name))).toEqual(['wal', 2, 1, 0]);
  });

  test('a store of a newer gnnd is refused by name and left alone', () => {
    const path = temporaryStorePath();
    const store = openTestStore(path);
    store.insertJob(newJob('a'));
    store.close();
    const raw = sqlite(path);
    raw.pragma(`user_version = ${migrations.length + 1}`);
    raw.exec('DROP TABLE meta');
    raw.close();
    const before = readFileSync(path);
    expect(() => openStore(path, storeOptions())).toThrow(SchemaTooNew);
    expect(() => openStore(path, storeOptions())).toThrow(/start the gnnd that wrote it/);
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

  test('a migration keeps the rows and leaves a copy of what was before', () => {
    const path = temporaryStorePath();
    const store = openTestStore(path);
    store.insertJob(newJob('a'));
    store.close();
    const steps = [...migrations, 'ALTER TABLE jobs ADD COLUMN note TEXT'];
    const opened = database(path);
    migrate(opened, { path, log: quiet, steps });
    migrate(opened, { path, log: quiet, steps });
    const row = opened.get(opened.prepare('SELECT id, note FROM jobs'));
    expect(row).toEqual({ id: 'a', note: null });
    const copy = `${path}.before-v${steps.length}`;
    expect(sqlite(copy).prepare('SELECT id FROM jobs').all()).toEqual([{ id: 'a' }]);
  });

  test('datasets of the first version have features in float32 and classes', () => {
    const path = temporaryStorePath();
    const first = database(path);
    migrate(first, { path, log: quiet, steps: migrations.slice(0, 1) });
    first.write('DATASET', null, () =>
      first.execute(
        "INSERT INTO datasets VALUES ('old', 'READY', '', 'd', '/d', 3, 4, 2, 2, 1, 1, 1, 99, 7)",
      ),
    );
    first.close();
    const store = openTestStore(path);
    const was = { featureDtype: 'float32', task: 'CLASSIFICATION', createAtMs: 7 };
    expect(store.getDataset('old')).toMatchObject(was);
    const change = { featureDtype: 'float16', task: 'MULTI_LABEL' } as const;
    store.updateDataset('old', change);
    expect(store.getDataset('old')).toMatchObject(change);
  });

  test('jobs and events of the first version are read as if they had asked for nothing new', () => {
    const path = temporaryStorePath();
    const first = database(path);
    migrate(first, { path, log: quiet, steps: migrations.slice(0, 1) });
    const { script: _script, ...model } = someSpec.model;
    const { plugin: _plugin, ...sampling } = someSpec.sampling;
    const { prefetch: _prefetch, ...cache } = someSpec.cache;
    const {
      earlyStop: _stop,
      determinism: _bits,
      stalenessCompensation: _age,
      ...training
    } = someSpec.training;
    const { evaluation: _evaluation, ...spec } = someSpec;
    const { prefetch: _on, prefetchExplanation: _why, ...cachePlan } = somePlan.cache ?? {};
    const { epochs: _epochs, ...result } = someResult;
    const plan = { ...somePlan, cache: cachePlan };
    const status = { intent: 'RUN', state: 'SUCCEEDED', phase: null, reason: 'NONE', message: '' };
    const times = { startAtMs: 2, endAtMs: 3, nextAttemptAtMs: null };
    const event = { ...status, ...times, plan: null, result: null };
    const json = (value: unknown) => `'${JSON.stringify(value).replaceAll("'", "''")}'`;
    first.write('META', null, () =>
      first.execute(`
        INSERT INTO jobs VALUES (1, 'old', 'u', '{}',
          ${json({ ...spec, model, sampling, cache, training })}, 'd', 1, 'RUN', 'SUCCEEDED',
          NULL, 'NONE', '', 2, 3, NULL, ${json(plan)}, ${json(result)}, 2);
        INSERT INTO events VALUES (1, 1, 1, ${json(event)});
        INSERT INTO events VALUES (2, 1, 3, ${json({ ...event, plan, result })});
        INSERT INTO attempts VALUES (1, 1, 2, 3, 'NONE', '', 0, 2);
        INSERT INTO epochs VALUES (1, 1, 0, 9, 9, 0, 1, 1, 1, 1, 1, 9, 'p', 'l', '{}', 1);
      `),
    );
    first.close();
    const store = openTestStore(path);
    const job = store.getJob('old');
    expect(job?.effectiveSpec).toEqual({
      ...someSpec,
      model: { ...model, script: { path: '', sha256: '' } },
      sampling: { ...sampling, plugin: { path: '', sha256: '', options: '', weights: false } },
      cache: { ...cache, prefetch: 'AUTO' },
      training: {
        ...training,
        earlyStop: { patienceEpochs: 0, minDelta: 0 },
        determinism: 'STRICT',
        stalenessCompensation: 'NONE',
      },
      evaluation: {
        ...{ everyEpochs: 1, method: 'EXACT', fanouts: [], maxBytes: 2 ** 33, metric: 'AUTO' },
      },
    });
    expect(job?.plan?.cache).toMatchObject({ prefetch: false, prefetchExplanation: '' });
    expect(job?.result?.epochs).toBe(someSpec.training.epochs);
    expect(store.epochs('old', 1, 0, 10)).toMatchObject([
      { revision: 1, report: { epoch: 0, executorTimes: [] } },
    ]);
    expect(store.revision()).toBe(2);
    const raw = sqlite(path);
    const results = raw.prepare("SELECT json_extract(status, '$.result.epochs') AS n FROM events");
    expect(results.pluck().all()).toEqual([null, someSpec.training.epochs]);
    expect(() => raw.exec("UPDATE events SET status = '{}'")).toThrow(/append-only/);
  });

  test('a migration that fails leaves the old version', () => {
    const path = temporaryStorePath();
    openTestStore(path).close();
    const opened = database(path);
    const steps = [...migrations, 'CREATE TABLE extra (x INTEGER) STRICT; CREATE TABLE jobs (y)'];
    expect(() => migrate(opened, { path, log: quiet, steps })).toThrow(/already exists/);
    expect(opened.pragma('user_version')).toBe(migrations.length);
    expect(opened.get(opened.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'extra'"))).toBe(
      null,
    );
  });

  test('a new store needs no copy', () => {
    const path = temporaryStorePath();
    openTestStore(path);
    expect(existsSync(`${path}.before-v${migrations.length}`)).toBe(false);
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
