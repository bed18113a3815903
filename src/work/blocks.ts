import type { CrewDevice } from '../devices/seat.ts';
import { reservedBytesOf } from '../plan/plan.ts';
import { type AttemptDataset, DatasetLoad, ModelProbe } from '../prepare/prepare.ts';
import { timed } from '../supervisor/supervisor.ts';
import type { WorkContext } from './context.ts';
import type { Prepared, Sizes, TrainedMoments, WorkInput } from './preparation.ts';

/** Prepares batches that are blocks, from features that may be standardised and a topology. */
export class Blocks implements WorkInput {
  readonly #context: WorkContext;
  readonly #load = new DatasetLoad();
  readonly #probe = new ModelProbe();
  #dataset: AttemptDataset | null = null;

  constructor(context: WorkContext) {
    this.#context = context;
  }

  async prepare(
    { layout, memory }: Sizes,
    trained: TrainedMoments | null,
    isStopped: () => boolean,
  ): Promise<Prepared | null> {
    const { native, input, topologies, witness } = this.#context;
    const moments = (await trained?.features()) ?? null;
    if (isStopped()) return null;
    const from = { native, topologies, witness, moments };
    const read = () => this.#load.start(input, memory.topology, from);
    const dataset = await timed(this.#context, 'read dataset', read);
    if (isStopped()) {
      releaseAll(dataset);
      return null;
    }
    this.#dataset = dataset;
    const topologyFds = fdsOf(dataset, input.devices);
    const topologyFd = [...topologyFds.values()][0] ?? null;
    const complete = await this.#probe.complete(layout, { ...this.#context, topologyFd });
    return { layout: complete, memory, dataset: dataset.location, topologyFds, rowsFolder: '' };
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
