import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import {
  type CheckpointKind,
  CheckpointService,
  type PredictionNodes,
} from '../../../src/api/gen/gnnd/v1/checkpoint_service_pb.ts';
import {
  DatasetService,
  type FeatureDtype,
  type ImportFormat,
} from '../../../src/api/gen/gnnd/v1/dataset_service_pb.ts';
import type { ExecutorRole } from '../../../src/api/gen/gnnd/v1/executor_pb.ts';
import {
  DeviceKind,
  DeviceState,
  HostService,
} from '../../../src/api/gen/gnnd/v1/host_service_pb.ts';
import { JobState } from '../../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../../src/api/gen/gnnd/v1/job_service_pb.ts';
import type { DatasetTask } from '../../../src/api/gen/gnnd/v1/types_pb.ts';
import { reasonStatuses } from '../../../src/api/grpc-status.ts';
import { errorReasons, GnndError } from '../../../src/base/errors.ts';
import type { CreateJob, ListJobs } from '../../../src/jobs/jobs.ts';
import { resolveJobSpec } from '../../../src/spec/resolve-job-spec.ts';
import { createFakeJobs, jobRecord } from '../../support/api-fakes.ts';
import { contextOf } from '../../support/spec-context.ts';
import { type CallError, failureOf } from './client.ts';
import {
  fakeCheckpoints,
  fakeDatasets,
  startApi as start,
  type TestApi,
  throwing,
} from './server.ts';

const job = JobService.method;
const checkpoint = CheckpointService.method;
const dataset = DatasetService.method;
const host = HostService.method;
const operationName = { name: 'operations/op-1' };
const mine = { name: 'jobs/mine' };
const uuid = '0b6c7d0e-6b0a-4a55-9a80-52f3a54bb001';

/** A valid call of every method of gnnd.v1. */
async function everyCall({ client }: TestApi): Promise<Map<string, Promise<unknown>>> {
  const drain = async (stream: AsyncIterable<unknown>) => {
    for await (const _ of stream);
  };
  const calls: [{ readonly name: string }, Promise<unknown>][] = [
    [job.createJob, client.call(job.createJob, { spec: { dataset: 'cora' } })],
    [job.getJob, client.call(job.getJob, { name: 'jobs/mine' })],
    [job.listJobs, client.call(job.listJobs, {})],
    [job.cancelJob, client.call(job.cancelJob, { name: 'jobs/mine' })],
    [job.suspendJob, client.call(job.suspendJob, mine)],
    [job.resumeJob, client.call(job.resumeJob, mine)],
    [job.retryJob, client.call(job.retryJob, mine)],
    [job.deleteJob, client.call(job.deleteJob, { name: 'jobs/mine' })],
    [job.listEpochs, client.call(job.listEpochs, { name: 'jobs/mine' })],
    [job.watchJob, drain(client.stream(job.watchJob, { ...mine, untilTerminal: true }))],
    [job.streamLogs, drain(client.stream(job.streamLogs, { name: 'jobs/mine' }))],
    [job.getJobPlan, client.call(job.getJobPlan, { name: 'jobs/mine' })],
    [job.getJobTimeline, client.call(job.getJobTimeline, { name: 'jobs/mine' })],
    [checkpoint.listCheckpoints, client.call(checkpoint.listCheckpoints, mine)],
    [checkpoint.exportCheckpoint, drain(client.stream(checkpoint.exportCheckpoint, mine))],
    [checkpoint.exportPredictions, drain(client.stream(checkpoint.exportPredictions, mine))],
    [dataset.importDataset, client.call(dataset.importDataset, { datasetId: 'a', source: '/a' })],
    [dataset.getDataset, client.call(dataset.getDataset, { name: 'datasets/cora' })],
    [dataset.listDatasets, client.call(dataset.listDatasets, {})],
    [dataset.validateDataset, client.call(dataset.validateDataset, { name: 'datasets/cora' })],
    [dataset.deleteDataset, client.call(dataset.deleteDataset, { name: 'datasets/cora' })],
    [dataset.reportCache, client.call(dataset.reportCache, { name: 'datasets/cora' })],
    [dataset.simulatePlacement, client.call(dataset.simulatePlacement, { name: 'datasets/cora' })],
    [dataset.propagateDataset, client.call(dataset.propagateDataset, { name: 'datasets/cora' })],
    [
      dataset.planPropagation,
      client.call(dataset.planPropagation, { request: { name: 'datasets/cora' } }),
    ],
    [dataset.listPropagations, client.call(dataset.listPropagations, {})],
    [
      dataset.deletePropagation,
      client.call(dataset.deletePropagation, { name: 'propagations/aa' }),
    ],
    [dataset.getOperation, client.call(dataset.getOperation, operationName)],
    [dataset.waitOperation, client.call(dataset.waitOperation, operationName)],
    [dataset.cancelOperation, client.call(dataset.cancelOperation, operationName)],
    [host.getHost, client.call(host.getHost, {})],
    [host.listDevices, client.call(host.listDevices, {})],
    [host.drainDevice, client.call(host.drainDevice, { name: 'devices/cpu:0' })],
    [host.undrainDevice, client.call(host.undrainDevice, { name: 'devices/cpu:0' })],
    [host.createPageLink, client.call(host.createPageLink, {})],
    [host.collectGarbage, client.call(host.collectGarbage, {})],
  ];
  const all = [JobService, CheckpointService, DatasetService, HostService].flatMap(
    (service) => service.methods,
  );
  expect(calls.map(([method]) => method)).toEqual(all);
  // The calls are looked at one by one, when others have failed already.
  for (const [, call] of calls) call.catch(() => {});
  return new Map(calls.map(([method, call]) => [method.name, call]));
}

