import Sqlite from 'better-sqlite3';
import { expect, test } from 'vitest';
import { SchemaTooNew } from '../../../src/store/schema.ts';
import { openStore } from '../../../src/store/store.ts';
import { newJob, someSpec } from './job-values.ts';
import { openTestStore, storeOptions, temporaryStorePath } from './store-fixtures.ts';

function storeWithJob(): { path: string; raw: Sqlite.Database; words: string } {
  const path = temporaryStorePath();
  const store = openTestStore(path);
  store.insertJob(newJob('a'));
  store.close();
  const raw = new Sqlite(path);
  const words = raw.prepare("SELECT value FROM meta WHERE key = 'spec_fields'").pluck().get();
  return { path, raw, words: String(words) };
}

function writeWords(raw: Sqlite.Database, words: string): void {
  raw.prepare("UPDATE meta SET value = ? WHERE key = 'spec_fields'").run(words);
}

test('a store whose specs have a field of a later gnnd is refused by name', () => {
  const { path, raw, words } = storeWithJob();
  for (const later of ['training.magic', 'model.type=LATER']) {
    writeWords(raw, `${words} ${later}`);
    const open = () => openStore(path, storeOptions());
    expect(open).toThrow(SchemaTooNew);
    expect(open).toThrow(new RegExp(`job specs with ${later}, which this gnnd does not know`));
  }
  writeWords(raw, words);
  raw.close();
  expect(openTestStore(path).getJob('a')?.effectiveSpec).toEqual(someSpec);
});

test('a field that came later is filled in once, in every job, and a copy is left', () => {
  const { path, raw, words } = storeWithJob();
  const stored = raw.prepare('SELECT effective_spec FROM jobs').pluck();
  const complete = stored.get() as Buffer;
  // Without field 11, a varint: as if there had been no priority yet.
  const tag = complete.lastIndexOf(Buffer.from([11 << 3, 100]));
  const older = Buffer.concat([complete.subarray(0, tag), complete.subarray(tag + 2)]);
  raw.prepare('UPDATE jobs SET effective_spec = ?').run(older);
  writeWords(raw, words.replace(' priority', ''));
  expect(openTestStore(path).getJob('a')?.effectiveSpec).toEqual(someSpec);
  expect(stored.get()).toEqual(complete);
  expect(raw.prepare("SELECT value FROM meta WHERE key = 'spec_fields'").pluck().get()).toBe(words);
  raw.close();
  const copy = new Sqlite(`${path}.before-spec-fields`, { readonly: true });
  expect(copy.prepare('SELECT effective_spec FROM jobs').pluck().get()).toEqual(older);
  copy.close();
});
