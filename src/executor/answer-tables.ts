import { open } from 'node:fs/promises';
import { fileLines } from '../datasets/byte-streams.ts';
import { type NativeIds, NodeIds } from '../datasets/node-ids.ts';
import type { LinkAsks } from '../native/contract.ts';
import { ArrayRows, type RowRange } from './array-rows.ts';
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
  const { names, native } = options;
  const ids = names === null ? null : await NodeIds.named(native, fileLines(names));
  const of = (nodes: readonly bigint[]): AnswerBlock =>
    ids === null ? [nodes] : [nodes, nodes.map((node) => ids.textOf(Number(node)))];
  const arrays = new ArrayRows(options.folder);
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

interface Answers {
  readonly left: readonly bigint[];
  readonly right: readonly bigint[];
  readonly ranks: readonly bigint[] | null;
  readonly scores: readonly number[];
}

function scored(arrays: ArrayRows, range: RowRange): Answers {
  const ends = arrays.integers('pairs', range);
  const end = (which: number) => [...ends].filter((_, at) => at % 2 === which);
  return { left: end(0), right: end(1), ranks: null, scores: [...arrays.floats('scores', range)] };
}

/** Without places that a node has nobody for. */
function nearest(arrays: ArrayRows, range: RowRange): Answers {
  const k = arrays.columns('nearest');
  const found = [...arrays.integers('nearest', range)];
  const scores = arrays.floats('scores', range);
  const nodes = arrays.nodes(range);
  const there = found.flatMap((node, at) => (node < 0n ? [] : [at]));
  return {
    left: there.map((at) => nodes[Math.floor(at / k)] ?? 0n),
    right: there.map((at) => found[at] ?? 0n),
    ranks: there.map((at) => BigInt((at % k) + 1)),
    scores: there.map((at) => scores[at] ?? Number.NaN),
  };
}
