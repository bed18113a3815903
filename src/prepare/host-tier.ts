import { closeSync } from 'node:fs';
import { availableMemoryBytes } from '../base/host-memory.ts';
import { hostTierFd as childTierFd } from '../executor/protocol.ts';
import type { CoreAddon, DatasetLocation, ExecutorSnapshot } from '../native/contract.ts';
import { counters } from '../native/contract.ts';
import type { CachePlan } from '../records/job-record.ts';
import type { PinnedPlan } from '../records/memory-plan.ts';
import { runTask, TaskError, type TaskOptions } from '../supervisor/supervisor.ts';

/**
 * The hottest feature rows of an attempt in memory of the host's, for its devices to read by
 * themselves (native/core/feature/host_tier.h): made by a Preparer, shared by descriptor. It
 * decides no bit, so that an attempt goes on without one.
 */

export interface HostTierInputs {
  readonly dataset: DatasetLocation;
  readonly orderPath: string;
  readonly planned: PinnedPlan;
}

type Facts = Pick<PinnedPlan, 'rows' | 'reason'>;

/** Parts of the host that a test replaces. */
interface HostParts {
  readonly availableBytes: () => number;
  readonly run: (...task: Parameters<typeof runTask>) => Promise<unknown>;
}

const thisHost: HostParts = { availableBytes: availableMemoryBytes, run: runTask };

const nothing: Facts = { rows: 0, reason: '' };

export class HostTier {
  readonly #native: Pick<CoreAddon, 'hostTierReserve'>;
  readonly #host: HostParts;
  #fd: number | null = null;
  #facts = nothing;
  #isRefused = false;

  constructor(native: Pick<CoreAddon, 'hostTierReserve'>, host: HostParts = thisHost) {
    this.#native = native;
    this.#host = host;
  }

  /** A memfd of `facts.rows` rows, ours to close; null: there is none. */
  get fd(): number | null {
    return this.#fd;
  }

  get facts(): Facts {
    return this.#facts;
  }

  /** Rejects with a TaskError, but not where memory is short. */
  async make({ dataset, orderPath, planned }: HostTierInputs, task: TaskOptions): Promise<void> {
    this.#facts = planned;
    if (planned.rows === 0) return;
    const availableBytes = this.#host.availableBytes();
    if (planned.bytes > availableBytes) {
      this.#drop(`none: it takes ${planned.bytes} bytes, ${availableBytes} are free at present`);
      return;
    }
    this.#fd = this.#native.hostTierReserve();
    const options = { dataset, orderPath, rows: planned.rows, fd: childTierFd };
    try {
      await this.#host.run({ role: 'HOST_TIER', options }, { ...task, hostTierFd: this.#fd });
    } catch (error) {
      const isShort = error instanceof TaskError && error.code === 'SHM_ALLOCATION_FAILED';
      this.#drop(`none: ${isShort ? error.message : 'it could not be made'}`);
      if (!isShort) throw error;
    }
  }

  /** Notes how a trial's executors used the tier; drops it if Trainers keep as many rows. */
  tried(executors: readonly ExecutorSnapshot[], rowsKept: number): void {
    if (this.#fd === null) return;
    if (rowsKept >= this.#facts.rows) {
      const kept = `devices keep ${rowsKept} rows themselves`;
      this.#drop(`none: ${kept}, as many as there were pinned or more`);
      return;
    }
    this.noteRefusal(executors, rowsKept);
  }

  /** Whether it shows for the first time that a device refused to register the rows. */
  noteRefusal(executors: readonly ExecutorSnapshot[], rowsKept: number): boolean {
    if (this.#fd === null || this.#isRefused || rowsKept >= this.#facts.rows) return false;
    const trainers = executors.filter(({ role }) => role !== 'SAMPLER');
    const sum = (counter: number) =>
      trainers.reduce((rows, executor) => rows + (executor.counters[counter] ?? 0), 0);
    // These rows are the hottest: a device that can read them itself reads some.
    if (sum(counters.busRows) > 0 || sum(counters.stagedRows) === 0) return false;
    const { rows, reason } = this.#facts;
    const refused = 'the device refused to register them (its log says why), so they are staged';
    this.#facts = { rows, reason: `${reason}; ${refused}` };
    this.#isRefused = true;
    return true;
  }

  close(): void {
    if (this.#fd !== null) closeSync(this.#fd);
    this.#fd = null;
  }

  #drop(reason: string): void {
    this.close();
    this.#facts = { rows: 0, reason };
  }
}

/** Rows that every Trainer of such a plan keeps on its device. */
export function rowsKeptBy(plan: CachePlan, hasStandby: boolean): number {
  return hasStandby ? Math.min(plan.trainerRows, plan.standbyRows) : plan.trainerRows;
}
