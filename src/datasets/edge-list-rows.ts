import { basename } from 'node:path';
import { plainName } from './column-names.ts';
import { CsvFile, type CsvRow } from './csv-reader.ts';
import { firstNames, secondNames } from './edge-columns.ts';
import type { ImportContext } from './import-context.ts';
import { badFile } from './problems.ts';
import { isDecimal } from './table-columns.ts';

/** Files of pairs: two nodes, or a node and its label, a line, with or without a header. */

const comments = '#%';
const weightNames = ['weight', 'edge_weight', 'weights', 'w'];

export interface EdgeList {
  readonly file: string;
  readonly columns: readonly string[];
  readonly ends: { readonly source: number; readonly target: number };
  /** -1: none. */
  readonly weight: number;
  /** Columns that are neither ends nor a weight. */
  readonly further: number;
  readonly notices: readonly string[];
  readonly fraction: number;
  /** Rows below the header, cut to the columns; may be read again. */
  rows(): AsyncGenerator<readonly CsvRow[]>;
}

/** Throws ImportFailure where the file has no two columns. */
export async function openEdgeList(
  { signal }: Pick<ImportContext, 'signal'>,
  path: string,
): Promise<EdgeList> {
  const file = basename(path);
  const separator = await CsvFile.separatorOf(path, signal, comments);
  const csv = await CsvFile.open(path, signal, { separator, comments });
  const [first, second] = await firstRows(csv);
  if (first === undefined) throw badFile(file, 'is empty, expected two columns');
  if (first.fields.length < 2) {
    const what = `has '${first.fields[0] ?? ''}' alone, expected two nodes a line`;
    throw badFile(`${file}:${first.line}`, `${what}, by blanks, tabs, commas or semicolons`);
  }
  // Citations stand as "cited, citing": knowledge flows from the second to the first.
  const isCites = /\.cites\b/.test(file);
  const hasHeader = !isCites && isHeader(first, second);
  const names = hasHeader ? first.fields.map(plainName) : [];
  const weight = names.findIndex((name) => weightNames.includes(name));
  const ends = isCites ? { source: 1, target: 0 } : endsOf(names);
  const width = 1 + Math.max(ends.source, ends.target, weight);
  const more = first.fields.length - (weight < 0 ? 2 : 3);
  const remedy = 'a header that calls one of them weight makes that a weight';
  const left = more > 0 ? [`${file}: ${more} further columns are not read; ${remedy}`] : [];
  const rows = async function* () {
    let isFirst = hasHeader;
    for await (const batch of csv.rows()) {
      const below = isFirst ? batch.slice(1) : batch;
      if (batch.length > 0) isFirst = false;
      yield below.map((row) => ({
        ...row,
        fields: row.fields.slice(0, width).map((field) => field.trim()),
      }));
    }
  };
  return {
    file,
    columns: Array.from({ length: width }, (_, at) => names[at] ?? `column ${at + 1}`),
    ends,
    weight,
    further: Math.max(0, more),
    notices: left,
    get fraction() {
      return csv.fraction;
    },
    rows,
  };
}

/** Where a header says that the ends are; else the first two columns. */
function endsOf(names: readonly string[]) {
  const source = names.findIndex((name) => firstNames.includes(name));
  const target = names.findIndex((name) => secondNames.includes(name));
  return source < 0 || target < 0 ? { source: 0, target: 1 } : { source, target };
}

async function firstRows(csv: CsvFile): Promise<readonly CsvRow[]> {
  const found: CsvRow[] = [];
  for await (const rows of csv.rows()) {
    found.push(...rows.slice(0, 2));
    if (found.length >= 2) break;
  }
  return found;
}

const known = new Set(['node_id', 'node', 'id']);

function isHeader(first: CsvRow, second: CsvRow | undefined): boolean {
  const [a = '', b = ''] = first.fields;
  const names = first.fields.map(plainName);
  const hasEnds = names.some((name) => firstNames.includes(name));
  if (hasEnds && names.some((name) => secondNames.includes(name))) return true;
  if (known.has(plainName(a)) && !isDecimal(a) && !isDecimal(b)) return true;
  const isNumber = (row: CsvRow | undefined, at: number) =>
    isDecimal(row?.fields[at]?.trim() ?? '');
  const isText = !isNumber(first, 0) && !isNumber(first, 1);
  return isText && isNumber(second, 0) && isNumber(second, 1);
}
