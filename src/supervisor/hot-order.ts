import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from '../base/atomic-file.ts';
import type { Clock } from '../base/clock.ts';
import { markUsed } from '../base/files.ts';
import type { RankOptions } from '../native/contract.ts';
import { runTask, type TaskOptions } from './task.ts';

/** The order of nodes that caches follow: a preparation, kept under a digest of its inputs. */

export interface HotOrder {
  readonly path: string;
  /** 0 when an earlier job had made it. */
  readonly rankMs: number;
}

/** Changes when the same inputs would give another order. */
const orderVersion = 2;

type RankInputs = Omit<RankOptions, 'orderPath'>;

export async function prepareHotOrder(
  request: {
    readonly inputs: RankInputs;
    readonly datasetDigest: string;
    readonly folder: string;
    readonly clock: Clock;
  },
  options: TaskOptions,
): Promise<HotOrder> {
  const { inputs, datasetDigest, folder, clock } = request;
  const path = join(folder, `${datasetDigest.slice(0, 32)}-${keyOf(inputs)}-order.npy`);
  if (existsSync(path)) {
    markUsed(path);
    return { path, rankMs: 0 };
  }
  makeFolder(folder);
  const startMs = clock.monotonicMs();
  await runTask({ role: 'RANK', options: { ...inputs, orderPath: path } }, options);
  return { path, rankMs: Math.max(1, Math.round(clock.monotonicMs() - startMs)) };
}

/** Of all that decides the order, the dataset aside. */
function keyOf({ sampling, randomSeed, policy, presampleEpochs, epochs }: RankInputs): string {
  const { hotRanks: _, ...sampled } = sampling;
  const presamples = policy === 'COMBINED' || policy === 'PRESC';
  const inputs = {
    orderVersion,
    sampled,
    randomSeed: String(randomSeed),
    policy,
    presampleEpochs: presamples ? presampleEpochs : 0,
    epochs: policy === 'OPTIMAL' ? epochs : 0,
  };
  return createHash('sha256').update(JSON.stringify(inputs)).digest('hex').slice(0, 16);
}
