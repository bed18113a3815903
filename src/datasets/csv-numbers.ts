import { basename, dirname } from 'node:path';
import { CsvFile, type CsvRow } from './csv-reader.ts';
import type { EdgeSorter } from './edge-sorter.ts';
import { writeTable } from './graph-writer.ts';
import type { ImportContext } from './import-context.ts';
import { NumberList } from './number-list.ts';
import { badFile, formatCount } from './problems.ts';
import { parseNumber, shown } from './table-columns.ts';

/** CSV files without a header, of numbers alone: what OGB and GraphBolt write. */

/** A file of a source by its path, as messages call it: with its folder. */
export function shortPath(path: string): string {
  return `${basename(dirname(path))}/${basename(path)}`;
}

/** Rows of a file; a malformed one is a problem and left out. */
export async function* csvRowsOf(
  { signal, problems }: Pick<ImportContext, 'signal' | 'problems'>,
  path: string,
  onRead: (fraction: number) => void = () => undefined,
): AsyncGenerator<readonly CsvRow[]> {
  const file = await CsvFile.open(path, signal);
  for await (const rows of file.rows()) {
    yield rows.filter(({ line, problem }) => {
      if (problem !== null) problems.add(`${shortPath(path)}:${line}`, problem);
      return problem === null;
    });
    onRead(file.fraction);
  }
}

/** Number of fields in the first row, or 0 in an empty file. */
export async function columnsOf(context: ImportContext, path: string): Promise<number> {
  for await (const rows of csvRowsOf(context, path)) {
    if (rows[0] !== undefined) return rows[0].fields.length;
  }
  return 0;
}

/**
 * One integer a row, `below` a bound. Others are problems; throws ImportFailure for a row with
 * several fields.
 */
export async function integersOf(
  context: ImportContext,
  path: string,
  { below }: { readonly below: number },
): Promise<Int32Array> {
  const { problems } = context;
  const values = new NumberList((capacity) => new Int32Array(capacity));
  for await (const rows of csvRowsOf(context, path)) {
    for (const { line, fields } of rows) {
      const [text = ''] = fields;
      const where = `${shortPath(path)}:${line}`;
      if (fields.length !== 1) {
        throw badFile(where, `has ${fields.length} fields, expected one`);
      }
      const value = Number(text.trim() === '' ? 'x' : text);
      if (Number.isInteger(value) && value >= 0 && value < below) values.push(value);
      else {
        const expected = `expected a whole number below ${formatCount(below)}`;
        problems.add(where, `has '${shown(text)}', ${expected}`);
      }
    }
  }
  return values.toArray();
}

/**
 * `rows` rows of `columns` numbers; where some may be lacking an empty field and `nan` are NaN.
 * Throws ImportFailure where there are more or fewer rows.
 */
export async function* floatsOf(
  context: ImportContext,
  path: string,
  {
    rows: numRows,
    columns,
    mayLack = false,
  }: { readonly rows: number; readonly columns: number; readonly mayLack?: boolean },
): AsyncGenerator<Float32Array> {
  const { problems } = context;
  let seen = 0;
  for await (const rows of csvRowsOf(context, path)) {
    const values = new Float32Array(rows.length * columns);
    for (const [at, { line, fields }] of rows.entries()) {
      const where = `${shortPath(path)}:${line}`;
      if (fields.length !== columns) {
        problems.add(where, `has ${fields.length} fields, the first line has ${columns}`);
        continue;
      }
      for (let column = 0; column < columns; column += 1) {
        const text = fields[column] ?? '';
        const isLacking = mayLack && (text === '' || text.toLowerCase() === 'nan');
        const value = isLacking ? Number.NaN : parseNumber(text);
        if (value === null) {
          const what = `has '${shown(text)}' in column ${column + 1}`;
          problems.add(where, `${what}, expected a float32 number${mayLack ? ' or nan' : ''}`);
        } else values[at * columns + column] = value;
      }
    }
    seen += rows.length;
    if (seen > numRows) break;
    yield values;
  }
  if (seen === numRows) return;
  const found = seen > numRows ? `more than ${formatCount(numRows)}` : formatCount(seen);
  throw badFile(shortPath(path), `has ${found} rows, expected ${formatCount(numRows)}`);
}

/** Adds the edges of a file of pairs `source,target` between `numNodes` nodes. */
export async function addPairs(
  context: ImportContext,
  path: string,
  { sorter, numNodes }: { readonly sorter: EdgeSorter; readonly numNodes: number },
): Promise<void> {
  const { problems, progress } = context;
  const ends = new Uint32Array(2);
  let fraction = 0;
  for await (const rows of csvRowsOf(context, path, (done) => {
    fraction = done;
  })) {
    for (const { line, fields } of rows) {
      let isGood = fields.length === 2;
      if (!isGood) {
        const what = `has ${fields.length} fields, expected source and target`;
        problems.add(`${shortPath(path)}:${line}`, what);
      }
      for (let end = 0; end < 2 && isGood; end += 1) {
        const text = fields[end] ?? '';
        const node = text === '' ? Number.NaN : Number(text);
        isGood = Number.isInteger(node) && node >= 0 && node < numNodes;
        ends[end] = isGood ? node : 0;
        if (isGood) continue;
        const expected = `expected the number of a node below ${formatCount(numNodes)}`;
        problems.add(`${shortPath(path)}:${line}`, `has '${shown(text)}', ${expected}`);
      }
      if (isGood) sorter.add(ends[0] ?? 0, ends[1] ?? 0, 0, line);
    }
    await sorter.settle();
    progress(fraction, `reading ${shortPath(path)}: ${formatCount(sorter.edges)} edges`);
  }
  problems.throwIfAny();
}

/** The graph of a file of pairs, as one of `sorter`, which is closed. */
export async function writePairs(
  context: ImportContext,
  path: string,
  { sorter, numNodes }: { readonly sorter: EdgeSorter; readonly numNodes: number },
): Promise<void> {
  try {
    await addPairs(context, path, { sorter, numNodes });
    await writeTable(context, sorter, {
      where: (line) => `${shortPath(path)}:${line}`,
      isWeighted: false,
    });
  } finally {
    await sorter.close();
  }
}
