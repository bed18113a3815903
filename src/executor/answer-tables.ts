import { closeSync, openSync, readSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { fileLines } from '../datasets/byte-streams.ts';
import { type NativeIds, NodeIds } from '../datasets/node-ids.ts';
import type { LinkAsks } from '../native/contract.ts';
import { quoted, shortest } from './table-text.ts';

/**
 * What the head of a model of links answered (native/train/evaluate), as tables: a row for each
 * pair that was scored, or for each of a node's nearest.
 */

export interface AnswerOptions {
  /** Of the .npy files. */
  readonly folder: string;
  /** What the dataset calls its nodes, a line each; null: it has no names. */
  readonly names: string | null;
  readonly asks: Exclude<LinkAsks, 'NOTHING'>;
  /** Pairs, or nodes. */
  readonly rows: number;
  readonly native: NativeIds;
}

/** Names of the arrays that each writes. */
export const answerArrays: Readonly<Record<AnswerOptions['asks'], readonly string[]>> = {
  SCORES: ['pairs', 'scores'],
  NEAREST: ['nodes', 'nearest', 'scores'],
};

export interface AnswerColumn {
  readonly name: string;
  readonly type: 'INTEGER' | 'TEXT' | 'FLOAT';
}

/** A column of numbers, texts or float32 for each of `answerColumns`. */
export type AnswerBlock = readonly (readonly (number | bigint | string)[])[];

/** Numbers that are held at once. */
const blockNumbers = 2 ** 18;

export function answerColumns({ asks, names }: AnswerOptions): readonly AnswerColumn[] {
  const node = (name: string, id: string): readonly AnswerColumn[] => [
    { name, type: 'INTEGER' },
    ...(names === null ? [] : [{ name: id, type: 'TEXT' } as const]),
  ];
  const score = { name: 'score', type: 'FLOAT' } as const;
  if (asks === 'SCORES') {
    return [...node('source', 'source_id'), ...node('destination', 'destination_id'), score];
  }
  const rank = { name: 'rank', type: 'INTEGER' } as const;
  return [...node('node', 'id'), rank, ...node('nearest', 'nearest_id'), score];
}

/** The table in blocks; `report` hears which share of it was read. */
export async function* answerBlocks(
  options: AnswerOptions,
  report: (share: number) => void,
): AsyncGenerator<AnswerBlock> {
  const ids = await idsOf(options);
  const of = (nodes: readonly bigint[]): AnswerBlock =>
    ids === null ? [nodes] : [nodes, nodes.map((node) => ids.textOf(Number(node)))];
  const arrays = new Arrays(options.folder);
  const { rows } = options;
  const step = Math.max(1, Math.floor(blockNumbers / arrays.columns('scores')));
  try {
    for (let first = 0; first < rows; first += step) {
      report(first / rows);
      const range = { first, count: Math.min(step, rows - first) };
      const block = options.asks === 'SCORES' ? scored(arrays, range) : nearest(arrays, range);
      const { left, right, ranks, scores } = block;
      yield [...of(left), ...(ranks === null ? [] : [ranks]), ...of(right), scores];
    }
  } finally {
    arrays.close();
  }
}

export async function writeAnswerCsv(
  path: string,
  options: AnswerOptions,
  report: (share: number) => void,
): Promise<void> {
  const columns = answerColumns(options);
  const file = await open(path, 'w', 0o640);
  try {
    await file.appendFile(`${columns.map(({ name }) => name).join(',')}\n`);
    const text = (value: number | bigint | string, { type }: AnswerColumn) =>
      type === 'FLOAT' ? shortest(Number(value)) : quoted(String(value));
    for await (const block of answerBlocks(options, report)) {
      const [first = []] = block;
      const lines = first.map((_, row) => {
        const fields = columns.map((column, at) => text(block[at]?.[row] ?? '', column));
        return `${fields.join(',')}\n`;
      });
      await file.appendFile(lines.join(''));
    }
  } finally {
    await file.close();
  }
}

async function idsOf({ names, native }: AnswerOptions): Promise<NodeIds | null> {
  if (names === null) return null;
  const ids = new NodeIds(native);
  for await (const name of fileLines(names)) ids.add(name);
  return ids;
}

interface Range {
  readonly first: number;
  readonly count: number;
}

interface Answers {
  readonly left: readonly bigint[];
  readonly right: readonly bigint[];
  readonly ranks: readonly bigint[] | null;
  readonly scores: readonly number[];
}

function scored(arrays: Arrays, range: Range): Answers {
  const ends = arrays.integers('pairs', range);
  const end = (which: number) => [...ends].filter((_, at) => at % 2 === which);
  return { left: end(0), right: end(1), ranks: null, scores: [...arrays.floats('scores', range)] };
}

/** Without places that a node has nobody for. */
function nearest(arrays: Arrays, range: Range): Answers {
  const k = arrays.columns('nearest');
  const found = [...arrays.integers('nearest', range)];
  const scores = arrays.floats('scores', range);
  const nodes = arrays.has('nodes')
    ? arrays.integers('nodes', range)
    : BigInt64Array.from({ length: range.count }, (_, row) => BigInt(range.first + row));
  const there = found.flatMap((node, at) => (node < 0n ? [] : [at]));
  return {
    left: there.map((at) => nodes[Math.floor(at / k)] ?? 0n),
    right: there.map((at) => found[at] ?? 0n),
    ranks: there.map((at) => BigInt((at % k) + 1)),
    scores: there.map((at) => scores[at] ?? Number.NaN),
  };
}

interface OpenArray {
  readonly fd: number;
  readonly dataAt: number;
  /** Numbers of a row. */
  readonly columns: number;
}

/** Rows of .npy files in a folder. */
class Arrays {
  readonly #folder: string;
  readonly #open = new Map<string, OpenArray>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  has(name: string): boolean {
    try {
      this.#of(name);
      return true;
    } catch {
      return false;
    }
  }

  columns(name: string): number {
    return this.#of(name).columns;
  }

  integers(name: string, range: Range): BigInt64Array {
    return new BigInt64Array(this.#bytes(name, range, BigInt64Array.BYTES_PER_ELEMENT));
  }

  floats(name: string, range: Range): Float32Array {
    return new Float32Array(this.#bytes(name, range, Float32Array.BYTES_PER_ELEMENT));
  }

  close(): void {
    for (const { fd } of this.#open.values()) closeSync(fd);
    this.#open.clear();
  }

  #of(name: string): OpenArray {
    const known = this.#open.get(name);
    if (known !== undefined) return known;
    const fd = openSync(join(this.#folder, `${name}.npy`), 'r');
    const head = Buffer.alloc(10);
    readSync(fd, head, 0, head.length, 0);
    const header = Buffer.alloc(head.readUInt16LE(8));
    readSync(fd, header, 0, header.length, head.length);
    const [, columns = '1'] = /\(\d+, (\d+)\)/.exec(header.toString('latin1')) ?? [];
    const found = { fd, dataAt: head.length + header.length, columns: Number(columns) };
    this.#open.set(name, found);
    return found;
  }

  #bytes(name: string, { first, count }: Range, itemBytes: number): ArrayBuffer {
    const { fd, dataAt, columns } = this.#of(name);
    const rowBytes = columns * itemBytes;
    const bytes = new Uint8Array(count * rowBytes);
    for (let done = 0; done < bytes.length; ) {
      const got = readSync(fd, bytes, done, bytes.length - done, dataAt + first * rowBytes + done);
      if (got === 0) throw new Error(`${name}.npy ends before row ${first + count}`);
      done += got;
    }
    return bytes.buffer;
  }
}
