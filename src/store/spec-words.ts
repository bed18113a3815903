import { specLeaves } from '../spec/spec-fields.ts';
import type { Database } from './database.ts';
import { metaTable } from './meta-table.ts';
import { StoreOfAnotherVersion } from './schema.ts';

/**
 * A store remembers which fields of job specs, and which values of their enums, its gnnd knew: a
 * gnnd that knows others would run jobs without what it does not know, or with what nobody asked
 * for, and therefore refuses the store.
 */

const fieldsKey = 'spec_fields';

/** Names of all fields, and of all values of enums, for example `model.type=GCN`. */
const ownWords: readonly string[] = specLeaves.flatMap(({ path, choices }) => [
  path,
  ...choices.map((choice) => `${path}=${choice}`),
]);

/** Only inside a transaction. */
export function writeSpecWords(database: Database): void {
  metaTable(database).set(fieldsKey, ownWords.join(' '));
}

/** Reads only. Throws StoreOfAnotherVersion where specs have other fields or values than here. */
export function requireOwnSpecWords(database: Database, path: string): void {
  const stored = metaTable(database).get(fieldsKey)?.split(' ') ?? [];
  const unknown = stored.filter((word) => !ownWords.includes(word));
  const missing = ownWords.filter((word) => !stored.includes(word));
  const name = (words: readonly string[]) => words.slice(0, 5).join(', ');
  if (unknown.length > 0) {
    const found = `job specs with ${name(unknown)}, which this one does not know`;
    throw new StoreOfAnotherVersion(path, found);
  }
  if (missing.length > 0) {
    throw new StoreOfAnotherVersion(path, `job specs without ${name(missing)}`);
  }
}
