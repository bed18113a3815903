import { createHash } from 'node:crypto';
import { closeSync, createReadStream, existsSync, fsyncSync, openSync } from 'node:fs';
import { open, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileWriter, ParquetWriter } from 'hyparquet-writer';
import { syncFolder, writeFileAtomic } from '../base/atomic-file.ts';
import { fileLines } from '../datasets/byte-streams.ts';
import type { ReportProgress } from '../datasets/import-context.ts';
import type { NativeIds } from '../datasets/node-ids.ts';
import type { LinkAsks, OutputKind } from '../native/contract.ts';
import type { DatasetTask } from '../spec/job-spec.ts';
import {
  type AnswerOptions,
  answerArrays,
  answerBlocks,
  answerColumns,
  writeAnswerCsv,
} from './answer-tables.ts';
import { ArrayRows, type RowRange } from './array-rows.ts';
import { quoted, shortest } from './table-text.ts';

/**
 * Makes a result of what Trainers wrote (native/core/executor/chunk_files.h): a Parquet or CSV
 * file where it is wanted, and inference.json with the digest of every file, last.
 */

export interface PublishOptions {
  /** Folder of the .npy files; nobody writes there any more. */
  readonly folder: string;
  readonly formats: readonly ('NPY' | 'PARQUET' | 'CSV')[];
  /** What the dataset calls its nodes, a line each; null: it has no names. */
  readonly names: string | null;
  /** What the dataset calls its classes, by number; null: it has no names. */
  readonly classNames: readonly string[] | null;
  /** What Trainers wrote, a .npy file each, in the order of the columns. */
  readonly outputs: readonly OutputKind[];
  /** What the head of a model of links was asked; then there are no outputs. */
  readonly asks: LinkAsks;
  readonly rows: number;
  /** What the model has learnt: a prediction is a class, or a number a label or target. */
  readonly learnt: DatasetTask;
  /** What inference.json says beside the files. */
  readonly facts: Readonly<Record<string, unknown>>;
}

export interface Published {
  /** Bytes of all files. */
  readonly bytes: number;
}

const manifestName = 'inference.json';
const parquetName = 'predictions.parquet';
const csvName = 'predictions.csv';
const arrayNames = [
  ...['nodes', 'predictions', 'logits', 'probabilities', 'embeddings'],
  ...answerArrays.SCORES,
  ...answerArrays.NEAREST,
];

/** Tried again, it makes the same. Rejects with the system's error. */
export async function publishPredictions(
  options: PublishOptions,
  native: NativeIds,
  progress: ReportProgress,
): Promise<Published> {
  const { folder, formats } = options;
  const hasArrays = formats.includes('NPY');
  await removeStrangers(folder);
  const isMissing = (name: string) => !existsSync(join(folder, name));
  const answers = answersOf(options, native);
  if (formats.includes('PARQUET') && isMissing(parquetName)) {
    await (answers === null
      ? writeParquet(options, progress)
      : writeAnswerParquet(answers, progress));
  }
  if (formats.includes('CSV') && isMissing(csvName)) {
    if (answers === null) await writeCsv(options, progress);
    else await writeAnswers(answers, progress);
  }
  if (!hasArrays)
    for (const name of arrayNames) await rm(join(folder, `${name}.npy`), { force: true });
  const names = (await readdir(folder)).filter((name) => name !== manifestName).sort();
  const files: Record<string, { readonly bytes: number; readonly sha256: string }> = {};
  for (const [index, name] of names.entries()) {
    progress(index / names.length, `reading ${name}`);
    files[name] = await syncedDigest(join(folder, name));
  }
  const text = `${JSON.stringify({ ...options.facts, files }, null, 2)}\n`;
  await writeFileAtomic(join(folder, manifestName), [text]);
  const bytes = Object.values(files).reduce((sum, file) => sum + file.bytes, text.length);
  return { bytes };
}

function answersOf(
  { folder, names, asks, rows }: PublishOptions,
  native: NativeIds,
): AnswerOptions | null {
  return asks === 'NOTHING' ? null : { folder, names, asks, rows, native };
}

function writeAnswers(answers: AnswerOptions, progress: ReportProgress): Promise<void> {
  const report = (share: number) => progress(share, `writing ${csvName}`);
  return whole(join(answers.folder, csvName), (path) => writeAnswerCsv(path, answers, report));
}

