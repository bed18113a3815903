import {
  type AcceleratorKind,
  type DeviceProbe,
  objectionTo,
  type ProbedDevice,
  remarksOn,
} from '../base/device-probe.ts';
import type { LinkRates } from '../base/link-classes.ts';
import type { CrewDevice } from './seat.ts';

/**
 * Devices beside the CPU's, from what was probed and what the configuration asks for: `cuda:0`,
 * `cuda:1`, … in the driver's order. One that is asked for n times is n logical devices,
 * `cuda:0/0` to `cuda:0/n-1`, with an equal part of its memory each.
 */

/** Which of the probed devices: all that are fit, none, or these, by index or UUID. */
export type AcceleratorRequest = 'auto' | 'none' | readonly (number | string)[];

export interface AcceleratorOptions {
  readonly kind: AcceleratorKind;
  readonly request: AcceleratorRequest;
  /** Whether GPUs that others use may be used. */
  readonly mayShare: boolean;
  /** Processes of ours that may be seen there. */
  readonly own: ReadonlySet<number>;
  /** That executors on them may run on. */
  readonly cores: readonly number[];
  /** As far as they are known. */
  readonly rates: Partial<LinkRates>;
}

/** Where neither says anything: PCIe 4 with random rows. */
const assumedRates = { HOST: 10 } as const;

/** A device that is there and is not used. */
export interface UnusedDevice {
  readonly name: string;
  readonly probed: ProbedDevice;
  /** A sentence, and what to do. */
  readonly why: string;
}

export interface Accelerators {
  readonly devices: readonly CrewDevice[];
  readonly unused: readonly UnusedDevice[];
  /** What an operator should know, a sentence each. */
  readonly notes: readonly string[];
  /** What was asked for by name and cannot be had: no reason to start without it. */
  readonly problems: readonly string[];
}

export function acceleratorsOf(probe: DeviceProbe, options: AcceleratorOptions): Accelerators {
  const { kind, request } = options;
  const none = { devices: [], unused: [], notes: [], problems: [] };
  if (request === 'none') return none;
  const { code, message, remedy } = probe.answer;
  if (code !== 'OK') {
    const sentence = `no ${kind} devices: ${message}; ${remedy}`;
    return request === 'auto' ? { ...none, notes: [sentence] } : { ...none, problems: [sentence] };
  }
  const problems: string[] = [];
  const counts = countsOf(probe, request, kind, problems);
  const devices: CrewDevice[] = [];
  const unused: UnusedDevice[] = [];
  const notes: string[] = [];
  for (const probed of probe.devices) {
    const name = nameOf(kind, probed.index);
    const objection = objectionTo(probed, options);
    const count = counts.get(probed.index) ?? 0;
    if (count === 0) {
      unused.push({ name, probed, why: 'the configuration does not name it' });
    } else if (objection !== null) {
      const why = withRemedy(objection);
      unused.push({ name, probed, why });
      if (request === 'auto') notes.push(`${name} is not used: ${why}`);
      else problems.push(`${name}: ${why}`);
    } else {
      devices.push(...logicalDevices(probe, probed, count, options));
      notes.push(...remarksOn(probed).map((remark) => `${name}: ${withRemedy(remark)}`));
    }
  }
  unused.push(...hiddenInstances(probe, kind));
  if (kind === 'CUDA' && probe.monitor !== '' && probe.devices.length > 0) {
    notes.push(`who else uses the GPUs is unknown: ${probe.monitor}`);
  }
  return { devices, unused, notes, problems };
}

/** MIG instances that CUDA does not show this daemon: it shows a process one of them. */
function hiddenInstances({ devices }: DeviceProbe, kind: AcceleratorKind): UnusedDevice[] {
  const seen = new Set(devices.map(({ uuid }) => uuid));
  return devices.flatMap((probed) =>
    probed.instances.flatMap(({ uuid, name: product, totalBytes }) => {
      if (seen.has(uuid)) return [];
      seen.add(uuid);
      const why =
        'a MIG instance that CUDA does not show this daemon; ' +
        `a daemon of its own with CUDA_VISIBLE_DEVICES=${uuid} has it`;
      const instance = { ...probed, uuid, name: product, totalBytes: totalBytes ?? 0 };
      return [{ name: `${kind.toLowerCase()}:${uuid}`, probed: instance, why }];
    }),
  );
}

function withRemedy({ message, remedy }: { readonly message: string; readonly remedy: string }) {
  return remedy === '' ? message : `${message}; ${remedy}`;
}

function nameOf(kind: AcceleratorKind, index: number): string {
  return `${kind.toLowerCase()}:${index}`;
}

/** How often each is asked for, by index. */
function countsOf(
  probe: DeviceProbe,
  request: Exclude<AcceleratorRequest, 'none'>,
  kind: AcceleratorKind,
  problems: string[],
): ReadonlyMap<number, number> {
  if (request === 'auto') return new Map(probe.devices.map(({ index }) => [index, 1]));
  const counts = new Map<number, number>();
  for (const wanted of request) {
    const found = probe.devices.find(({ index, uuid }) => index === wanted || uuid === wanted);
    if (found === undefined) {
      const known = probe.devices.map(({ index, uuid }) => `${index} (${uuid})`).join(', ');
      problems.push(
        `${kind} device ${wanted}: unknown; there are ${known === '' ? 'none' : known}`,
      );
    } else counts.set(found.index, (counts.get(found.index) ?? 0) + 1);
  }
  return counts;
}

function logicalDevices(
  probe: DeviceProbe,
  probed: ProbedDevice,
  count: number,
  { kind, cores, rates }: AcceleratorOptions,
): readonly CrewDevice[] {
  const name = nameOf(kind, probed.index);
  const usableBytes = probed.freeBytes ?? probed.totalBytes;
  const accelerator = {
    kind,
    uuid: probed.uuid,
    product: probed.name,
    pci: probed.pci,
    totalBytes: probed.totalBytes,
    budgetBytes: Math.floor(usableBytes / count),
    peers: peersOf(probe, probed, kind),
    rates: { ...assumedRates, ...rates },
    bits: bitsOf(probe, probed, kind),
  };
  return Array.from({ length: count }, (_, part) => ({
    name: count === 1 ? name : `${name}/${part}`,
    cores,
    node: probed.numaNode,
    accelerator,
  }));
}

function peersOf(probe: DeviceProbe, { index }: ProbedDevice, kind: AcceleratorKind) {
  return probe.links.flatMap(({ from, to, kind: link }) => {
    const peer = probe.devices.find((device) => device.index === to);
    if (from !== index || peer === undefined) return [];
    return [{ name: nameOf(kind, to), uuid: peer.uuid, link }];
  });
}

/**
 * What must be equal of two devices for the same bits: cuBLAS promises them for one version on one
 * architecture with one number of multiprocessors, and a MIG instance has fewer.
 */
function bitsOf(probe: DeviceProbe, probed: ProbedDevice, kind: AcceleratorKind): string {
  if (kind === 'SIM') return `SIM ${probe.build}`;
  const slice = probed.mig === 1 ? ' MIG' : '';
  return `sm_${probed.architecture}, ${probed.multiprocessors} SMs${slice}, ${probe.build}`;
}
