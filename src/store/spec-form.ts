import { GnndError, messageOf } from '../base/errors.ts';
import type { JobSpecInput } from '../spec/job-spec.ts';
import { withLaterFields } from '../spec/resolve-fields.ts';
import { decodeSpec, encodeSpec } from '../spec/spec-codec.ts';
import { blob, integer, text } from './codec.ts';
import type { Database, Row } from './database.ts';

/** How job specs are stored: as the bytes of their proto. */

/** Migration: specs were JSON with our names; `dataset` is a column, since SQL looks for it. */
export function specsToBytes(database: Database): void {
  database.execute(`
    ALTER TABLE jobs ADD COLUMN dataset TEXT NOT NULL DEFAULT '';
    ALTER TABLE jobs ADD COLUMN spec_bytes BLOB NOT NULL DEFAULT x'';
    ALTER TABLE jobs ADD COLUMN effective_spec_bytes BLOB NOT NULL DEFAULT x'';
  `);
  const update = database.prepare(
    'UPDATE jobs SET dataset = ?, spec_bytes = ?, effective_spec_bytes = ? WHERE seq = ?',
  );
  eachJob(database, (row, seq, at) => {
    const parse = (column: string): JobSpecInput => JSON.parse(text(row[column], at));
    const [spec, effective] = read(() => {
      const resolved = withLaterFields(parse('effective_spec'));
      return [encodeSpec(parse('spec')), { bytes: encodeSpec(resolved), spec: resolved }] as const;
    }, at);
    database.run(update, effective.spec.dataset, spec, effective.bytes, seq);
  });
  database.execute(`
    ALTER TABLE jobs DROP COLUMN spec;
    ALTER TABLE jobs DROP COLUMN effective_spec;
    ALTER TABLE jobs RENAME COLUMN spec_bytes TO spec;
    ALTER TABLE jobs RENAME COLUMN effective_spec_bytes TO effective_spec;
  `);
}

const rowsAtOnce = 500;

function eachJob(database: Database, visit: (row: Row, seq: number, at: string) => void): void {
  const page = database.prepare(
    `SELECT * FROM jobs WHERE seq > ? ORDER BY seq LIMIT ${rowsAtOnce}`,
  );
  let after = -1;
  for (;;) {
    const rows = database.all(page, after);
    for (const row of rows) {
      const at = `the spec of job ${String(row['id'])}`;
      after = integer(row['seq'], at);
      visit(row, after, at);
    }
    if (rows.length < rowsAtOnce) return;
  }
}

function read<T>(work: () => T, at: string): T {
  try {
    return work();
  } catch (error) {
    throw new GnndError('STORE_CORRUPT', `the store holds no spec in ${at}: ${messageOf(error)}`);
  }
}

/** Fills in, in every job, fields that there were not when it was stored. */
export function rewriteSpecs(database: Database): void {
  const update = database.prepare('UPDATE jobs SET effective_spec = ? WHERE seq = ?');
  eachJob(database, (row, seq, at) => {
    const spec = read(() => decodeSpec(blob(row['effective_spec'], at), at), at);
    database.run(update, encodeSpec(spec), seq);
  });
}
