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

  /** Null: the graph is the dataset's own. */
  constructor(context: WorkContext, graph: BlockGraph | null) {
    this.#graph = new Blocks(context, graph);
    this.#rows = new Rows(context);
  }

  async prepare(
    sizes: Sizes,
    trained: TrainedMoments | null,
    isStopped: () => boolean,
  ): Promise<Prepared | null> {
    const made = await this.#graph.prepare(sizes, trained, isStopped);
    if (made === null || isStopped()) return null;
    const { dataset: location, graphKey: key } = made;
    const graph = key === '' ? null : { location, key };
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
