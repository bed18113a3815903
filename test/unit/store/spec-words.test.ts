import Sqlite from 'better-sqlite3';
import { expect, test } from 'vitest';
import { StoreOfAnotherVersion } from '../../../src/store/schema.ts';
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

test('a store whose specs have a field that this gnnd lacks is refused by name', () => {
  const { path, raw, words } = storeWithJob();
  for (const later of ['training.magic', 'model.type=LATER']) {
    writeWords(raw, `${words} ${later}`);
    const open = () => openStore(path, storeOptions());
    expect(open).toThrow(StoreOfAnotherVersion);
    expect(open).toThrow(`(job specs with ${later}, which this one does not know)`);
  }
  writeWords(raw, words);
  raw.close();
  expect(openTestStore(path).getJob('a')?.effectiveSpec).toEqual(someSpec);
});

test('a store whose specs lack a field of this gnnd is refused by name', () => {
  const { path, raw, words } = storeWithJob();
  writeWords(raw, words.replace(' priority', ''));
  const open = () => openStore(path, storeOptions());
  expect(open).toThrow(StoreOfAnotherVersion);
  expect(open).toThrow('(job specs without priority)');
  raw.exec("DELETE FROM meta WHERE key = 'spec_fields'");
  raw.close();
  expect(open).toThrow('(job specs without kind, kind=TRAINING, ');
});
