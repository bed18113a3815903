import {
  columnStatistics,
  hasEdgeWeights,
  isUndirected,
  linksOf,
} from '../datasets/ready-dataset.ts';
import type { DatasetRecord } from '../records/dataset-record.ts';
import { seedTypeOf } from '../spec/job-relations.ts';
import type { ResolveContext } from '../spec/rules/rule.ts';

/** What a spec is resolved with of its dataset. */
type DatasetFacts = Pick<
  ResolveContext,
  | 'schema'
  | 'numNodes'
  | 'numEdges'
  | 'isUndirected'
  | 'links'
  | 'trainNodes'
  | 'valNodes'
  | 'targets'
  | 'columns'
  | 'hasEdgeWeights'
>;

/** Null: it is not known. `target` is the type that a spec asks for; empty: none. */
export function datasetFacts(dataset: DatasetRecord | null, target: string): DatasetFacts {
  if (dataset === null) return unknown;
  return dataset.schema === null ? flatFacts(dataset) : typedFacts(dataset, dataset.schema, target);
}

const unknown: DatasetFacts = {
  ...{ numNodes: null, numEdges: null, trainNodes: null, valNodes: null },
  ...{ columns: null, hasEdgeWeights: null },
};

function flatFacts(dataset: DatasetRecord): DatasetFacts {
  const { numNodes, numEdges, numTrain, numVal, task, numClasses } = dataset;
  return {
    schema: null,
    ...{ numNodes, numEdges, trainNodes: numTrain, valNodes: numVal },
    ...{ isUndirected: isUndirected(dataset), links: linksOf(dataset) },
    targets: { task, count: numClasses },
    columns: columnStatistics(dataset),
    hasEdgeWeights: hasEdgeWeights(dataset),
  };
}

/** Those of the type that has the seeds; unknown where a spec asks for none that could be. */
function typedFacts(
  dataset: DatasetRecord,
  schema: NonNullable<DatasetRecord['schema']>,
  asked: string,
): DatasetFacts {
  const found = seedTypeOf(schema, asked);
  const type = schema.types.find(({ name }) => 'target' in found && name === found.target);
  const without = { schema, links: null, hasEdgeWeights: false };
  if (type === undefined) return { ...unknown, ...without };
  const { num_nodes: numNodes, labels } = type;
  if (labels === undefined) return { ...unknown, ...without, numNodes, trainNodes: 0, valNodes: 0 };
  const { train: trainNodes, val: valNodes } = labels.split;
  const { numEdges } = dataset;
  return {
    ...without,
    ...{ numNodes, numEdges, trainNodes, valNodes },
    targets: { task: labels.task, count: labels.num_classes },
    columns: columnStatistics(dataset, type.name),
  };
}
