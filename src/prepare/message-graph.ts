import { createHash, randomUUID } from 'node:crypto';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder, syncFolder, writeFileAtomic } from '../base/atomic-file.ts';
import type {
  DatasetLocation,
  MessageGraphCounts,
  MessageGraphOptions,
  PositiveWalks,
} from '../native/contract.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import { runTask, type TaskOptions } from '../supervisor/supervisor.ts';
import type { DataWitness } from './data-witness.ts';

/**
 * The graph that messages of a job of links come along, with the links that it learns and is judged
 * by: a folder like a dataset's, made once for a dataset and a split, and kept for others.
 */
export interface MessageGraph {
  readonly location: DatasetLocation;
  /** What tells it from other graphs of the dataset. */
  readonly key: string;
  readonly counts: MessageGraphCounts;
  /** What was made, as paths. */
  readonly files: readonly string[];
}

/** Changes when the same inputs would give other files. */
const graphVersion = 2;

const countsName = 'counts.json';
const madeNames = [
  ...(['indptr.npy', 'indices.npy', 'train.npy', 'val.npy', 'test.npy'] as const),
  ...(['links_train.npy', 'links_val.npy', 'links_test.npy'] as const),
];
/** What a dataset's own links may have beside them. */
const givenNames = [
  ...(['links_val_negatives.npy', 'links_test_negatives.npy'] as const),
  ...(['links_val_negative_pairs.npy', 'links_test_negative_pairs.npy'] as const),
  'links_train_weights.npy',
  ...(['links_train_labels.npy', 'links_val_labels.npy', 'links_test_labels.npy'] as const),
];

const noWalks: PositiveWalks = { perNode: 0, length: 0, window: 0, randomSeed: 0n };

/** Walks whose pairs take the place of a job's training links; without positives WALKS none. */
export function walksOf({ positives, walks }: JobSpec['links']): PositiveWalks {
  if (positives !== 'WALKS') return noWalks;
  return { ...walks, randomSeed: BigInt(walks.randomSeed) };
}

/** How a job's links are split, in native terms; nothing walks along what is left. */
export function splitOfLinks({ split, targets }: JobSpec['links']): MessageGraphOptions {
  const { validation, test, randomSeed } = split;
  const given = targets === 'DATASET';
  return {
    validation,
    test,
    randomSeed: BigInt(randomSeed),
    keepVal: false,
    given,
    walks: noWalks,
  };
}

/** What tells the edges of a job's messages from other graphs of its dataset, whoever walks. */
export function graphKeyOf(links: JobSpec['links']): string {
  return keyOf(splitOfLinks(links));
}

/** Rejects with a TaskError: SPEC_INVALID where a side of the split has no link. */
export async function prepareMessageGraph(
  request: {
    /** The dataset, with its features as they are to be read. */
    readonly dataset: DatasetLocation;
    readonly datasetDigest: string;
    readonly split: MessageGraphOptions;
    readonly folder: string;
    readonly witness: DataWitness;
  },
  task: Omit<TaskOptions, 'topologyFd'>,
): Promise<MessageGraph> {
  const { dataset, datasetDigest, split, folder: cacheFolder, witness } = request;
  const key = keyOf(split);
  const folder = join(cacheFolder, `${datasetDigest.slice(0, 32)}-${key}-links`);
  const given = split.given ? givenNames : [];
  const others = ['edge_weights.npy', ...given].filter((name) =>
    existsSync(join(dataset.folder, name)),
  );
  const names = [...madeNames, ...others, countsName];
  const files = names.map((name) => join(folder, name));
  if (!(await witness.isSound(files, task))) {
    await make(dataset, split, folder, task);
    await witness.made(files, task);
  }
  const counts: MessageGraphCounts = JSON.parse(readFileSync(join(folder, countsName), 'utf8'));
  // Nodes of its own it has none: items are links.
  const ofNodes = { numEdges: counts.numEdges, train: 0, val: 0, test: 0 };
  return {
    location: { ...dataset, folder, counts: { ...dataset.counts, ...ofNodes } },
    ...{ key, counts, files },
  };
}

/** Another folder first, so that nobody finds a part of it. */
async function make(
  dataset: DatasetLocation,
  split: MessageGraphOptions,
  folder: string,
  task: Omit<TaskOptions, 'topologyFd'>,
): Promise<void> {
  const making = `${folder}.tmp-${randomUUID()}`;
  makeFolder(making);
  try {
    const options = { dataset, split, folder: making };
    const answer = await runTask({ role: 'SPLIT_LINKS', options }, { ...task, topologyFd: null });
    if (answer.role !== 'SPLIT_LINKS') throw new Error(`a split was answered with ${answer.role}`);
    await writeFileAtomic(join(making, countsName), [JSON.stringify(answer.value)]);
    rmSync(folder, { recursive: true, force: true });
    await rename(making, folder);
    syncFolder(join(folder, '..'));
  } catch (error) {
    rmSync(making, { recursive: true, force: true });
    throw error;
  }
}

/** Digest of all that decides the graph, the dataset aside. */
function keyOf(split: MessageGraphOptions): string {
  const facts = JSON.stringify({ graphVersion, ...split }, (_, value: unknown) =>
    typeof value === 'bigint' ? String(value) : value,
  );
  return createHash('sha256').update(facts).digest('hex').slice(0, 16);
}
