import { type DatasetTask, modelColumnsMax } from '../records/dataset-record.ts';
import { converterOf, OutOfRange } from './convert-array.ts';
import { type DatasetWriter, labelTypes } from './dataset-writer.ts';
import type { NpySource, NpyType, NpyValues } from './npy.ts';
import { badFile, formatCount } from './problems.ts';

/**
 * What the labels of a source are, and how a dataset stores them. Who does not say the task gets
 * the one that the numbers tell: fractions are targets; one whole number a node is its class;
 * several of 0 and 1 are labels that it lacks or has.
 */

/** Largest number of a class: greater ones are no classes, but ids or numbers to learn. */
export const labelMax = modelColumnsMax - 1;
/** What a dataset stores for a label that is not known. */
const unknownLabel = 255;

/** A number that decides, and where it was seen. */
interface Seen {
  readonly value: number;
  /** An index of an array, or a line. */
  readonly at: number;
}

/** What there is among the numbers of labels; the first of each kind. */
export class LabelScan {
  readonly #isByte: boolean;
  #fraction: Seen | null = null;
  /** Whole, and no class. */
  #noClass: Seen | null = null;
  /** Whole, and neither 0, 1 nor one of those that say that nothing is known. */
  #noLabel: Seen | null = null;

  /** Among uint8 255 says that nothing is known, as -1 and NaN do in other types. */
  constructor(type: NpyType) {
    this.#isByte = type === 'uint8';
  }