async function writeAnswerParquet(answers: AnswerOptions, progress: ReportProgress): Promise<void> {
  const columns = answerColumns(answers);
  const fieldOf = { INTEGER: integerColumn, TEXT: textColumn, FLOAT: floatColumn };
  const schema = [
    { name: 'root', num_children: columns.length },
    ...columns.map(({ name, type }) => fieldOf[type](name)),
  ];
  const report = (share: number) => progress(share, `writing ${parquetName}`);
  await whole(join(answers.folder, parquetName), async (temporary) => {
    const writer = new ParquetWriter({ writer: fileWriter(temporary), schema, createdBy: 'gnnd' });
    for await (const block of answerBlocks(answers, report)) {
      const columnData = columns.map(({ name }, at) => ({ name, data: [...(block[at] ?? [])] }));
      await writer.write({ columnData, rowGroupSize: block[0]?.length ?? 0 });
    }
    await writer.finish();
  });
}

/** What a killed publisher left half-written. */
async function removeStrangers(folder: string): Promise<void> {
  const known = new Set<string>([...arrayNames.map((name) => `${name}.npy`), parquetName, csvName]);
  for (const name of await readdir(folder)) {
    if (!known.has(name)) await rm(join(folder, name), { recursive: true, force: true });
  }
}

async function syncedDigest(path: string) {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  const hash = createHash('sha256');
  for await (const piece of createReadStream(path, { highWaterMark: 2 ** 20 })) hash.update(piece);
  return { bytes: (await stat(path)).size, sha256: hash.digest('hex') };
}

/** Numbers of a group of rows: what is held at once. */
const groupNumbers = 2 ** 20;

/** Rows that are held at once. */
interface Rows {
  readonly count: number;
  readonly nodes: BigInt64Array;
  /** Null where the dataset has no names. */
  readonly ids: readonly string[] | null;
  /** Null where they are among the wide ones, and where nothing is predicted. */
  readonly predictions: BigInt64Array | null;
  /** Names of `predictions`; null where there are none, or classes have no names. */
  readonly called: readonly string[] | null;
  /** By the names of columns: [count][columns of the array]. */
  readonly wide: ReadonlyMap<string, readonly (readonly number[])[]>;
}

/** Whether a node has one prediction, its class. */
function hasClass({ learnt, outputs }: PublishOptions): boolean {
  return learnt === 'CLASSIFICATION' && outputs.includes('PREDICTIONS');
}

/** Columns of several numbers a node. */
function wideNames(options: PublishOptions): readonly string[] {
  return options.outputs
    .filter((kind) => kind !== 'PREDICTIONS' || !hasClass(options))
    .map((kind) => (kind === 'PREDICTIONS' ? 'prediction' : kind.toLowerCase()));
}

async function* groupsOf(
  options: PublishOptions,
  report: (fraction: number) => void,
): AsyncGenerator<Rows> {
  const { folder, rows, names, classNames } = options;
  const wide = wideNames(options);
  const arrays = new ArrayRows(folder);
  const ids = names === null ? null : new Names(names);
  const columns = wide.reduce((sum, name) => sum + arrays.columns(fileOf(name)), 0);
  const most = Math.floor(groupNumbers / (2 + columns));
  const step = Math.max(1, Math.min(rows, most));
  try {
    for (let first = 0; first < rows; first += step) {
      const count = Math.min(step, rows - first);
      const range = { first, count };
      report(first / rows);
      const nodes = arrays.nodes(range);
      const predictions = hasClass(options) ? arrays.integers('predictions', range) : null;
      const nameOf = (label: bigint) => classNames?.[Number(label)] ?? '';
      yield {
        ...{ count, nodes, predictions },
        called:
          predictions === null || classNames === null ? null : Array.from(predictions, nameOf),
        ids: ids === null ? null : await ids.of(nodes),
        wide: new Map(wide.map((name) => [name, wideRows(arrays, name, range, options)])),
      };
    }
  } finally {
    await ids?.close();
    arrays.close();
  }
}

/** The array of a column. */
function fileOf(name: string): string {
  return name === 'prediction' ? 'predictions' : name;
}

/** A list for each row: labels as bits, else numbers. */
function wideRows(
  arrays: ArrayRows,
  name: string,
  range: RowRange,
  { learnt }: PublishOptions,
): readonly (readonly number[])[] {
  const file = fileOf(name);
  const isBits = name === 'prediction' && learnt === 'MULTI_LABEL';
  const values = isBits ? arrays.bits(file, range) : arrays.floats(file, range);
  const columns = arrays.columns(file);
  return Array.from({ length: range.count }, (_, row) =>
    Array.from(values.subarray(row * columns, (row + 1) * columns)),
  );
}

/** Names of nodes that are asked for in ascending order, from a file with one a line. */
class Names {
  readonly #lines: AsyncGenerator<string>;
  #next = 0;

  constructor(path: string) {
    this.#lines = fileLines(path);
  }

