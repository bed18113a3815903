import type { DatasetCounts } from '../native/contract.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import { splitOf } from '../spec/learnt.ts';
import type { LinkCounts, PlanKind } from './plan-kind.ts';
import { judgedLinks } from './ranking.ts';
import { trainBlocks } from './train-blocks.ts';

/** Training on blocks around links: items are pairs of nodes, and outputs are embeddings. */
export const trainLinks: PlanKind = {
  ...trainBlocks,
  outDim: ({ model }) => model.hiddenDim,
  items: (_, __, { train }) => train,
  links: mostLinksOf,
  judged: (_, __, links) => judgedLinks(links),
};

/** As if each edge was a pair of its own: what a graph has of both directions is counted later. */
function mostLinksOf({ links }: JobSpec, { numEdges }: DatasetCounts): LinkCounts {
  return { ...splitOf(links, numEdges), symmetric: false };
}
