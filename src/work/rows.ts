import { basename, join } from 'node:path';
import type { PropagationRequest } from '../prepare/prepare.ts';
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
    const propagate = () => {
      const making = this.#make(trained);
      this.#making = making.catch(() => {});
      return making;
    };
    const rowsFolder = await timed(this.#context, 'propagate', propagate);
    const dataset = { ...this.#context.input.dataset, featuresPath: '' };
    return { ...sizes, dataset, topologyFds: new Map(), ...ownGraph, rowsFolder };
  }

  /** The folder of the rows; rejects as `Propagations.make` does. */
  async #make(trained: TrainedMoments | null): Promise<string> {
    const { input, native, propagations, log } = this.#context;
    const { spec, dataset, datasetDigest, devices } = input;
    const cores = [...new Set(devices.flatMap((device) => device.cores))];
    const request: PropagationRequest = {
      source: {
        ...{ dataset: basename(dataset.folder), datasetDigest },
        ...{ propagation: spec.propagation, standardize: spec.features.standardize === 'ON' },
        ...(await trained?.rowSource()),
      },
      dataset,
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

/** Share of the host's memory for a propagation, before anything else of the job takes any. */
const memoryShare = 0.25;
