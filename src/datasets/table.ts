import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { CsvFile, type CsvRow } from './csv-reader.ts';
import type { ImportContext } from './import-context.ts';
import { ParquetFile } from './parquet-reader.ts';
import { badFile, type ProblemList } from './problems.ts';
import { type Field, shown } from './table-columns.ts';

/** A table of a source: a CSV file, plain or gzipped, or a Parquet file. */

/** A row as its file has it. */
export interface TableRow {
  /** Where it is, from 1: a line of a CSV file, a row of a Parquet file. */
  readonly line: number;
  /** One a column; text of CSV files. Nothing is an empty text. */
  readonly fields: readonly Field[];
}

/** Reads one table from start to end. */
interface TableFile {
  readonly name: string;
  /** How much of the file was read, of 1. */
  readonly fraction: number;
}

/** What the file of a table may be called. */
export function csvNames(table: string): readonly string[] {
  return [`${table}.csv`, `${table}.csv.gz`];
}

export function parquetName(table: string): string {
  return `${table}.parquet`;
}

/** The path of a table, or null. */
export function tablePath(folder: string, table: string): string | null {
  const names = [...csvNames(table), parquetName(table)];
  return names.map((name) => join(folder, name)).find((path) => existsSync(path)) ?? null;
}

/** A table by its columns; malformed rows become problems and are left out. */
export class Table {
  readonly file: string;
  readonly columns: readonly string[];
  readonly #source: TableFile;
  readonly #rows: AsyncGenerator<readonly TableRow[]>;
  readonly #problems: ProblemList;
  readonly #isText: boolean;

  private constructor(
    source: TableFile,
    columns: readonly string[],
    rows: AsyncGenerator<readonly TableRow[]>,
    problems: ProblemList,
    isText: boolean,
  ) {
    this.file = source.name;
    this.columns = columns;
    this.#source = source;
    this.#rows = rows;
    this.#problems = problems;
    this.#isText = isText;
  }

  /** The table `nodes` or `edges` of the source. Throws ImportFailure. */
  static async open(context: ImportContext, table: 'nodes' | 'edges'): Promise<Table> {
    const path = tablePath(context.source, table);
    if (path === null) throw badFile(`${table}.csv`, `is missing in ${context.source}`);
    return path.endsWith('.parquet')
      ? await Table.#ofParquet(path, context)
      : await Table.#ofCsv(path, context);
  }

  static async #ofParquet(path: string, { signal, problems }: ImportContext): Promise<Table> {
    const source = await ParquetFile.open(path, signal);
    return new Table(source, source.columns, source.rows(), problems, false);
  }

  static async #ofCsv(path: string, { signal, problems }: ImportContext): Promise<Table> {
    const csv = await CsvFile.open(path, signal);
    const batches = csv.rows();
    const first = await batches.next();
    if (first.done === true) throw badFile(csv.name, 'is empty, expected a header line');
    const [header, ...rest] = first.value;
    const columns = header?.fields.map((field) => field.trim()) ?? [];
    const repeated = firstRepeated(columns);
    if ((header?.problem ?? null) !== null || repeated !== undefined) {
      await batches.return(undefined);
      const problem = header?.problem ?? `has the column '${repeated}' twice`;
      throw badFile(`${csv.name}:${header?.line ?? 1}`, problem);
    }
    return new Table(csv, columns, csvRows(rest, batches), problems, true);
  }

  /** How much of the file was read, of 1. */
  get fraction(): number {
    return this.#source.fraction;
  }

  /** Position of a column; a missing one is a problem and -1. */
  column(name: string): number {
    const at = this.columns.indexOf(name);
    if (at < 0) {
      const found = this.columns.map((column) => `'${shown(column)}'`).join(', ');
      const [where, its] = this.#isText ? [':1', 'its header is'] : ['', 'it has'];
      this.#problems.add(this.file + where, `has no column '${name}', ${its} ${found}`);
    }
    return at;
  }

  problem(row: Pick<TableRow, 'line'>, description: string): void {
    const row1 = this.#isText ? `:${row.line}` : ` row ${row.line}`;
    this.#problems.add(this.file + row1, description);
  }

  /** About the header. */
  headerProblem(description: string): void {
    this.#problems.add(this.#isText ? `${this.file}:1` : this.file, description);
  }

  /** Batches of rows that have as many fields as there are columns. */
  async *batches(): AsyncGenerator<readonly TableRow[]> {
    try {
      for await (const rows of this.#rows) yield rows.filter((row) => this.#isWhole(row));
    } finally {
      await this.#rows.return(undefined);
    }
  }

  #isWhole(row: TableRow & Partial<Pick<CsvRow, 'problem'>>): boolean {
    if ((row.problem ?? null) !== null) {
      this.problem(row, row.problem ?? '');
      return false;
    }
    if (row.fields.length === this.columns.length) return true;
    const header = `the ${this.columns.length} of the header`;
    this.problem(row, `has ${row.fields.length} fields, expected ${header}`);
    return false;
  }
}

function firstRepeated(columns: readonly string[]): string | undefined {
  const seen = new Set<string>();
  for (const column of columns) {
    if (seen.has(column)) return column;
    seen.add(column);
  }
  return undefined;
}

async function* csvRows(
  first: readonly CsvRow[],
  rest: AsyncGenerator<CsvRow[]>,
): AsyncGenerator<readonly TableRow[]> {
  try {
    yield first;
    yield* rest;
  } finally {
    await rest.return(undefined);
  }
}
