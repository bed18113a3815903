import type { ColumnKind, TextBatch } from '../native/contract.ts';
import { CsvFile, type CsvRow, cutRecord, type Separator } from './csv-reader.ts';
import type { EdgeBlock, EdgeSorter } from './edge-sorter.ts';
import {
  blocksBytesMin,
  type FeatureBlock,
  featureBlocks,
  hasBlocks,
  NeedsRows,
} from './feature-blocks.ts';
import { firstOf, firstRepeated } from './feature-names.ts';
import type { ImportContext } from './import-context.ts';
import type { NodeIds } from './node-ids.ts';
import { hasEdgeBlocks, parquetEdges } from './parquet-edges.ts';
import { ParquetFile } from './parquet-reader.ts';
import { badFile, formatCount, type ProblemList } from './problems.ts';
import { type EdgeFields, edgeBlock, featureBlock, type OddRows } from './table-blocks.ts';
import { type Field, textOf } from './table-columns.ts';
import { bytesOf, partsOf, type TablePart, tablePath } from './table-files.ts';
import {
  batchesBytesMin,
  type EdgeTarget,
  edgeBatches,
  type TextReader,
  textBatches,
} from './text-batches.ts';

/** A table of a source: a file of text, plain or packed, a Parquet file, or a folder of them. */

/** A row as its file has it. */
export interface TableRow {
  /** From 1, over all parts: a line of a text, a row of a Parquet file (`Table.where`). */
  readonly line: number;
  /** One a column; text of text files. Nothing is an empty text. */
  readonly fields: readonly Field[];
}

/** Reads the rows of one part from start to end. */
interface PartReader {
  readonly fraction: number;
  rows(): AsyncGenerator<readonly (TableRow & Partial<Pick<CsvRow, 'problem'>>)[]>;
}

/** A table that is made of a file of another form. */
export interface MadeTable extends PartReader {
  readonly file: string;
  readonly columns: readonly string[];
}

/** Rows that tell what a table's columns have. */
const firstRows = 64;
/** Rows with one cause that are problems each; others of it are counted in a last one. */
const listedOfCause = 3;
const decimalComma = /^[+-]?\d*,\d+([eE][+-]?\d+)?$/;

type TableContext = Pick<ImportContext, 'problems' | 'signal' | 'native'>;

/** A batch of a part. */
interface PartBatch extends Pick<TablePart, 'keys'> {
  readonly batch: TextBatch;
  readonly odd: OddRows;
  readonly isFirst: boolean;
}

interface Cause {
  count: number;
  last: number;
}

/** A table by its columns; malformed rows become problems and are left out. */
export class Table {
  readonly file: string;
  readonly columns: readonly string[];
  /** What separates fields of text; null in Parquet files. */
  readonly separator: Separator | null;
  /** Columns of the files themselves; those behind them are what folders are called. */
  readonly #own: readonly string[];
  /** Whether rows were left out, so that what they name is unknown. */
  hasLeftOut = false;
  readonly #parts: readonly TablePart[];
  readonly #problems: ProblemList;
  readonly #signal: AbortSignal;
  readonly #native: TextReader;
  /** For each part that was begun, the number of lines in the parts before it. */
  readonly #offsets: number[] = [];
  readonly #causes = new Map<string, Cause>();
  readonly #made: PartReader | null;
  #numbers: readonly number[] = [];
  #fraction = 0;
  #isTrial = false;
  #first: Promise<readonly TableRow[]> | null = null;

  private constructor(
    file: string,
    parts: readonly TablePart[],
    { columns, separator }: { columns: readonly string[]; separator: Separator | null },
    { problems, signal, native }: TableContext,
    made: PartReader | null = null,
  ) {
    this.#made = made;
    this.file = file;
    this.columns = columns;
    this.#own = columns.slice(0, columns.length - (parts[0]?.keys.length ?? 0));
    this.separator = separator;
    this.#parts = parts;
    this.#problems = problems;
    this.#signal = signal;
    this.#native = native;
  }

