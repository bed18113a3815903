import { type LinkClass, type LinkRates, linkClasses } from './link-classes.ts';
import { setupCommand } from './package-root.ts';

/**
 * What a device plug-in found on this host: the answer of native/probe, read. The daemon runs that
 * in a child when it starts, `gnnctl doctor` when it is asked.
 */

/** The plug-ins that there are. */
export type AcceleratorKind = 'CUDA' | 'SIM';

/** How the plug-in answered: `OK`, or what is missing, with a sentence and what to do. */
export interface ProbeAnswer {
  readonly code: string;
  readonly message: string;
  readonly remedy: string;
}

export interface MigInstance {
  /** UUID by which CUDA_VISIBLE_DEVICES names the instance. */
  readonly uuid: string;
  readonly name: string;
  /** Null where the driver does not say. */
  readonly totalBytes: number | null;
}

export interface ProbedDevice {
  readonly index: number;
  readonly name: string;
  readonly uuid: string;
  /** Domain, bus, device and function; empty without. */
  readonly pci: string;
  /** 90 for sm_90; 0 without. */
  readonly architecture: number;
  readonly multiprocessors: number;
  readonly totalBytes: number;
  /** Whether its memory is its own; false: it is the host's, as of simulated devices. */
  readonly hasOwnMemory: boolean;
  /** Null where it was not opened. */
  readonly freeBytes: number | null;
  /** As CUDA numbers them: 0 shared, 2 prohibited, 3 exclusive to a process; null: unknown. */
  readonly computeMode: number | null;
  /** 0 not, 1 is an instance, 2 has instances; null: unknown. */
  readonly mig: number | null;
  readonly mps: number | null;
  readonly numaNode: number | null;
  /** Processes that used the device before the probe did; null: unknown. */
  readonly processes: readonly { readonly pid: number; readonly bytes: number | null }[] | null;
  /** MIG instances of the GPU that it is, or is one of: those too that CUDA does not show. */
  readonly instances: readonly MigInstance[];
  readonly answer: ProbeAnswer;
  /** Null where it was not tried. */
  readonly opened: ProbeAnswer | null;
  /** Answer to registering a page of host memory; null where it was not tried. */
  readonly registered: ProbeAnswer | null;
  /** Whether the libtorch of Trainers computes there; null where it was not tried. */
  readonly torch: ProbeAnswer | null;
}

/** What joins two devices; null: nobody can tell. */
export type LinkKind = LinkClass | null;

export interface ProbedLink {
  readonly from: number;
  readonly to: number;
  readonly kind: LinkKind;
}

/** What the libtorch that Trainers are linked with said (native/probe/torch.cc). */
export interface TorchProbe {
  readonly version: string;
  /** What it was built for: 13000 is CUDA 13.0; 0 without CUDA. */
  readonly cuda: number;
  /** Whether libtorch computes on each GPU that it sees; `remedy` is empty. */
  readonly devices: readonly ProbeAnswer[];
}

export interface DeviceProbe {
  readonly answer: ProbeAnswer;
  /** What decides the plug-in's bits. */
  readonly build: string;
  /** 13000 is CUDA 13.0; 0 without a driver. */
  readonly driverVersion: number;
  /** Why processes and MIG are unknown; empty where they are known. */
  readonly monitor: string;
  /** The libtorch of Trainers; null where it was not asked. */
  readonly torch: TorchProbe | null;
  readonly devices: readonly ProbedDevice[];
  /** Links by device index: kernels of `from` reach the memory of `to`. */
  readonly links: readonly ProbedLink[];
}

/** A probe that could not even answer. */
export function failedProbe(message: string): DeviceProbe {
  const remedy = 'look at the log of the daemon and at dmesg; jobs run on CPU devices';
  return {
    answer: { code: 'FAILED', message, remedy },
    ...{ build: '', driverVersion: 0, monitor: '', torch: null, devices: [], links: [] },
  };
}

