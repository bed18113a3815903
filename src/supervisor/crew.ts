import { closeSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { CrewDevice, LivingSeat, Seat } from '../devices/seat.ts';
import {
  hostTierFd,
  protocolVersion,
  type StartMessage,
  scratchFd,
  segmentFd,
  topologyFd,
} from '../executor/protocol.ts';
import type {
  CoreAddon,
  DatasetLocation,
  ExecutorOptions,
  PredictionOptions,
  RowPlacement,
  SeedOptions,
  SegmentHandle,
  SegmentSnapshot,
  SegmentSpec,
} from '../native/contract.ts';
import {
  type CachedRows,
  createScratch,
  deviceOptionsOf,
  type EvaluationPlan,
  evaluationSampling,
  historyOptionsOf,
  type JobLayout,
  linkTrainingOf,
  noCachedRows,
  optimizerOf,
  torchBytesOf,
  trainerThreads,
} from '../plan/plan.ts';
import type { CachePlan, ExecutorExit, ExecutorRole } from '../records/job-record.ts';
import type { MemoryPlan } from '../records/memory-plan.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import { decidingMetric } from '../spec/metrics.ts';
import { type ExecutorProcess, spawnExecutor } from './executor-process.ts';
import { type ExecutorOutcome, outcomeOf } from './exit-reason.ts';
import { createOomKills } from './oom-kills.ts';
import { noteDump, processState } from './process-state.ts';
import { settlesWithin } from './settles-within.ts';
import { unwatched, Watchdog, type Watched } from './watchdog.ts';

/**
 * A segment and the executors that share it: spawned, watched, killed when they stall, reaped, what
 * they held reclaimed. A trial and a job's run are one crew each.
 */

/** Views of Trainers on each other's rows. */
export interface PlacedViews {
  /** Views by the device's name; empty: each Trainer has a plain cache. */
  readonly views: ReadonlyMap<string, RowPlacement>;
  /** Ranks below this are held by some device; Samplers mark ranks up to it. */
  readonly endRank: number;
}

/** Parts that the executors of a crew share, made by the work of their job. */
export interface CrewParts {
  readonly segment: SegmentSpec;
  /** Null for a trial: nothing is evaluated, and orderly ends are told by its result alone. */
  readonly evaluation: EvaluationPlan | null;
  /** Descriptors of topologies by the device's name. */
  readonly topologyFds: ReadonlyMap<string, number>;
  readonly dataset: DatasetLocation;
  /** The graph that test links are told by; null: that of the dataset, as all else. */
  readonly testGraph: DatasetLocation | null;
  /** Folder of a propagation's row files; empty where batches are blocks. */
  readonly rowsFolder: string;
  /** Options of predictions, which take the place of evaluations. */
  readonly prediction: PredictionOptions;
  /** Opens a file of hidden rows that outlives the crew; null: it makes one without a name. */
  readonly openHiddenRows: (() => number) | null;
  readonly layout: JobLayout;
  readonly memory: MemoryPlan;
  /** Path of the order that caches follow; empty: none was made and nothing is cached. */
  readonly orderPath: string;
  /** Path of the favoured-nodes file; empty where locality is off. */
  readonly favouredPath: string;
  /** Batches, or chunks of predictions, that Trainers compute at once. */
  readonly batchesAtOnce: number;
  readonly cache: CachePlan;
  /** Which rows Trainers hold for each other. */
  readonly placed: PlacedViews;
  /** Descriptor of the first `cache.pinnedRows` rows by rank; null: there is none. */
  readonly hostTierFd: number | null;
  /** The nodes that become seeds. */
  readonly seeds: SeedOptions;
  /** Name of the socket at which Trainers lend batches; null: they train on them. */
  readonly lendsAt: string | null;
}

export interface CrewOptions extends CrewParts {
  readonly native: CoreAddon;
  readonly log: Log;
  readonly clock: Clock;
  readonly spec: JobSpec;
  /** All devices of the attempt; the index is the segment's device number. */
  readonly devices: readonly CrewDevice[];
  readonly logFolder: string;
  readonly onSpawned: (role: ExecutorRole) => void;
  readonly onReady: (executor: string) => void;
  /** Called after the process was reaped and what it held was reclaimed. */
  readonly onExited: (executor: string, outcome: ExecutorOutcome, exit: ExecutorExit) => void;
  /** An executor stalled and SIGKILL has no effect: what it holds will not come back. */
  readonly onUnkillable: (seat: LivingSeat) => void;
}

interface Member {
  readonly seat: Seat;
  readonly incarnation: number;
  readonly process: ExecutorProcess;
  ready: boolean;
  /** Why and when it was killed, if it was. */
  stalled: { readonly why: string; readonly atMs: number } | null;
  readonly watched: Watched;
  isUnkillable: boolean;
  gone: Promise<void>;
}

/** How long a SIGKILLed process may take to be reaped before it counts as unkillable. */
const killDeadlineMs = 30_000;

export class Crew {
  readonly segment: SegmentHandle;
  readonly #options: CrewOptions;
  readonly #segmentFd: number;
  readonly #scratchFd: number | null;
  readonly #members = new Map<string, Member>();
  #reclaimed = { CLAIMED: 0, TAKEN: 0 };
  readonly #spawning = new Set<Promise<void>>();
  readonly #stop = new AbortController();
  readonly #watchdog: Watchdog;
  readonly #oomKills = createOomKills();
  #closed = false;

  /** Throws with a NativeCode when the segment cannot be made. */
  constructor(options: CrewOptions) {
    this.#options = options;
    this.#watchdog = new Watchdog(options.spec.timeouts, processState);
    const { native, evaluation } = options;
    const { segment, fd } = native.segmentCreate(options.segment);
    this.segment = segment;
    this.#segmentFd = fd;
    try {
      const make = () => (evaluation === null ? null : createScratch(native, evaluation));
      this.#scratchFd = (options.openHiddenRows ?? make)();
    } catch (error) {
      native.segmentClose(segment);
      closeSync(fd);
      throw error;
    }
  }

  /** Pids by incarnation. */
  get pids(): ReadonlyMap<number, number> {
    return new Map([...this.#members.values()].map((m) => [m.incarnation, m.process.pid]));
  }

  /** Batches taken back from dead executors so far. */
  get reclaimed(): { readonly CLAIMED: number; readonly TAKEN: number } {
    return this.#reclaimed;
  }

  look(): SegmentSnapshot {
    return this.#options.native.segmentSnapshot(this.segment);
  }

  /**
   * Registers and starts an executor; rejects when no process could be started. Nothing once the
   * crew was told to stop: nobody would wait for its end.
   */
  spawn(seat: Seat): Promise<void> {
    const spawning = this.#spawn(seat).finally(() => this.#spawning.delete(spawning));
    this.#spawning.add(spawning);
    return spawning;
  }

  async #spawn(seat: Seat): Promise<void> {
    if (this.#stop.signal.aborted) return;
    const { native, spec, devices } = this.#options;
    const device = devices.findIndex(({ name }) => name === seat.device);
    const id = native.segmentRegister(this.segment, seat.role, device);
    const process = await spawnExecutor({
      start: this.#startOf(seat, device, id),
      logPath: join(this.#options.logFolder, `${seat.executor.replace(/[^\w.-]/g, '_')}.log`),
      segmentFd: this.#segmentFd,
      topologyFd: this.#options.topologyFds.get(seat.device) ?? null,
      scratchFd: this.#scratchFd,
      hostTierFd: this.#readsHostTier(seat.role, device) ? this.#options.hostTierFd : null,
      threads: trainerThreads(spec, devices, device, this.#options.batchesAtOnce).threads,
      instructionSet: native.hostInstructionSet(),
      matrixLibrary: spec.training.matrixLibrary,
      determinism: spec.training.determinism,
      ...this.#acceleratorOf(seat.role, device),
      signal: this.#stop.signal,
    });
    const member: Member = {
      seat,
      incarnation: id.incarnation,
      process,
      ready: false,
      stalled: null,
      watched: unwatched(),
      isUnkillable: false,
      gone: Promise.resolve(),
    };
    this.#members.set(seat.executor, member);
    this.#options.log.info('executor.spawned', { ...seat, pid: process.pid });
    this.#options.onSpawned(seat.role);
    member.gone = this.#bury(member);
    if (this.#stop.signal.aborted) process.kill();
  }

  /** Scans once for executors that became ready or stalled. */
  watch(snapshot: SegmentSnapshot): void {
    const nowMs = this.#options.clock.monotonicMs();
    this.#watchdog.begin(nowMs);
    this.#oomKills.look(nowMs);
    for (const member of this.#members.values()) {
      const row = snapshot.executors.find((e) => e.incarnation === member.incarnation);
      if (row === undefined) continue;
      if (!member.ready && row.phase === 'RUNNING') {
        member.ready = true;
        this.#options.onReady(member.seat.executor);
      }
      if (row.phase === 'REAPED') continue;
      if (member.stalled !== null) this.#tellIfUnkillable(member, nowMs);
      else this.#killIfStalled(member, row, nowMs);
    }
  }

  /** Asks everyone to stop, kills after `graceMs`. Resolves to those that could not be killed. */
  async stop(graceMs: number): Promise<readonly LivingSeat[]> {
    this.#stop.abort();
    // A starting executor becomes a member first, or its process would outlive the attempt.
    await Promise.allSettled(this.#spawning);
    const members = [...this.#members.values()];
    if (!this.#closed) this.#options.native.segmentAbort(this.segment, 'the attempt was stopped');
    const all = Promise.all(members.map((member) => member.gone));
    if (await settlesWithin(all, graceMs)) return [];
    for (const member of members) member.process.kill();
    if (await settlesWithin(all, killDeadlineMs)) return [];
    const left = await Promise.all(
      members.map(async ({ gone, seat, process: { pid } }) =>
        (await settlesWithin(gone, 0)) ? null : { ...seat, pid },
      ),
    );
    return left.filter((seat) => seat !== null);
  }

  /** Lets go of the segment; the kernel frees it with its last process. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#options.native.segmentClose(this.segment);
    closeSync(this.#segmentFd);
    if (this.#scratchFd !== null) closeSync(this.#scratchFd);
  }

  #startOf(seat: Seat, device: number, executor: ExecutorOptions['executor']): StartMessage {
    const { dataset, spec, layout, devices, memory, batchesAtOnce } = this.#options;
    const options: ExecutorOptions = {
      dataset,
      sampling: layout.sampling,
      seeds: this.#options.seeds,
      randomSeed: BigInt(spec.training.randomSeed),
      segmentFd,
      topologyFd,
      executor,
      cache: {
        orderPath: this.#options.orderPath,
        favouredPath: this.#options.favouredPath,
        rows: this.#cacheRowsOf(seat.role),
        featuresOnDisk: memory.features === 'DISK',
        readAheadBytes: this.#readAheadBytes(),
        hostTierFd: this.#readsHostTier(seat.role, device) ? hostTierFd : 0,
        placement: this.#placementOf(seat),
      },
      device: this.#deviceOptionsOf(seat.role, device),
    };
    const start = { kind: 'start', version: protocolVersion } as const;
    if (seat.role === 'SAMPLER') {
      return { ...start, cores: devices[device]?.cores ?? [], role: seat.role, options };
    }
    const { lendsAt: socket } = this.#options;
    if (socket !== null)
      return { ...start, cores: [], role: 'LENDER', options: { ...options, socket } };
    const { threads, cores } = trainerThreads(spec, devices, device, batchesAtOnce);
    return {
      ...start,
      cores,
      role: seat.role,
      options: {
        ...options,
        model: layout.model,
        optimizer: optimizerOf(spec, layout),
        precision: spec.training.precision,
        threads,
        prefetch: this.#options.cache.prefetch,
        prediction: this.#options.prediction,
        classWeighting: {
          weights: spec.training.classWeights,
          balanced: spec.training.balanceClasses,
        },
        links: linkTrainingOf(spec, this.#options.testGraph),
        history: historyOptionsOf(this.#options, this.#besideOwnHistory(seat.role, device)),
        rows: {
          folder: this.#options.rowsFolder,
          chunk: Math.max(1, spec.training.rowChunk),
          tier: this.#rowTierOf(device),
          deviceSplits: memory.rows?.splits ?? 'ALL',
        },
        evaluation: {
          scratchFd: this.#scratchFd === null ? 0 : scratchFd,
          sampled: spec.evaluation.method === 'SAMPLED',
          sampling: evaluationSampling(spec, layout),
          decides: decidingMetric(spec, dataset.counts.task),
        },
      },
    };
  }

  /** A Trainer on cores reads in the host's memory what devices hold. */
  #rowTierOf(device: number): 'DEVICE' | 'HOST' | 'DISK' {
    const { devices, memory } = this.#options;
    const tier = memory.rows?.tier ?? 'HOST';
    return tier === 'DEVICE' && devices[device]?.accelerator === undefined ? 'HOST' : tier;
  }

  #acceleratorOf(role: ExecutorRole, index: number) {
    const accelerator = this.#options.devices[index]?.accelerator;
    if (accelerator === undefined) return {};
    return { accelerator, torchBytes: torchBytesOf(accelerator, role, this.#options.cache) };
  }

  #deviceOptionsOf(role: ExecutorRole, index: number): ExecutorOptions['device'] {
    const { devices, spec, layout } = this.#options;
    const device = devices[index];
    if (device === undefined) throw new Error(`the crew has no device ${index}`);
    const { reservedBytes } = this.#options.cache;
    const job = { spec, layout, reservedBytes };
    return deviceOptionsOf(device, role, job, devices.length);
  }

  /** Trainers on devices that have memory of their own. */
  #readsHostTier(role: ExecutorRole, device: number): boolean {
    const { devices, hostTierFd: fd } = this.#options;
    return fd !== null && role !== 'SAMPLER' && devices[device]?.accelerator !== undefined;
  }

  /** Read-ahead bytes of each Sampler; there may be one on every device but one. */
  #readAheadBytes(): number {
    const { memory, devices } = this.#options;
    return Math.floor(memory.readAheadBytes / Math.max(1, devices.length - 1));
  }

  /** A Sampler marks for all caches, for what Trainers hold for each other and the host's tier. */
  #cacheRowsOf(role: ExecutorRole): number {
    const { cache, orderPath, placed } = this.#options;
    const { trainerRows, standbyRows, pinnedRows } = cache;
    if (orderPath === '') return 0;
    if (role === 'TRAINER') return trainerRows;
    if (role === 'STANDBY') return standbyRows;
    return Math.max(trainerRows, standbyRows, pinnedRows, placed.endRank);
  }

  /** Rows that a Trainer on cores caches in its own history's memory, where it has a history. */
  #besideOwnHistory(role: ExecutorRole, device: number): CachedRows {
    const { cache, devices } = this.#options;
    if (devices[device]?.accelerator !== undefined) return noCachedRows;
    return { rows: this.#cacheRowsOf(role), rowBytes: cache.rowBytes };
  }

  #placementOf({ role, device }: Seat): RowPlacement {
    const view = role === 'TRAINER' ? this.#options.placed.views.get(device) : undefined;
    return view ?? { device: 0, lines: [], rowNs: [], hostRowNs: 0 };
  }

  #killIfStalled(member: Member, row: Parameters<Watchdog['look']>[0], nowMs: number): void {
    const { seat, process, watched } = member;
    const stall = this.#watchdog.look(row, process.pid, watched, nowMs);
    if (stall === null) return;
    const { why, silentMs } = stall;
    member.stalled = { why, atMs: nowMs };
    this.#options.log.warn('executor.stalled', { ...seat, pid: process.pid, silentMs, why });
    noteDump(process.pid, process.logPath, why);
    process.end();
  }

  #tellIfUnkillable(member: Member, nowMs: number): void {
    const { stalled, seat, process, isUnkillable } = member;
    if (stalled === null || isUnkillable || this.#stop.signal.aborted) return;
    if (nowMs - stalled.atMs <= killDeadlineMs) return;
    member.isUnkillable = true;
    this.#options.onUnkillable({ ...seat, pid: process.pid });
  }

  async #reclaim({ seat, incarnation }: Member): Promise<void> {
    if (this.#closed) return;
    try {
      const held = await this.#options.native.segmentReclaim(this.segment, incarnation);
      this.#reclaimed = {
        CLAIMED: this.#reclaimed.CLAIMED + held.claimed,
        TAKEN: this.#reclaimed.TAKEN + held.taken,
      };
    } catch (error) {
      // What the executor held stays held; the attempt is ended because it makes no progress.
      this.#options.log.error('executor.unreclaimed', { ...seat, error: messageOf(error) });
    }
  }

  /** Waits for the process to be reaped, frees what it held, tells. */
  async #bury(member: Member): Promise<void> {
    const status = await member.process.exited;
    const { seat, process } = member;
    const workIsOver = this.#closed || this.look().complete;
    await this.#reclaim(member);
    const outcome = outcomeOf({
      role: seat.role,
      device: seat.device,
      pid: process.pid,
      status,
      stalled: member.stalled?.why ?? null,
      oomKilled: this.#oomKills.happened(),
      stopping: this.#stop.signal.aborted,
      workIsOver,
    });
    const reason =
      outcome.kind === 'DONE'
        ? 'NONE'
        : outcome.kind === 'STALLED'
          ? 'EXECUTOR_STALLED'
          : outcome.reason;
    this.#options.log.info('executor.exited', {
      ...seat,
      pid: process.pid,
      code: status.code,
      signal: status.signal,
      reason,
    });
    this.#options.onExited(seat.executor, outcome, {
      role: seat.role,
      device: seat.device,
      pid: process.pid,
      exitCode: status.code,
      signal: status.signal,
      reason,
      logTail: outcome.kind === 'DONE' ? '' : status.logTail,
    });
  }
}