  /** NaN is nothing. */
  see(value: number, at: number): void {
    if (value === 0 || value === 1 || value === -1 || Number.isNaN(value)) return;
    if (!Number.isInteger(value)) this.#fraction ??= { value, at };
    else {
      if (value < 0 || value > labelMax) this.#noClass ??= { value, at };
      if (!this.#isByte || value !== unknownLabel) this.#noLabel ??= { value, at };
    }
  }

  /** The task of labels in so many columns: what was asked for, or what they tell. */
  decide(columns: number, asked: DatasetTask | null): TaskDecision {
    if (asked === 'REGRESSION') return { kind: 'task', task: asked };
    if (asked === null && this.#fraction !== null) return { kind: 'task', task: 'REGRESSION' };
    if (asked === 'MULTI_LABEL' || (asked === null && columns > 1)) {
      const wrong = this.#fraction ?? this.#noLabel;
      if (wrong === null) return { kind: 'task', task: 'MULTI_LABEL' };
      const remedy =
        asked === null
          ? ': with task regression they are numbers to learn; of classes each node has one'
          : ', or nothing';
      return problemOf(wrong, `expected labels 0 and 1${remedy}`);
    }
    if (columns > 1) {
      const expected = `one class a node and not ${formatCount(columns)} columns`;
      return { kind: 'problem', seen: null, expected: `expected ${expected}: ${severalRemedy}` };
    }
    const wrong = this.#fraction ?? this.#noClass;
    if (wrong === null) return { kind: 'task', task: 'CLASSIFICATION' };
    return problemOf(wrong, classExpected);
  }
}

const classRange = `0 to ${formatCount(labelMax)}`;
export const classExpected =
  `expected a class number from ${classRange} or nothing; with task regression they are numbers ` +
  'to learn';

const severalRemedy = 'several are labels (task multi_label) or numbers to learn (task regression)';

export type TaskDecision =
  | { readonly kind: 'task'; readonly task: DatasetTask }
  | { readonly kind: 'problem'; readonly seen: Seen | null; readonly expected: string };

function problemOf(seen: Seen, expected: string): TaskDecision {
  return { kind: 'problem', seen, expected };
}

/**
 * The task of an array of labels: the one that was asked for, or what they tell, for which they are
 * read once where type and shape do not say it. Throws ImportFailure for what they cannot be.
 */
export async function taskOf(
  { path, header: { type, shape } }: NpySource,
  asked: DatasetTask | null,
  open: () => Promise<NpySource>,
): Promise<DatasetTask> {
  const columns = shape[1] ?? 1;
  const isClass = columns === 1 && !type.startsWith('float');
  if (isClass && (asked ?? 'CLASSIFICATION') === 'CLASSIFICATION') return 'CLASSIFICATION';
  const scan = new LabelScan(type);
  if (asked !== 'REGRESSION') await scanArray(scan, await open());
  const decision = scan.decide(columns, asked);
  if (decision.kind === 'task') return decision.task;
  const { seen, expected } = decision;
  if (seen === null) throw badFile(path, `has shape (${shape.join(', ')}), ${expected}`);
  const row = Math.floor(seen.at / columns);
  const column = `row ${row}, column ${seen.at % columns}`;
  const place = shape.length === 1 ? `index ${row}` : column;
  throw badFile(path, `has ${seen.value} at ${place}, ${expected}`);
}

async function scanArray(scan: LabelScan, source: NpySource): Promise<void> {
  const numbersOf = labelNumbers(source.header.type);
  let at = 0;
  try {
    for await (const block of source.blocks()) {
      const numbers = numbersOf(block);
      for (let index = 0; index < numbers.length; index += 1) {
        scan.see(numbers[index] ?? 0, at + index);
      }
      at += numbers.length;
    }
  } finally {
    await source.close();
  }
}

export interface LabelsWritten {
  /** Classes, labels or targets. */
  readonly numClasses: number;
  /** Each node of which all is known has exactly one of several labels, as if they were classes. */
  readonly isOneHot: boolean;
  /** Numbers that no node has, below the largest class. */
  readonly gaps: ClassGaps | null;
}

/** What a user should know of labels, a sentence each; `asked` is the task that they said. */
export function labelNotices(labels: LabelsWritten, asked: DatasetTask | null): string[] {
  return [
    ...(labels.isOneHot && asked === null ? [oneHotNotice] : []),
    ...(labels.gaps === null ? [] : [gapsNotice(labels.gaps, labels.numClasses)]),
  ];
}

/**
 * Writes labels as a dataset of the task holds them. REQUIRES: a scan of them decided so, or they
 * are integers and classes; throws ImportFailure for those that are beyond int32.
 */
export async function writeLabels(
  writer: DatasetWriter,
  task: DatasetTask,
  source: NpySource,
  onBlock: (block: NpyValues) => void = () => undefined,
): Promise<LabelsWritten> {
  const { type, shape } = source.header;
  const columns = shape[1] ?? 1;
  const stored = labelTypes[task];
  const target = await writer.beginLabels(stored, task === 'CLASSIFICATION' ? null : columns);
  const outside = new OutOfRange();
  const convert = labelConverter(type, task, outside);
  const classes = new ClassesSeen();
  const rows = new OneHotRows(columns);
  for await (const block of source.blocks()) {
    onBlock(block);
    const values = convert(block);
    await target.append(values);
    outside.advance(values.length);
    if (values instanceof Int32Array) classes.see(values);
    else if (values instanceof Uint8Array) rows.see(values);
  }
  await writer.end('labels');
  if (outside.count > 0) throw badFile(source.path, outside.describe(null, stored));
  const wrong = classes.tooLarge;
  if (wrong !== null) {
    throw badFile(source.path, `has ${wrong.value} at index ${wrong.at}, ${classExpected}`);
  }
  const numClasses = task === 'CLASSIFICATION' ? classes.largest + 1 : columns;
  const isOneHot = task === 'MULTI_LABEL' && rows.isOneHot;
  return { numClasses, isOneHot, gaps: classes.gaps() };
}

function labelConverter(
  type: NpyType,
  task: DatasetTask,
  outside: OutOfRange,
): (block: NpyValues) => NpyValues {
  if (task === 'REGRESSION') {
    const widen = converterOf(type, 'float32');
    return (block) => widen(block, () => undefined);
  }
  const isFloat = type.startsWith('float');
  if (task === 'CLASSIFICATION') {
    if (!isFloat) {
      const narrow = converterOf(type, 'int32');
      return (block) => narrow(block, (index, value) => outside.see(index, value));
    }
    const widen = type === 'float16' ? converterOf(type, 'float32') : null;
    return (block) => {
      const numbers = widen?.(block, () => undefined) ?? block;
      return Int32Array.from(numbers as Float64Array, (value) =>
        Number.isNaN(value) ? -1 : value,
      );
    };
  }
  const widen = converterOf(type, 'float32');
  return (block) => {
    const numbers = widen(block, () => undefined) as Float32Array;
    // What is neither 0 nor 1 is not known. A loop: `from` takes several times as long.
    const labels = new Uint8Array(numbers.length).fill(unknownLabel);
    for (let at = 0; at < labels.length; at += 1) {
      const value = numbers[at];
      if (value === 0 || value === 1) labels[at] = value;
    }
    return labels;
  };
}

/** Numbers of an array as they pass by, whatever their type. */
export function labelNumbers(type: NpyType): (block: NpyValues) => ArrayLike<number> {
  if (type === 'float16') {
    const widen = converterOf(type, 'float32');
    return (block) => widen(block, () => undefined) as Float32Array;
  }
  return (block) => (block instanceof BigInt64Array ? Float64Array.from(block, Number) : block);
}

interface ClassGaps {
  /** The smallest of them. */
  readonly first: readonly number[];
  readonly count: number;
}

/** Which class numbers there are. */
class ClassesSeen {
  largest = -1;
  /** The first that is none. */
  tooLarge: Seen | null = null;
  readonly #isSeen = new Uint8Array(labelMax + 1);
  #passed = 0;

  see(labels: Int32Array): void {
    // A loop by index: entries() takes several times as long.
    for (let at = 0; at < labels.length; at += 1) {
      const label = labels[at] ?? -1;
      if (label < 0) continue;
      if (label > labelMax) this.tooLarge ??= { value: label, at: this.#passed + at };
      if (label > this.largest) this.largest = label;
      this.#isSeen[label] = 1;
    }
    this.#passed += labels.length;
  }

  /** Null where there are none. */
  gaps(): ClassGaps | null {
    const first: number[] = [];
    let count = 0;
    for (const [label, isSeen] of this.#isSeen.subarray(0, this.largest + 1).entries()) {
      if (isSeen === 1) continue;
      count += 1;
      if (first.length < gapsNamed) first.push(label);
    }
    return count === 0 ? null : { first, count };
  }
}

/** Classes without a node that a notice names. */
const gapsNamed = 3;

function gapsNotice({ first, count }: ClassGaps, numClasses: number): string {
  const others = count - first.length;
  const rest = others === 0 ? '' : ` and ${formatCount(others)} more`;
  const are = count === 1 ? `class ${first[0]} has` : `classes ${first.join(', ')}${rest} have`;
  const model = `a model learns all ${formatCount(numClasses)} from 0 to the largest`;
  return `${are} no node: ${model}; number the classes anew if that is too many`;
}

/** Whether every row of several labels has exactly one, or is not known. */
class OneHotRows {
  isOneHot: boolean;
  readonly #columns: number;
  #column = 0;
  #ones = 0;
  #unknown = 0;

  constructor(columns: number) {
    this.#columns = columns;
    this.isOneHot = columns > 1;
  }

  see(labels: Uint8Array): void {
    if (!this.isOneHot) return;
    for (const label of labels) {
      if (label === unknownLabel) this.#unknown += 1;
      else this.#ones += label;
      this.#column += 1;
      if (this.#column < this.#columns) continue;
      if (this.#ones !== 1 && this.#unknown !== this.#columns) this.isOneHot = false;
      this.#column = 0;
      this.#ones = 0;
      this.#unknown = 0;
    }
  }
}

const oneHotNotice =
  'every node has exactly one of the labels: if they are classes, import one class number a node';
export const wholeNotice =
  'has whole numbers, which are taken for classes; with task regression they are numbers to learn';