/** Without the one that the API answers by itself. */
async function backendCalls(api: TestApi): ReturnType<typeof everyCall> {
  const calls = await everyCall(api);
  await calls.get('CreatePageLink');
  calls.delete('CreatePageLink');
  return calls;
}

describe('every handler', () => {
  it('answers when all is well', async () => {
    const api = await start();
    api.jobs.transition('SUCCEEDED');
    const calls = await everyCall(api);
    for (const [name, call] of calls) {
      await expect(call, name).resolves.not.toThrow();
    }
    expect(
      api.events.filter((event) => event.kind === 'handled').map((event) => event.code),
    ).toEqual(Array(calls.size).fill('OK'));
  });

  it.each(errorReasons)('tells a client %s with exactly one ErrorInfo', async (reason) => {
    const error = new GnndError(reason, 'the message', { resource: 'jobs/mine' });
    const api = await start(throwing(error));
    for (const [name, call] of await backendCalls(api)) {
      const failure = await failureOf(call);
      expect(failure.infos, name).toHaveLength(1);
      expect(failure.infos[0], name).toMatchObject({ reason, domain: 'gnnd' });
      expect(failure.code, name).toBe(reasonStatuses[reason].code);
    }
  });

  it('leaks nothing of an unexpected exception and logs it', async () => {
    const api = await start(throwing(new Error('the secret of SELECT')));
    for (const [name, call] of await backendCalls(api)) {
      const failure = await failureOf(call);
      expect(failure.code, name).toBe(status.INTERNAL);
      expect(failure.message, name).not.toContain('secret');
      const incidentId = failure.infos[0]?.metadata['incidentId'];
      const line = api.logLines.find((logged) => logged.fields['incidentId'] === incidentId);
      expect(line?.fields['method'], name).toContain(name);
      expect(line?.fields['error'], name).toBe('the secret of SELECT');
    }
  });

  it('says what is wrong with bytes that are no message', async () => {
    const { client } = await start();
    const failure = await failureOf(client.callRaw(job.getJob, Buffer.from([0x0a, 0xff, 0xff])));
    expect(failure).toMatchObject({ code: status.INVALID_ARGUMENT, reason: 'SPEC_INVALID' });
    expect(failure.message).toContain('gnnd.v1.GetJobRequest');
  });
});

