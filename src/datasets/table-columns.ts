import type { FeatureDtype } from '../records/dataset-record.ts';
import { featuresAs, float16Max } from './float16.ts';
import type { NpyWriter } from './npy.ts';
import { NumberList } from './number-list.ts';
import { formatCount } from './problems.ts';

/** The fields of tables, and the features of nodes. */

/** Text, or what a column of numbers or of lists has. Nothing is an empty text. */
export type Field = string | number | readonly Field[];

/** A row, by what messages call it. */
interface Row {
  readonly line: number;
  readonly fields: readonly Field[];
}

/** Where problems of a table go. */
export interface TableProblems {
  readonly file: string;
  readonly columns: readonly string[];
  problem(row: Row, description: string): void;
  /** About the header. */
  headerProblem(description: string): void;
}

/** A problem shows at most this much of a field. */
const fieldCharsShown = 40;
const decimalPattern = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;
/** Problems of one column that are listed; the others are counted in a last one. */
const columnProblemsListed = 3;

/** A field as messages show it. */
export function shown(field: Field): string {
  const text = textOf(field);
  return text.length <= fieldCharsShown ? text : `${text.slice(0, fieldCharsShown)}...`;
}

/** An id, a split or a label as text: numbers as `String` writes them. */
export function textOf(field: Field): string {
  return typeof field === 'string' ? field : String(field);
}

export function isDecimal(text: string): boolean {
  return decimalPattern.test(text);
}

/** A decimal number that is finite in float32, or null. */
export function parseNumber(field: Field): number | null {
  const number = typeof field === 'string' ? decimalOf(field) : field;
  if (typeof number !== 'number') return null;
  const value = Math.fround(number);
  return Number.isFinite(value) ? value : null;
}

/** 1 for true, 0 for false, as programs write them; null for anything else. */
export function truthOf(field: Field): 0 | 1 | null {
  if (typeof field === 'object') return null;
  const text = String(field).trim();
  if (/^(1|1\.0|true|t|yes)$/i.test(text)) return 1;
  return /^(0|0\.0|false|f|no)$/i.test(text) ? 0 : null;
}

/** A feature: a number that is finite in float32, or true or false; null for anything else. */
export function featureOf(field: Field): number | null {
  const isTruth = typeof field === 'string' && /^(true|false)$/i.test(field);
  return parseNumber(field) ?? (isTruth ? truthOf(field) : null);
}

/** So many digits are a whole number that a double holds; so is ten to their number. */
const exactDigits = 15;
const powersOfTen = Array.from({ length: exactDigits + 1 }, (_, at) => 10 ** at);
const codeOf = { minus: 0x2d, point: 0x2e, zero: 0x30, nine: 0x39 } as const;

/**
 * What `Number` makes of a decimal number, or null. Short ones without an exponent are a quotient
 * of two exact numbers, which is rounded once, as it is there: a third of the time.
 */
function decimalOf(text: string): number | null {
  const { length } = text;
  const first = text.charCodeAt(0) === codeOf.minus ? 1 : 0;
  let whole = 0;
  let digits = 0;
  let point = length - 1;
  for (let at = first; at < length; at += 1) {
    const code = text.charCodeAt(at);
    if (code >= codeOf.zero && code <= codeOf.nine) {
      whole = 10 * whole + code - codeOf.zero;
      digits += 1;
    } else if (code === codeOf.point && point === length - 1) point = at;
    else digits = exactDigits + 1;
    if (digits > exactDigits) return isDecimal(text) ? Number(text) : null;
  }
  if (digits === 0) return null;
  const value = whole / (powersOfTen[length - 1 - point] ?? 1);
  return first === 1 ? -value : value;
}

/**
 * The columns of features: numbers, or lists of as many numbers as the first row has; a column of
 * texts is one problem, not one a row.
 */
export class FeatureColumns {
  readonly #table: TableProblems;
  /** How many numbers each list has, by the column of lists. */
  readonly #widths = new Map<number, number>();
  readonly #dtype: FeatureDtype;
  readonly #bad = new Map<number, { count: number; last: Row }>();
  #rows = 0;
  #lastRow: Row | null = null;

