import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmodSync, readdirSync, truncateSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  DatasetService,
  DatasetState,
  DatasetValidationSchema,
} from '../../src/api/gen/gnnd/v1/dataset_service_pb.ts';
import { JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { type Operation, Reason } from '../../src/api/gen/gnnd/v1/types_pb.ts';
import { gnnctlExit } from '../../src/base/exit-codes.ts';
import { repository, TestDaemon } from '../support/daemon.ts';
import { refusalOf } from '../support/refusal.ts';
import { float32, folderOf, int32, int64, npy, pathGraph } from '../unit/datasets/workbench.ts';

/**
 * What a user gets wrong is answered with the field or file it is about, and harms nobody: every
 * test here talks to one daemon, and at the end it still trains.
 */

let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await TestDaemon.start({ tcp: true, datasets: ['cora'] });
});

type SpecInit = NonNullable<MessageInitShape<typeof JobService.method.createJob.input>['spec']>;

const goodSpec = {
  dataset: 'cora',
  model: { type: ModelType.GCN, hiddenDim: 8 },
  sampling: { fanouts: [5, 5] },
  training: { epochs: 2, batchSize: 70 },
  resources: { devices: 1 },
} as const satisfies SpecInit;

async function jobIds(): Promise<readonly string[]> {
  const { jobs } = await daemon.call(JobService.method.listJobs, { pageSize: 500 });
  return jobs.map(({ name }) => name.slice('jobs/'.length));
}

describe('a job spec', () => {
  test('with three wrong fields is answered with all three', async () => {
    const spec = {
      ...goodSpec,
      model: { ...goodSpec.model, dropout: 1.5 },
      sampling: { fanouts: [5, 0] },
      training: { ...goodSpec.training, epochs: -1 },
    };
    expect(await refusalOf(daemon.createJob('three-wrong', spec))).toEqual({
      code: status.INVALID_ARGUMENT,
      reason: 'SPEC_INVALID',
      fields: {
        'spec.model.dropout': expect.stringContaining('1.5'),
        'spec.sampling.fanouts[1]': expect.stringContaining('0'),
        'spec.training.epochs': expect.stringContaining('-1'),
      },
      resource: '',
    });
    expect(await jobIds()).not.toContain('three-wrong');
  });

  test.each([
    ['fanout 0', { sampling: { fanouts: [0, 5] } }, 'spec.sampling.fanouts[0]'],
    ['fanout 10^9', { sampling: { fanouts: [5, 1_000_000_000] } }, 'spec.sampling.fanouts[1]'],
    ['nine hops', { sampling: { fanouts: Array(9).fill(2) } }, 'spec.sampling.fanouts'],
    ['three devices of two', { resources: { devices: 3 } }, 'spec.resources.devices'],
    ['a device twice', { resources: { deviceNames: ['cpu:0', 'cpu:0'] } }, 'device_names[1]'],
    ['a rate of NaN', { training: { epochs: 1, optimizer: { learningRate: Number.NaN } } }, 'rate'],
    ['a dataset that is no id', { dataset: '../../etc/passwd' }, 'spec.dataset'],
    ['no dataset', { dataset: '' }, 'spec.dataset'],
  ] as const)('with %s is answered with that field', async (_, change, field) => {
    const { code, fields } = await refusalOf(
      daemon.createJob('one-wrong', { ...goodSpec, ...change } as SpecInit),
    );
    expect(code).toBe(status.INVALID_ARGUMENT);
    expect(Object.keys(fields)).toEqual([expect.stringContaining(field)]);
    expect(await jobIds()).not.toContain('one-wrong');
  });

  test('of a dataset that is not there is answered with its name', async () => {
    const spec = { ...goodSpec, dataset: 'nowhere' };
    expect(await refusalOf(daemon.createJob('lost', spec))).toMatchObject({
      code: status.NOT_FOUND,
      reason: 'DATASET_NOT_FOUND',
      resource: 'datasets/nowhere',
    });
  });

  test('of a job id that is taken is answered with the job', async () => {
    await daemon.createJob('taken', goodSpec);
    expect(await refusalOf(daemon.createJob('taken', goodSpec))).toMatchObject({
      code: status.ALREADY_EXISTS,
      reason: 'JOB_EXISTS',
      resource: 'jobs/taken',
    });
    await daemon.succeeded('taken');
  });

  test('with a bad job id is answered with that and all else that is wrong', async () => {
    const spec = { ...goodSpec, training: { epochs: 0 } };
    const { fields } = await refusalOf(daemon.createJob('Not An Id', spec));
    expect(Object.keys(fields)).toEqual(['job_id', 'spec.training.epochs']);
  });
});

