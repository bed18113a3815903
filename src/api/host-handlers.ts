import { create, type MessageInitShape } from '@bufbuild/protobuf';
import type { LinkKind as LinkKindName } from '../base/device-probe.ts';
import type { GarbageItem } from '../jobs/retention.ts';
import { int64, optionalTimestamp, timestamp } from './convert.ts';
import {
  CollectGarbageResponseSchema,
  type Device,
  DeviceKind,
  DeviceSchema,
  DeviceState,
  GarbageKind,
  HostSchema,
  type HostService,
  LinkKind,
  ListDevicesResponseSchema,
  PageLinkSchema,
} from './gen/gnnd/v1/host_service_pb.ts';
import type { PageLinks } from './page-links.ts';
import type { Handlers, MethodsOf } from './rpc.ts';

/** The host as the API shows it; the daemon fills it in. */
export interface HostView {
  host(): HostFacts;
  /** By name. */
  devices(): readonly DeviceFacts[];
  /** Takes it out of use, or gives it back. Throws DEVICE_NOT_FOUND. */
  setDrained(change: { readonly device: string; readonly drained: boolean }): void;
  /** What was removed, or would be. */
  collectGarbage(how: { readonly dryRun: boolean }): Promise<readonly GarbageItem[]>;
  /** Folders of jobs that nothing knows. */
  orphans(): Promise<readonly string[]>;
}

export interface HostFacts {
  readonly hostname: string;
  /** The daemon's process id. */
  readonly pid: number;
  /** When the daemon started. */
  readonly startAtMs: number;
  /** Cores the daemon may use. */
  readonly cores: number;
  readonly memoryBytes: number;
  /** The widest that its kernels use. */
  readonly instructionSet: 'SCALAR' | 'AVX2' | 'AVX512' | 'NEON';
  /** True while new jobs are accepted and started. */
  readonly ready: boolean;
  /** Why it is not ready, and what is missing, for example a GPU driver. */
  readonly notes: readonly string[];
  readonly stateDir: string;
  /** Number of jobs by state. */
  readonly jobs: Readonly<Record<string, number>>;
}

export interface DeviceFacts {
  /** For example `cpu:0`. */
  readonly name: string;
  readonly kind: 'CPU' | 'CUDA' | 'SIM';
  readonly state: 'FREE' | 'ALLOCATED' | 'QUARANTINED' | 'UNUSED' | 'DRAINED';
  /** Id of the job that has it. */
  readonly job: string | null;
  /** Cores of a CPU device. */
  readonly cores: readonly number[];
  /** Empty and 0 of a CPU device, as all that follows. */
  readonly uuid: string;
  readonly product: string;
  readonly pci: string;
  readonly memoryBytes: number;
  readonly budgetBytes: number;
  readonly peers: readonly { readonly name: string; readonly link: LinkKindName }[];
  /** What runs there, or why nothing does. */
  readonly note: string;
  readonly bits: string;
}

export interface HostDeps {
  readonly host: HostView;
  readonly links: Pick<PageLinks, 'linkFor'>;
  /** Throws while the daemon takes no changes. */
  readonly admit: () => void;
  /** The daemon's version. */
  readonly version: string;
}

/** A message holds no more. */
const itemsMax = 1000;

function deviceInit(device: DeviceFacts): MessageInitShape<typeof DeviceSchema> {
  return {
    ...device,
    name: `devices/${device.name}`,
    kind: DeviceKind[device.kind],
    state: DeviceState[device.state],
    job: device.job === null ? '' : `jobs/${device.job}`,
    cores: [...device.cores],
    memoryBytes: int64(device.memoryBytes),
    budgetBytes: int64(device.budgetBytes),
    peers: device.peers.map(({ name }) => `devices/${name}`),
    peerLinks: device.peers.map(({ link }) => LinkKind[link ?? 'UNSPECIFIED']),
  };
}

function setDrained({ host, admit }: HostDeps, name: string, drained: boolean): Device {
  admit();
  const device = name.replace(/^devices\//, '');
  host.setDrained({ device, drained });
  const found = host.devices().find((each) => each.name === device);
  return create(DeviceSchema, found === undefined ? {} : deviceInit(found));
}

export function hostHandlers(deps: HostDeps): Handlers<MethodsOf<typeof HostService>> {
  return {
    getHost() {
      const { startAtMs, notes, jobs, memoryBytes, ...facts } = deps.host.host();
      return create(HostSchema, {
        ...facts,
        version: deps.version,
        startTime: timestamp(startAtMs),
        memoryBytes: int64(memoryBytes),
        notes: [...notes],
        jobs: Object.fromEntries(
          Object.entries(jobs).map(([state, count]) => [state, int64(count)]),
        ),
      });
    },
    listDevices() {
      return create(ListDevicesResponseSchema, { devices: deps.host.devices().map(deviceInit) });
    },
    drainDevice: ({ name }) => setDrained(deps, name, true),
    undrainDevice: ({ name }) => setDrained(deps, name, false),
    createPageLink(_, { caller }) {
      const { address, expireAtMs } = deps.links.linkFor(caller);
      return create(PageLinkSchema, { address, expireTime: optionalTimestamp(expireAtMs) });
    },
    async collectGarbage({ dryRun }) {
      if (!dryRun) deps.admit();
      const items = await deps.host.collectGarbage({ dryRun });
      return create(CollectGarbageResponseSchema, {
        items: items.slice(0, itemsMax).map(({ kind, bytes, ...item }) => ({
          ...item,
          kind: GarbageKind[kind],
          bytes: int64(bytes),
        })),
        itemCount: int64(items.length),
        bytes: int64(items.reduce((sum, { bytes }) => sum + bytes, 0)),
        orphans: [...(await deps.host.orphans())],
      });
    },
  };
}
