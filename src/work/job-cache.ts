import { join } from 'node:path';
import type { CrewDevice } from '../devices/seat.ts';
import { topologyFd as taskTopologyFd } from '../executor/protocol.ts';
import {
  type CoreAddon,
  counters,
  type DatasetLocation,
  type ExecutorSnapshot,
  type SamplingOptions,
  type SegmentSnapshot,
} from '../native/contract.ts';
import {
  budgetBytesOf,
  type CachedRows,
  cachePlanOf,
  evaluationBytesOf,
  evaluationPlanOf,
  heldByTrainers,
  type JobLayout,
  noCachedRows,
  takenBeside,
  trainerThreads,
} from '../plan/plan.ts';
import {
  HostTier,
  type HotOrder,
  prepareFavoured,
  prepareHotOrder,
  rowsKeptBy,
} from '../prepare/prepare.ts';
import type { CachePlan } from '../records/job-record.ts';
import type { MemoryPlan } from '../records/memory-plan.ts';
import { mayCache } from '../spec/cache-spec.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import { sharesHistory } from '../spec/rules/history.ts';
import { favours } from '../spec/rules/locality.ts';
import {
  type AttemptInput,
  type PlacedViews,
  type TaskOptions,
  timed,
} from '../supervisor/supervisor.ts';
import type { WorkContext } from './context.ts';
import { type PlacedRows, placeRows, samplerSetsOf, withMeasured } from './placed-rows.ts';

/** The part of an attempt's prepared inputs that ranking needs. */
interface RankInputs {
  readonly dataset: DatasetLocation;
  readonly layout: Pick<JobLayout, 'sampling'>;
  readonly topologyFd: number | null;
  readonly memory: Pick<MemoryPlan, 'features' | 'pinned'>;
  readonly graphKey: string;
}

/** The work whose caches these are. */
interface CachedWork {
  /** Bytes of each device that caches leave to PyTorch, beside which others took so many. */
  readonly input: { reservedBytes(besideBytes: number): number };
  /** Batches, or chunks of predictions, that Trainers compute at once. */
  readonly batchesAtOnce: number;
}

/** What an attempt knows about its caches: the order of nodes, and how many rows devices keep. */
export class JobCache {
  readonly #input: AttemptInput;
  readonly #native: CoreAddon;
  readonly #context: Pick<WorkContext, 'clock' | 'emit' | 'witness'>;
  readonly #abort = new AbortController();
  readonly #tier: HostTier;
  readonly #of: CachedWork;
  #preparing: Promise<unknown> = Promise.resolve();
  #order: HotOrder = { path: '', rankMs: 0, runs: [] };
  #favouredPath = '';
  /** Null before the launch, and where no two Trainers have memory of their own. */
  #placed: PlacedRows | null = null;
  /** Memory that trial batches took; 0 = not measured yet. */
  #workBytes = 0;
  /** Memory of a Trainer's device that others than gnnd took during the trial. */
  #besideBytes = 0;
  #evaluationBytes = 0;
  /** Device memory that a Sampler takes; the topology alone until a trial has run. */
  #samplerBytes: number | null = null;
  /** Known once the cache is prepared; false before. */
  #featuresOnDisk = false;

  constructor(
    context: Pick<WorkContext, 'input' | 'native' | 'clock' | 'emit' | 'witness'>,
    of: CachedWork,
  ) {
    this.#of = of;
    const { input, native } = context;
    this.#context = context;
    this.#input = input;
    this.#native = native;
    this.#tier = new HostTier(native);
  }

  get batchesAtOnce(): number {
    return this.#of.batchesAtOnce;
  }

  /** Empty: no order was made and nothing is cached. */
  get orderPath(): string {
    return this.#order.path;
  }

  /** Path of the favoured-nodes file; empty where locality is off. */
  get favouredPath(): string {
    return this.#favouredPath;
  }

  /** Descriptor of the host's tier of features, ours to close; null: there is none. */
  get hostTierFd(): number | null {
    return this.#tier.fd;
  }