describe('CreateJob', () => {
  /** Jobs that check a spec as the daemon does and keep what they were asked. */
  function checkingJobs() {
    const asked: CreateJob[] = [];
    const context = contextOf({ numNodes: 2708, trainNodes: 140, valNodes: 500 });
    const create = async (request: CreateJob) => {
      asked.push(request);
      const resolution = resolveJobSpec(request.spec, context);
      if ('ok' in resolution) {
        return jobRecord({ spec: request.spec, effectiveSpec: resolution.ok });
      }
      const { violations } = resolution;
      throw new GnndError('SPEC_INVALID', `${violations.length} violations`, { violations });
    };
    return { asked, jobs: { ...createFakeJobs(), create } };
  }
  const fieldsOf = (failure: CallError) =>
    failure.fields?.fieldViolations.map((violation) => violation.field);
  const spec = { dataset: 'cora', training: { epochs: 3, randomSeed: 2n ** 64n - 1n } };

  it('hands the request over and answers the job with its effective spec', async () => {
    const { asked, jobs } = checkingJobs();
    const { client } = await start({ jobs });
    const created = await client.call(job.createJob, {
      jobId: 'mine',
      spec,
      requestId: uuid.toUpperCase(),
    });
    expect(created.name).toBe('jobs/mine');
    expect(created.effectiveSpec?.training?.randomSeed).toBe(2n ** 64n - 1n);
    expect(created.effectiveSpec?.training?.batchSize).toBe(140);
    expect(created.spec?.training?.batchSize).toBeUndefined();
    expect(asked).toMatchObject([{ id: 'mine', validateOnly: false, requestId: uuid }]);
  });

  it('answers a checked job without a name', async () => {
    const { asked, jobs } = checkingJobs();
    const { client } = await start({ jobs });
    const checked = await client.call(job.createJob, { spec, validateOnly: true });
    expect(checked).toMatchObject({ name: '', uid: '' });
    expect(checked.effectiveSpec?.priority).toBe(100);
    expect(asked).toMatchObject([{ id: null, validateOnly: true, requestId: null }]);
  });

  it('names three wrong fields at once, and a wrong id with them', async () => {
    const { asked, jobs } = checkingJobs();
    const { client } = await start({ jobs });
    const wrong = {
      dataset: 'cora',
      model: { dropout: 2 },
      training: { epochs: 0 },
      resources: { devices: 99 },
    };
    const fields = ['spec.model.dropout', 'spec.training.epochs', 'spec.resources.devices'];
    const failure = await failureOf(client.call(job.createJob, { spec: wrong }));
    expect(failure).toMatchObject({ code: status.INVALID_ARGUMENT, reason: 'SPEC_INVALID' });
    expect(fieldsOf(failure)).toEqual(fields);
    expect(failure.fields?.fieldViolations[2]?.description).toBe(
      '99: expected an integer from 1 to 1',
    );
    const both = await failureOf(client.call(job.createJob, { jobId: 'No Id', spec: wrong }));
    expect(fieldsOf(both)).toEqual(['job_id', ...fields]);
    expect(asked.every((request) => request.id === null)).toBe(true);
    expect(asked[1]?.validateOnly).toBe(true);
  });

  it('creates nothing under a wrong id even when the spec is right', async () => {
    const { asked, jobs } = checkingJobs();
    const { client } = await start({ jobs });
    const failure = await failureOf(client.call(job.createJob, { jobId: '9', spec }));
    expect(fieldsOf(failure)).toEqual(['job_id']);
    expect(asked.map((request) => request.validateOnly)).toEqual([true]);
  });

  it('says what is missing when there is no spec', async () => {
    const { client } = await start({ jobs: checkingJobs().jobs });
    const failure = await failureOf(client.call(job.createJob, {}));
    expect(fieldsOf(failure)).toEqual(['spec.dataset']);
  });

  it.each(['1', 'not-a-uuid', `${uuid}0`, uuid.replaceAll('-', '')])(
    'refuses the request id %j',
    async (requestId) => {
      const { client } = await start();
      const failure = await failureOf(client.call(job.createJob, { spec, requestId }));
      expect(failure.reason).toBe('REQUEST_ID_INVALID');
      expect(fieldsOf(failure)).toEqual(['request_id']);
    },
  );
});

