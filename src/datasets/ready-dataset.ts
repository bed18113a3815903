import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { GnndError } from '../base/errors.ts';
import type { DatasetCounts, DatasetLocation } from '../native/contract.ts';
import type { DatasetLinks, DatasetRecord, TypedStory } from '../records/dataset-record.ts';
import { takenOf } from '../spec/job-relations.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import { meantBy } from '../spec/nearest.ts';
import { reads } from '../spec/spec-parts.ts';
import type { ColumnStatistics } from '../spec/standardize.ts';
import type { Store } from '../store/store.ts';
import { readStory, readWritten } from './adopt.ts';
import { nativeSchemaOf } from './typed-schema.ts';

/** What jobs and reports ask of the dataset that they name. */

/** What a job reads of its dataset. */
export type JobData = Pick<DatasetLocation, 'folder' | 'counts' | 'schema'>;

type Datasets = Pick<Store, 'getDataset' | 'listDatasets'>;

/** Throws DATASET_NOT_FOUND, with the nearest id, and DATASET_NOT_READY. */
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
  return dataset;
}

/** The same for what takes graphs of one type alone; throws SPEC_INVALID for others, too. */
export function requireOneType(store: Datasets, id: string): DatasetRecord {
  const dataset = requireReady(store, id);
  const { schema } = dataset;
  if (schema === null) return dataset;
  const counts = `${schema.types.length} types of nodes and ${schema.relations.length} relations`;
  const description = `${id} has ${counts}; expected a dataset of one type and one relation`;
  const violations = [{ path: 'dataset', description }];
  throw new GnndError('SPEC_INVALID', description, { resource: `datasets/${id}`, violations });
}

/** Whether a dataset has the types of a resolved job: its id may be another one's by now. */
export function mayTake({ model, relations }: JobSpec, { schema }: DatasetRecord): boolean {
  if (!reads({ model }, 'relations')) return schema === null;
  return schema?.types.some(({ name }) => name === relations.target) === true;
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
export function columnStatistics(dataset: DatasetRecord, type?: string): ColumnStatistics | null {
  if (type === undefined) return readStory(dataset.path)?.columns ?? null;
  return readStory<TypedStory>(dataset.path)?.columns[type] ?? null;
}

/** Whether its source said that each edge is there in both directions. */
export function isUndirected(dataset: DatasetRecord): boolean {
  return readStory(dataset.path)?.undirected ?? false;
}

/** What jobs and reports read of a dataset of one type. */
export function dataOf(dataset: DatasetRecord): JobData {
  return { folder: dataset.path, counts: countsOf(dataset), schema: { types: [], relations: [] } };
}

/**
 * What a job reads of its dataset; of several types those that it takes, and counts of the one that
 * it learns, which has no edges of its own. REQUIRES: the spec was resolved with the dataset.
 */
export function jobDataOf(
  dataset: DatasetRecord,
  { relations }: Pick<JobSpec, 'relations'>,
): JobData {
  if (dataset.schema === null) return dataOf(dataset);
  const schema = nativeSchemaOf(takenOf(dataset.schema, relations));
  const [target] = schema.types;
  if (target === undefined) throw new Error(`${dataset.id} has no type ${relations.target}`);
  const { name: _, labelled: __, ...counts } = target;
  return { folder: dataset.path, counts: { ...counts, numEdges: 0 }, schema };
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
