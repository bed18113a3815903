import type { AcceleratorKind, LinkKind } from '../base/device-probe.ts';
import type { LinkRates } from '../base/link-classes.ts';
import type { ExecutorRole } from '../records/job-record.ts';

/** Who runs where. */

/** One process to run, by the name that events call it. */
export interface Seat {
  readonly executor: string;
  readonly role: ExecutorRole;
  readonly device: string;
}

/** The seat of a process that is still there. */
export interface LivingSeat extends Seat {
  readonly pid: number;
}

export interface CrewDevice {
  readonly name: string;
  /** Cores that a CPU device consists of; for another device, those its executors may run on. */
  readonly cores: readonly number[];
  /** NUMA node of all its cores; null where the host has one, or they are on several. */
  readonly node: number | null;
  /** Unset for a CPU device. */
  readonly accelerator?: Accelerator;
}

export interface DevicePeer {
  readonly name: string;
  readonly uuid: string;
  readonly link: LinkKind;
}

/** What a device is beside cores. */
export interface Accelerator {
  readonly kind: AcceleratorKind;
  /** UUID by which executors find the device. */
  readonly uuid: string;
  readonly product: string;
  readonly pci: string;
  readonly totalBytes: number;
  /** Bytes of its memory for this device: a part of it where several devices share it. */
  readonly budgetBytes: number;
  /** Devices whose memory its kernels reach. */
  readonly peers: readonly DevicePeer[];
  /** What it reads of them and of the host: the same for all devices of its kind. */
  readonly rates: LinkRates;
  /** Text that is equal for devices that make the same bits. */
  readonly bits: string;
}

/** Room for a standby Trainer beside the Sampler of one device, as a trial measured it. */
export interface StandbyRoom {
  readonly device: string;
  readonly freeBytes: number;
  readonly neededBytes: number;
}
