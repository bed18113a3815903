import type { PlanKind } from './plan-kind.ts';
import { rowsOfLinks } from './rows.ts';
import { evaluationParts } from './train-blocks.ts';
import { trainLinks } from './train-links.ts';
import { rowPartsOf, trainRows } from './train-rows.ts';

/** Training on pairs of rows of propagated features: every device trains, and nobody samples. */
export const trainLinkRows: PlanKind = {
  ...trainRows,
  batches: rowsOfLinks,
  outDim: trainLinks.outDim,
  items: trainLinks.items,
  links: trainLinks.links,
  judged: trainLinks.judged,

  ownMemory(spec, layout, facts) {
    const { parts, ...own } = rowPartsOf(trainLinkRows, spec, layout, facts);
    const evaluation = evaluationParts(spec, layout, facts, trainLinkRows.crew(spec));
    return { ...own, parts: [...parts, ...evaluation] };
  },
};