describe('a request id', () => {
  const create = (jobId: string, requestId: string, spec: SpecInit = goodSpec) =>
    daemon.call(JobService.method.createJob, { jobId, requestId, spec });

  test('that is sent again is answered with the same job, and makes no other', async () => {
    const requestId = randomUUID();
    const first = await create('', requestId);
    const again = await create('', requestId);
    expect([again.name, again.uid]).toEqual([first.name, first.uid]);
    const id = first.name.slice('jobs/'.length);
    await daemon.succeeded(id);
    expect((await create('', requestId)).uid).toBe(first.uid);
    expect((await jobIds()).filter((other) => other === id)).toHaveLength(1);
  });

  test('that is sent with another spec is refused', async () => {
    const requestId = randomUUID();
    await create('replayed', requestId);
    const other = { ...goodSpec, training: { epochs: 3 } };
    expect(await refusalOf(create('replayed', requestId, other))).toMatchObject({
      code: status.ALREADY_EXISTS,
      reason: 'REQUEST_ID_REUSED',
    });
    await daemon.succeeded('replayed');
  });

  test('that is no UUID is refused', async () => {
    expect(await refusalOf(create('unborn', 'once'))).toMatchObject({
      code: status.INVALID_ARGUMENT,
      reason: 'REQUEST_ID_INVALID',
      fields: { request_id: expect.stringContaining('UUID') },
    });
    expect(await jobIds()).not.toContain('unborn');
  });
});

async function importing(datasetId: string, source: string): Promise<Operation> {
  const { importDataset } = DatasetService.method;
  return daemon.ended(await daemon.call(importDataset, { datasetId, source }));
}

let imports = 0;

/** The problems of an import that has to fail: `path: description` each. */
async function problemsOf(source: string): Promise<readonly string[]> {
  imports += 1;
  const id = `broken-${imports}`;
  const { result } = await importing(id, source);
  if (result.case !== 'error') throw new Error('the import did not fail');
  const { message, problems } = result.value;
  expect(message).toContain(problems[0]?.path);
  const dataset = await daemon.call(DatasetService.method.getDataset, { name: `datasets/${id}` });
  expect(dataset.state).toBe(DatasetState.FAILED);
  expect(dataset.message).toBe(message);
  const left = readdirSync(join(daemon.folder, 'state', 'datasets'));
  expect(left.filter((name) => name.includes(id))).toEqual([]);
  return problems.map(({ path, description }) => `${path}: ${description}`);
}

