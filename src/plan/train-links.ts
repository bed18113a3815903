import type { DatasetCounts } from '../native/contract.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import { learnsWalks, splitOf, walkPairsOf } from '../spec/learnt.ts';
import { reads } from '../spec/spec-parts.ts';
import type { LinkCounts, PlanKind } from './plan-kind.ts';
import { judgedLinks, judgedNodes } from './ranking.ts';
import { trainBlocks } from './train-blocks.ts';

/** Training on blocks around links: items are pairs of nodes, and outputs are embeddings. */
export const trainLinks: PlanKind = {
  ...trainBlocks,
  outDim: ({ model }) => model.hiddenDim,
  items: (_, __, { train }) => train,
  links: mostLinksOf,
  judged: (spec, counts, links) =>
    reads({ task: spec.task }, 'links.labels')
      ? judgedNodes(spec, labelCountsOf(spec, counts, links))
      : judgedLinks(links, spec.links.evaluation.negatives),
};

/** As if what is known of links was known of nodes. */
function labelCountsOf(
  { links: { labels, labelCount } }: JobSpec,
  counts: DatasetCounts,
  { val, test }: LinkCounts,
): DatasetCounts {
  return { ...counts, val, test, task: labels, numClasses: labelCount };
}

/** As if each edge was a pair of its own: what a graph has of both directions is counted later. */
function mostLinksOf(spec: JobSpec, { numEdges, numNodes }: DatasetCounts): LinkCounts {
  const { links } = spec;
  const split = splitOf(links, numEdges);
  const train = learnsWalks(spec) ? numNodes * walkPairsOf(links.walks) : split.train;
  return { ...split, train, valPool: 0, testPool: 0, symmetric: false };
}
