import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { GnndError } from '../base/errors.ts';
import type { DatasetCounts, DatasetLocation } from '../native/contract.ts';
import type { DatasetLinks, DatasetRecord } from '../records/dataset-record.ts';
import { meantBy } from '../spec/nearest.ts';
import type { ColumnStatistics } from '../spec/standardize.ts';
import type { Store } from '../store/store.ts';
import { readStory, readWritten } from './adopt.ts';

/** What jobs and reports ask of the dataset that they name. */

/** What a job reads of its dataset. */
export type JobData = Pick<DatasetLocation, 'folder' | 'counts' | 'schema'>;

type Datasets = Pick<Store, 'getDataset' | 'listDatasets'>;

/**
 * Throws DATASET_NOT_FOUND, with the nearest id, DATASET_NOT_READY, and SPEC_INVALID for one that
 * nothing is done with yet.
 */
export function requireReady(store: Datasets, id: string): DatasetRecord {
  const resource = `datasets/${id}`;
  const dataset = store.getDataset(id);
  if (dataset === null) {
    throw new GnndError('DATASET_NOT_FOUND', noDatasetText(store, id), { resource });
  }
  if (dataset.state !== 'READY') {
    const because = dataset.message === '' ? '' : `: ${dataset.message}`;
    const remedy =
      dataset.state === 'IMPORTING'
        ? `gnnctl dataset get ${id} says when it is`
        : 'its source mended, import it again under this id';
    const why = `dataset ${id} is ${dataset.state}, not READY${because}; ${remedy}`;
    throw new GnndError('DATASET_NOT_READY', why, { resource });
  }
  const description = unusedBecause(dataset);
  if (description !== null) {
    const violations = [{ path: 'dataset', description }];
    throw new GnndError('SPEC_INVALID', description, { resource, violations });
  }
  return dataset;
}

/** Why nothing but imports and checks takes a dataset that is READY; null: all take it. */
export function unusedBecause({ id, schema }: DatasetRecord): string | null {
  if (schema === null) return null;
  const counts = `${schema.types.length} types of nodes and ${schema.relations.length} relations`;
  const what = 'gnnd imports and checks such graphs, and does not learn from them yet';
  return `${id} has ${counts}: ${what}`;
}

/** Datasets among which a mistyped id is looked for. */
const lookedThroughMax = 1000;

/** That there is no such dataset, and which one may be meant. */
export function noDatasetText(store: Datasets, id: string): string {
  const known = store.listDatasets({ limit: lookedThroughMax, afterId: null });
  const ready = known.filter(({ state }) => state === 'READY').map((dataset) => dataset.id);
  return `there is no dataset ${id.slice(0, 80)}${meantBy(id, ready)}`;
}

/** Whether it was imported with a weight for each edge. */
export function hasEdgeWeights(dataset: DatasetRecord): boolean {
  return existsSync(join(dataset.path, 'edge_weights.npy'));
}

/** Links that it brings beside its graph; null where it has none. */
export function linksOf(dataset: DatasetRecord): DatasetLinks | null {
  if (!existsSync(join(dataset.path, 'links_train.npy'))) return null;
  const manifest = readWritten(dataset.path)?.manifest;
  return manifest?.version === 1 ? (manifest.links ?? null) : null;
}

/** What its import counted of the columns of its features; null where that is lost. */
export function columnStatistics(dataset: DatasetRecord): ColumnStatistics | null {
  return readStory(dataset.path)?.columns ?? null;
}

/** Whether its source said that each edge is there in both directions. */
export function isUndirected(dataset: DatasetRecord): boolean {
  return readStory(dataset.path)?.undirected ?? false;
}

/** What jobs and reports read of a dataset of one type. */
export function dataOf(dataset: DatasetRecord): JobData {
  return { folder: dataset.path, counts: countsOf(dataset), schema: { types: [], relations: [] } };
}

/** What native code needs to know of a stored dataset. */
export function countsOf(dataset: DatasetRecord): DatasetCounts {
  return {
    numNodes: dataset.numNodes,
    numEdges: dataset.numEdges,
    numFeatures: dataset.numFeatures,
    numClasses: dataset.numClasses,
    train: dataset.numTrain,
    val: dataset.numVal,
    test: dataset.numTest,
    featureDtype: dataset.featureDtype,
    task: dataset.task,
  };
}
