import type { Clock } from '../base/clock.ts';
import { GnndError } from '../base/errors.ts';
import {
  type DatasetRecord,
  datasetTasks,
  featureDtypes,
  type GraphSchema,
  type NodeType,
  type Relation,
} from '../records/dataset-record.ts';
import {
  type Decoder,
  fromJson,
  integer,
  list,
  nullable,
  object,
  oneOf,
  partial,
  text,
  toJson,
} from './codec.ts';
import { type Cell, type Database, isUniqueViolation, type Row } from './database.ts';
import type { DatasetCounts, DatasetStore } from './store-types.ts';

const featureDtype = oneOf(featureDtypes);
const datasetTask = oneOf(datasetTasks);
const datasetState = oneOf(['IMPORTING', 'READY', 'FAILED']);

const split = object({ train: integer, val: integer, test: integer });
const sides = object({ val: integer, test: integer });

/** Decoders of what must be there and of what may be, for one object. */
function both<A extends object, B extends object>(must: Decoder<A>, may: Decoder<B>) {
  return (value: unknown, at: string): A & B => ({ ...must(value, at), ...may(value, at) });
}

const nodeType: Decoder<NodeType> = both(
  object({ name: text, num_nodes: integer }),
  partial({
    features: object({ columns: integer, dtype: featureDtype }),
    labels: both(
      object({ task: datasetTask, num_classes: integer, split }),
      partial({ class_names: list(text) }),
    ),
  }),
);

const links: Decoder<NonNullable<Relation['links']>> = both(
  object({ train: integer, val: integer, test: integer, negatives: sides, in_graph: sides }),
  partial({ pool: sides, labels: object({ task: datasetTask, count: integer }) }),
);

const relation: Decoder<Relation> = both(
  object({ source: text, name: text, destination: text, num_edges: integer }),
  partial({ reverse_of: text, links }),
);

const graphSchema: Decoder<GraphSchema> = object({
  types: list(nodeType),
  relations: list(relation),
});

const datasetRow = object({
  id: text,
  state: datasetState,
  message: text,
  digest: text,
  path: text,
  num_nodes: integer,
  num_edges: integer,
  num_features: integer,
  num_classes: integer,
  num_train: integer,
  num_val: integer,
  num_test: integer,
  bytes: integer,
  create_at_ms: integer,
  feature_dtype: featureDtype,
  task: datasetTask,
  schema: nullable(fromJson(graphSchema)),
});

export function datasetTable(database: Database, clock: Clock): DatasetStore {
  const select = database.prepare('SELECT * FROM datasets WHERE id = ?');
  const selectAfter = database.prepare('SELECT * FROM datasets WHERE id > ? ORDER BY id LIMIT ?');
  const count = database.prepare(
    'SELECT state, count(*) AS n, sum(bytes) AS bytes FROM datasets GROUP BY state',
  );
  const places = '(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)';
  const insert = database.prepare(`INSERT INTO datasets VALUES ${places}`);
  const replace = database.prepare(`REPLACE INTO datasets VALUES ${places}`);

  const get = (id: string): DatasetRecord | null => {
    const row = database.get(select, id);
    return row === null ? null : recordOf(row);
  };

  return {
    insertDataset: (dataset) =>
      database.write('DATASET', 'ALL', () => {
        const record = { ...dataset, createAtMs: clock.wallMs() };
        try {
          database.run(insert, ...cellsOf(record));
        } catch (error) {
          if (!isUniqueViolation(error)) throw error;
          throw new GnndError('DATASET_EXISTS', `there is a dataset ${dataset.id} already`, {
            resource: `datasets/${dataset.id}`,
          });
        }
        return record;
      }),
    updateDataset: (id, change) =>
      database.write('DATASET', 'ALL', () => {
        const current = get(id);
        if (current === null) {
          throw new GnndError('DATASET_NOT_FOUND', `there is no dataset ${id}`, {
            resource: `datasets/${id}`,
          });
        }
        const next = { ...current, ...change };
        database.run(replace, ...cellsOf(next));
        return next;
      }),
    getDataset: get,
    listDatasets: ({ limit, afterId }) =>
      database.all(selectAfter, afterId ?? '', limit).map(recordOf),
    countDatasets: () => counted(database.all(count)),
  };
}

/** Cells of a dataset's row, in the order of the columns. */
function cellsOf(record: DatasetRecord): Cell[] {
  return [
    ...[record.id, record.state, record.message, record.digest, record.path],
    ...[record.numNodes, record.numEdges, record.numFeatures, record.numClasses],
    ...[record.numTrain, record.numVal, record.numTest, record.bytes, record.createAtMs],
    ...[record.featureDtype, record.task],
    record.schema === null ? null : toJson(record.schema, graphSchema, 'datasets.schema'),
  ];
}

function recordOf(row: Row): DatasetRecord {
  const stored = datasetRow(row, `dataset ${String(row['id'])}`);
  return {
    id: stored.id,
    state: stored.state,
    message: stored.message,
    digest: stored.digest,
    path: stored.path,
    numNodes: stored.num_nodes,
    numEdges: stored.num_edges,
    numFeatures: stored.num_features,
    featureDtype: stored.feature_dtype,
    task: stored.task,
    numClasses: stored.num_classes,
    numTrain: stored.num_train,
    numVal: stored.num_val,
    numTest: stored.num_test,
    bytes: stored.bytes,
    createAtMs: stored.create_at_ms,
    schema: stored.schema,
  };
}

function counted(rows: readonly Row[]): DatasetCounts {
  const byState = { IMPORTING: 0, READY: 0, FAILED: 0 };
  let bytes = 0;
  for (const row of rows) {
    byState[datasetState(row['state'], 'datasets.state')] = integer(row['n'], 'datasets');
    bytes += integer(row['bytes'], 'datasets.bytes');
  }
  return { byState, bytes };
}