describe('a folder of arrays', () => {
  const good = pathGraph;
  const cut = (file: keyof typeof good, bytes: number) => ({
    [file]: good[file].subarray(0, bytes),
  });
  const damaged: readonly (readonly [string, string, RegExp, Record<string, Uint8Array>])[] = [
    ['a truncated file', 'indices.npy', /is truncated/, cut('indices.npy', -2)],
    ['a file cut in its header', 'train.npy', /truncated.*header/, cut('train.npy', 40)],
    ['an empty file', 'labels.npy', /is empty/, cut('labels.npy', 0)],
    [
      'a file that is too long',
      'val.npy',
      /is too long/,
      { 'val.npy': Buffer.concat([good['val.npy'], Buffer.of(0)]) },
    ],
    ['a text file', 'indptr.npy', /is not a \.npy/, { 'indptr.npy': Buffer.from('0 1 3 4') }],
    [
      'offsets of the wrong dtype',
      'indptr.npy',
      /has dtype float64, expected/,
      { 'indptr.npy': npy('float64', [4], Float64Array.of(0, 1, 3, 4)) },
    ],
    [
      'labels of two nodes',
      'labels.npy',
      /has 2 rows, expected 3/,
      { 'labels.npy': float32(0, 1) },
    ],
    ['features of one axis', 'features.npy', /has shape/, { 'features.npy': float32(1, 2, 3) }],
    [
      'offsets that decrease',
      'indptr.npy',
      /must not decrease/,
      { 'indptr.npy': int64(0, 3, 1, 4) },
    ],
    ['offsets beyond the entries', 'indptr.npy', /found 40/, { 'indptr.npy': int64(0, 1, 3, 40) }],
    [
      'a neighbour out of range',
      'indices.npy',
      /must be below the 3 nodes, found 3 at index 2/,
      { 'indices.npy': int32(1, 0, 3, 1) },
    ],
    ['a negative neighbour', 'indices.npy', /index 0/, { 'indices.npy': int32(-1, 0, 2, 1) }],
    ['a split out of range', 'train.npy', /found 3/, { 'train.npy': int64(0, 3) }],
    ['a split that repeats a node', 'train.npy', /repeat/, { 'train.npy': int64(2, 2) }],
    ['splits that overlap', 'val.npy', /train/, { 'val.npy': int64(0) }],
    ['a training node without label', 'train.npy', /label/, { 'train.npy': int64(2) }],
    [
      'a feature that is not finite',
      'features.npy',
      /must be finite.*row 1, column 0/,
      { 'features.npy': npy('float32', [3, 2], Float32Array.of(1, 2, Number.NaN, 4, 5, 6)) },
    ],
  ];

  test.each(damaged)('with %s is answered with %s', async (_, file, what, change) => {
    const problems = await problemsOf(folderOf({ ...good, ...change }));
    const about = problems.filter((problem) => problem.startsWith(`${file}: `));
    expect(about.join('\n')).toMatch(what);
  });

  test('with several bad files is answered with all of them', async () => {
    const { 'val.npy': _, ...rest } = good;
    const bad = { ...rest, ...cut('indices.npy', 0), 'labels.npy': float32(0, 1) };
    const files = (await problemsOf(folderOf(bad))).map((problem) => problem.split(':')[0]);
    expect([...new Set(files)].sort()).toEqual(['indices.npy', 'labels.npy', 'val.npy']);
  });

  test('that was mended is imported under the same id, and trains', async () => {
    const folder = folderOf({ ...good, ...cut('indices.npy', 0) });
    expect((await importing('mended', folder)).result.case).toBe('error');
    writeFileSync(join(folder, 'indices.npy'), good['indices.npy']);
    expect((await importing('mended', folder)).result.case).toBe('response');
    await daemon.createJob('mended', { ...goodSpec, dataset: 'mended' });
    const { result: trained } = await daemon.succeeded('mended');
    // It has no test nodes.
    expect(trained?.testAccuracyBest).toBe(0);
  });

  test('that is not there is answered with its path', async () => {
    const source = join(daemon.folder, 'nowhere');
    const request = { datasetId: 'unborn', source };
    const call = daemon.call(DatasetService.method.importDataset, request);
    expect(await refusalOf(call)).toMatchObject({
      code: status.INVALID_ARGUMENT,
      fields: { source: expect.stringContaining(source) },
    });
  });
});

describe('a dataset that is damaged after its import', () => {
  beforeAll(async () => {
    expect((await importing('damaged', folderOf(pathGraph))).result.case).toBe('response');
    const path = join(daemon.folder, 'state', 'datasets', 'damaged', 'indices.npy');
    chmodSync(path, 0o640);
    truncateSync(path, pathGraph['indices.npy'].length - 4);
  });

  test('fails a job with the name of the file', async () => {
    await daemon.createJob('unlucky', { ...goodSpec, dataset: 'damaged' });
    const job = await daemon.until('unlucky', ({ state }) => state === JobState.FAILED);
    expect(job.message).toContain('indices.npy');
    expect(job.attempts.at(-1)?.endReason).toBe(Reason.DATASET_CORRUPT);
  });

  test('is found by validation, with the name of the file', async () => {
    const { validateDataset } = DatasetService.method;
    const started = await daemon.call(validateDataset, { name: 'datasets/damaged' });
    const { result } = await daemon.ended(started);
    const found =
      result.case === 'response' ? anyUnpack(result.value, DatasetValidationSchema) : undefined;
    expect(found?.valid).toBe(false);
    expect(found?.problems.map(({ path }) => path)).toContain('indices.npy');
  });
});

