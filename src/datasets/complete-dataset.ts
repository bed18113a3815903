import { join } from 'node:path';
import type { FeatureDtype, MadeFeatures, RandomSplit } from '../records/dataset-record.ts';
import type { DatasetFacts, DatasetWriter } from './dataset-writer.ts';
import { featuresAs } from './float16.ts';
import type { ImportContext } from './import-context.ts';
import { openNpyFile } from './npy.ts';
import { NumberList } from './number-list.ts';
import { formatCount } from './problems.ts';
import { writeUnlabelled } from './unlabelled.ts';

/**
 * What a graph lacks that a job needs: features where its source has none, and a split of the
 * labelled nodes where it has none. An import ends with it, whatever its format.
 */

/** Shares of the labelled nodes, where a format has no splits and nobody asked for one. */
const usualSplit: RandomSplit = { validation: 0.2, test: 0.2, randomSeed: 0 };
/** Features are as many as nodes then: 64 MiB at most. */
const identityNodesMax = 4096;
/** Powers of two that a number of neighbours is told by: ids are 32 bits. */
const degreeBuckets = 32;
/** Values of features that are made at once. */
const blockValues = 1 << 18;
const splitNames = ['train', 'val', 'test'] as const;

/** Adds what is missing; answers the facts as they are then. REQUIRES: the graph is written. */
export async function completeDataset(
  context: ImportContext,
  facts: DatasetFacts,
): Promise<DatasetFacts> {
  const { writer, problems } = context;
  const hasSplits = splitNames.some((name) => writer.written(name) !== null);
  if (hasSplits && context.randomSplit !== null) {
    problems.add('random_split', 'the source has a split: leave this out, or the split');
  } else if (!hasSplits && writer.written('labels') !== null) await addSplit(context, facts);
  else if (!hasSplits) await writeUnlabelled(context);
  if (writer.written('features') === null) return await addFeatures(context, facts);
  if (context.madeFeatures !== null) {
    problems.add('made_features', 'the source has features: leave this out, or the features');
  }
  return facts;
}

/** Splits labelled nodes by chance, where that is asked for or sources never have a split. */
export async function addSplit(
  context: ImportContext,
  { hasNoSplits }: DatasetFacts,
): Promise<void> {
  const { writer, problems, notices, signal } = context;
  const asked = context.randomSplit ?? (hasNoSplits ? usualSplit : null);
  if (asked === null) {
    const remedy =
      'name the nodes of train, val and test, or let chance split the labelled nodes: ' +
      '--random-split 0.2,0.2 (in Python random_split=(0.2, 0.2))';
    problems.add('train', `the source has no split: ${remedy}`);
    return;
  }
  const known = await labelledNodes(writer, signal);
  const split = splitOf(known, asked);
  for (const name of splitNames) await writer.write(name, BigInt64Array.from(split[name], BigInt));
  if (context.randomSplit !== null) return;
  const counts = splitNames.map((name) => `${formatCount(split[name].length)} ${name}`);
  const how = 'another seed or other shares: --random-split 0.2,0.2,SEED';
  notices.add(`the source has no split, so chance made one: ${counts.join(', ')}; ${how}`);
}

/** Nodes of which a label is known. */
async function labelledNodes(writer: DatasetWriter, signal: AbortSignal): Promise<Uint32Array> {
  const source = await openNpyFile(join(writer.folder, 'labels.npy'), signal);
  const known = new NumberList((capacity) => new Uint32Array(capacity));
  const { type, shape } = source.header;
  const columns = shape[1] ?? 1;
  let at = 0;
  let isKnown = false;
  try {
    for await (const block of source.blocks()) {
      for (const value of block as Int32Array | Uint8Array | Float32Array) {
        // -1, 255 and NaN say that a label is not known (docs/formats/dataset.md).
        isKnown ||=
          type === 'int32' ? value >= 0 : type === 'uint8' ? value !== 255 : !Number.isNaN(value);
        at += 1;
        if (at % columns > 0) continue;
        if (isKnown) known.push(at / columns - 1);
        isKnown = false;
      }
    }
  } finally {
    await source.close();
  }
  return known.toArray();
}

/** Nodes of each split, in ascending order: a function of the labelled nodes, shares and seed. */
export function splitOf(
  nodes: Uint32Array,
  { validation, test, randomSeed }: RandomSplit,
): Readonly<Record<(typeof splitNames)[number], Uint32Array>> {
  const order = nodes.slice();
  const next = generator(randomSeed);
  for (let left = order.length; left > 1; left -= 1) {
    const other = Math.floor((next() / 2 ** 32) * left);
    const value = order[other] ?? 0;
    order[other] = order[left - 1] ?? 0;
    order[left - 1] = value;
  }
  const vals = Math.round(validation * order.length);
  const tests = Math.min(Math.round(test * order.length), order.length - vals);
  return {
    val: order.slice(0, vals).sort(),
    test: order.slice(vals, vals + tests).sort(),
    train: order.slice(vals + tests).sort(),
  };
}