describe('ListJobs', () => {
  const jobOf = (index: number) => jobRecord({ id: `j-${index}`, uid: `uid-${index}` });

  function pagedJobs(total: number) {
    const asked: ListJobs[] = [];
    const all = Array.from({ length: total }, (_, index) => jobOf(index));
    const list = (query: ListJobs) => {
      asked.push(query);
      const start = all.findIndex((one) => one.uid === query.after?.uid) + 1;
      const jobs = all.slice(start, start + query.limit);
      const last = jobs.at(-1);
      const isLastPage = start + query.limit >= total;
      const next =
        last === undefined || isLastPage ? null : { createAtMs: last.createAtMs, uid: last.uid };
      return { jobs, next };
    };
    return { asked, jobs: { ...createFakeJobs(), list } };
  }

  it('walks all pages once', async () => {
    const { client } = await start({ jobs: pagedJobs(7).jobs });
    const names: string[] = [];
    let pageToken = '';
    do {
      const page = await client.call(job.listJobs, { pageSize: 3, pageToken });
      names.push(...page.jobs.map((one) => one.name));
      pageToken = page.nextPageToken;
    } while (pageToken !== '');
    expect(names).toEqual(Array.from({ length: 7 }, (_, index) => `jobs/j-${index}`));
  });

  it('ends a page early rather than outgrow a message', async () => {
    const message = 'm'.repeat(100_000);
    const { jobs } = pagedJobs(60);
    const list = (query: ListJobs) => {
      const page = jobs.list(query);
      return { ...page, jobs: page.jobs.map((one) => ({ ...one, message })) };
    };
    const { client } = await start({ jobs: { ...jobs, list } });
    const names = new Set<string>();
    let pageToken = '';
    do {
      const page = await client.call(job.listJobs, { pageSize: 500, pageToken });
      for (const one of page.jobs) names.add(one.name);
      pageToken = page.nextPageToken;
    } while (pageToken !== '');
    expect(names.size).toBe(60);
  });

  it('has 50 jobs a page, at most 500, and only the states asked for', async () => {
    const { asked, jobs } = pagedJobs(1);
    const { client } = await start({ jobs });
    await client.call(job.listJobs, {});
    await client.call(job.listJobs, { pageSize: 9999, states: [JobState.RUNNING] });
    expect(asked).toEqual([
      { limit: 50, after: null, states: [] },
      { limit: 500, after: null, states: ['RUNNING'] },
    ]);
  });

  it('refuses a token under another filter, a made-up one and a negative size', async () => {
    const { client } = await start({ jobs: pagedJobs(7).jobs });
    const { nextPageToken: pageToken } = await client.call(job.listJobs, { pageSize: 3 });
    const states = [JobState.RUNNING];
    for (const request of [{ pageToken, states }, { pageToken: 'AAAA' }]) {
      const failure = await failureOf(client.call(job.listJobs, request));
      expect(failure).toMatchObject({ reason: 'PAGE_TOKEN_INVALID' });
    }
    const other = await failureOf(client.call(dataset.listDatasets, { pageToken }));
    expect(other.reason).toBe('PAGE_TOKEN_INVALID');
    const negative = await failureOf(client.call(job.listJobs, { pageSize: -1 }));
    expect(negative.fields?.fieldViolations[0]?.field).toBe('page_size');
    const unknown = await failureOf(client.call(job.listJobs, { states: [99 as JobState] }));
    expect(unknown.fields?.fieldViolations[0]?.field).toBe('states[0]');
  });
});

describe('requests', () => {
  it.each(['', 'mine', 'jobs/', 'jobs/a/b', 'datasets/mine', `jobs/${'a'.repeat(64)}`])(
    'refuse the name %j',
    async (name) => {
      const { client } = await start();
      const failure = await failureOf(client.call(job.getJob, { name }));
      expect(failure.code).toBe(status.INVALID_ARGUMENT);
      expect(failure.fields?.fieldViolations[0]?.field).toBe('name');
    },
  );

  it('refuse negative numbers and unknown roles of streams', async () => {
    const { client } = await start();
    const first = async (stream: AsyncIterable<unknown>) => {
      for await (const _ of stream);
    };
    const name = 'jobs/mine';
    const wrong = [
      first(client.stream(job.watchJob, { name, startRevision: -1n })),
      first(client.stream(job.streamLogs, { name, tailLines: -1 })),
      first(client.stream(job.streamLogs, { name, attempt: -1 })),
      first(client.stream(job.streamLogs, { name, role: 9 as ExecutorRole })),
      client.call(dataset.waitOperation, { ...operationName, timeoutMs: -1n }),
    ];
    const fields = ['start_revision', 'tail_lines', 'attempt', 'role', 'timeout_ms'];
    for (const [index, call] of wrong.entries()) {
      const failure = await failureOf(call);
      expect(failure.fields?.fieldViolations[0]?.field).toBe(fields[index]);
    }
  });

  it('of an export name every unknown number', async () => {
    const { client } = await start();
    const request = {
      name: 'jobs/mine',
      kind: 7 as CheckpointKind,
      predictions: 8 as PredictionNodes,
    };
    const call = (async () => {
      for await (const _ of client.stream(checkpoint.exportCheckpoint, request));
    })();
    const failure = await failureOf(call);
    expect(failure.fields?.fieldViolations.map((violation) => violation.field)).toEqual([
      'kind',
      'predictions',
    ]);
  });

  it('of an import are checked in full before anything is read', async () => {
    const { client } = await start();
    const formats = { format: 99 as ImportFormat, featureDtype: 98 as FeatureDtype };
    const labels = { task: 97 as DatasetTask, split: 'a/b' };
    const request = { datasetId: 'No', source: 'here', ...formats, ...labels };
    const failure = await failureOf(client.call(dataset.importDataset, request));
    expect(failure.fields?.fieldViolations.map((violation) => violation.field)).toEqual([
      'dataset_id',
      'source',
      'format',
      'feature_dtype',
      'task',
      'split',
    ]);
  });

  it('wait for an operation 10 seconds unless told otherwise, a minute at most', async () => {
    const waits: number[] = [];
    const fake = fakeDatasets();
    const waitOperation: typeof fake.waitOperation = (id, timeoutMs, signal) => {
      waits.push(timeoutMs);
      return fake.waitOperation(id, timeoutMs, signal);
    };
    const { client } = await start({ datasets: { ...fake, waitOperation } });
    for (const timeoutMs of [0n, 5n, 10n ** 9n]) {
      await client.call(dataset.waitOperation, { ...operationName, timeoutMs });
    }
    expect(waits).toEqual([10_000, 5, 60_000]);
  });
});