describe('an edge list', () => {
  const nodes = 'id,label,split,x\na,0,train,1\nb,1,val,2\nc,0,test,3\n';

  test.each([
    ['an unknown node', 'source,target\na,b\nb,z\n', /^edges\.csv:3: .*'z'/],
    ['a missing field', 'source,target\na,b\nb,c\nc\n', /^edges\.csv:4: .*1 fields/],
    ['a weight that is no number', 'source,target,weight\na,b,heavy\n', /^edges\.csv:2: .*heavy/],
    ['an open quote', 'source,target\n"a,b\n', /^edges\.csv:2: .*quote/],
    ['no header', 'a,b\nb,c\n', /^edges\.csv:1: .*source/],
  ])('with %s is answered with the line', async (_, edges, expected) => {
    expect((await problemsOf(folderOf({ 'nodes.csv': nodes, 'edges.csv': edges })))[0]).toMatch(
      expected,
    );
  });
});

describe('bytes that are no gRPC', () => {
  const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');
  const noise = Buffer.from(Array.from({ length: 4096 }, (_, i) => (i * 197 + 31) & 255));
  const garbage: Readonly<Record<string, Buffer>> = {
    noise,
    'an HTTP/1 request': Buffer.from('GET / HTTP/1.1\r\nHost: gnnd\r\n\r\n'),
    'a TLS greeting': Buffer.from('160301020001000001fc0303', 'hex'),
    'half a preface': preface.subarray(0, 10),
    'a preface and then noise': Buffer.concat([preface, noise]),
    'a frame that claims 16 MiB': Buffer.concat([preface, Buffer.from('ffffff0000000000', 'hex')]),
  };

  function dial(address: string): Socket {
    if (address.startsWith('unix:')) return connect(address.slice('unix:'.length));
    const colon = address.lastIndexOf(':');
    return connect(Number(address.slice(colon + 1)), address.slice(0, colon));
  }

  /** Sends, says that there is no more, and waits until the daemon has closed, too. */
  function send(address: string, bytes: Buffer): Promise<void> {
    return new Promise((resolve) => {
      const socket = dial(address);
      // A reset is an answer like any other.
      socket.on('error', () => undefined);
      socket.on('close', () => resolve());
      socket.resume();
      socket.end(bytes);
    });
  }

  test.each(Object.entries(garbage))('%s ends its own connection only', async (_, bytes) => {
    for (const address of [daemon.address, daemon.tcpAddress]) {
      expect(address).not.toBe('');
      await send(address, bytes);
      expect((await daemon.devices()).devices).toHaveLength(2);
    }
  });

  test('many connections that say nothing do not keep others out', async () => {
    const silent = Array.from({ length: 50 }, () => dial(daemon.address));
    for (const socket of silent) socket.on('error', () => undefined);
    await Promise.all(silent.map((socket) => new Promise((open) => socket.once('connect', open))));
    expect((await daemon.devices()).devices).toHaveLength(2);
    for (const socket of silent) socket.destroy();
  });

  test.each([
    ['a message that is none', '/gnnd.v1.JobService/CreateJob', status.INVALID_ARGUMENT],
    ['a method that is none', '/gnnd.v1.JobService/Nothing', status.UNIMPLEMENTED],
  ])('%s is refused', async (_, path, code) => {
    const call = new Promise((resolve, reject) => {
      const bytes = (value: Buffer) => value;
      const options = { deadline: Date.now() + 30_000 };
      daemon.client.makeUnaryRequest(path, bytes, bytes, noise, options, (error, answer) => {
        if (error === null) resolve(answer);
        else reject(error);
      });
    });
    await expect(call).rejects.toMatchObject({ code });
  });
});

