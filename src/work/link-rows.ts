import { graphKeyOf } from '../prepare/prepare.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import type { BlockGraph } from './blocks.ts';
import { Blocks } from './blocks.ts';
import type { WorkContext } from './context.ts';
import type { Prepared, Sizes, TrainedMoments, WorkInput } from './preparation.ts';
import { Rows } from './rows.ts';

/**
 * Pairs of rows of propagated features: the graph whose edges the pairs are told by, and rows that
 * were propagated along it.
 */
export class LinkRows implements WorkInput {
  readonly #graph: Blocks;
  readonly #rows: Rows;
  readonly #links: JobSpec['links'];

  /** Null: the graph is the dataset's own. */
  constructor(context: WorkContext, graph: BlockGraph | null) {
    this.#graph = new Blocks(context, graph);
    this.#rows = new Rows(context);
    this.#links = context.input.spec.links;
  }

  async prepare(
    sizes: Sizes,
    trained: TrainedMoments | null,
    isStopped: () => boolean,
  ): Promise<Prepared | null> {
    const made = await this.#graph.prepare(sizes, trained, isStopped);
    if (made === null || isStopped()) return null;
    // Rows follow from edges, whatever pairs of theirs are learnt.
    const { dataset: location, graphKey } = made;
    const graph = graphKey === '' ? null : { location, key: graphKeyOf(this.#links) };
    return { ...made, rowsFolder: await this.#rows.propagated(trained, graph) };
  }

  reservedBytes(): number {
    return this.#rows.reservedBytes();
  }

  async stop(): Promise<void> {
    await Promise.all([this.#graph.stop(), this.#rows.stop()]);
  }

  close(): void {
    this.#rows.close();
    this.#graph.close();
  }
}
