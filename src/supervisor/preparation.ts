import { join } from 'node:path';
import type { DatasetLocation } from '../native/contract.ts';
import { budgetBytesOf } from '../plan/device-memory.ts';
import { type JobLayout, layoutOf } from '../plan/job-layout.ts';
import { memoryPlanOf } from '../plan/memory-plan.ts';
import type { MemoryPlan } from '../records/memory-plan.ts';
import { takesRows } from '../spec/model-kinds.ts';
import { infers } from '../spec/rules/inference.ts';
import { timed } from './attempt-parts.ts';
import type { AttemptContext } from './attempt-types.ts';
import { JobCache } from './job-cache.ts';
import { JobInference } from './job-inference.ts';
import { JobRows } from './job-rows.ts';
import { type AttemptDataset, DatasetLoad } from './load-dataset.ts';
import { ModelProbe } from './model-probe.ts';
import { momentsPath } from './standardization.ts';
import { TaskError } from './task.ts';

/** What an attempt makes before anybody trains, and holds until its end. */

export interface Prepared {
  readonly layout: JobLayout;
  readonly dataset: DatasetLocation;
  /** By the device's name: a memfd on its NUMA node. */
  readonly topologyFds: ReadonlyMap<string, number>;
  readonly memory: MemoryPlan;
  /** Of propagated rows; empty where batches are blocks. */
  readonly rowsFolder: string;
}

export class Preparation {
  readonly cache: JobCache;
  /** Of a job that infers; of others nothing is asked of it. */
  readonly inference: JobInference;
  readonly #context: AttemptContext;
  readonly #load = new DatasetLoad();
  readonly #rows = new JobRows();
  readonly #probe = new ModelProbe();
  readonly #checks = new AbortController();
  #checking: Promise<void> = Promise.resolve();
  #dataset: AttemptDataset | null = null;
  #prepared: Prepared | null = null;

  constructor(context: AttemptContext) {
    this.#context = context;
    this.cache = new JobCache(context);
    this.inference = new JobInference(context);
  }

  /** Standardised features, sizes, the topology in shared memory; false when it was stopped. */
  async prepare(isStopped: () => boolean): Promise<boolean> {
    const { native, input, topologies, witness, emit } = this.#context;
    emit({ kind: 'phase', phase: 'LOADING_DATASET' });
    const sizes = layoutOf(native, input.spec, input.dataset.counts);
    const memory = this.#memory();
    const isInference = infers(input.spec);
    if (isInference) await this.inference.readModel();
    if (takesRows(input.spec.model.type)) return await this.#prepareRows(sizes, memory, isStopped);
    const moments = isInference ? await this.inference.features() : null;
    if (isStopped()) return false;
    const from = { native, topologies, witness, moments };
    const read = () => this.#load.start(input, memory.topology, from);
    const dataset = await timed(this.#context, 'read dataset', read);
    if (isStopped()) {
      releaseAll(dataset);
      return false;
    }
    this.#dataset = dataset;
    const topologyFds = fdsOf(dataset, input.devices);
    const topologyFd = [...topologyFds.values()][0] ?? null;
    const layout = await this.#completed(sizes, topologyFd);
    this.#prepared = { layout, dataset: dataset.location, topologyFds, memory, rowsFolder: '' };
    if (isInference) await this.#beginInference(layout);
    else await this.cache.prepare({ ...this.#prepared, topologyFd });
    return !isStopped();
  }

  /** Rows of propagated features in place of features and topology; false when it was stopped. */
  async #prepareRows(
    layout: JobLayout,
    memory: MemoryPlan,
    isStopped: () => boolean,
  ): Promise<boolean> {
    const { dataset } = this.#context.input;
    await this.checkDataset();
    const inference = infers(this.#context.input.spec) ? this.inference : null;
    const propagate = () => this.#rows.start(this.#context, inference);
    const rowsFolder = await timed(this.#context, 'propagate', propagate);
    if (inference !== null) await this.#beginInference(layout);
    const location = { ...dataset, featuresPath: '' };
    this.#prepared = { layout, dataset: location, topologyFds: new Map(), memory, rowsFolder };
    return !isStopped();
  }

  /** Rejects unless the dataset, and what was made of it, is as it was: also once all was read. */
  async checkDataset(): Promise<void> {
    const { witness, input, native } = this.#context;
    const task = {
      cores: input.devices.flatMap(({ cores }) => cores),
      threads: 1,
      logPath: join(input.logFolder, 'check.log'),
      instructionSet: native.hostInstructionSet(),
      signal: this.#checks.signal,
      stallMs: input.spec.timeouts.stallMs,
    };
    const { dataset, datasetDigest: digest } = input;
    const features = this.#prepared?.dataset.featuresPath ?? '';
    const check = async () => {
      await witness.checkDataset({ folder: dataset.folder, digest }, task);
      if (features === '' || (await witness.isSound([features, momentsPath(features)], task)))
        return;
      const what = `${features} was damaged while the job read it`;
      throw new TaskError(
        'DATASET_CORRUPT',
        `${what}: it is removed, and the next job makes it again`,
      );
    };
    this.#checking = check();
    await this.#checking;
  }

  /** With what only a script itself can say. */
  #completed(sizes: JobLayout, topologyFd: number | null): Promise<JobLayout> {
    const { native, input } = this.#context;
    const ask = () => this.#probe.complete(sizes, { input, native, topologyFd });
    const isScript = input.spec.model.type === 'TORCHSCRIPT';
    return isScript ? timed(this.#context, 'probe model', ask) : ask();
  }

  async #beginInference(layout: JobLayout): Promise<void> {
    const begin = () => this.inference.begin(layout);
    const isListed = this.#context.input.spec.inference.nodes === 'LISTED';
    await (isListed ? timed(this.#context, 'list nodes', begin) : begin());
  }

  /** What is held in memory, as it was predicted when the job was created. */
  #memory(): MemoryPlan {
    const { native, input, log } = this.#context;
    const { hostBytes, spec, dataset } = input;
    const deviceBytes = budgetBytesOf(input.devices);
    const { counts } = dataset;
    const memory = memoryPlanOf(spec, { native, counts, hostBytes, deviceBytes });
    const { topology, topologyBytes, features, featuresBytes, pinned } = memory;
    const placed = { topology, topologyBytes, features, featuresBytes, pinned: pinned.reason };
    log.info('attempt.memory', { ...placed, hostBytes });
    return memory;
  }

  /** Throws before it is prepared. */
  get made(): Prepared {
    if (this.#prepared === null) throw new Error('the attempt was not prepared');
    return this.#prepared;
  }

  /** Resolves when no process of ours is left. */
  async stop(): Promise<void> {
    this.#checks.abort();
    await this.#checking.catch(() => {});
    const parts = [this.#load, this.#rows, this.cache, this.#probe, this.inference];
    await Promise.all(parts.map((part) => part.stop()));
  }

  close(): void {
    this.cache.close();
    if (this.#dataset !== null) releaseAll(this.#dataset);
    this.#dataset = null;
    this.#rows.close();
    this.#prepared = null;
  }
}

function fdsOf(
  { topologies }: AttemptDataset,
  devices: AttemptContext['input']['devices'],
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
