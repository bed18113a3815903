import { join } from 'node:path';
import type { DatasetLocation } from '../native/contract.ts';
import {
  budgetBytesOf,
  type JobLayout,
  layoutOf,
  memoryPlanOf,
  type PlanKind,
  type SegmentRequest,
} from '../plan/plan.ts';
import { momentsPath, typedRowFiles } from '../prepare/prepare.ts';
import type { MemoryPlan } from '../records/memory-plan.ts';
import { type CrewParts, TaskError } from '../supervisor/supervisor.ts';
import type { WorkContext } from './context.ts';
import type { JobCache } from './job-cache.ts';
import type { JobInference } from './job-inference.ts';

/** Layout and memory plan, which follow from the spec and from sizes alone. */
export interface Sizes {
  readonly layout: JobLayout;
  readonly memory: MemoryPlan;
}

/** What an attempt makes before any executor starts, and holds until its end. */
export interface Prepared extends Sizes {
  readonly dataset: DatasetLocation;
  /** A memfd on the device's NUMA node, by the device's name. */
  readonly topologyFds: ReadonlyMap<string, number>;
  /** Folder of propagated rows; empty where batches are blocks. */
  readonly rowsFolder: string;
  /** What tells the graph of batches from the dataset's own; empty: it is that. */
  readonly graphKey: string;
  /** The graph that test links are told by, where it is another; else null. */
  readonly testGraph: DatasetLocation | null;
  /** Paths of other files that were made of the dataset and that executors read. */
  readonly derivedFiles: readonly string[];
}

export type DerivedGraph = Pick<Prepared, 'graphKey' | 'testGraph' | 'derivedFiles'>;

export const ownGraph: DerivedGraph = {
  graphKey: '',
  testGraph: null,
  derivedFiles: [],
};

/** Moments of the training, by which an inference standardises features and rows. */
export type TrainedMoments = Pick<JobInference, 'features' | 'rowSource' | 'givenMoments'>;

/** What batches are made from: blocks of a graph, or rows of propagated features. */
export interface WorkInput {
  /** Null when it was stopped. `trained` is null where the job itself trains. */
  prepare(
    sizes: Sizes,
    trained: TrainedMoments | null,
    isStopped: () => boolean,
  ): Promise<Prepared | null>;
  /** Bytes of each device that caches leave to PyTorch, beside which others took so many. */
  reservedBytes(besideBytes: number): number;
  /** Resolves when no process of this input is left. */
  stop(): Promise<void>;
  close(): void;
}

const trainingNodes: CrewParts['seeds'] = { path: '', count: 0, shuffled: true };

/** Checks that a dataset, and what was made of it, is as it was when the job was created. */
export class DatasetCheck {
  readonly #context: WorkContext;
  readonly #abort = new AbortController();
  #checking: Promise<void> = Promise.resolve();

  constructor(context: WorkContext) {
    this.#context = context;
  }

  /** Rejects with a TaskError. `derived` are files that were made of it. */
  async check(derived: readonly string[]): Promise<void> {
    this.#checking = this.#check(derived);
    await this.#checking;
  }

  async #check(derived: readonly string[]): Promise<void> {
    const { witness, input, native } = this.#context;
    const task = {
      cores: input.devices.flatMap(({ cores }) => cores),
      threads: 1,
      logPath: join(input.logFolder, 'check.log'),
      instructionSet: native.hostInstructionSet(),
      signal: this.#abort.signal,
      stallMs: input.spec.timeouts.stallMs,
    };
    const { dataset, datasetDigest: digest } = input;
    await witness.checkDataset({ folder: dataset.folder, digest }, task);
    if (derived.length === 0 || (await witness.isSound(derived, task))) return;
    throw new TaskError(
      'DATASET_CORRUPT',
      `${derived[0]}, or what was made with it, was damaged while the job read it: it is ` +
        'removed, and the next job makes it again',
    );
  }

  /** Resolves when no process of this check is left. */
  async stop(): Promise<void> {
    this.#abort.abort();
    await this.#checking.catch(() => {});
  }
}

/** The preparing that all kinds of jobs have in common, and what it made. */
export class Preparation {
  readonly #context: WorkContext;
  readonly #kind: PlanKind;
  readonly #input: WorkInput;
  readonly #check: DatasetCheck;
  #made: Prepared | null = null;

  constructor(context: WorkContext, kind: PlanKind, input: WorkInput) {
    this.#context = context;
    this.#kind = kind;
    this.#input = input;
    this.#check = new DatasetCheck(context);
  }

  /** First: what is held in memory is what was predicted when the job was created. */
  begin(): Sizes {
    const { native, input, log, emit } = this.#context;
    emit({ kind: 'phase', phase: 'LOADING_DATASET' });
    const { hostBytes, spec } = input;
    const { counts } = input.dataset;
    const layout = layoutOf(this.#kind, native, spec, counts);
    const deviceBytes = budgetBytesOf(input.devices);
    const memory = memoryPlanOf(this.#kind, spec, { native, counts, hostBytes, deviceBytes });
    const { topology, topologyBytes, features, featuresBytes, pinned } = memory;
    const placed = { topology, topologyBytes, features, featuresBytes, pinned: pinned.reason };
    log.info('attempt.memory', { ...placed, hostBytes });
    return { layout, memory };
  }

  /** Null when it was stopped. */
  async make(
    sizes: Sizes,
    trained: TrainedMoments | null,
    isStopped: () => boolean,
  ): Promise<Prepared | null> {
    this.#made = await this.#input.prepare(sizes, trained, isStopped);
    return this.#made;
  }

  /** The prepared parts; throws before they are made. */
  get made(): Prepared {
    if (this.#made === null) throw new Error('the attempt was not prepared');
    return this.#made;
  }

  /** Rejects unless the dataset, and what was made of it, is as it was: also once all was read. */
  checkDataset(): Promise<void> {
    if (this.#made === null) return this.#check.check([]);
    const { dataset, derivedFiles } = this.#made;
    const ofTypes = typedRowFiles(dataset);
    const { featuresPath } = dataset;
    const features = featuresPath === '' ? [] : [featuresPath, momentsPath(featuresPath)];
    return this.#check.check([...features, ...ofTypes, ...derivedFiles]);
  }

  /** The request for a segment of so many executors. */
  request(executorCount: number): SegmentRequest {
    const { spec, dataset, devices } = this.#context.input;
    const { layout } = this.made;
    return { spec, counts: dataset.counts, layout, deviceCount: devices.length, executorCount };
  }

  /** The prepared parts that a crew shares. */
  shared(cache: JobCache): Omit<CrewParts, 'segment' | 'evaluation' | 'prediction'> {
    const { orderPath, favouredPath, plan, placed, hostTierFd, batchesAtOnce } = cache;
    const of = { orderPath, favouredPath, cache: plan, placed, hostTierFd, batchesAtOnce };
    return { ...this.made, ...of, openHiddenRows: null, lendsAt: null, seeds: trainingNodes };
  }

  /** Resolves when no process of these is left. */
  async stop(): Promise<void> {
    await this.#check.stop();
    await this.#input.stop();
  }

  close(): void {
    this.#input.close();
    this.#made = null;
  }
}

/** The answer of work in which nobody samples, so that there is nothing to try. */
export function untried(): never {
  throw new Error('a job in which nobody samples is not calibrated');
}