  /** What each Trainer is told of the others' rows, by its device's name. */
  get placed(): PlacedViews {
    return this.#placed ?? { views: new Map(), endRank: 0 };
  }

  /** Decides which of these devices, whose Trainers do nothing else, holds which rows. */
  place(trainers: ReadonlySet<string>, { batchesPerEpoch }: JobLayout): void {
    // Without an order nothing is cached: of inferences, and where batches are rows.
    if (this.#order.path === '') return;
    const { spec, devices } = this.#input;
    const { trainerRows, rowBytes } = this.plan;
    const { runs } = this.#order;
    const sizes = { runs, rowBytes, rows: trainerRows, batchesPerEpoch };
    this.#placed = placeRows({ spec, ...sizes, devices, trainers });
  }

  /** For each number of Samplers the devices that should sample; empty: it does not matter. */
  samplerSets(): readonly (readonly string[])[] {
    const { spec, devices } = this.#input;
    const { trainerRows, rowBytes } = this.plan;
    const sizes = { runs: this.#order.runs, rowBytes, rows: trainerRows, batchesPerEpoch: 1 };
    return samplerSetsOf({
      spec,
      ...sizes,
      devices,
      trainers: new Set(devices.map(({ name }) => name)),
    });
  }

  /**
   * What lies in the memory of the history that Trainers share, one cache for all of them: as large
   * as the largest that one of them is to have. Devices with memory of their own cache there.
   */
  get sharedRows(): CachedRows {
    const { spec, devices } = this.#input;
    const isOnCores = devices.every(({ accelerator }) => accelerator === undefined);
    if (!sharesHistory(spec) || !isOnCores || this.#order.path === '') return noCachedRows;
    const { trainerRows, standbyRows, rowBytes } = this.plan;
    return { rows: Math.max(trainerRows, standbyRows), rowBytes };
  }

  /** The plan as far as it is known. */
  get plan(): CachePlan {
    return { ...this.#sizes(), placement: this.#placed?.plan ?? null };
  }

  #sizes(): Omit<CachePlan, 'placement'> {
    const { spec, dataset, devices } = this.#input;
    return cachePlanOf(spec, {
      counts: dataset.counts,
      samplerBytes: this.#samplerBytes ?? this.#native.topologyBytes(dataset.counts, false),
      deviceBudgetBytes: budgetBytesOf(devices),
      featuresOnDisk: this.#featuresOnDisk,
      workBytes: this.#workBytes,
      reservedBytes: this.#of.input.reservedBytes(this.#besideBytes),
      evaluationBytes: this.#evaluationBytes,
      rankMs: this.#order.rankMs,
      pinned: this.#tier.facts,
      freeCores: freeCoresOf(spec, devices, this.batchesAtOnce),
    });
  }

  /**
   * Ranks the nodes, where anything may be cached, and makes the host's tier of features. Rejects
   * with a TaskError.
   */
  async prepare(inputs: RankInputs): Promise<void> {
    this.#featuresOnDisk = inputs.memory.features === 'DISK';
    if (!mayCache(this.#input.spec)) return;
    const preparing = this.#prepare(inputs);
    this.#preparing = preparing.catch(() => {});
    await preparing;
  }

  async #prepare({ dataset, layout, topologyFd, memory, graphKey }: RankInputs): Promise<void> {
    const context = this.#context;
    const rank = () => this.#rank({ dataset, graphKey }, layout.sampling, topologyFd);
    this.#order = await timed(context, 'pre-sample', rank);
    const favour = () => this.#favour(dataset, layout.sampling, topologyFd);
    if (favours(this.#input.spec)) await timed(context, 'favour nodes', favour);
    const inputs = { dataset, orderPath: this.#order.path, planned: memory.pinned };
    const pin = () => this.#tier.make(inputs, this.#taskOf('host-tier', null));
    await (memory.pinned.bytes > 0 ? timed(context, 'pin rows', pin) : pin());
  }

  /** Notes what the work of trial batches took, and what evaluations will take. */
  measured({ executors }: SegmentSnapshot, layout: JobLayout): void {
    const evaluation = evaluationPlanOf(this.#native, layout, this.#input);
    const { devices } = this.#input;
    const held = heldByTrainers(executors);
    if (held === 0) {
      this.#evaluationBytes = evaluationBytesOf(evaluation, devices.length);
      const workBytes = executors.map((executor) => executor.counters[counters.workBytes] ?? 0);
      this.#workBytes = Math.max(0, ...workBytes);
      return;
    }
    // A Trainer's workspace includes the memory of evaluations from its start on.
    this.#workBytes = held;
    this.#besideBytes = takenBeside(executors, devices);
    this.#samplerBytes = layout.memory.samplerDeviceBytes;
    this.#tier.tried(executors, this.#rowsKept());
  }

  /** Looks at a run's executors if there was no trial; true: the plan has a new sentence. */
  seen(executors: readonly ExecutorSnapshot[]): boolean {
    return this.#tier.noteRefusal(executors, this.#rowsKept());
  }

  /** Notes what the run's batches read so far beside the plan; false: no rows are placed. */
  read(executors: readonly ExecutorSnapshot[]): boolean {
    if (this.#placed === null || this.#placed.views.size === 0) return false;
    this.#placed = withMeasured(this.#placed, this.#input.devices, executors);
    return true;
  }

  /** On every device that trains. */
  #rowsKept(): number {
    const { spec, devices } = this.#input;
    const hasStandby = devices.length === 1 || spec.placement.standby !== 'OFF';
    return rowsKeptBy(this.plan, hasStandby);
  }

  /** Resolves when no process of ours is left. */
  async stop(): Promise<void> {
    this.#abort.abort();
    await this.#preparing;
  }

  close(): void {
    this.#tier.close();
  }

  #rank(
    { dataset, graphKey }: Pick<RankInputs, 'dataset' | 'graphKey'>,
    sampling: SamplingOptions,
    topologyFd: number | null,
  ) {
    const { spec, datasetDigest, cacheFolder } = this.#input;
    const inputs = {
      dataset,
      sampling,
      randomSeed: BigInt(spec.training.randomSeed),
      topologyFd: taskTopologyFd,
      policy: spec.cache.policy,
      presampleEpochs: spec.cache.presampleEpochs,
      epochs: spec.training.epochs,
    };
    const { clock, witness } = this.#context;
    return prepareHotOrder(
      { inputs, datasetDigest, graphKey, folder: cacheFolder, clock, witness },
      this.#taskOf('rank', topologyFd),
    );
  }

  async #favour(dataset: DatasetLocation, sampling: SamplingOptions, topologyFd: number | null) {
    const { spec, cacheFolder } = this.#input;
    const { ratio, hopNodes } = spec.sampling.locality;
    const inputs = {
      dataset,
      topologyFd: taskTopologyFd,
      orderPath: this.#order.path,
      rows: Math.floor(ratio * dataset.counts.numNodes),
      hops: sampling.fanouts.length,
      hopNodes,
    };
    const task = this.#taskOf('favour', topologyFd);
    const { witness } = this.#context;
    const place = { folder: cacheFolder, witness };
    this.#favouredPath = await prepareFavoured(inputs, place, task);
  }

  #taskOf(name: string, topologyFd: number | null): TaskOptions {
    const { devices, logFolder, spec } = this.#input;
    return {
      stallMs: spec.timeouts.stallMs,
      // All cores of the job, because nothing else of it runs before it is prepared.
      cores: [...new Set(devices.flatMap(({ cores }) => cores))],
      topologyFd,
      logPath: join(logFolder, `${name}.log`),
      threads: 1,
      instructionSet: this.#native.hostInstructionSet(),
      signal: this.#abort.signal,
    };
  }
}

function freeCoresOf(
  spec: JobSpec,
  devices: readonly CrewDevice[],
  batchesAtOnce: number,
): number | null {
  const free = devices.flatMap(({ accelerator }, device) => {
    const { cores, threads } = trainerThreads(spec, devices, device, batchesAtOnce);
    return accelerator === undefined ? [cores.length - threads] : [];
  });
  return free.length === 0 ? null : Math.min(...free);
}
