import {
  blocks,
  infer,
  type JobLayout,
  layoutOf,
  type PlanKind,
  rowsOfLinks,
  trainLinkRows,
  trainLinks,
} from '../plan/plan.ts';
import {
  type DeriveGraph,
  type MessageGraph,
  prepareMessageGraph,
  splitOfLinks,
  walksOf,
} from '../prepare/prepare.ts';
import { reads } from '../spec/spec-parts.ts';
import { timed } from '../supervisor/supervisor.ts';
import { type BlockGraph, Blocks } from './blocks.ts';
import type { WorkContext } from './context.ts';
import { LinkRows } from './link-rows.ts';
import { TrainBlocksAttempt } from './train-blocks.ts';
import { TrainRowsAttempt } from './train-rows.ts';

/** An attempt at training on links: on blocks of the graph without those that it is judged by. */
export class TrainLinksAttempt extends TrainBlocksAttempt {
  constructor(context: WorkContext) {
    super(context, trainLinks, new Blocks(context, new LinksGraph(context, trainLinks)));
  }
}

/** The same by a model over rows. */
export class TrainLinkRowsAttempt extends TrainRowsAttempt {
  constructor(context: WorkContext) {
    const graph = new LinksGraph(context, trainLinkRows);
    super(context, trainLinkRows, new LinkRows(context, graph));
  }
}

/**
 * What an inference with a model of links reads: of the dataset that it was trained on the graph
 * that its test was told by, and of another, which has no such sides, the graph as it is.
 */
export function linksToInfer(context: WorkContext): Blocks {
  return new Blocks(context, trainedGraph(context, infer(blocks)));
}

/** The same for a model over rows. */
export function linkRowsToInfer(context: WorkContext): LinkRows {
  return new LinkRows(context, trainedGraph(context, infer(rowsOfLinks)));
}

function trainedGraph(context: WorkContext, kind: PlanKind): LinksGraph | null {
  const { spec, datasetDigest } = context.input;
  const isElsewhere = spec.inference.trainedOn !== datasetDigest;
  return isElsewhere ? null : new LinksGraph(context, kind);
}

/**
 * The graphs that messages come along, and the links that are counted as they are made: that of
 * training, and beside it, or instead of it where nothing is trained, that of the test.
 */
class LinksGraph implements BlockGraph {
  readonly #context: WorkContext;
  readonly #kind: PlanKind;
  #graph: MessageGraph | null = null;
  #testGraph: MessageGraph | null = null;

  constructor(context: WorkContext, kind: PlanKind) {
    this.#context = context;
    this.#kind = kind;
  }

  readonly derive: DeriveGraph = async (dataset, task) => {
    const { input, witness, log } = this.#context;
    const { datasetDigest, cacheFolder: folder, spec } = input;
    const split = splitOfLinks(spec.links);
    const make = (changes: Partial<typeof split>) => {
      const request = { dataset, datasetDigest, split: { ...split, ...changes }, folder, witness };
      return timed(this.#context, 'split links', () => prepareMessageGraph(request, task));
    };
    const isWider = spec.links.messagesAtTest === 'TRAIN_VAL';
    const trains = reads(spec, 'training');
    // An inference knows of links, and not of what walks came to.
    this.#graph = await make(trains ? { walks: walksOf(spec.links) } : { keepVal: isWider });
    this.#testGraph = isWider && trains ? await make({ keepVal: true }) : null;
    const { train, val, test: tests, symmetric } = this.#graph.counts;
    log.info('attempt.links', { train, val, test: tests, symmetric });
    return this.#graph;
  };

  get #made(): MessageGraph {
    if (this.#graph === null) throw new Error('the links were not split');
    return this.#graph;
  }

  completed(): JobLayout {
    const { native, input } = this.#context;
    const { location, counts } = this.#made;
    return layoutOf(this.#kind, native, input.spec, location.counts, counts);
  }

  get made() {
    const { key: graphKey, files } = this.#made;
    const testGraph = this.#testGraph?.location ?? null;
    return { graphKey, testGraph, derivedFiles: [...files, ...(this.#testGraph?.files ?? [])] };
  }
}
