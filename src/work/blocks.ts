import type { CrewDevice } from '../devices/seat.ts';
import { type JobLayout, reservedBytesOf } from '../plan/plan.ts';
import {
  type AttemptDataset,
  DatasetLoad,
  type DeriveGraph,
  ModelProbe,
} from '../prepare/prepare.ts';
import { timed } from '../supervisor/supervisor.ts';
import type { WorkContext } from './context.ts';
import {
  type DerivedGraph,
  ownGraph,
  type Prepared,
  type Sizes,
  type TrainedMoments,
  type WorkInput,
} from './preparation.ts';

/** The graph that blocks are drawn from, where it is not the dataset's own. */
export interface BlockGraph {
  readonly derive: DeriveGraph;
  /** The layout by what was counted of the graph, once that is made. */
  completed(layout: JobLayout): JobLayout;
  /** What tells it from the dataset's own, and its files, once they are made. */
  readonly made: DerivedGraph;
}

/** Prepares batches that are blocks, from features that may be standardised and a topology. */
export class Blocks implements WorkInput {
  readonly #context: WorkContext;
  readonly #graph: BlockGraph | null;
  readonly #load = new DatasetLoad();
  readonly #probe = new ModelProbe();
  #dataset: AttemptDataset | null = null;

  constructor(context: WorkContext, graph: BlockGraph | null = null) {
    this.#context = context;
    this.#graph = graph;
  }

  async prepare(
    { layout, memory }: Sizes,
    trained: TrainedMoments | null,
    isStopped: () => boolean,
  ): Promise<Prepared | null> {
    const { native, input, topologies, witness } = this.#context;
    const moments = (await trained?.features()) ?? null;
    if (isStopped()) return null;
    const derive = this.#graph?.derive ?? null;
    const from = { native, topologies, witness, moments, derive };
    const read = () => this.#load.start(input, memory.topology, from);
    const dataset = await timed(this.#context, 'read dataset', read);
    if (isStopped()) {
      releaseAll(dataset);
      return null;
    }
    this.#dataset = dataset;
    const topologyFds = fdsOf(dataset, input.devices);
    const topologyFd = [...topologyFds.values()][0] ?? null;
    const counted = this.#graph?.completed(layout) ?? layout;
    const complete = await this.#probe.complete(counted, { ...this.#context, topologyFd });
    const made = { layout: complete, memory, dataset: dataset.location, topologyFds };
    return { ...made, ...(this.#graph?.made ?? ownGraph), rowsFolder: '' };
  }

  reservedBytes(besideBytes: number): number {
    return reservedBytesOf(this.#context.input.devices, besideBytes);
  }

  async stop(): Promise<void> {
    await Promise.all([this.#load.stop(), this.#probe.stop()]);
  }

  close(): void {
    if (this.#dataset !== null) releaseAll(this.#dataset);
    this.#dataset = null;
  }
}

function fdsOf(
  { topologies }: AttemptDataset,
  devices: readonly CrewDevice[],
): ReadonlyMap<string, number> {
  return new Map(
    devices.flatMap(({ name, node }) => {
      const topology = topologies.get(node);
      return topology === undefined ? [] : [[name, topology.fd] as const];
    }),
  );
}

function releaseAll({ topologies }: AttemptDataset): void {
  for (const topology of topologies.values()) topology.release();
}
