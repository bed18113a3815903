import type { CrewDevice } from './seat.ts';

/** At most this many CPU devices by default: beyond it, a device of several cores trains better. */
const autoDevicesMax = 8;

export interface CpuDevicesRequest {
  readonly cores: readonly number[];
  /** Null makes one per core, at most 8. */
  readonly count: number | null;
  /** Whether there may be more devices than cores. */
  readonly shareCores: boolean;
  /** NUMA node of each core; empty on a host with one. */
  readonly nodes: ReadonlyMap<number, number>;
}

/**
 * The host's CPU devices `cpu:0`, `cpu:1`, … as sets of its cores. Cores are dealt out evenly and
 * in order, those of a NUMA node together, so that a device's memory is near where it can be; with
 * more devices than cores (`shareCores`) devices share them in turn. Throws RangeError when that is
 * not allowed.
 */
export function cpuDevices(request: CpuDevicesRequest): readonly CrewDevice[] {
  const { count, shareCores, nodes } = request;
  const nodeOf = (core: number) => nodes.get(core) ?? -1;
  // Stable: within a node the host's order stays.
  const cores = [...request.cores].sort((a, b) => nodeOf(a) - nodeOf(b));
  const devices = count ?? Math.min(cores.length, autoDevicesMax);
  if (devices > cores.length && !shareCores) {
    throw new RangeError(
      `${devices} CPU devices on ${cores.length} cores would share cores: set share_cores to allow it`,
    );
  }
  return Array.from({ length: devices }, (_, i) => {
    const from = Math.floor((i * cores.length) / devices);
    const to = Math.floor(((i + 1) * cores.length) / devices);
    const own = devices > cores.length ? [cores[i % cores.length] ?? 0] : cores.slice(from, to);
    return { name: `cpu:${i}`, cores: own, node: commonNode(own.map((core) => nodes.get(core))) };
  });
}

/** Null on a host of one node, and for a device on several. */
function commonNode(nodes: readonly (number | undefined)[]): number | null {
  const [first] = nodes;
  return first !== undefined && nodes.every((node) => node === first) ? first : null;
}
