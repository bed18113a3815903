import { create } from '@bufbuild/protobuf';
import { int64, timestamp } from './convert.ts';
import {
  DeviceKind,
  DeviceState,
  HostSchema,
  type HostService,
  ListDevicesResponseSchema,
} from './gen/gnnd/v1/host_service_pb.ts';
import type { Handlers, MethodsOf } from './rpc.ts';

/** The host as the API shows it; the daemon fills it in. */
export interface HostView {
  host(): HostFacts;
  /** By name. */
  devices(): readonly DeviceFacts[];
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
  readonly instructionSet: 'SCALAR' | 'AVX2' | 'AVX512';
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
  readonly kind: 'CPU' | 'GPU';
  readonly state: 'FREE' | 'ALLOCATED' | 'QUARANTINED';
  /** Id of the job that has it. */
  readonly job: string | null;
  /** Of a CPU device. */
  readonly cores: readonly number[];
}

export interface HostDeps {
  readonly host: HostView;
  /** The daemon's version. */
  readonly version: string;
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
      const devices = deps.host.devices().map((device) => ({
        name: `devices/${device.name}`,
        kind: DeviceKind[device.kind],
        state: DeviceState[device.state],
        job: device.job === null ? '' : `jobs/${device.job}`,
        cores: [...device.cores],
      }));
      return create(ListDevicesResponseSchema, { devices });
    },
  };
}