  async of(nodes: BigInt64Array): Promise<readonly string[]> {
    const found: string[] = [];
    for (const node of nodes) {
      let name = '';
      for (; this.#next <= Number(node); this.#next += 1) {
        const line = await this.#lines.next();
        name = line.done === true ? '' : line.value;
      }
      found.push(name);
    }
    return found;
  }

  async close(): Promise<void> {
    await this.#lines.return(undefined);
  }
}

/** A file that is whole or absent. */
async function whole(path: string, write: (temporary: string) => Promise<void>): Promise<void> {
  const temporary = `${path}.tmp-${process.pid}`;
  try {
    await write(temporary);
    await rename(temporary, path);
    syncFolder(dirname(path));
  } finally {
    await rm(temporary, { force: true });
  }
}

async function writeParquet(options: PublishOptions, progress: ReportProgress): Promise<void> {
  const wide = wideNames(options);
  const isOne = hasClass(options);
  const isLabels = options.learnt === 'MULTI_LABEL';
  const columns = [
    integerColumn('node'),
    ...(options.names === null ? [] : [textColumn('id')]),
    ...(isOne ? [integerColumn('prediction')] : []),
    ...(isOne && options.classNames !== null ? [textColumn('class')] : []),
  ];
  const schema = [
    { name: 'root', num_children: columns.length + wide.length },
    ...columns,
    ...wide.flatMap((name) => listOf(name, name === 'prediction' && isLabels ? 'INT32' : 'FLOAT')),
  ];
  await whole(join(options.folder, parquetName), async (temporary) => {
    const file = fileWriter(temporary);
    const writer = new ParquetWriter({ writer: file, schema, createdBy: 'gnnd' });
    const report = (share: number) => progress(share, `writing ${parquetName}`);
    for await (const rows of groupsOf(options, report)) {
      const columnData = [
        { name: 'node', data: rows.nodes },
        ...(rows.ids === null ? [] : [{ name: 'id', data: [...rows.ids] }]),
        ...(rows.predictions === null ? [] : [{ name: 'prediction', data: rows.predictions }]),
        ...(rows.called === null ? [] : [{ name: 'class', data: [...rows.called] }]),
        ...wide.map((name) => ({ name, data: [...(rows.wide.get(name) ?? [])] })),
      ];
      await writer.write({ columnData, rowGroupSize: rows.count });
    }
    await writer.finish();
  });
}

function integerColumn(name: string) {
  return { name, type: 'INT64', repetition_type: 'REQUIRED' } as const;
}

function floatColumn(name: string) {
  return { name, type: 'FLOAT', repetition_type: 'REQUIRED' } as const;
}

function textColumn(name: string) {
  const type = { type: 'BYTE_ARRAY', converted_type: 'UTF8' } as const;
  return { name, ...type, repetition_type: 'REQUIRED' } as const;
}

async function writeCsv(options: PublishOptions, progress: ReportProgress): Promise<void> {
  const wide = wideNames(options);
  const id = options.names === null ? [] : ['id'];
  const one = hasClass(options) ? ['prediction'] : [];
  const named = one.length > 0 && options.classNames !== null ? ['class'] : [];
  const arrays = new ArrayRows(options.folder);
  const numbered = (name: string) =>
    Array.from({ length: arrays.columns(fileOf(name)) }, (_, column) => `${name}_${column}`);
  const columns = ['node', ...id, ...one, ...named, ...wide.flatMap(numbered)];
  arrays.close();
  await whole(join(options.folder, csvName), async (temporary) => {
    const file = await open(temporary, 'w', 0o640);
    try {
      await file.appendFile(`${columns.join(',')}\n`);
      const report = (share: number) => progress(share, `writing ${csvName}`);
      for await (const rows of groupsOf(options, report)) {
        const lines = Array.from({ length: rows.count }, (_, at) => csvLine(rows, at, wide));
        await file.appendFile(lines.join(''));
      }
    } finally {
      await file.close();
    }
  });
}

function csvLine(rows: Rows, at: number, names: readonly string[]) {
  const { nodes, ids, predictions, called, wide } = rows;
  const id = ids === null ? [] : [quoted(ids[at] ?? '')];
  const name = called === null ? [] : [quoted(called[at] ?? '')];
  const numbers = names.flatMap((name) => wide.get(name)?.[at] ?? []);
  const one = predictions === null ? [] : [predictions[at]];
  return `${[nodes[at], ...id, ...one, ...name, ...numbers.map(shortest)].join(',')}\n`;
}

/** Parquet schema of a list column; neither lists nor elements are null. */
function listOf(name: string, type: 'FLOAT' | 'INT32') {
  return [
    { name, converted_type: 'LIST', repetition_type: 'REQUIRED', num_children: 1 },
    { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
    { name: 'element', type, repetition_type: 'REQUIRED' },
  ] as const;
}
