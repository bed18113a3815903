import type { DatasetTask } from '../records/dataset-record.ts';
import type { DatasetWriter } from './dataset-writer.ts';
import type { CodedRows } from './feature-blocks.ts';
import { vectorSource } from './given-array.ts';
import {
  classExpected,
  LabelScan,
  type LabelsWritten,
  labelMax,
  writeLabels,
} from './label-arrays.ts';
import type { NoticeList } from './notices.ts';
import { NumberList } from './number-list.ts';
import { formatCount } from './problems.ts';
import type { ScratchRows } from './scratch-rows.ts';
import {
  type Field,
  isDecimal,
  parseNumber,
  shown,
  type TableProblems,
  textOf,
} from './table-columns.ts';

/** What the table of nodes says that is to be learnt: a column `label`, or several `label_…`. */

interface Row {
  readonly line: number;
  readonly fields: readonly Field[];
}

export interface StoredLabels extends LabelsWritten {
  readonly task: DatasetTask;
  readonly classNames: readonly string[] | null;
}

export interface TableLabels {
  /** Takes the next node's label; answers whether one is known. What is wrong becomes a problem. */
  push(row: Row): boolean;
  /** Takes labels of nodes by columns: to be called for each row, in their order. */
  ofColumns(coded: CodedRows): (row: number) => boolean;
  /** To be awaited after each batch. */
  settle(): Promise<void>;
  /** After the last row: what can only be said of all. */
  addProblems(): void;
  /** Writes them; once, after a table without problems. */
  store(writer: DatasetWriter): Promise<StoredLabels>;
}

const severalPrefix = 'label_';

export interface LabelsOfTable {
  readonly table: TableProblems;
  /** One, or several that are called `label_…`. */
  readonly columns: readonly number[];
  readonly task: DatasetTask | null;
  /** Rows of the table's begin: they tell whether the column has lists. */
  readonly first: readonly Row[];
  /** Has room for what is not kept in memory. */
  readonly writer: DatasetWriter;
  readonly notices: NoticeList;
}

export async function tableLabels(options: LabelsOfTable): Promise<TableLabels> {
  const { table, columns, task, first, writer, notices } = options;
  const [at = -1] = columns;
  if (columns.length === 0) return noLabels;
  const isOne = columns.length === 1 && !isOfSeveral(table.columns[at] ?? '');
  const list = isOne ? first.map(({ fields }) => fields[at]).find(Array.isArray) : undefined;
  const needsRows = task === 'MULTI_LABEL' || task === 'REGRESSION';
  if (isOne && list === undefined && !needsRows) return new ClassColumn(table, at, task, notices);
  const width = list?.length ?? columns.length;
  return new LabelRows(options, width, await writer.scratch(Math.max(1, width)));
}

function isOfSeveral(column: string): boolean {
  return column.toLowerCase().startsWith(severalPrefix);
}

