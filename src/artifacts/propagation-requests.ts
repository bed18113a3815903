import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { type FieldViolation, GnndError } from '../base/errors.ts';
import { hostMemoryBytes } from '../base/host-memory.ts';
import { canonicalSha256 } from '../base/ids.ts';
import type { TaskWatch } from '../datasets/data-tasks.ts';
import type { Datasets } from '../datasets/datasets.ts';
import { dataOf, requireOneType } from '../datasets/ready-dataset.ts';
import type { CrewDevice } from '../devices/seat.ts';
import type { CoreAddon } from '../native/contract.ts';
import type { PropagationDevice, PropagationRequest, Propagations } from '../prepare/prepare.ts';
import type { DatasetRecord, OperationRecord } from '../records/dataset-record.ts';
import type { PropagationRecord } from '../records/propagation-record.ts';
import { type PropagationInput, resolvePropagation } from '../spec/rules/propagation.ts';
import type { Store } from '../store/store.ts';

/** Propagations that users ask for by themselves, in advance of jobs. */

export interface AskedPropagation {
  readonly dataset: string;
  readonly propagation: PropagationInput;
  readonly standardize: boolean;
  /** 0: a share of the host's. */
  readonly memoryBytes: number;
  /** 0: one for each core. */
  readonly threads: number;
  /** Name of what multiplies; empty: the host's cores. */
  readonly device: string;
  readonly requestId: string | null;
}

export interface PropagationRequests {
  /** Throws SPEC_INVALID with all violations, DATASET_NOT_FOUND, DATASET_NOT_READY. */
  plan(asked: AskedPropagation): PropagationRecord;
  /** Likewise, and REQUEST_ID_REUSED, DAEMON_STOPPING. */
  start(asked: AskedPropagation): OperationRecord;
  /** By id; of one dataset, or of all for an empty id. */
  list(dataset: string): Promise<readonly PropagationRecord[]>;
  /** Throws PROPAGATION_NOT_FOUND. */
  get(id: string): Promise<PropagationRecord>;
  /** Bytes that it had; null where there is none. Throws PROPAGATION_IN_USE. */
  delete(id: string): Promise<number | null>;
}

export interface PropagationRequestsOptions {
  readonly store: Store;
  readonly datasets: Datasets;
  readonly propagations: Propagations;
  readonly native: CoreAddon;
  /** Devices of the host. */
  readonly devices: readonly CrewDevice[];
  /** Receives standardised features. */
  readonly derivedFolder: string;
  /** The state folder, whose log folder takes the Propagators' log. */
  readonly stateDir: string;
}

/** Share of the host's memory, and of a device's, that a propagation gets: jobs run beside it. */
const memoryShare = 0.25;
const threadsMax = 1024;

export function createPropagationRequests(
  options: PropagationRequestsOptions,
): PropagationRequests {
  const { store, datasets, propagations, native, devices, stateDir } = options;
  const requestOf = (asked: AskedPropagation, dataset: DatasetRecord): PropagationRequest =>
    checkedRequest(asked, dataset, options);
  return {
    plan: (asked) => propagations.plan(requestOf(asked, requireOneType(store, asked.dataset))),
    start(asked) {
      const request = requestOf(asked, requireOneType(store, asked.dataset));
      const { requestId, ...what } = asked;
      const method = 'PropagateDataset';
      const key = requestId === null ? null : { method, requestId, sha256: canonicalSha256(what) };
      const resource = `propagations/${propagations.plan(request).id}`;
      const run = async (_: DatasetRecord, { progress, signal }: TaskWatch) => {
        const task = {
          ...{ cores: [], threads: asked.threads || availableParallelism() },
          logPath: join(stateDir, 'log', 'propagator.log'),
          instructionSet: native.hostInstructionSet(),
          device: deviceOf(asked, devices),
          signal,
        };
        await propagations.make(request, task, progress);
      };
      return datasets.start({ kind: method, target: asked.dataset, resource, key, run });
    },
    async list(dataset) {
      const all = await propagations.list();
      return all.filter(({ source }) => dataset === '' || source.dataset === dataset);
    },
    async get(id) {
      const found = (await propagations.list()).find((each) => each.id === id);
      if (found !== undefined) return found;
      const resource = `propagations/${id}`;
      throw new GnndError('PROPAGATION_NOT_FOUND', `there is no propagation '${id}'`, { resource });
    },
    delete: (id) => propagations.delete(id),
  };
}

function deviceOf(
  { device }: AskedPropagation,
  devices: readonly CrewDevice[],
): PropagationDevice | undefined {
  const accelerator = devices.find(({ name }) => name === device)?.accelerator;
  if (accelerator === undefined) return undefined;
  return { accelerator, budgetBytes: Math.floor(memoryShare * accelerator.budgetBytes) };
}

function deviceProblem(device: string, devices: readonly CrewDevice[]): FieldViolation[] {
  const known = devices.filter(({ accelerator }) => accelerator !== undefined);
  if (device === '' || known.some(({ name }) => name === device)) return [];
  const names = known.map(({ name }) => name).join(', ');
  const expected = names === '' ? 'there is none; cores propagate without it' : `expected ${names}`;
  return [{ path: 'device', description: `${device}: no GPU or simulated device: ${expected}` }];
}

function checkedRequest(
  { propagation, standardize, memoryBytes, threads, device }: AskedPropagation,
  dataset: DatasetRecord,
  { devices, derivedFolder }: PropagationRequestsOptions,
): PropagationRequest {
  const resolution = resolvePropagation(propagation);
  const violations: FieldViolation[] = 'ok' in resolution ? [] : [...resolution.violations];
  if (memoryBytes < 0) {
    violations.push({ path: 'memory_bytes', description: `${memoryBytes}: expected 0 or more` });
  }
  if (threads < 0 || threads > threadsMax) {
    const description = `${threads}: expected an integer from 0 to ${threadsMax}`;
    violations.push({ path: 'threads', description });
  }
  violations.push(...deviceProblem(device, devices));
  if (!('ok' in resolution) || violations.length > 0) {
    const message = violations.map(({ path, description }) => `${path}: ${description}`).join('; ');
    throw new GnndError('SPEC_INVALID', message, { violations });
  }
  const source = {
    ...{ dataset: dataset.id, datasetDigest: dataset.digest },
    ...{ propagation: resolution.ok, standardize },
  };
  return {
    source,
    dataset: dataOf(dataset),
    memoryBytes: memoryBytes || Math.floor(memoryShare * hostMemoryBytes()),
    derivedFolder,
  };
}
