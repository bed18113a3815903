import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { makeFolder, writeFileAtomic } from '../base/atomic-file.ts';
import type { Clock } from '../base/clock.ts';
import type { FavourOptions, RankedRun, RankOptions } from '../native/contract.ts';
import { runTask, type TaskOptions } from '../supervisor/supervisor.ts';
import type { DataWitness } from './data-witness.ts';

/**
 * The order of nodes that caches follow, and the nodes that locality-aware sampling favours by it:
 * preparations, kept under a digest of their inputs.
 */

export interface HotOrder {
  readonly path: string;
  /** 0 when an earlier job had made it. */
  readonly rankMs: number;
  /** How hot its ranks are. */
  readonly runs: readonly RankedRun[];
}

/** Changes when the same inputs would give another order. */
const orderVersion = 3;

type RankInputs = Omit<RankOptions, 'orderPath'>;

export async function prepareHotOrder(
  request: {
    readonly inputs: RankInputs;
    readonly datasetDigest: string;
    /** What tells the graph from the dataset's own; empty: it is that. */
    readonly graphKey: string;
    readonly folder: string;
    readonly clock: Clock;
    readonly witness: DataWitness;
  },
  options: TaskOptions,
): Promise<HotOrder> {
  const { inputs, datasetDigest, graphKey, folder, clock, witness } = request;
  const key = keyOf(inputs, graphKey);
  const path = join(folder, `${datasetDigest.slice(0, 32)}-${key}-order.npy`);
  const runsPath = path.replace(/order\.npy$/, 'hotness.json');
  const known = (await witness.isSound([path, runsPath], options)) ? runsIn(runsPath) : null;
  if (known !== null) return { path, rankMs: 0, runs: known };
  makeFolder(folder);
  const startMs = clock.monotonicMs();
  const answer = await runTask({ role: 'RANK', options: { ...inputs, orderPath: path } }, options);
  if (answer.role !== 'RANK') throw new Error(`a ranking was answered with ${answer.role}`);
  const { runs } = answer.value;
  await writeFileAtomic(runsPath, [
    JSON.stringify(runs.map(({ rows, hotness }) => [rows, hotness])),
  ]);
  await witness.made([path, runsPath], options);
  return { path, rankMs: Math.max(1, Math.round(clock.monotonicMs() - startMs)), runs };
}

/** Runs in a file; null where it is gone or none of ours, and so is made again. */
function runsIn(path: string): readonly RankedRun[] | null {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return null;
  }
  if (!Array.isArray(value)) return null;
  const runs = value.map((run: unknown) => {
    const [rows, hotness]: readonly unknown[] = Array.isArray(run) ? run : [];
    return { rows: Number(rows), hotness: Number(hotness) };
  });
  return runs.every(({ rows, hotness }) => rows > 0 && hotness >= 0) ? runs : null;
}

/** Changes when the same inputs would favour others. */
const favouredVersion = 1;

type FavourInputs = Omit<FavourOptions, 'favouredPath'>;

/** The path of what `cacheFavour` makes of an order. */
export async function prepareFavoured(
  inputs: FavourInputs,
  { folder, witness }: { readonly folder: string; readonly witness: DataWitness },
  options: TaskOptions,
): Promise<string> {
  const { orderPath, rows, hops, hopNodes } = inputs;
  const from = basename(orderPath, '-order.npy');
  const facts = JSON.stringify({ favouredVersion, from, rows, hops, hopNodes });
  const key = createHash('sha256').update(facts).digest('hex').slice(0, 16);
  const path = join(folder, `${from}-${key}-favoured.npy`);
  if (!(await witness.isSound([path], options))) {
    await runTask({ role: 'FAVOUR', options: { ...inputs, favouredPath: path } }, options);
    await witness.made([path], options);
  }
  return path;
}

/** Digest of all that decides the order, the dataset aside. */
function keyOf(
  { sampling, randomSeed, policy, presampleEpochs, epochs }: RankInputs,
  graphKey: string,
): string {
  // Pre-sampling favours nobody: its order is that of the job without locality.
  const { hotRanks: _, locality: __, edgeWeights: ___, ...sampled } = sampling;
  const presamples = policy === 'COMBINED' || policy === 'PRESC';
  const inputs = {
    orderVersion,
    ...(graphKey === '' ? {} : { graphKey }),
    sampled,
    randomSeed: String(randomSeed),
    policy,
    presampleEpochs: presamples ? presampleEpochs : 0,
    epochs: policy === 'OPTIMAL' ? epochs : 0,
  };
  return createHash('sha256').update(JSON.stringify(inputs)).digest('hex').slice(0, 16);
}
