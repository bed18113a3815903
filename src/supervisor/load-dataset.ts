import { closeSync, existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { makeFolder } from '../base/atomic-file.ts';
import { markUsed } from '../base/files.ts';
import { topologyFd as childTopologyFd } from '../executor/protocol.ts';
import type { CoreAddon, DatasetLocation } from '../native/contract.ts';
import type { TopologyPlace } from '../records/memory-plan.ts';
import type { AttemptInput } from './attempt-types.ts';
import { momentsPath } from './standardization.ts';
import { runTask, TaskError, type TaskOptions } from './task.ts';

/**
 * What a job, a report or an export needs of a dataset: its features as they are to be read, and
 * its topology in shared memory. A Preparer reads the files; what they do to it is its answer.
 */

export interface LoadRequest {
  readonly dataset: Pick<DatasetLocation, 'folder' | 'counts'>;
  /** Null: features are read as they were imported. */
  readonly standardized: {
    readonly datasetDigest: string;
    /** Receives the derived file. */
    readonly folder: string;
  } | null;
  /** FILE: the topology stays in the dataset's files, which are checked. */
  readonly place: TopologyPlace;
  /** Also tables to sample by edge weight; in MEMORY only. */
  readonly alias: boolean;
}

export interface LoadedDataset {
  readonly location: DatasetLocation;
  /** A sealed memfd; the caller closes it. */
  readonly topologyFd: number;
}

/** The loading of an attempt's dataset. */
export class DatasetLoad {
  readonly #abort = new AbortController();
  #loading: Promise<unknown> = Promise.resolve();

  /** Once; rejects as `loadDataset` does. */
  start(input: AttemptInput, native: CoreAddon, place: TopologyPlace): Promise<LoadedDataset> {
    const { spec, dataset, datasetDigest, cacheFolder: folder, devices, logFolder } = input;
    const loading = loadDataset(
      native,
      {
        dataset,
        standardized: spec.features.standardize ? { datasetDigest, folder } : null,
        place,
        alias: spec.sampling.algorithm === 'KHOP_WEIGHTED',
      },
      {
        cores: devices[0]?.cores ?? [],
        threads: 1,
        logPath: join(logFolder, 'load.log'),
        instructionSet: native.hostInstructionSet(),
        signal: this.#abort.signal,
      },
    );
    this.#loading = loading.catch(() => {});
    return loading;
  }

  /** Resolves when no process of ours is left. */
  async stop(): Promise<void> {
    this.#abort.abort();
    await this.#loading;
  }
}

/** Rejects with a TaskError: DATASET_CORRUPT names the dataset's folder and the file. */
export async function loadDataset(
  native: Pick<CoreAddon, 'topologyReserve'>,
  { dataset, standardized, place, alias }: LoadRequest,
  task: Omit<TaskOptions, 'topologyFd'>,
): Promise<LoadedDataset> {
  const featuresPath = standardized === null ? '' : derivedPath(standardized);
  const location = { ...dataset, featuresPath };
  const topologyFd = native.topologyReserve();
  try {
    if (standardized !== null) makeFolder(standardized.folder);
    // Two at once write the same bytes, each to a temporary file of its own.
    const isMade = existsSync(featuresPath);
    if (isMade) for (const path of [featuresPath, momentsPath(featuresPath)]) markUsed(path);
    const standardize = featuresPath !== '' && !isMade;
    const topology = { place, alias };
    const options = { location, standardize, topologyFd: childTopologyFd, topology };
    await runTask({ role: 'LOAD', options }, { ...task, topologyFd });
    return { location, topologyFd };
  } catch (error) {
    closeSync(topologyFd);
    if (!(error instanceof TaskError) || error.code !== 'DATASET_CORRUPT') throw error;
    throw new TaskError(error.code, `dataset ${basename(dataset.folder)}: ${error.message}`);
  }
}

function derivedPath({ datasetDigest, folder }: NonNullable<LoadRequest['standardized']>): string {
  return join(folder, `${datasetDigest.slice(0, 32)}-standardized.npy`);
}
