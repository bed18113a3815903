import { readdirSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { badFile } from './problems.ts';

/** Where the tables of a folder are: a file each, or a folder of parts, as Spark writes them. */

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
  const names = [...csvNames(table), ...parquetNames(table)];
  const there = new Map(readdirSync(folder).map((name) => [name.toLowerCase(), name]));
  const found = names.find((name) => there.has(name));
  return found === undefined ? null : join(folder, there.get(found) ?? found);
}

/** A file that has rows of a table, as messages call it. */
export interface TablePart {
  readonly path: string;
  readonly name: string;
  readonly isParquet: boolean;
}

/** The files of the table at a path, in the order of their names. Throws ImportFailure. */
export function partsOf(path: string): readonly TablePart[] {
  const name = basename(path);
  const isParquet = (file: string) => parquetEnds.some((end) => file.endsWith(end));
  if (!statSync(path).isDirectory()) return [{ path, name, isParquet: isParquet(name) }];
  // Names with _ or . in front are about the parts: _SUCCESS, ._SUCCESS.crc.
  const found = readdirSync(path)
    .filter((part) => !/^[._]/.test(part) && tableEnds.some((end) => part.endsWith(end)))
    .sort();
  if (found.length === 0) {
    const expected = 'expected a file, or a folder of parts such as part-00000.csv';
    throw badFile(name, `is a folder without parts, ${expected}`);
  }
  const parts = found.map((part) => ({
    ...{ path: join(path, part), name: `${name}/${part}` },
    isParquet: isParquet(part),
  }));
  const other = parts.find((part) => part.isParquet !== parts[0]?.isParquet);
  if (other !== undefined) {
    throw badFile(other.name, `is of another kind than ${parts[0]?.name ?? ''}: expected one kind`);
  }
  return parts;
}