  /** The table `nodes` or `edges` of the source. Throws ImportFailure. */
  static async open(context: ImportContext, table: 'nodes' | 'edges'): Promise<Table> {
    const path = tablePath(context.source, table);
    if (path === null) throw badFile(`${table}.csv`, `is missing in ${context.source}`);
    return await Table.at(context, path);
  }

  /** The table at a path. Throws ImportFailure. */
  static async at(context: ImportContext, path: string): Promise<Table> {
    const parts = partsOf(path);
    const [first] = parts;
    if (first === undefined) throw badFile(path, 'is missing');
    const { signal } = context;
    const form = first.isParquet
      ? { columns: (await ParquetFile.open(first.path, signal)).columns, separator: null }
      : await textForm(first, signal);
    const columns = [...form.columns, ...first.keys.map(([key]) => key)];
    const repeated = firstRepeated(columns);
    if (repeated !== undefined) {
      const where = first.isParquet ? first.name : `${first.name}:1`;
      throw badFile(where, `has the column '${repeated}' twice`);
    }
    const file = parts.length === 1 ? first.name : path.slice(path.lastIndexOf('/') + 1);
    return new Table(file, parts, { ...form, columns }, context);
  }

  /** A table of text whose rows are made by `made`, each time anew. */
  static of(context: TableContext, made: MadeTable): Table {
    const parts = [{ path: made.file, name: made.file, isParquet: false, keys: [] }];
    return new Table(made.file, parts, { columns: made.columns, separator: ' ' }, context, made);
  }

  get isText(): boolean {
    return this.separator !== null;
  }

  /** How much of the table was read, of 1. */
  get fraction(): number {
    return this.#fraction;
  }

