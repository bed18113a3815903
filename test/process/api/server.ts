import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach } from 'vitest';
import { type ApiBackend, type ApiOptions, type ApiServer, serve } from '../../../src/api/api.ts';
import type { RpcEvent } from '../../../src/api/rpc.ts';
import { systemClock } from '../../../src/base/clock.ts';
import {
  createFakeJobs,
  createMemoryLog,
  datasetRecord,
  type FakeJobs,
  type LogLine,
  operationRecord,
  propagationRecord,
} from '../../support/api-fakes.ts';
import { modelOptions } from '../../support/model-options.ts';
import { createTestClient, type TestClient } from './client.ts';

/** A served API on a unix socket in a folder of its own. */
export interface TestApi {
  readonly api: ApiServer;
  readonly client: TestClient;
  readonly jobs: FakeJobs;
  readonly folder: string;
  readonly logLines: readonly LogLine[];
  readonly events: readonly RpcEvent[];
  close(): Promise<void>;
}

const cpuFacts = {
  kind: 'CPU',
  ...{ uuid: '', product: '', pci: '', memoryBytes: 0, budgetBytes: 0, peers: [], note: '' },
  bits: '',
} as const;

export const hostView: ApiBackend['host'] = {
  host: () => ({
    hostname: 'here',
    pid: 41,
    startAtMs: 1_700_000_000_000,
    cores: 2,
    memoryBytes: 2 ** 34,
    instructionSet: 'AVX2',
    ready: true,
    notes: ['no GPU driver'],
    stateDir: '/state',
    jobs: { RUNNING: 1 },
  }),
  devices: () => [
    { ...cpuFacts, name: 'cpu:0', state: 'ALLOCATED', job: 'mine', cores: [0] },
    { ...cpuFacts, name: 'cpu:1', state: 'FREE', job: null, cores: [1] },
    {
      ...{ name: 'cuda:0', kind: 'CUDA', state: 'UNUSED', job: null, cores: [] },
      ...{ uuid: 'GPU-1', product: 'NVIDIA H200', pci: '0000:3b:00.0', bits: '' },
      ...{
        memoryBytes: 150_000_000_000,
        budgetBytes: 0,
        peers: [{ name: 'cuda:1', link: 'NVLINK' }],
      },
      note: 'others use it: process 7; end them, or set share_gpus in the configuration',
    },
  ],
  setDrained: () => {},
  orphans: async () => [],
  collectGarbage: async () => [{ kind: 'JOB', name: 'jobs/old', bytes: 5, reason: 'it is old' }],
};

const emptyCacheReports: ApiBackend['cacheReports'] = {
  report: ({ dataset }) => Promise.resolve({ dataset, digest: '', samplings: [] }),
};

const emptyPlacements: ApiBackend['placements'] = {
  simulate: ({ dataset, hostRate, peerRate }) =>
    Promise.resolve({
      ...{ dataset, digest: '', hostRate, peerRate, batchesPerEpoch: 0, inputRows: 0, rowBytes: 0 },
      sampling: createFakeJobs().get('mine').effectiveSpec.sampling,
      layouts: [],
    }),
};

/** A checkpoint of one tensor, and an export of two files. */
export function fakeCheckpoints(): ApiBackend['checkpoints'] {
  const checkpoint = {
    jobId: 'mine',
    kind: 'BEST',
    epoch: 2,
    valAccuracy: 0.5,
    testAccuracy: 0.25,
    valMetrics: [{ name: 'accuracy', value: 0.5 }],
    testMetrics: [{ name: 'accuracy', value: 0.25 }],
    file: {
      path: '/state/best.safetensors',
      size: 3,
      task: 'CLASSIFICATION',
      featureNames: null,
      sha256: 'a'.repeat(64),
      parametersSha256: 'b'.repeat(64),
      model: modelOptions({ layers: 2, inDim: 4, hiddenDim: 8, outDim: 2 }),
      tensors: [{ name: 'convs.0.att', shape: [1, 2, 4] }],
    },
  } as const;
  return {
    list: () => Promise.resolve([checkpoint]),
    async *export() {
      yield { kind: 'checkpoint', checkpoint };
      yield { kind: 'file', name: 'model.safetensors', bytes: 3 };
      yield { kind: 'data', bytes: Buffer.from('abc') };
      yield { kind: 'progress', share: 0.5, message: 'predicting all nodes' };
      yield { kind: 'file', name: 'export.json', bytes: 2 };
      yield { kind: 'data', bytes: Buffer.from('{}') };
    },
    async *predictions() {
      yield { kind: 'file', name: 'inference.json', bytes: 2 };
      yield { kind: 'data', bytes: Buffer.from('{}') };
    },
  };
}

