import { closeSync } from 'node:fs';
import type { DatasetLocation } from '../native/contract.ts';
import type { MemoryPlan } from '../records/memory-plan.ts';
import type { AttemptContext } from './attempt-types.ts';
import { JobCache } from './job-cache.ts';
import { type JobLayout, layoutOf } from './job-layout.ts';
import { DatasetLoad } from './load-dataset.ts';
import { memoryPlanOf } from './memory-plan.ts';
import { ModelProbe } from './model-probe.ts';

/** What an attempt makes before anybody trains, and holds until its end. */

export interface Prepared {
  readonly layout: JobLayout;
  readonly dataset: DatasetLocation;
  readonly topologyFd: number;
  readonly memory: MemoryPlan;
}

export class Preparation {
  readonly cache: JobCache;
  readonly #context: AttemptContext;
  readonly #load = new DatasetLoad();
  readonly #probe = new ModelProbe();
  #topologyFd: number | null = null;
  #prepared: Prepared | null = null;

  constructor(context: AttemptContext) {
    this.#context = context;
    this.cache = new JobCache(context.input, context);
  }

  /** Standardised features, sizes, the topology in shared memory; false when it was stopped. */
  async prepare(isStopped: () => boolean): Promise<boolean> {
    const { native, input, log, emit } = this.#context;
    emit({ kind: 'phase', phase: 'LOADING_DATASET' });
    const sizes = layoutOf(native, input.spec, input.dataset.counts);
    const {
      hostBytes,
      dataset: { counts },
    } = input;
    const memory = memoryPlanOf(input.spec, { native, counts, hostBytes });
    const { topology, topologyBytes, features, featuresBytes } = memory;
    log.info('attempt.memory', { topology, topologyBytes, features, featuresBytes, hostBytes });
    const { location: dataset, topologyFd } = await this.#load.start(input, native, topology);
    if (isStopped()) {
      closeSync(topologyFd);
      return false;
    }
    this.#topologyFd = topologyFd;
    const layout = await this.#probe.complete(sizes, { input, native, topologyFd });
    this.#prepared = { layout, dataset, topologyFd, memory };
    await this.cache.prepare(this.#prepared);
    return !isStopped();
  }

  /** Throws before it is prepared. */
  get made(): Prepared {
    if (this.#prepared === null) throw new Error('the attempt was not prepared');
    return this.#prepared;
  }

  /** Resolves when no process of ours is left. */
  async stop(): Promise<void> {
    await Promise.all([this.#load.stop(), this.cache.stop(), this.#probe.stop()]);
  }

  close(): void {
    if (this.#topologyFd !== null) closeSync(this.#topologyFd);
    this.#topologyFd = null;
    this.#prepared = null;
  }
}
