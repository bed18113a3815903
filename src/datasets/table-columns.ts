import type { FeatureDtype } from '../records/dataset-record.ts';
import { featuresAs, float16Max } from './float16.ts';
import type { NpyWriter } from './npy.ts';
import { NumberList } from './number-list.ts';
import { formatCount } from './problems.ts';

/** What the columns of a table of nodes say: labels, and the features. */

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
}

/** A problem shows at most this much of a field. */
const fieldCharsShown = 40;
const decimalPattern = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;
const labelMax = 2 ** 31 - 2;
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

/** A decimal number that is finite in float32, or null. */
export function parseNumber(field: Field): number | null {
  if (typeof field !== 'number' && (typeof field !== 'string' || !decimalPattern.test(field))) {
    return null;
  }
  const value = Math.fround(Number(field));
  return Number.isFinite(value) ? value : null;
}

export interface Labels {
  /** [nodes], -1 for none. */
  readonly labels: Int32Array;
  readonly numClasses: number;
  /** Of text labels, ascending by code units; null where labels are numbers. */
  readonly classNames: readonly string[] | null;
}

/**
 * Labels as class numbers from 0, or as texts that name their class: the first label tells which.
 * Class numbers of texts follow their order.
 */
export class LabelColumn {
  /** Class number, or the text's position in `#texts`. */
  readonly #values = new NumberList((capacity) => new Int32Array(capacity));
  readonly #texts = new Map<string, number>();
  #kind: 'number' | 'text' | null = null;
  #largest = -1;

  push(table: TableProblems, row: Row, text: string): void {
    this.#values.push(text === '' ? -1 : this.#parse(table, row, text));
  }

  #parse(table: TableProblems, row: Row, text: string): number {
    const isNumber = decimalPattern.test(text);
    this.#kind ??= isNumber ? 'number' : 'text';
    if (this.#kind === 'text' && !isNumber) {
      const known = this.#texts.get(text) ?? this.#texts.size;
      this.#texts.set(text, known);
      return known;
    }
    const label = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
    if (this.#kind === 'number' && label <= labelMax) {
      this.#largest = Math.max(this.#largest, label);
      return label;
    }
    const isValue = isNumber && Number(text) >= 0 && !/^\d+$/.test(text);
    const scope = isValue ? '; regression on node values is not there' : '';
    const expected =
      this.#kind === 'text'
        ? 'where the labels before are texts: expected one or the other'
        : `expected a class number from 0 or nothing${scope}`;
    table.problem(row, `has the label '${shown(text)}', ${expected}`);
    return -1;
  }

  finish(): Labels {
    const labels = this.#values.toArray();
    if (this.#kind !== 'text') return { labels, numClasses: this.#largest + 1, classNames: null };
    const classNames = [...this.#texts.keys()].sort();
    const classOf = new Int32Array(classNames.length);
    for (const [label, name] of classNames.entries()) classOf[this.#texts.get(name) ?? 0] = label;
    return {
      labels: labels.map((at) => (at < 0 ? -1 : (classOf[at] ?? -1))),
      numClasses: classNames.length,
      classNames,
    };
  }
}

/**
 * The columns of features: numbers, or lists of as many numbers as the first row has; a column of
 * texts is one problem, not one a row.
 */
export class FeatureColumns {
  readonly #table: TableProblems;
  /** Of a column of lists, how many numbers each has. */
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
    const value = parseNumber(text);
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
      const remedy = 'leave the column out, or turn its texts into numbers';
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

  /** Writes what there is when it is more than `keep` values. */
  async flush(keep: number): Promise<void> {
    if (this.#values.length <= keep) return;
    await this.#target.append(featuresAs(this.#values.toArray(), this.#dtype));
    this.#values = new NumberList((capacity) => new Float32Array(capacity));
  }
}
