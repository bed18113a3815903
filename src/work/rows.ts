import { basename, join } from 'node:path';
import type { DatasetLocation } from '../native/contract.ts';
import { type PropagationRequest, rowSource } from '../prepare/prepare.ts';
import { timed } from '../supervisor/supervisor.ts';
import type { WorkContext } from './context.ts';
import {
  DatasetCheck,
  ownGraph,
  type Prepared,
  type Sizes,
  type TrainedMoments,
  type WorkInput,
} from './preparation.ts';

/** Batches that are rows of propagated features: made where missing, held until the end. */
export class Rows implements WorkInput {
  readonly #context: WorkContext;
  readonly #check: DatasetCheck;
  readonly #abort = new AbortController();
  #making: Promise<unknown> = Promise.resolve();
  #release = () => {};

  constructor(context: WorkContext) {
    this.#context = context;
    this.#check = new DatasetCheck(context);
  }

  async prepare(sizes: Sizes, trained: TrainedMoments | null): Promise<Prepared> {
    await this.#check.check([]);
    const rowsFolder = await this.propagated(trained, null);
    const dataset = { ...this.#context.input.dataset, featuresPath: '', typeRows: [] };
    return { ...sizes, dataset, topologyFds: new Map(), ...ownGraph, rowsFolder };
  }

  /**
   * The folder of the rows, propagated along another graph than the dataset's own where there is
   * one; rejects as `Propagations.make` does.
   */
  propagated(trained: TrainedMoments | null, graph: PropagatedAlong | null): Promise<string> {
    return timed(this.#context, 'propagate', () => {
      const making = this.#make(trained, graph);
      this.#making = making.catch(() => {});
      return making;
    });
  }

  async #make(trained: TrainedMoments | null, graph: PropagatedAlong | null): Promise<string> {
    const { input, native, propagations, log } = this.#context;
    const { dataset, datasetDigest, devices } = input;
    const cores = [...new Set(devices.flatMap((device) => device.cores))];
    const request: PropagationRequest = {
      source: {
        ...rowSource(input.spec, datasetDigest),
        dataset: basename(dataset.folder),
        ...(graph === null ? {} : { allNodes: true, graph: graph.key }),
        ...(await trained?.rowSource()),
      },
      dataset,
      ...(graph === null ? {} : { graph: graph.location }),
      memoryBytes: Math.floor(memoryShare * input.hostBytes),
      derivedFolder: input.cacheFolder,
      ...(trained === null ? {} : { given: await trained.givenMoments() }),
    };
    const task = {
      ...{ cores, threads: Math.max(1, cores.length) },
      logPath: join(input.logFolder, 'propagator.log'),
      instructionSet: native.hostInstructionSet(),
      // The Propagator may have the whole budget: no executor of the job runs yet.
      device: devices.flatMap(({ accelerator }) =>
        accelerator === undefined ? [] : [{ accelerator, budgetBytes: accelerator.budgetBytes }],
      )[0],
      signal: this.#abort.signal,
    };
    this.#release = propagations.hold(propagations.plan(request).id);
    const made = await propagations.make(request, task, (share, message) =>
      log.debug('attempt.propagating', { share, message }),
    );
    return await propagations.open(made.id, datasetDigest, task);
  }

  /** Models over rows leave PyTorch a tenth of the device when they are placed. */
  reservedBytes(): number {
    return 0;
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    await Promise.all([this.#check.stop(), this.#making]);
  }

  close(): void {
    this.#release();
  }
}

/** A graph of the dataset's nodes, and what tells it from others. */
export interface PropagatedAlong {
  readonly location: DatasetLocation;
  readonly key: string;
}

/** Share of the host's memory for a propagation, before anything else of the job takes any. */
const memoryShare = 0.25;
