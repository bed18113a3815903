import { readdirSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { badFile } from './problems.ts';

/**
 * Where the tables of a folder are: a file each, or a folder of parts, as Spark writes them, which
 * may lie in folders that say what their rows have in common: `year=2024`, as Hive writes it.
 */

const textEnds = ['csv', 'tsv'].flatMap((end) => [`.${end}`, `.${end}.gz`, `.${end}.zst`]);
const parquetEnds = ['.parquet', '.pq'];
const tableEnds = [...textEnds, ...parquetEnds];

/** What the file of a table may be called, of text and of Parquet. */
export function csvNames(table: string): readonly string[] {
  return textEnds.map((end) => table + end);
}

export function parquetNames(table: string): readonly string[] {
  return parquetEnds.map((end) => table + end);
}

/** The path of a table, whose name may have capital letters, or null. */
export function tablePath(folder: string, table: string): string | null {
  const there = new Map(readdirSync(folder).map((name) => [name.toLowerCase(), name]));
  const pathOf = (name: string) => join(folder, there.get(name) ?? name);
  const names = [...csvNames(table), ...parquetNames(table)];
  const found = names.find((name) => there.has(name));
  if (found !== undefined) return pathOf(found);
  return there.has(table) && partNames(pathOf(table)).length > 0 ? pathOf(table) : null;
}

/** What the parts are that a folder has, which is called as a table; null: it has none. */
export function kindOfParts(path: string): 'CSV' | 'PARQUET' | null {
  const [first] = partNames(path);
  if (first === undefined) return null;
  return isParquet(first) ? 'PARQUET' : 'CSV';
}

/** A file that has rows of a table, as messages call it. */
export interface TablePart {
  readonly path: string;
  readonly name: string;
  readonly isParquet: boolean;
  /** Columns that the part's folders name, and what they say for each of its rows. */
  readonly keys: readonly (readonly [string, string])[];
}

/** What the files of a table have on disk, packed or not. */
export function bytesOf(parts: readonly TablePart[]): number {
  return parts.reduce((sum, { path }) => sum + statSync(path).size, 0);
}

/** The files of the table at a path, in the order of their names. Throws ImportFailure. */
export function partsOf(path: string): readonly TablePart[] {
  const name = basename(path);
  if (!statSync(path).isDirectory()) {
    return [{ path, name, isParquet: isParquet(name), keys: [] }];
  }
  const parts = partNames(path).map((part) => ({
    ...{ path: join(path, part), name: `${name}/${part}` },
    ...{ isParquet: isParquet(part), keys: keysOf(part) },
  }));
  const [first] = parts;
  if (first === undefined) {
    const expected = 'expected a file, or a folder of parts such as part-00000.csv';
    throw badFile(name, `is a folder without parts, ${expected}`);
  }
  const other = parts.find((part) => part.isParquet !== first.isParquet);
  if (other !== undefined) {
    throw badFile(other.name, `is of another kind than ${first.name}: expected one kind`);
  }
  const namesOf = ({ keys }: TablePart) => keys.map(([key]) => key).join(', ');
  const stray = parts.find((part) => namesOf(part) !== namesOf(first));
  if (stray !== undefined) {
    const [found, expected] = [stray, first].map((part) => namesOf(part) || 'nothing');
    const what = `is in folders that name ${found}`;
    throw badFile(stray.name, `${what}, expected ${expected}, as those of ${first.name}`);
  }
  return parts;
}

const isParquet = (file: string) => parquetEnds.some((end) => file.endsWith(end));

/** Below a folder; none where it is no folder. */
function partNames(folder: string): readonly string[] {
  if (!statSync(folder).isDirectory()) return [];
  // Names with _ or . in front are about the parts: _SUCCESS, ._SUCCESS.crc, _temporary.
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((part) => !/(^|\/)[._]/.test(part) && tableEnds.some((end) => part.endsWith(end)))
    .filter((part) => !statSync(join(folder, part)).isDirectory())
    .sort();
}

/** What stands for nothing in the name of a folder. */
const noKey = '__HIVE_DEFAULT_PARTITION__';

function keysOf(part: string): TablePart['keys'] {
  return part.split('/').flatMap((folder, at, all) => {
    const [, key, value = ''] = /^([^=]+)=(.*)$/.exec(folder) ?? [];
    if (key === undefined || at === all.length - 1) return [];
    return [[unescaped(key), value === noKey ? '' : unescaped(value)] as const];
  });
}

/** Hive writes what folders cannot be called as `%3A`. */
function unescaped(text: string): string {
  return text.replaceAll(/(%[0-9A-Fa-f]{2})+/g, (codes) =>
    Buffer.from(codes.replaceAll('%', ''), 'hex').toString('utf8'),
  );
}