export function fakeDatasets(): ApiBackend['datasets'] {
  return {
    import: async () => operationRecord(),
    get: () => datasetRecord(),
    list: () => ({ datasets: [datasetRecord()], nextId: null }),
    delete: () => 3,
    validate: () => operationRecord({ kind: 'ValidateDataset' }),
    start: () => operationRecord({ kind: 'PropagateDataset' }),
    operation: () => operationRecord(),
    waitOperation: async () => operationRecord({ done: true }),
    cancel: async () => operationRecord({ done: true }),
    close: async () => {},
  };
}

export function fakePropagations(): ApiBackend['propagations'] {
  const propagation = propagationRecord();
  return {
    plan: () => propagation,
    start: () => operationRecord({ kind: 'PropagateDataset' }),
    list: async () => [propagation],
    get: async () => propagation,
    delete: async () => 3,
  };
}

/** A backend of which everything throws. */
export function throwing(error: unknown): ApiBackend {
  const fail = () => {
    throw error;
  };
  const handler = { get: () => fail };
  return {
    jobs: new Proxy(createFakeJobs(), handler),
    deletion: new Proxy({} as ApiBackend['deletion'], handler),
    checkpoints: new Proxy({} as ApiBackend['checkpoints'], handler),
    datasets: new Proxy({} as ApiBackend['datasets'], handler),
    cacheReports: new Proxy({} as ApiBackend['cacheReports'], handler),
    placements: new Proxy({} as ApiBackend['placements'], handler),
    propagations: new Proxy({} as ApiBackend['propagations'], handler),
    host: new Proxy({} as ApiBackend['host'], handler),
  };
}

/** Servers that a test started and that still run. */
const running = new Set<() => Promise<void>>();
afterEach(async () => {
  for (const close of [...running].reverse()) await close();
});

/** Has `close` called after the test, unless that has called it; returns what calls it once. */
export function closedAfterTest(close: () => Promise<void>): () => Promise<void> {
  const once = async () => {
    if (running.delete(once)) await close();
  };
  running.add(once);
  return once;
}

type Access = Pick<ApiOptions, 'tls' | 'tokens' | 'page' | 'keepaliveMs'>;
export const socketsAlone = { tls: null, tokens: { find: () => null, isEmpty: () => true } };

/** An API over fakes, which is closed after the test. */
export async function startApi(
  changes: Partial<ApiBackend> = {},
  listen: (folder: string) => string = (folder) => `unix:${join(folder, 'gnnd.sock')}`,
  connectionsMax = 256,
  access: (folder: string) => Omit<Access, 'page'> & Partial<Access> = () => socketsAlone,
): Promise<TestApi> {
  const folder = mkdtempSync(join(tmpdir(), 'gnnd-api-'));
  const jobs = createFakeJobs();
  const { log, lines } = createMemoryLog();
  const events: RpcEvent[] = [];
  const backend = {
    jobs,
    deletion: { delete: () => ({ isPending: false, keptCheckpoint: null }) },
    checkpoints: fakeCheckpoints(),
    datasets: fakeDatasets(),
    cacheReports: emptyCacheReports,
    placements: emptyPlacements,
    propagations: fakePropagations(),
    host: hostView,
    ...changes,
  };
  const api = await serve(backend, {
    listen: [listen(folder)],
    page: null,
    ...access(folder),
    connectionsMax,
    log,
    clock: systemClock,
    version: '1.2.3',
    observe: (event) => void events.push(event),
  });
  api.setReady(true);
  const client = createTestClient(api.addresses[0] ?? '');
  return {
    api,
    client,
    jobs,
    folder,
    logLines: lines,
    events,
    close: closedAfterTest(async () => {
      client.close();
      await api.close(2000);
      rmSync(folder, { recursive: true, force: true });
    }),
  };
}
