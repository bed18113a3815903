import type { DatasetTask, JobSpec, SpecDraft } from './job-spec.ts';
import type { LearntTask } from './metrics.ts';
import { reads } from './spec-parts.ts';

/** What a job learns: what its dataset knows of nodes or of links, or which pairs are links. */

export function learntTask(
  { task, links }: Pick<JobSpec, 'task' | 'links'>,
  ofNodes: DatasetTask,
): LearntTask {
  if (reads({ task }, 'links.labels')) return links.labels;
  return reads({ task }, 'links') ? 'LINKS' : ofNodes;
}

/** Classes, labels or numbers, and how many, that a job learns of its items; null: of none. */
export function knownOf(
  { task, links }: Pick<JobSpec, 'task' | 'links'>,
  ofNodes: Targets | undefined,
): Targets | null | undefined {
  if (reads({ task }, 'links.labels')) return { task: links.labels, count: links.labelCount };
  return reads({ task }, 'labels') ? ofNodes : null;
}

export interface Targets {
  readonly task: DatasetTask;
  readonly count: number;
}

/** What ranks of a job are among, as names of metrics tell it; empty: it ranks no links. */
export function negativesOf({ task, links }: Pick<JobSpec, 'task' | 'links'>): string {
  if (!reads({ task }, 'links.negatives')) return '';
  const { negatives, count } = links.evaluation;
  if (negatives === 'ALL' || negatives === 'POOL') return negatives.toLowerCase();
  return String(count);
}

/** Facts of a dataset; null where it is not known. */
export interface ItemFacts {
  readonly numNodes: number | null;
  readonly trainNodes: number | null;
  readonly numEdges: number | null;
  /** Said by its source: edges are stored in both directions, so that two are one link. */
  readonly isUndirected?: boolean;
  readonly links?: { readonly train: number } | null;
}

type Asking = Pick<SpecDraft, 'task' | 'load' | 'links'>;

/**
 * How many items an epoch has, which it permutes and batches count; of links at most, for pairs are
 * counted when the graph is read, whose source may not say that its edges have no direction. Null
 * where the dataset is not known.
 */
export function itemsOf({ task, load, links }: Asking, facts: ItemFacts): number | null {
  if (reads({ task }, 'links')) {
    if (links.positives === 'WALKS') {
      return facts.numNodes === null ? null : facts.numNodes * walkPairsOf(links.walks);
    }
    if (links.targets === 'DATASET') return facts.links?.train ?? null;
    if (facts.numEdges === null) return null;
    const pairs = facts.isUndirected === true ? Math.ceil(facts.numEdges / 2) : facts.numEdges;
    return splitOf(links, pairs).train;
  }
  if (load.linksFile !== '') return load.links;
  return load.nodesFile === '' ? facts.trainNodes : load.nodes;
}

/** Whether a job's items are pairs that walks visit; an inference knows of links alone. */
export function learnsWalks({ kind, links }: Pick<JobSpec, 'kind' | 'links'>): boolean {
  return reads({ kind }, 'training') && links.positives === 'WALKS';
}

/** Most pairs of the walks from one node. */
export function walkPairsOf({ length, window, perNode }: JobSpec['links']['walks']): number {
  const most = Math.min(window, length);
  return perNode * (most * length - (most * (most - 1)) / 2);
}

/** How many of so many pairs each side of a split has. */
export function splitOf({ split }: Pick<JobSpec['links'], 'split'>, pairs: number) {
  const val = Math.floor(split.validation * pairs);
  const test = Math.floor(split.test * pairs);
  return { train: pairs - val - test, val, test };
}