describe('CheckpointService', () => {
  it('tells all of a checkpoint', async () => {
    const { client } = await start();
    const { checkpoints } = await client.call(checkpoint.listCheckpoints, { name: 'jobs/mine' });
    expect(checkpoints).toMatchObject([
      {
        job: 'jobs/mine',
        kind: 1,
        epoch: 2,
        valAccuracy: 0.5,
        testAccuracy: 0.25,
        path: '/state/best.safetensors',
        bytes: 3n,
        sha256: 'a'.repeat(64),
        parametersSha256: 'b'.repeat(64),
        tensors: [{ name: 'convs.0.att', shape: [1n, 2n, 4n] }],
      },
    ]);
  });

  it('asks for the best model alone unless told otherwise, and streams what it gets', async () => {
    const asked: unknown[] = [];
    const fake = fakeCheckpoints();
    const exportNoted: typeof fake.export = (request, signal) => {
      asked.push(request);
      return fake.export(request, signal);
    };
    const { client } = await start({ checkpoints: { ...fake, export: exportNoted } });
    const parts: unknown[] = [];
    const requests = [
      { name: 'jobs/mine' },
      { name: 'jobs/mine', kind: 2, predictions: 4, memoryBytes: 2n ** 33n },
    ];
    for (const request of requests) {
      const stream = client.stream(checkpoint.exportCheckpoint, request);
      for await (const { part } of stream) parts.push(part);
    }
    const asIs = { jobId: 'mine', foldStandardization: false };
    expect(asked).toEqual([
      { ...asIs, kind: 'BEST', predictions: 'NONE', memoryBytes: 0 },
      { ...asIs, kind: 'LAST', predictions: 'TEST', memoryBytes: 2 ** 33 },
    ]);
    expect(parts.slice(0, 6)).toMatchObject([
      { case: 'checkpoint', value: { job: 'jobs/mine' } },
      { case: 'file', value: { name: 'model.safetensors', bytes: 3n } },
      { case: 'data', value: Buffer.from('abc') },
      { case: 'progress', value: { progress: 0.5, message: 'predicting all nodes' } },
      { case: 'file', value: { name: 'export.json', bytes: 2n } },
      { case: 'data', value: Buffer.from('{}') },
    ]);
    const few: unknown[] = [];
    const request = { name: 'jobs/mine', files: ['export.json'] };
    const stream = client.stream(checkpoint.exportCheckpoint, request);
    for await (const { part } of stream) few.push(part);
    expect(few).toMatchObject([0, 3, 4, 5].map((at) => parts[at]));
  });
});

describe('HostService', () => {
  it('says what the host is and which devices it has', async () => {
    const { client } = await start();
    expect(await client.call(host.getHost, {})).toMatchObject({
      hostname: 'here',
      version: '1.2.3',
      memoryBytes: 2n ** 34n,
      instructionSet: 'AVX2',
      jobs: { RUNNING: 1n },
    });
    expect((await client.call(host.listDevices, {})).devices).toMatchObject([
      {
        name: 'devices/cpu:0',
        kind: DeviceKind.CPU,
        state: DeviceState.ALLOCATED,
        job: 'jobs/mine',
        cores: [0],
      },
      { name: 'devices/cpu:1', state: DeviceState.FREE, job: '', memoryBytes: 0n, note: '' },
      {
        ...{ name: 'devices/cuda:0', kind: DeviceKind.CUDA, state: DeviceState.UNUSED },
        ...{ uuid: 'GPU-1', product: 'NVIDIA H200', pci: '0000:3b:00.0', cores: [] },
        ...{ memoryBytes: 150_000_000_000n, budgetBytes: 0n, peers: ['devices/cuda:1'] },
        peerLinks: [1 /* NVLINK */],
        note: 'others use it: process 7; end them, or set share_gpus in the configuration',
      },
    ]);
  });
});