/** What programs write where nothing is known; `none` in small letters may be a class. */
const nothingText = /^(|\s+|nan|NA|<NA>|N\/A|n\/a|#N\/A|None|null|NULL|Null|NaT)$/;

/** Whether a text says that there is no label, as tables of several programs do. */
export function isNothing(text: string): boolean {
  return nothingText.test(text) || /^nan$/i.test(text);
}

/**
 * In place of a class: no label, and a -1 that says so, which is a number where fractions follow.
 */
const none = -1;
const minusOne = -2;

/**
 * One label a node: class numbers from 0, or texts that name their class, of which the first label
 * tells which; or numbers to learn, as soon as one has a fraction. Class numbers of texts follow
 * their order.
 */
class ClassColumn implements TableLabels {
  readonly #table: TableProblems;
  readonly #at: number;
  readonly #task: DatasetTask | null;
  /** Class number, or the text's position in `#texts`. */
  readonly #values = new NumberList((capacity) => new Int32Array(capacity));
  /** Numbers that replace `#values` once there is a number that is no class. */
  #numbers: NumberList<Float32Array> | null = null;
  readonly #texts = new Map<string, number>();
  readonly #notices: NoticeList;
  /** How often each text stood where nothing is known. */
  readonly #nothings = new Map<string, number>();
  #kind: 'number' | 'text' | null = null;
  #hasFraction = false;
  /** Classes by codes of a part's texts. */
  #classes: { readonly texts: CodedRows['texts']; readonly of: number[] } | null = null;
  /** More texts than a model can tell apart. */
  #isTooMany = false;
  /** Numbers that are no classes: problems, unless all are numbers to learn. */
  readonly #noClass: { readonly row: Row; readonly text: string }[] = [];
  #noClassCount = 0;

  constructor(table: TableProblems, at: number, task: DatasetTask | null, notices: NoticeList) {
    this.#table = table;
    this.#at = at;
    this.#task = task;
    this.#notices = notices;
  }

  push(row: Row): boolean {
    const text = textOf(row.fields[this.#at] ?? '');
    if (text === '' || isNothing(text)) {
      if (text !== '') this.#nothings.set(text, (this.#nothings.get(text) ?? 0) + 1);
      this.#put(none);
      return false;
    }
    this.#kind ??= isDecimal(text) ? 'number' : 'text';
    if (this.#kind === 'text' && !isDecimal(text)) {
      this.#put(this.#classOf(row, text));
      return true;
    }
    if (this.#kind === 'number' && isDecimal(text)) return this.#pushNumber(row, text);
    const before = this.#kind === 'text' ? 'texts' : 'numbers';
    const what = `where the labels before are ${before}: expected one or the other`;
    this.#table.problem(row, `has the label '${shown(text)}', ${what}`);
    this.#put(none);
    return true;
  }

  ofColumns({ codes, texts, rowAt }: CodedRows): (row: number) => boolean {
    const own = codes.get(this.#at);
    if (own === undefined) return (row) => this.push(rowAt(row));
    // A text that is a class once is one wherever it stands; what else there is goes its own way.
    if (this.#classes?.texts !== texts) this.#classes = { texts, of: [] };
    const classes = this.#classes.of;
    return (row) => {
      const code = own[row] ?? 0;
      const known = classes[code];
      if (known !== undefined && this.#numbers === null) {
        this.#values.push(known);
        return known !== none;
      }
      const before = this.#values.length;
      const isKnown = this.push(rowAt(row));
      const value = this.#values.at(before);
      const isRepeated = value >= 0 || texts.get(this.#at)?.[code] === '';
      if (this.#values.length > before && isRepeated) classes[code] = value;
      return isKnown;
    };
  }

  #classOf(row: Row, text: string): number {
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    const label = this.#texts.size;
    if (label <= labelMax) {
      this.#texts.set(text, label);
      return label;
    }
    if (!this.#isTooMany) {
      const most = formatCount(labelMax + 1);
      const what = `has the label '${shown(text)}' after ${most} others`;
      this.#table.problem(row, `${what}, and a model learns no more: are these labels?`);
    }
    this.#isTooMany = true;
    return none;
  }

  #pushNumber(row: Row, text: string): boolean {
    const value = Number(text);
    if (Number.isInteger(value) && value >= -1 && value <= labelMax) {
      this.#put(value === -1 ? minusOne : value);
      // Whether a -1 is nothing is known at the end; a split with such a node is found then.
      return true;
    }
    if (!Number.isInteger(value)) this.#hasFraction = true;
    this.#noClassCount += 1;
    if (this.#noClass.length < noClassKept) this.#noClass.push({ row, text });
    this.#toNumbers().push(Math.fround(value));
    if (Number.isFinite(Math.fround(value))) return true;
    this.#table.problem(row, `has the label '${shown(text)}', expected a float32 number`);
    return true;
  }

  #put(value: number): void {
    if (this.#numbers === null) this.#values.push(value);
    else this.#numbers.push(asNumber(value));
  }

  #toNumbers(): NumberList<Float32Array> {
    if (this.#numbers !== null) return this.#numbers;
    const numbers = new NumberList((capacity) => new Float32Array(capacity));
    for (let at = 0; at < this.#values.length; at += 1) numbers.push(asNumber(this.#values.at(at)));
    this.#numbers = numbers;
    return numbers;
  }

  async settle(): Promise<void> {}

  addProblems(): void {
    if (this.#kind === 'text' && this.#nothings.size > 0) {
      const each = [...this.#nothings].map(([text, count]) => `${formatCount(count)} '${text}'`);
      this.#notices.add(`labels ${each.join(', ')} are taken for unknown, not for a class`);
    }
    if (this.#hasFraction && this.#task === null) return;
    for (const { row, text } of this.#noClass) {
      this.#table.problem(row, `has the label '${shown(text)}', ${classExpected}`);
    }
    const more = this.#noClassCount - this.#noClass.length;
    const last = this.#noClass.at(-1);
    if (more > 0 && last !== undefined) {
      this.#table.problem(last.row, `is followed by ${more} more such labels`);
    }
  }

  async store(writer: DatasetWriter): Promise<StoredLabels> {
    const { file } = this.#table;
    if (this.#numbers !== null) {
      const numbers = this.#numbers.toArray();
      const source = vectorSource(file, 'float32', numbers);
      const written = await writeLabels(writer, 'REGRESSION', source);
      return { ...written, task: 'REGRESSION', classNames: null };
    }
    const classNames = this.#kind === 'text' ? [...this.#texts.keys()].sort() : null;
    const classOf = new Int32Array(this.#texts.size);
    for (const [label, name] of (classNames ?? []).entries()) {
      classOf[this.#texts.get(name) ?? 0] = label;
    }
    const labels = this.#values.toArray();
    const known = labels.reduce((sum, value) => sum + (value < 0 ? 0 : 1), 0);
    if (classNames !== null && classNames.length === known && known > fewNames) {
      const column = shown(this.#table.columns[this.#at] ?? '');
      const remedy = `are they names? Then leave it out: --ignore-columns '${column}'`;
      this.#notices.add(`${file}: each label in '${column}' is another text: ${remedy}`);
    }
    for (const [at, value] of labels.entries()) {
      if (value < 0) labels[at] = -1;
      else if (classNames !== null) labels[at] = classOf[value] ?? -1;
    }
    const source = vectorSource(file, 'int32', labels);
    const written = await writeLabels(writer, 'CLASSIFICATION', source);
    const numClasses = classNames?.length ?? written.numClasses;
    return { ...written, numClasses, task: 'CLASSIFICATION', classNames };
  }
}

/** Labels of a table that says none: completeDataset writes what stands for them. */
const noLabels: TableLabels = {
  push: () => false,
  ofColumns: () => () => false,
  settle: async () => {},
  addProblems: () => {},
  store: async () => ({
    ...{ task: 'CLASSIFICATION', numClasses: 0, classNames: null },
    ...{ isOneHot: false, gaps: null },
  }),
};

/** So few labels differ by chance. */
const fewNames = 4;
/** Problems of this sort that are told one by one. */
const noClassKept = 20;

function asNumber(value: number): number {
  if (value === none) return Number.NaN;
  return value === minusOne ? -1 : value;
}

/** Several labels or numbers a node, in columns or in a column of lists. */
class LabelRows implements TableLabels {
  readonly #table: TableProblems;
  readonly #columns: readonly number[];
  readonly #asked: DatasetTask | null;
  readonly #width: number;
  readonly #rows: ScratchRows;
  readonly #scan = new LabelScan('float32');
  readonly #held = new NumberList((capacity) => new Float32Array(capacity));
  #task: DatasetTask = 'MULTI_LABEL';

  constructor({ table, columns, task }: LabelsOfTable, width: number, rows: ScratchRows) {
    this.#table = table;
    this.#columns = columns;
    this.#asked = task;
    this.#width = width;
    this.#rows = rows;
  }

  push(row: Row): boolean {
    const fields = this.#fieldsOf(row);
    let isKnown = false;
    for (let at = 0; at < this.#width; at += 1) {
      const value = this.#number(row, fields[at] ?? '', at);
      this.#scan.see(value, row.line);
      this.#held.push(value);
      // A -1 may be a number to learn; what is to be known of a split is checked once more.
      isKnown ||= !Number.isNaN(value);
    }
    return isKnown;
  }

  ofColumns({ rowAt }: CodedRows): (row: number) => boolean {
    return (row) => this.push(rowAt(row));
  }

  #fieldsOf(row: Row): readonly Field[] {
    const fields = this.#columns.map((at) => row.fields[at] ?? '');
    const [only = ''] = fields;
    if (fields.length > 1 || (this.#width === 1 && !Array.isArray(only))) return fields;
    const list = Array.isArray(only) ? only : [];
    if (list.length === this.#width || only === '') return list;
    const what = `has ${list.length} labels, the first row that has any has ${this.#width}`;
    this.#table.problem(row, what);
    return list;
  }

  #number(row: Row, field: Field, at: number): number {
    if (isNothing(textOf(field))) return Number.NaN;
    const value = parseNumber(field);
    if (value !== null) return value;
    const column = this.#table.columns[this.#columns[at] ?? this.#columns[0] ?? -1] ?? '';
    const where = `in column '${shown(column)}'`;
    this.#table.problem(row, `has '${shown(field)}' ${where}, expected a number or nothing`);
    return Number.NaN;
  }

  async settle(): Promise<void> {
    if (this.#held.length < heldValuesMax) return;
    await this.#flush();
  }

  async #flush(): Promise<void> {
    await this.#rows.append(this.#held.toArray());
    this.#held.length = 0;
  }

  addProblems(): void {
    const decision = this.#scan.decide(this.#width, this.#asked);
    if (decision.kind === 'task') {
      this.#task = decision.task;
      return;
    }
    const { seen, expected } = decision;
    if (seen === null) this.#table.headerProblem(`has the columns ${this.#names()}, ${expected}`);
    else
      this.#table.problem(
        { line: seen.at, fields: [] },
        `has the label ${seen.value}, ${expected}`,
      );
  }

  async store(writer: DatasetWriter): Promise<StoredLabels> {
    await this.#flush();
    const source = this.#rows.source(this.#table.file);
    const written = await writeLabels(writer, this.#task, source);
    return { ...written, task: this.#task, classNames: this.#classNames() };
  }

  #names(): string {
    return this.#columns.map((at) => shown(this.#table.columns[at] ?? '')).join(', ');
  }

  /** What follows `label_`, unless that only counts them. */
  #classNames(): readonly string[] | null {
    if (this.#columns.length !== this.#width || this.#task === 'CLASSIFICATION') return null;
    const names = this.#columns.map((at) => this.#table.columns[at] ?? '');
    if (!names.every(isOfSeveral)) return null;
    const texts = names.map((name) => name.slice(severalPrefix.length));
    return texts.every((text, at) => text === String(at)) ? null : texts;
  }
}

const heldValuesMax = 1 << 18;