/** What the probe printed; a sentence about it where that is no answer. */
export function readProbe(text: string): DeviceProbe {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return failedProbe(`the probe answered ${JSON.stringify(text.slice(0, 200))}`);
  }
  const probe = membersOf(value);
  return {
    answer: answerOf(probe['answer']) ?? failedProbe('the probe gave no answer').answer,
    build: textOf(probe['build']),
    driverVersion: numberOf(probe['driver_version']),
    monitor: textOf(probe['monitor']),
    torch: null,
    devices: listOf(probe['devices']).map(deviceOf),
    links: listOf(probe['links']).flatMap((item) => {
      const { from, to, access, kind } = membersOf(item);
      if (access !== 1) return [];
      return [{ from: numberOf(from), to: numberOf(to), kind: linkKinds.get(kind) ?? null }];
    }),
  };
}

/** What the probe measured of links, as far as it could; nothing where that is no answer. */
export function readRates(text: string): Partial<LinkRates> {
  let rates: Members;
  try {
    rates = membersOf(JSON.parse(text));
  } catch {
    return {};
  }
  const found: Partial<Record<keyof LinkRates, number>> = {};
  for (const way of ['HOST', ...linkClasses] as const) {
    const rate = numberOf(rates[way]);
    if (rate > 0) found[way] = rate / 1e9;
  }
  return found;
}

/** By enum gnnd_link_kind of native/include/gnnd/device_plugin.h. */
const linkKinds = new Map<unknown, LinkKind>([
  [1, 'NVLINK'],
  [2, 'PCIE'],
  [3, 'HOST_BUS'],
]);

function deviceOf(value: unknown): ProbedDevice {
  const device = membersOf(value);
  const none = { code: 'FAILED', message: 'the probe said nothing about it', remedy: '' };
  return {
    index: numberOf(device['index']),
    name: textOf(device['name']),
    uuid: textOf(device['uuid']),
    pci: textOf(device['pci']),
    architecture: numberOf(device['architecture']),
    multiprocessors: numberOf(device['multiprocessors']),
    totalBytes: numberOf(device['total_bytes']),
    hasOwnMemory: device['memory'] === 'DEVICE',
    freeBytes: knownOf(device['free_bytes']),
    computeMode: knownOf(device['compute_mode']),
    mig: knownOf(device['mig']),
    mps: knownOf(device['mps']),
    numaNode: knownOf(device['numa_node']),
    processes: Array.isArray(device['processes'])
      ? device['processes'].map((item) => {
          const { pid, bytes } = membersOf(item);
          return { pid: numberOf(pid), bytes: knownOf(bytes) };
        })
      : null,
    instances: listOf(device['instances']).map((item) => {
      const instance = membersOf(item);
      return {
        uuid: textOf(instance['uuid']),
        name: textOf(instance['name']),
        totalBytes: knownOf(instance['total_bytes']),
      };
    }),
    answer: answerOf(device['answer']) ?? none,
    opened: answerOf(device['opened']),
    registered: answerOf(device['registered']),
    torch: null,
  };
}

/** Whether a host has a device where libtorch must compute by itself: it is asked then only. */
export function needsTorch({ devices }: DeviceProbe): boolean {
  return devices.some(({ hasOwnMemory }) => hasOwnMemory);
}

/**
 * The probe with what libtorch printed about the same devices, in the same order; `text` that is no
 * answer says why there is none.
 */
export function withTorch(probe: DeviceProbe, text: string): DeviceProbe {
  const torch = readTorch(text) ?? text.trim().slice(0, 200);
  const devices = probe.devices.map((device, place) =>
    device.hasOwnMemory ? { ...device, torch: torchAnswer(probe, torch, device, place) } : device,
  );
  return { ...probe, torch: typeof torch === 'string' ? null : torch, devices };
}

function readTorch(text: string): TorchProbe | null {
  let value: Members;
  try {
    value = membersOf(JSON.parse(text));
  } catch {
    return null;
  }
  if (typeof value['torch'] !== 'string') return null;
  const devices = listOf(value['devices']).map(
    (answer) => answerOf(answer) ?? { code: 'FAILED', message: 'no answer', remedy: '' },
  );
  return { version: value['torch'], cuda: numberOf(value['cuda']), devices };
}

const replaceTorch = `pip install torch in GNND_PYTHON's environment, then ${setupCommand}`;