  constructor(table: TableProblems, dtype: FeatureDtype) {
    this.#table = table;
    this.#dtype = dtype;
  }

  /** How many features the columns make, as their first row has them. */
  count(row: Row | undefined, columns: readonly number[]): number {
    for (const at of columns) {
      const field = row?.fields[at];
      if (Array.isArray(field)) this.#widths.set(at, field.length);
    }
    return columns.reduce((sum, at) => sum + (this.#widths.get(at) ?? 1), 0);
  }

  /** What the features of the columns are called; REQUIRES: `count` was asked. */
  names(columns: readonly number[], nameOf: (column: string) => string): readonly string[] {
    return columns.flatMap((at) => {
      const name = nameOf(this.#table.columns[at] ?? '');
      const width = this.#widths.get(at);
      if (width === undefined) return [name];
      return Array.from({ length: width }, (_, index) => `${name}[${index}]`);
    });
  }

  /** Hands the numbers of column `at` of a row to `take`; 0 where there is none, a problem. */
  parse(row: Row, at: number, take: (value: number) => void): void {
    if (row !== this.#lastRow) this.#rows += 1;
    this.#lastRow = row;
    const field = row.fields[at] ?? '';
    const width = this.#widths.get(at);
    if (width === undefined) {
      take(this.#number(row, at, field));
      return;
    }
    const list = Array.isArray(field) ? field : [];
    if (list.length !== width) {
      const column = `in column '${shown(this.#table.columns[at] ?? '')}'`;
      const what = `has ${list.length} numbers ${column}, the first row has ${width}`;
      this.#table.problem(row, what);
    }
    for (let index = 0; index < width; index += 1) {
      take(index < list.length ? this.#number(row, at, list[index]) : 0);
    }
  }

  #number(row: Row, at: number, text: Field): number {
    const value = featureOf(text);
    if (value !== null && (this.#dtype === 'float32' || Math.abs(value) <= float16Max)) {
      return value;
    }
    const bad = this.#bad.get(at) ?? { count: 0, last: row };
    this.#bad.set(at, { count: bad.count + 1, last: row });
    if (bad.count < columnProblemsListed) {
      const where = `in column '${shown(this.#table.columns[at] ?? '')}'`;
      this.#table.problem(row, `has '${shown(text)}' ${where}, expected a ${this.#dtype} number`);
    }
    return 0;
  }

  /** After the last row: sums up the columns of which not every problem was listed. */
  addProblems(): void {
    for (const [at, { count, last }] of this.#bad) {
      if (count <= columnProblemsListed) continue;
      const column = shown(this.#table.columns[at] ?? '');
      const share = `${formatCount(count)} of ${formatCount(this.#rows)} rows`;
      const option = `--ignore-columns ${/^\w+$/.test(column) ? column : `'${column}'`}`;
      const remedy = `leave the column out (${option}), or turn its texts into numbers`;
      const what = `is the last of ${share} that have no number in column '${column}'`;
      this.#table.problem(last, `${what}: ${remedy}`);
    }
  }
}

/** Gathers features into blocks for the writer. */
export class FeatureRows {
  readonly #target: NpyWriter;
  readonly #dtype: FeatureDtype;
  #values = new NumberList((capacity) => new Float32Array(capacity));

  constructor(target: NpyWriter, dtype: FeatureDtype) {
    this.#target = target;
    this.#dtype = dtype;
  }

  push(value: number): void {
    this.#values.push(value);
  }

  /** Writes a block of whole rows; REQUIRES: nothing was pushed. */
  async write(block: Float32Array): Promise<void> {
    await this.#target.append(featuresAs(block, this.#dtype));
  }

  /** Writes what there is when it is more than `keep` values. */
  async flush(keep: number): Promise<void> {
    if (this.#values.length <= keep) return;
    await this.#target.append(featuresAs(this.#values.toArray(), this.#dtype));
    this.#values = new NumberList((capacity) => new Float32Array(capacity));
  }
}