/** 32-bit numbers by chance, the same for a seed on every machine (a Weyl sequence, mixed). */
function generator(seed: number): () => number {
  let state = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) >>> 0;
  return () => {
    state = (state + 0x9e3779b9) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return (mixed ^ (mixed >>> 15)) >>> 0;
  };
}

async function addFeatures(context: ImportContext, facts: DatasetFacts): Promise<DatasetFacts> {
  const { writer, problems, notices, madeFeatures } = context;
  const dtype = context.featureDtype ?? 'float32';
  const degrees = await degreesOf(context);
  const numNodes = degrees.into.length;
  const kind: MadeFeatures = madeFeatures ?? (numNodes <= identityNodesMax ? 'IDENTITY' : 'DEGREE');
  if (kind === 'IDENTITY' && numNodes > identityNodesMax) {
    const most = `at most ${formatCount(identityNodesMax)} nodes`;
    const what = `IDENTITY has a column for each node, and is for ${most}`;
    problems.add('made_features', `${what}; this graph has ${formatCount(numNodes)}: use DEGREE`);
    return facts;
  }
  const made = kind === 'IDENTITY' ? identityRows(numNodes) : degreeRows(degrees);
  await writeRows(writer, made, numNodes, dtype);
  if (madeFeatures === null) {
    notices.add(`the source has no features, so each node got ${madeNotice(kind, made.columns)}`);
  }
  return { ...facts, numFeatures: made.columns, featureNames: made.names };
}

function madeNotice(kind: MadeFeatures, columns: number): string {
  return kind === 'IDENTITY'
    ? 'a column of its own (identity), of which a model learns who is near whom, in this graph ' +
        'alone; --features degree makes features that hold in other graphs'
    : `${columns} columns that say how many neighbours it has (degree); features of your own ` +
        'make better models';
}

interface Degrees {
  /** Edges that a node learns from. */
  readonly into: Uint32Array;
  /** Edges along which others learn from it. */
  readonly out: Uint32Array;
}

async function degreesOf({ writer, signal }: ImportContext): Promise<Degrees> {
  const ends = await openNpyFile(join(writer.folder, 'indptr.npy'), signal);
  const numNodes = (ends.header.shape[0] ?? 1) - 1;
  const into = new Uint32Array(numNodes);
  const out = new Uint32Array(numNodes);
  try {
    let at = -1;
    let before = 0;
    for await (const block of ends.blocks()) {
      for (const end of block as BigInt64Array) {
        if (at >= 0) into[at] = Number(end) - before;
        before = Number(end);
        at += 1;
      }
    }
  } finally {
    await ends.close();
  }
  const indices = await openNpyFile(join(writer.folder, 'indices.npy'), signal);
  try {
    for await (const block of indices.blocks()) {
      // An id that is no node's is found by the check that follows.
      for (const node of block as Int32Array | Uint32Array) {
        if (node >= 0 && node < numNodes) out[node] = (out[node] ?? 0) + 1;
      }
    }
  } finally {
    await indices.close();
  }
  return { into, out };
}

/** Rows of made features. */
interface MadeRows {
  readonly columns: number;
  readonly names: readonly string[];
  /** Writes row `node` into zeros. */
  fill(node: number, row: Float32Array): void;
}

/**
 * Logarithms of both degrees, and the power of two that the in-degree has reached, one-hot. Nothing
 * in it depends on the other nodes of the graph.
 */
function degreeRows({ into, out }: Degrees): MadeRows {
  const powers = Array.from({ length: degreeBuckets }, (_, power) => `in_degree_from_2^${power}-1`);
  return {
    columns: 2 + degreeBuckets,
    names: ['log2(1 + in_degree)', 'log2(1 + out_degree)', ...powers],
    fill(node, row) {
      const logarithm = Math.log2(1 + (into[node] ?? 0));
      row[0] = logarithm;
      row[1] = Math.log2(1 + (out[node] ?? 0));
      row[2 + Math.min(degreeBuckets - 1, Math.floor(logarithm))] = 1;
    },
  };
}

function identityRows(numNodes: number): MadeRows {
  return {
    columns: numNodes,
    names: Array.from({ length: numNodes }, (_, node) => `node ${node}`),
    fill: (node, row) => row.fill(1, node, node + 1),
  };
}

async function writeRows(
  writer: DatasetWriter,
  { columns, fill }: MadeRows,
  numNodes: number,
  dtype: FeatureDtype,
): Promise<void> {
  const target = await writer.beginFeatures(columns, dtype);
  const rowsAtOnce = Math.max(1, Math.floor(blockValues / columns));
  for (let start = 0; start < numNodes; start += rowsAtOnce) {
    const count = Math.min(rowsAtOnce, numNodes - start);
    const block = new Float32Array(count * columns);
    for (let row = 0; row < count; row += 1) {
      fill(start + row, block.subarray(row * columns, (row + 1) * columns));
    }
    await target.append(featuresAs(block, dtype));
  }
  await writer.end('features');
}
