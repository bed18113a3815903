import { basename, join } from 'node:path';
import type { AttemptContext } from './attempt-types.ts';
import type { JobInference } from './job-inference.ts';
import type { PropagationRequest } from './propagation-types.ts';

/** The propagated rows that an attempt trains on: made where missing, held until its end. */
export class JobRows {
  readonly #abort = new AbortController();
  #making: Promise<unknown> = Promise.resolve();
  #release = () => {};

  /** Once. The folder of the rows; rejects as `Propagations.make` does. */
  start(context: AttemptContext, inference: JobInference | null): Promise<string> {
    const making = this.#make(context, inference);
    this.#making = making.catch(() => {});
    return making;
  }

  async #make(
    { input, native, propagations, log }: AttemptContext,
    inference: JobInference | null,
  ): Promise<string> {
    const { spec, dataset, datasetDigest, devices } = input;
    const cores = [...new Set(devices.flatMap((device) => device.cores))];
    const request: PropagationRequest = {
      source: {
        ...{ dataset: basename(dataset.folder), datasetDigest },
        ...{ propagation: spec.propagation, standardize: spec.features.standardize },
        ...(await inference?.rowSource()),
      },
      dataset,
      memoryBytes: Math.floor(memoryShare * input.hostBytes),
      derivedFolder: input.cacheFolder,
      ...(inference === null ? {} : { given: await inference.givenMoments() }),
    };
    const task = {
      ...{ cores, threads: Math.max(1, cores.length) },
      logPath: join(input.logFolder, 'propagator.log'),
      instructionSet: native.hostInstructionSet(),
      // Nobody else of the job is there yet.
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

  /** Resolves when no process of ours is left. */
  async stop(): Promise<void> {
    this.#abort.abort();
    await this.#making;
  }

  close(): void {
    this.#release();
  }
}

/** Of the host's memory, before anything else of the job takes any. */
const memoryShare = 0.25;
