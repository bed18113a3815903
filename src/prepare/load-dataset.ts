import { basename, dirname, join } from 'node:path';
import { makeFolder } from '../base/atomic-file.ts';
import { topologyFd as childTopologyFd, type LoadOptions } from '../executor/protocol.ts';
import type { CoreAddon, DatasetLocation } from '../native/contract.ts';
import type { TopologyPlace } from '../records/memory-plan.ts';
import {
  type AttemptInput,
  runTask,
  TaskError,
  type TaskOptions,
} from '../supervisor/supervisor.ts';
import type { DataWitness } from './data-witness.ts';
import { type MomentsFile, momentsPath } from './standardization.ts';
import type { SharedTopology, Topologies } from './topologies.ts';
import { prepareTypedRows, schemaKeyOf } from './typed-rows.ts';

/**
 * What a job, a report or an export needs of a dataset: its features as they are to be read, and
 * its topology in shared memory. A Preparer reads the files; what they do to it is its answer.
 */

export interface FeaturesRequest {
  readonly dataset: Pick<DatasetLocation, 'folder' | 'counts' | 'schema'>;
  readonly datasetDigest: string;
  /** Receives the derived file; null: features are read as they were imported. */
  readonly standardizedFolder: string | null;
  /** Moments that features are standardised by; left out: those of this dataset. */
  readonly moments?: MomentsFile | null;
}

export interface LoadRequest extends FeaturesRequest {
  /** FILE: the topology stays in the dataset's files, which are checked. */
  readonly place: TopologyPlace;
  /** Whether to make tables to sample by edge weight; in MEMORY only. */
  readonly alias: boolean;
  /** NUMA node whose memory is to hold the topology; null: any. */
  readonly node: number | null;
}

export interface LoadedDataset {
  readonly location: DatasetLocation;
  /** The caller releases it. */
  readonly topology: SharedTopology;
}

type LoadTask = Omit<TaskOptions, 'topologyFd'>;

/** The loading of an attempt's dataset. */
export class DatasetLoad {
  readonly #abort = new AbortController();
  #loading: Promise<unknown> = Promise.resolve();

