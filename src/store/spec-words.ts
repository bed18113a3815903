import type { Log } from '../base/log.ts';
import { specLeaves } from '../spec/spec-fields.ts';
import type { Database } from './database.ts';
import { metaTable } from './meta-table.ts';
import { backUp, SchemaTooNew } from './schema.ts';
import { rewriteSpecs } from './spec-form.ts';

/**
 * The store remembers which fields of job specs, and which values of their enums, whoever wrote it
 * knew. A gnnd that knows less must not touch it, since it would run jobs without what it does not
 * know; one that knows more fills in what held before. So a new field needs no migration.
 */

const fieldsKey = 'spec_fields';

/** Names of all fields, and of all values of enums, for example `model.type=GCN`. */
const ownWords: readonly string[] = specLeaves.flatMap(({ path, choices }) => [
  path,
  ...choices.map((choice) => `${path}=${choice}`),
]);

interface Place {
  readonly path: string;
  readonly log: Log;
}

/** Reads only. Throws SchemaTooNew where specs have fields or values of a later gnnd. */
export function requireKnownFields(database: Database, path: string): void {
  const own = new Set(ownWords);
  const stored = storedWords(database);
  const unknown = stored.filter((word) => !own.has(word));
  if (unknown.length === 0) return;
  const what = `job specs with ${unknown.slice(0, 5).join(', ')}, which this gnnd does not know`;
  throw new SchemaTooNew(path, stored.length, own.size, what);
}

/**
 * Fills in, in every job, the fields that there were not when the store was written, and leaves a
 * copy of what was before at `<path>.before-spec-fields`.
 */
export function adoptSpecFields(database: Database, { path, log }: Place): void {
  const stored = new Set(storedWords(database));
  const added = ownWords.filter((word) => !stored.has(word));
  if (added.length === 0) return;
  if (stored.size > 0) backUp(database, `${path}.before-spec-fields`);
  database.write('META', null, () => {
    if (stored.size > 0) rewriteSpecs(database);
    metaTable(database).set(fieldsKey, ownWords.join(' '));
  });
  if (stored.size > 0) log.info('store.spec_fields', { added: added.join(' ') });
}

function storedWords(database: Database): readonly string[] {
  return metaTable(database).get(fieldsKey)?.split(' ') ?? [];
}