describe('gnnctl', () => {
  const entry = join(repository, 'dist', 'cli', 'main.js');

  interface Ended {
    readonly exitCode: number | null;
    readonly stdout: string;
    readonly stderr: string;
  }

  function gnnctl(args: readonly string[], input = ''): Promise<Ended> {
    return new Promise((resolve) => {
      const child: ChildProcess = spawn(process.execPath, [entry, ...args], {
        env: { ...process.env, GNND_ADDRESS: daemon.address },
      });
      let stdout = '';
      let stderr = '';
      child.stdout?.on('data', (data) => {
        stdout += data;
      });
      child.stderr?.on('data', (data) => {
        stderr += data;
      });
      child.once('close', (exitCode) => resolve({ exitCode, stdout, stderr }));
      child.stdin?.end(input);
    });
  }

  const specFile = (lines: readonly string[]) => ['dataset: cora', ...lines, ''].join('\n');

  test('names an unknown key, its line and the nearest known one', async () => {
    const spec = specFile(['training:', '  epochs: 2', '  batch_sze: 32', '  wd: 0.1']);
    const { exitCode, stderr, stdout } = await gnnctl(['job', 'create', '-f', '-'], spec);
    expect(exitCode).toBe(gnnctlExit.INVALID_ARGUMENT);
    expect(stderr).toMatch(/:4:3 +spec\.training\.batch_sze: .*did you mean batch_size\?/);
    expect(stderr).toMatch(/:5:3 .*did you mean spec\.training\.optimizer\.weight_decay\?/);
    expect(stdout).toBe('');
  });

  test('shows what the daemon refused beside the lines it is about', async () => {
    const spec = specFile([
      ...['model: {dropout: 1.5}', 'sampling: {fanouts: [10, 0]}', 'training:', '  epochs: 0'],
    ]);
    const { exitCode, stderr } = await gnnctl(['job', 'create', '-f', '-'], spec);
    expect(exitCode).toBe(gnnctlExit.INVALID_ARGUMENT);
    expect(stderr).toMatch(/:2:\d+ +spec\.model\.dropout: 1\.5/);
    expect(stderr).toMatch(/:3:\d+ +spec\.sampling\.fanouts\[1\]: 0/);
    expect(stderr).toMatch(/:5:\d+ +spec\.training\.epochs: 0/);
  });

  test.each([
    ['a missing dataset', ['job', 'create', '--set', 'dataset=nowhere'], 'NOT_FOUND', 'nowhere'],
    [
      'a taken id',
      ['job', 'create', '--id', 'taken', '--set', 'dataset=cora'],
      'CONFLICT',
      'taken',
    ],
    ['a missing job', ['job', 'get', 'nobody'], 'NOT_FOUND', 'nobody'],
  ] as const)('tells scripts of %s by its exit code', async (_, args, exit, name) => {
    const settings = args[1] === 'create' ? ['--set', 'training.epochs=1'] : [];
    const { exitCode, stderr } = await gnnctl([...args, ...settings]);
    expect(exitCode).toBe(gnnctlExit[exit]);
    expect(stderr).toContain(name);
  });

  test('names the file of an import that failed', async () => {
    const features = pathGraph['features.npy'].subarray(0, -3);
    const folder = folderOf({ ...pathGraph, 'features.npy': features });
    const { exitCode, stderr } = await gnnctl(['dataset', 'import', folder, '--id', 'from-ctl']);
    expect(exitCode).not.toBe(gnnctlExit.OK);
    expect(stderr).toContain('features.npy');
    expect(stderr).toContain('truncated');
  });
});

test('after all of it the same daemon trains a job and has nothing to confess', async () => {
  await daemon.createJob('after-all', goodSpec);
  await daemon.succeeded('after-all');
  expect(daemon.process.exitCode).toBeNull();
  expect(daemon.logs).not.toContain('api.internal_error');
  expect(await fetch(`http://${daemon.metrics}/readyz`)).toMatchObject({ status: 200 });
});