function torchAnswer(
  { driverVersion }: DeviceProbe,
  torch: TorchProbe | string,
  { architecture }: ProbedDevice,
  place: number,
): ProbeAnswer {
  if (typeof torch === 'string') {
    const message = `libtorch, which Trainers compute with, does not answer: ${torch}`;
    return { code: 'TORCH_FAILED', message, remedy: setupCommand };
  }
  const { version, cuda, devices } = torch;
  if (cuda === 0) {
    const message = `PyTorch ${version}, which Trainers are linked with, is a build without CUDA`;
    return { code: 'TORCH_WITHOUT_CUDA', message, remedy: `one with CUDA: ${replaceTorch}` };
  }
  const named = `PyTorch ${version} for CUDA ${cudaVersionText(cuda)}`;
  const answer = devices[place];
  if (answer === undefined) {
    const serves = `the driver serves CUDA ${cudaVersionText(driverVersion)}`;
    const message = `${named} does not see it; ${serves}`;
    const other = `a driver for CUDA ${cudaVersionText(cuda)}, or a PyTorch for an older CUDA`;
    const remedy = `${other}: ${replaceTorch}`;
    return { code: 'TORCH_SEES_NONE', message, remedy };
  }
  if (answer.code === 'OK') return answer;
  const message = `${named} does not compute there: ${answer.message}`;
  const remedy = /kernel image/.test(answer.message)
    ? `a PyTorch that is built for sm_${architecture}: ${replaceTorch}`
    : 'see what else runs there (nvidia-smi), and start the daemon again';
  return { code: 'TORCH_FAILED', message, remedy };
}

/** "13.0" of 13000. */
export function cudaVersionText(version: number): string {
  return `${Math.floor(version / 1000)}.${Math.floor((version % 1000) / 10)}`;
}

function answerOf(value: unknown): ProbeAnswer | null {
  const { code, message, remedy } = membersOf(value);
  if (typeof code !== 'string') return null;
  return { code, message: textOf(message), remedy: textOf(remedy) };
}

type Members = Readonly<Record<string, unknown>>;

function membersOf(value: unknown): Members {
  return typeof value === 'object' && value !== null ? (value as Members) : {};
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function numberOf(value: unknown): number {
  return typeof value === 'number' ? value : 0;
}

function knownOf(value: unknown): number | null {
  return typeof value === 'number' ? value : null;
}

/**
 * Why gnnd should not use a device, with what to do about it; null where nothing speaks against it.
 * `own` are processes of ours; with `mayShare` those of others are no reason.
 */
export function objectionTo(
  device: ProbedDevice,
  { mayShare, own }: { readonly mayShare: boolean; readonly own: ReadonlySet<number> },
): ProbeAnswer | null {
  for (const answer of [device.answer, device.opened, device.torch]) {
    if (answer !== null && answer.code !== 'OK') return answer;
  }
  if (device.mig === 2) {
    return {
      code: 'MIG',
      message: 'MIG is on, and CUDA shows this process no more than the first instance',
      remedy: 'name the instances (nvidia-smi -L) in CUDA_VISIBLE_DEVICES of a daemon each',
    };
  }
  if (device.computeMode === 2) {
    const remedy = `sudo nvidia-smi -i ${device.index} -c DEFAULT`;
    return { code: 'PROHIBITED', message: 'its compute mode allows no process', remedy };
  }
  const others = (device.processes ?? []).filter(({ pid }) => !own.has(pid));
  if (others.length > 0 && !mayShare) {
    const pids = others.map(({ pid }) => pid).join(', ');
    const message = `others use it: ${others.length === 1 ? 'process' : 'processes'} ${pids}`;
    return { code: 'USED', message, remedy: 'end them, or set share_gpus in the configuration' };
  }
  return null;
}

/** What an operator should know about a device that is used, a sentence each with its remedy. */
export function remarksOn(device: ProbedDevice): readonly ProbeAnswer[] {
  const remarks: ProbeAnswer[] = [];
  if (device.computeMode === 3) {
    remarks.push({
      code: 'EXCLUSIVE',
      message: 'exclusive compute mode: one process at a time, so no standby Trainer',
      remedy: `sudo nvidia-smi -i ${device.index} -c DEFAULT`,
    });
  }
  if (device.registered !== null && device.registered.code !== 'OK') {
    remarks.push({ ...device.registered, code: 'REGISTER_REFUSED' });
  }
  if (device.mps === 1) {
    const message = 'works through an MPS server: a fault of one process ends all of its processes';
    remarks.push({ code: 'MPS', message, remedy: 'echo quit | nvidia-cuda-mps-control' });
  }
  return remarks;
}
