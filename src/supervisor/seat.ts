import type { ExecutorRole } from '../records/job-record.ts';

/** Who runs where. */

/** One process to run, by the name that events call it. */
export interface Seat {
  readonly executor: string;
  readonly role: ExecutorRole;
  readonly device: string;
}

/** Of a process that is still there. */
export interface LivingSeat extends Seat {
  readonly pid: number;
}

export interface CrewDevice {
  readonly name: string;
  readonly cores: readonly number[];
  /** NUMA node of all its cores; null where the host has one, or they are on several. */
  readonly node: number | null;
}