  /** Once; a topology for each node that the devices lie on. Rejects as `loadDataset` does. */
  start(
    input: AttemptInput,
    place: TopologyPlace,
    given: Omit<LoadContext, 'signal'>,
  ): Promise<AttemptDataset> {
    const context = { ...given, signal: this.#abort.signal };
    const loading = loadForAttempt(input, place, context);
    this.#loading = loading.catch(() => {});
    return loading;
  }

  /** Resolves when no process of ours is left. */
  async stop(): Promise<void> {
    this.#abort.abort();
    await this.#loading;
  }
}

export interface AttemptDataset {
  readonly location: DatasetLocation;
  /** Topologies by NUMA node of the devices. */
  readonly topologies: ReadonlyMap<number | null, SharedTopology>;
}

interface LoadContext {
  readonly native: CoreAddon;
  readonly topologies: Topologies;
  readonly witness: DataWitness;
  /** Same as in FeaturesRequest. */
  readonly moments: MomentsFile | null;
  /** Null: batches are drawn from the dataset's own graph. */
  readonly derive: DeriveGraph | null;
  readonly signal: AbortSignal;
}

/** Makes another graph of a dataset's nodes, from which batches are drawn. */
export type DeriveGraph = (
  dataset: DatasetLocation,
  task: LoadTask,
) => Promise<{ readonly location: DatasetLocation; readonly key: string }>;

async function loadForAttempt(
  input: AttemptInput,
  place: TopologyPlace,
  { native, topologies, witness, moments, derive, signal }: LoadContext,
): Promise<AttemptDataset> {
  const { spec, dataset, datasetDigest, cacheFolder, devices, logFolder } = input;
  const standardizedFolder = spec.features.standardize === 'ON' ? cacheFolder : null;
  const alias = spec.sampling.algorithm === 'KHOP_WEIGHTED';
  const taskOn = (node: number | null): LoadTask => ({
    // Pages lie where the thread runs that touches them first.
    cores: devices.flatMap((device) => (device.node === node ? device.cores : [])),
    threads: 1,
    logPath: join(logFolder, 'load.log'),
    instructionSet: native.hostInstructionSet(),
    signal,
    stallMs: spec.timeouts.stallMs,
  });
  const nodes = [...new Set(devices.map(({ node }) => node))];
  const features = { dataset, datasetDigest, standardizedFolder, moments };
  const request = { ...features, derivedFolder: cacheFolder };
  // Readers of batches that are lent have rows of their own.
  const makesRows = hasTypes(dataset) && spec.kind !== 'LOAD';
  const loaded = await (makesRows ? loadTypedRows : loadFeatures)(
    witness,
    request,
    taskOn(nodes[0] ?? null),
  );
  const { location, key } =
    derive === null
      ? { location: loaded, key: schemaKeyOf(dataset.schema) }
      : await derive(loaded, taskOn(nodes[0] ?? null));
  const shared = new Map<number | null, SharedTopology>();
  try {
    for (const node of nodes) {
      const graph = { dataset: location, datasetDigest: `${datasetDigest}${key}` };
      const wanted = { ...features, ...graph, place, alias, node };
      shared.set(node, await shareTopology(topologies, wanted, taskOn(node)));
    }
  } catch (error) {
    for (const topology of shared.values()) topology.release();
    throw error;
  }
  return { location, topologies: shared };
}

/** Rejects with a TaskError: DATASET_CORRUPT names the dataset's folder and the file. */
export async function loadDataset(
  { topologies, witness }: { readonly topologies: Topologies; readonly witness: DataWitness },
  request: LoadRequest,
  task: LoadTask,
): Promise<LoadedDataset> {
  const location = await loadFeatures(witness, request, task);
  return { location, topology: await shareTopology(topologies, request, task) };
}

/**
 * The dataset, which is as it was imported, with its features as they are to be read. Rejects as
 * `loadDataset` does.
 */
export async function loadFeatures(
  witness: DataWitness,
  { dataset, datasetDigest, standardizedFolder: folder, moments = null }: FeaturesRequest,
  task: LoadTask,
): Promise<DatasetLocation> {
  const check = { ...task, logPath: join(dirname(task.logPath), 'check.log') };
  await witness.checkDataset({ folder: dataset.folder, digest: datasetDigest }, check);
  if (folder === null) return { ...dataset, featuresPath: '', typeRows: [] };
  const by = moments === null ? '' : `-by-${moments.digest.slice(0, 32)}`;
  const featuresPath = join(folder, `${datasetDigest.slice(0, 32)}${by}-standardized.npy`);
  const location = { ...dataset, featuresPath, typeRows: [] };
  makeFolder(folder);
  const files = [featuresPath, momentsPath(featuresPath)];
  // Two at once write the same bytes, each to a temporary file of its own.
  if (!(await witness.isSound(files, check))) {
    const topology = { place: 'MEMORY', alias: false } as const;
    const from = { standardize: true, momentsPath: moments?.path ?? '' };
    await load({ location, ...from, topologyFd: null, topology }, { ...task, topologyFd: null });
    await witness.made(files, check);
  }
  return location;
}

function hasTypes({ schema }: FeaturesRequest['dataset']): boolean {
  return schema.types.length > 0;
}

/** The same of a dataset of several types: files of each type's rows, where they are derived. */
export async function loadTypedRows(
  witness: DataWitness,
  request: FeaturesRequest & { readonly derivedFolder: string },
  task: LoadTask,
): Promise<DatasetLocation> {
  const { dataset, datasetDigest, standardizedFolder, derivedFolder: folder } = request;
  const check = { ...task, logPath: join(dirname(task.logPath), 'check.log') };
  await witness.checkDataset({ folder: dataset.folder, digest: datasetDigest }, check);
  const standardize = standardizedFolder !== null;
  const rows = { dataset, datasetDigest, folder, standardize };
  return { ...dataset, featuresPath: '', typeRows: await prepareTypedRows(witness, rows, task) };
}

/** The one place where a topology comes from. Rejects as `loadDataset` does. */
function shareTopology(
  topologies: Topologies,
  { dataset, datasetDigest, place, alias, node }: LoadRequest,
  task: LoadTask,
): Promise<SharedTopology> {
  const location = { ...dataset, featuresPath: '', typeRows: [] };
  const topology = { place, alias };
  const derived = { standardize: false, momentsPath: '' };
  const options = { location, ...derived, topologyFd: childTopologyFd, topology };
  return topologies.share(
    { datasetDigest, place, alias, node },
    (topologyFd, signal) => load(options, { ...task, topologyFd, signal }),
    task.signal,
  );
}

async function load(options: LoadOptions, task: TaskOptions): Promise<void> {
  try {
    await runTask({ role: 'LOAD', options }, task);
  } catch (error) {
    if (!(error instanceof TaskError) || error.code !== 'DATASET_CORRUPT') throw error;
    const name = basename(options.location.folder);
    throw new TaskError(error.code, `dataset ${name}: ${error.message}`);
  }
}