  /** Where a row is, as messages call it: a file and its line or row. */
  where(line: number): string {
    const at = this.#offsets.findLastIndex((offset) => offset < line);
    const part = this.#parts[Math.max(at, 0)];
    const own = line - (this.#offsets[at] ?? 0);
    return `${part?.name ?? this.file}${this.isText ? ':' : ' row '}${own}`;
  }

  /** In columns of numbers a comma is a decimal one, unless it separates the fields. */
  readNumbers(columns: readonly number[]): void {
    if (this.separator !== null && this.separator !== ',') this.#numbers = columns;
  }

  /** The table's first rows, without a problem of theirs. */
  async first(): Promise<readonly TableRow[]> {
    this.#first ??= this.#readFirst();
    return await this.#first;
  }

  async #readFirst(): Promise<readonly TableRow[]> {
    const [part] = this.#parts;
    if (part?.isParquet === true) {
      const file = await ParquetFile.open(part.path, this.#signal);
      return (await file.first(firstRows)).map((row) => withKeys(row, part));
    }
    for await (const rows of this.batches({ quiet: true })) {
      if (rows.length > 0) return rows.slice(0, firstRows);
    }
    return [];
  }

  /**
   * The table in blocks of these features, of `width` numbers, and fields, of which the first is
   * the id; null where it is to be read by rows. While blocks are read any problem throws
   * NeedsRows.
   */
  async blocks(
    fields: readonly number[],
    features: readonly number[],
    width: number,
  ): Promise<AsyncGenerator<FeatureBlock> | null> {
    if (this.#made !== null) return null;
    if (this.isText) {
      const areOwn = this.#isLargeText() && features.every((at) => at < this.#own.length);
      return areOwn ? this.#textFeatures(fields, features, await this.first()) : null;
    }
    const types: (readonly string[])[] = [];
    for (const part of this.#parts) types.push((await this.#parquet(part)).types);
    const table = { parts: this.#parts, columns: this.columns, types: types[0] ?? [] };
    const areAlike = types.every((each) => each.join() === types[0]?.join());
    const whole = { ...table, first: await this.first() };
    if (!areAlike || !hasBlocks(whole, features)) return null;
    return this.#trial(featureBlocks(whole, { fields, features, width }, this.#signal));
  }

  /**
   * Edges by columns, with ends of `ids`, or where these are counted any numbers; null where they
   * are to be read by rows. A block that is null went into the sorter by itself. While blocks are
   * read any problem throws NeedsRows.
   */
  async edgeBlocks(
    columns: EdgeFields,
    ids: NodeIds,
    sorter: EdgeSorter,
  ): Promise<AsyncGenerator<EdgeBlock | null> | null> {
    const last = Math.max(columns.source, columns.target, columns.weight);
    if (last >= this.#own.length || this.#made !== null) return null;
    if (this.isText) return this.#isLargeText() ? this.#textEdges(columns, ids, sorter) : null;
    if (!ids.areCounted || bytesOf(this.#parts) < blocksBytesMin) return null;
    for (const part of this.#parts) {
      if (!hasEdgeBlocks(await this.#parquet(part), columns)) return null;
    }
    return this.#parquetEdges(columns);
  }

  async *#parquetEdges(columns: EdgeFields): AsyncGenerator<EdgeBlock> {
    this.#offsets.length = 0;
    let rows = 0;
    for (const [index, part] of this.#parts.entries()) {
      this.#offsets.push(rows);
      const file = await this.#parquet(part);
      for await (const block of parquetEdges(file, columns, rows)) {
        this.#fraction = (index + file.fraction) / this.#parts.length;
        yield block;
      }
      rows += file.numRows;
    }
  }

  #isLargeText(): boolean {
    return this.#made === null && this.isText && bytesOf(this.#parts) >= batchesBytesMin;
  }

  async *#textFeatures(
    fields: readonly number[],
    numbers: readonly number[],
    first: readonly TableRow[],
  ): AsyncGenerator<FeatureBlock> {
    const own = this.#own.length;
    const [id = -1, ...others] = fields;
    const kinds = nodeKinds(fields, numbers, { first, own });
    const columnsOf = (...wanted: readonly ColumnKind[]) =>
      fields.filter((at) => wanted.includes(kinds.get(at) ?? 'SKIP')).sort((a, b) => a - b);
    const columns = { texts: columnsOf('TEXT'), wholes: columnsOf('WHOLE', 'CODE'), numbers };
    const codes = columnsOf('CODE');
    const pointed = this.#numbers.filter((at) => others.includes(at));
    const made = (row: TableRow) => (pointed.length === 0 ? row : this.#withPoints(row, pointed));
    let coded = new Map<number, string[]>();
    for await (const { batch, odd, keys, isFirst } of this.#textBatches(kinds, null)) {
      if (isFirst) coded = new Map(codes.map((at) => [at, []]));
      for (const [index, at] of codes.entries()) {
        const more = (batch.coded[index] ?? '').split('\n').slice(0, -1);
        for (const text of more) coded.get(at)?.push(text);
      }
      const folders = keys.map(([, value], at) => [own + at, value] as const);
      yield featureBlock({ batch, odd, coded, folders, made }, columns, id);
    }
  }

  async *#textEdges(
    columns: EdgeFields,
    ids: NodeIds,
    sorter: EdgeSorter,
  ): AsyncGenerator<EdgeBlock | null> {
    const kind = ids.areCounted ? 'WHOLE' : 'ID';
    const kinds = new Map<number, ColumnKind>([
      [columns.source, kind],
      [columns.target, kind],
    ]);
    if (columns.weight >= 0) kinds.set(columns.weight, 'WEIGHT');
    const target = { sorter, ids: ids.texts, targetFirst: columns.target < columns.source };
    for await (const { batch, odd } of this.#textBatches(kinds, target)) {
      yield batch.taken ? null : edgeBlock(batch, columns, ids, odd);
    }
  }

  /**
   * Batches of all parts, by lines over all parts, with what is not plain in them; a part's first
   * one may have no row. Edges go to a target.
   */
  async *#textBatches(
    kinds: ReadonlyMap<number, ColumnKind>,
    target: EdgeTarget | null,
  ): AsyncGenerator<PartBatch> {
    const separator = this.separator ?? ',';
    const columns = this.#own.map((_, at) => kinds.get(at) ?? 'SKIP');
    const options = { separator, header: true, decimalCommas: separator !== ',', columns };
    this.#offsets.length = 0;
    let lines = 0;
    for (const [index, part] of this.#parts.entries()) {
      const offset = lines;
      this.#offsets.push(offset);
      const file = await CsvFile.open(part.path, this.#signal, { separator });
      let isFirst = true;
      const batches =
        target === null
          ? textBatches(this.#native, file, options)
          : edgeBatches(this.#native, file, options, { ...target, linesBefore: offset });
      for await (const read of this.#trial(batches)) {
        const { header, broken } = read;
        if (header !== null) this.#checkColumns(`${part.name}:1`, columnsOf(header, separator));
        if (broken) throw new NeedsRows('no text, or one without an end');
        this.#fraction = (index + file.fraction) / this.#parts.length;
        // Texts of a row come before it where the row does not end in the piece that has them.
        if (!isFirst && read.numRows === 0 && read.coded.join('') === '') continue;
        const batch = { ...read, firstLine: offset + read.firstLine };
        lines = offset + read.lastLine;
        yield { batch, odd: this.#oddRows(batch, part), keys: part.keys, isFirst };
        isFirst = false;
      }
    }
  }

  #oddRows({ odd, oddRows, firstLine, lines }: TextBatch, part: TablePart): OddRows {
    const rows = [...odd].map((row, index) => {
      const { fields, problem } = cutRecord(oddRows[index] ?? '', this.separator ?? ',');
      if (problem !== null || fields.length !== this.#own.length) {
        throw new NeedsRows('a row of other fields');
      }
      const found = withKeys({ line: firstLine + (lines[row] ?? 0), fields }, part);
      return [row, this.#withPoints(found, this.#numbers)] as const;
    });
    return new Map(rows);
  }

  /** What is read on trial: any problem of a row throws NeedsRows. */
  async *#trial<T>(blocks: AsyncGenerator<T>): AsyncGenerator<T> {
    this.#isTrial = true;
    try {
      yield* blocks;
    } finally {
      this.#isTrial = false;
    }
  }

  /** A problem of a row; of those with one `cause` only the first ones are listed. */
  problem({ line }: Pick<TableRow, 'line'>, description: string, cause: string | null = null) {
    if (this.#isTrial) throw new NeedsRows(description);
    if (cause !== null) {
      const known = this.#causes.get(cause) ?? { count: 0, last: line };
      this.#causes.set(cause, { count: known.count + 1, last: line });
      if (known.count >= listedOfCause) return;
    }
    this.#problems.add(this.where(line), description);
  }

  /** After the last row: counts the problems that were not listed. */
  countProblems(): void {
    for (const [cause, { count, last }] of this.#causes) {
      if (count <= listedOfCause) continue;
      this.#problems.add(this.where(last), `is the last of ${formatCount(count)} rows ${cause}`);
    }
    this.#causes.clear();
  }

  /** About the header. */
  headerProblem(description: string): void {
    const [first] = this.#parts;
    this.#problems.add(`${first?.name ?? this.file}${this.isText ? ':1' : ''}`, description);
  }

  /**
   * Batches of rows that have as many fields as there are columns; may be read again, `quiet`
   * where the problems of rows are told another time.
   */
  async *batches({ quiet = false } = {}): AsyncGenerator<readonly TableRow[]> {
    this.#offsets.length = 0;
    let lines = 0;
    for (const [index, part] of this.#parts.entries()) {
      const offset = lines;
      this.#offsets.push(offset);
      const reader = await this.#reader(part);
      for await (const rows of reader.rows()) {
        lines = offset + (rows.at(-1)?.line ?? 0);
        this.#fraction = (index + reader.fraction) / this.#parts.length;
        const moved =
          offset === 0 ? rows : rows.map((row) => ({ ...row, line: row.line + offset }));
        const whole = moved
          .filter((row) => this.#isWhole(row, quiet))
          .map((row) => withKeys(row, part));
        const numbers = this.#numbers;
        yield numbers.length === 0 ? whole : whole.map((row) => this.#withPoints(row, numbers));
      }
    }
  }

  async #reader(part: TablePart): Promise<PartReader> {
    if (this.#made !== null) return this.#made;
    if (this.separator === null) return await this.#parquet(part);
    const file = await CsvFile.open(part.path, this.#signal, { separator: this.separator });
    const rows = () => this.#belowHeader(part, file);
    return {
      rows,
      get fraction() {
        return file.fraction;
      },
    };
  }

  async #parquet(part: TablePart): Promise<ParquetFile> {
    const file = await ParquetFile.open(part.path, this.#signal);
    this.#checkColumns(part.name, file.columns);
    return file;
  }

  async *#belowHeader(part: TablePart, file: CsvFile): AsyncGenerator<readonly CsvRow[]> {
    let isFirst = true;
    for await (const rows of file.rows()) {
      const [header, ...rest] = rows;
      if (isFirst) this.#checkColumns(`${part.name}:1`, header?.fields.map(trimmed) ?? []);
      yield isFirst ? rest : rows;
      isFirst = false;
    }
  }

  /** Throws ImportFailure where a part has other columns than the first. */
  #checkColumns(where: string, columns: readonly string[]): void {
    if (columns.join('\n') === this.#own.join('\n')) return;
    const [first] = this.#parts;
    const expected = `expected those of ${first?.name ?? ''}: ${firstOf(this.#own)}`;
    throw badFile(where, `has the columns ${firstOf(columns)}, ${expected}`);
  }

  #withPoints(row: TableRow, numbers: readonly number[]): TableRow {
    const fields = row.fields.slice();
    for (const at of numbers) {
      const field = fields[at];
      if (typeof field === 'string' && decimalComma.test(field))
        fields[at] = field.replace(',', '.');
    }
    return { line: row.line, fields };
  }

  #isWhole(row: TableRow & Partial<Pick<CsvRow, 'problem'>>, quiet: boolean): boolean {
    const { problem = null, fields } = row;
    if (problem === null && fields.length === this.#own.length) return true;
    if (quiet) return false;
    this.hasLeftOut = true;
    if (problem !== null) this.problem(row, problem);
    else {
      const { length } = this.#own;
      const expected = this.#made === null ? `the ${length} of the header` : String(length);
      const what = `has ${fields.length} fields, expected ${expected}`;
      this.problem(row, what, 'that have another number of fields than the header');
    }
    return false;
  }
}

/** What native code reads of a table of nodes as: by columns, where few texts are in them. */
function nodeKinds(
  [id = -1, ...others]: readonly number[],
  numbers: readonly number[],
  { first, own }: { readonly first: readonly TableRow[]; readonly own: number },
): ReadonlyMap<number, ColumnKind> {
  const haveAll = (at: number, pattern: RegExp) =>
    first.every(({ fields }) => pattern.test(textOf(fields[at] ?? '')));
  const areFew = others.every((at) => at < own && haveAll(at, /^[^.]*$/));
  const isWhole = areFew && haveAll(id, /^(0|[1-9]\d{0,8})$/);
  return new Map<number, ColumnKind>([
    ...numbers.map((at) => [at, 'NUMBER'] as const),
    ...others.map((at) => [at, areFew ? 'CODE' : 'TEXT'] as const),
    [id, isWhole ? 'WHOLE' : 'TEXT'],
  ]);
}

/** A row of a part, with what the part's folders are called. */
function withKeys<Row extends TableRow>(row: Row, { keys }: TablePart): Row {
  if (keys.length === 0) return row;
  return { ...row, fields: [...row.fields, ...keys.map(([, value]) => value)] };
}

const trimmed = (field: string) => field.trim();

function columnsOf(header: string, separator: Separator): readonly string[] {
  return cutRecord(header, separator).fields.map(trimmed);
}

/** The header of a file of text, and what separates its fields. Throws ImportFailure. */
async function textForm({ path, name }: TablePart, signal: AbortSignal) {
  const separator = await CsvFile.separatorOf(path, signal);
  const csv = await CsvFile.open(path, signal, { separator });
  for await (const [header] of csv.rows()) {
    if (header === undefined) continue;
    if (header.problem !== null) throw badFile(`${name}:${header.line}`, header.problem);
    return { columns: header.fields.map(trimmed), separator };
  }
  throw badFile(name, 'is empty, expected a header line');
}
