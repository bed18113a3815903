import { type JobLayout, layoutOf, trainLinks } from '../plan/plan.ts';
import { type DeriveGraph, type MessageGraph, prepareMessageGraph } from '../prepare/prepare.ts';
import { timed } from '../supervisor/supervisor.ts';
import { type BlockGraph, Blocks } from './blocks.ts';
import type { WorkContext } from './context.ts';
import { TrainBlocksAttempt } from './train-blocks.ts';

/** An attempt at training on links: on blocks of the graph without those that it is judged by. */
export class TrainLinksAttempt extends TrainBlocksAttempt {
  constructor(context: WorkContext) {
    super(context, trainLinks, new Blocks(context, new LinksGraph(context)));
  }
}

/** The graph that messages come along, and the links that are counted as it is made. */
class LinksGraph implements BlockGraph {
  readonly #context: WorkContext;
  #graph: MessageGraph | null = null;

  constructor(context: WorkContext) {
    this.#context = context;
  }

  readonly derive: DeriveGraph = async (dataset, task) => {
    const { input, witness, log } = this.#context;
    const { datasetDigest, cacheFolder: folder, spec } = input;
    const { validation, test, randomSeed } = spec.links.split;
    const given = spec.links.targets === 'DATASET';
    const split = { validation, test, randomSeed: BigInt(randomSeed), keepVal: false, given };
    const request = { dataset, datasetDigest, split, folder, witness };
    const make = () => prepareMessageGraph(request, task);
    this.#graph = await timed(this.#context, 'split links', make);
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
    return layoutOf(trainLinks, native, input.spec, location.counts, counts);
  }

  get made() {
    const { key: graphKey, files: derivedFiles } = this.#made;
    return { graphKey, derivedFiles };
  }
}
