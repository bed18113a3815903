import type { PropagationSource } from '../records/propagation-record.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import { reads } from '../spec/spec-parts.ts';
import { graphKeyOf } from './message-graph.ts';

type Propagated = Pick<JobSpec, 'task' | 'links' | 'dataset' | 'propagation' | 'features'>;

/** What a job propagates of a dataset, along its own edges. */
export function rowSource(
  { dataset, propagation, features }: Propagated,
  datasetDigest: string,
): PropagationSource {
  return { dataset, datasetDigest, propagation, standardize: features.standardize === 'ON' };
}

/**
 * What was propagated for a job that trained a model over rows; of links all nodes, along the edges
 * that messages come along.
 */
export function trainedSource(spec: Propagated, datasetDigest: string): PropagationSource {
  const source = rowSource(spec, datasetDigest);
  if (!reads({ task: spec.task }, 'links')) return source;
  return { ...source, allNodes: true, graph: graphKeyOf(spec.links) };
}
