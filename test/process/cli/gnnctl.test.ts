import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { anyPack } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  DatasetSchema,
  DatasetService,
  DatasetState,
  DatasetValidationSchema,
  FeatureDtype,
  ImportFormat,
} from '../../../src/api/gen/gnnd/v1/dataset_service_pb.ts';
import { ExecutorRole } from '../../../src/api/gen/gnnd/v1/executor_pb.ts';
import {
  DeviceKind,
  DeviceState,
  HostService,
} from '../../../src/api/gen/gnnd/v1/host_service_pb.ts';
import { JobState } from '../../../src/api/gen/gnnd/v1/job_pb.ts';
import { PlanLimit, PlanWay } from '../../../src/api/gen/gnnd/v1/job_plan_pb.ts';
import { JobService } from '../../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { ModelType } from '../../../src/api/gen/gnnd/v1/model_pb.ts';
import { PlacementPolicy } from '../../../src/api/gen/gnnd/v1/resources_pb.ts';
import { DatasetTask } from '../../../src/api/gen/gnnd/v1/types_pb.ts';
import { runCli } from '../../../src/cli/program.ts';
import { sampleJob, startMs } from '../../unit/cli/sample-job.ts';
import { createTestIo, stoppedClock, type TestIoOptions } from '../../unit/cli/test-io.ts';
import { FakeDaemon, FakeError } from './fake-daemon.ts';

let daemon: FakeDaemon;
let folder: string;

beforeEach(() => {
  daemon = new FakeDaemon();
  folder = mkdtempSync(join(tmpdir(), 'gnnctl-files-'));
});
afterEach(() => {
  daemon.close();
  rmSync(folder, { recursive: true, force: true });
});

async function gnnctl(args: readonly string[], options: TestIoOptions = {}) {
  const test = createTestIo(options);
  const exitCode = await runCli(['--address', daemon.address, ...args], test.io);
  return { exitCode, stdout: test.stdout(), stderr: test.stderr() };
}

const { createJob, getJob, listJobs, cancelJob, getJobPlan, streamLogs } = JobService.method;

function specFile(text: string): string {
  const path = join(folder, 'job.yaml');
  writeFileSync(path, text);
  return path;
}

test('a job is created from a file with settings over it; its name is the data', async () => {
  let request: unknown;
  daemon.unary(createJob, (given) => {
    request = given;
    return sampleJob({ name: `jobs/${given.jobId}` });
  });
  await daemon.listen();
  const file = specFile('kind: Job\nmetadata: {name: mine}\nspec: {dataset: cora}\n');
  const uuid = '0fa5f0ac-8a6c-4a8e-9d3f-6a3f0f6a5e11';
  const args = ['job', 'create', '-f', file, '--set', 'model.type=GCN', '--request-id', uuid];
  const { exitCode, stdout, stderr } = await gnnctl(args);
  expect([exitCode, stdout]).toEqual([0, 'jobs/mine\n']);
  expect(stderr).toContain('gnnctl job watch mine');
  expect(request).toMatchObject({
    jobId: 'mine',
    requestId: uuid,
    validateOnly: false,
    spec: { dataset: 'cora', model: { type: ModelType.GCN } },
  });
});

test('--id names the job and stdin is a file, too', async () => {
  daemon.unary(createJob, ({ jobId }) => sampleJob({ name: `jobs/${jobId}` }));
  await daemon.listen();
  const { stdout } = await gnnctl(['job', 'create', '-f', '-', '--id', 'other', '-q'], {
    stdin: 'dataset: cora\n',
  });
  expect(stdout).toBe('jobs/other\n');
});

test('a dry run prints the full spec as a spec file and creates nothing', async () => {
  daemon.unary(createJob, ({ validateOnly }) => {
    if (!validateOnly) throw new FakeError(status.INTERNAL, 'it would create');
    return sampleJob({ name: '' });
  });
  await daemon.listen();
  const { exitCode, stdout } = await gnnctl(['job', 'create', '--set', 'dataset=a', '--dry-run']);
  expect(exitCode).toBe(0);
  expect(stdout).toContain('dataset: npm-deps-2016\nmodel:\n  type: GRAPHSAGE\n');
});

test('a bad file never reaches the daemon and ends with 3', async () => {
  const { exitCode, stderr } = await gnnctl(['job', 'create', '-f', specFile('datset: cora\n')]);
  expect(exitCode).toBe(3);
  expect(stderr).toContain('job.yaml:1:1  spec.datset: unknown key; did you mean dataset?');
});

test('violations that the daemon finds stand beside the lines that they are about', async () => {
  daemon.unary(createJob, () => {
    throw new FakeError(status.INVALID_ARGUMENT, 'spec invalid', {
      reason: 'SPEC_INVALID',
      violations: [
        ['spec.training.epochs', '0: expected an integer from 1 to 1000000'],
        ['spec.dataset', '"nope": no such dataset'],
        ['spec.resources.devices', '9: expected an integer from 1 to 2'],
      ],
    });
  });
  await daemon.listen();
  const file = specFile('dataset: nope\ntraining:\n  epochs: 0\n');
  const { exitCode, stderr, stdout } = await gnnctl(['job', 'create', '-f', file]);
  expect([exitCode, stdout]).toEqual([3, '']);
  const lines = stderr.split('\n').map((line) => line.replace(`${file}:`, '').trim());
  expect(lines.slice(0, 4)).toEqual([
    'error: the daemon does not accept the spec',
    '3:3  spec.training.epochs: 0: expected an integer from 1 to 1000000',
    '1:1  spec.dataset: "nope": no such dataset',
    'spec.resources.devices: 9: expected an integer from 1 to 2',
  ]);
});

test('a job is shown as JSON, YAML, name, plain facts and a table', async () => {
  daemon.unary(getJob, ({ name }) => sampleJob({ name }));
  await daemon.listen();
  const clock = stoppedClock(startMs + 66_000);
  const get = async (...args: string[]) => await gnnctl(['job', 'get', 'mine', ...args], { clock });
  const json = JSON.parse((await get('-o', 'json')).stdout);
  expect(json).toMatchObject({ name: 'jobs/mine', state: 'JOB_STATE_RUNNING', revision: '7' });
  expect(json.epochs[1]).toMatchObject({ epoch: 1, batches: '34', retries: '0' });
  expect((await get('-o', 'yaml')).stdout).toContain('state: JOB_STATE_RUNNING\n');
  expect((await get('-o', 'name')).stdout).toBe('jobs/mine\n');
  expect((await get()).stdout).toContain('state\tRUNNING\nphase\tTRAINING\n');
  const table = (await get('-o', 'table')).stdout;
  expect(table).toContain('State    RUNNING, training\n');
  expect(table).toContain('Created  66s ago\n');
  expect(table).toContain('    3  1.2000     50.0 %   68.0 %       34        0  5.2 s\n');
});

test('lists are tables for people and tab-separated for programs, over all pages', async () => {
  const tokens: string[] = [];
  daemon.unary(listJobs, ({ pageToken, states }) => {
    tokens.push(pageToken);
    expect(states).toEqual([JobState.RUNNING]);
    return pageToken === ''
      ? { jobs: [sampleJob()], nextPageToken: 'second' }
      : { jobs: [sampleJob({ name: 'jobs/b' })], nextPageToken: '' };
  });
  await daemon.listen();
  const clock = stoppedClock(startMs + 7_300_000);
  const list = ['job', 'list', '--state', 'running'];
  const table = await gnnctl([...list, '-o', 'table'], { clock });
  expect(table.stdout).toBe(
    [
      'JOB       STATE    EPOCH       VALIDATION  DATASET          TIME  AGE',
      'npm-sage  RUNNING   4/10  accuracy 68.0 %  npm-deps-2016  2h 01m   2h',
      'b         RUNNING   4/10  accuracy 68.0 %  npm-deps-2016  2h 01m   2h',
      '',
    ].join('\n'),
  );
  expect(tokens).toEqual(['', 'second']);
  const plain = await gnnctl([...list, '--no-headers', '--limit', '1'], { clock });
  expect(plain.stdout.split('\t').slice(0, 3)).toEqual(['npm-sage', 'RUNNING', '4/10']);
  expect(plain.stdout).toContain('\t2026-01-02T03:04:05.000Z\t');
  expect(plain.stderr).toContain('--limit 0 shows all');
  const jsonl = await gnnctl([...list, '-o', 'jsonl']);
  expect(
    jsonl.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).name),
  ).toEqual(['jobs/npm-sage', 'jobs/b']);
});

test('a job shows where the time of its last epoch went', async () => {
  const trainer = {
    role: ExecutorRole.TRAINER,
    device: 'cpu:1',
    durationNs: 1_000_000_000n,
    extractNs: 400_000_000n,
    trainNs: 500_000_000n,
    waitDueNs: 300_000_000n,
    waitExtractNs: 100_000_000n,
  };
  daemon.unary(getJob, ({ name }) =>
    sampleJob({ name, epochs: [{ epoch: 0, executorTimes: [trainer] }, { epoch: 1 }] }),
  );
  await daemon.listen();
  const { stdout } = await gnnctl(['job', 'get', 'mine', '-o', 'table']);
  expect(stdout).toContain('Where the time of epoch 1 went\n');
  const head = stdout.split('\n').find((line) => line.includes('HIDDEN'));
  expect(head?.split(/ {2,}/).slice(0, 7)).toEqual([
    ...['ROLE', 'DEVICE', 'SAMPLE', 'MARK', 'EXTRACT', 'HIDDEN', 'TRAIN'],
  ]);
  expect(stdout).toMatch(/Trainer +cpu:1 +40\.0 % +75\.0 % +50\.0 % +30\.0 %\n/);
});

test.each([
  ['NOT_FOUND', 4],
  ['FAILED_PRECONDITION', 5],
  ['RESOURCE_EXHAUSTED', 6],
  ['PERMISSION_DENIED', 7],
  ['INTERNAL', 13],
] as const)('%s ends with exit code %i and its message', async (name, expected) => {
  daemon.unary(cancelJob, () => {
    throw new FakeError(status[name], 'because of the test', { reason: 'SOMETHING' });
  });
  await daemon.listen();
  const { exitCode, stderr, stdout } = await gnnctl(['job', 'cancel', 'mine']);
  expect([exitCode, stdout]).toEqual([expected, '']);
  expect(stderr).toContain('error: because of the test\n');
  expect(stderr.includes('--request-id')).toBe(name === 'INTERNAL');
});

test('a daemon that is not there is a sentence with its address and the command', async () => {
  const { exitCode, stderr } = await gnnctl(['job', 'list']);
  expect(exitCode).toBe(8);
  expect(stderr).toContain(
    `error: cannot reach gnnd at ${daemon.address}: there is no such socket`,
  );
  expect(stderr).toContain('npx gnnd serve --listen');
});

test('a daemon that is still starting is asked again', async () => {
  let calls = 0;
  daemon.unary(getJob, ({ name }) => {
    calls += 1;
    if (calls > 2) return sampleJob({ name });
    throw new FakeError(status.UNAVAILABLE, 'starting', {
      reason: 'DAEMON_STARTING',
      isRetryable: true,
    });
  });
  await daemon.listen();
  const { exitCode, stderr } = await gnnctl(['job', 'get', 'mine', '-o', 'name']);
  expect([exitCode, calls]).toEqual([0, 3]);
  expect(stderr).toContain('not ready yet');
});

test('a call that takes longer than --timeout ends with 9', async () => {
  daemon.stream(streamLogs, async (_, { cancelled }) => await cancelled);
  await daemon.listen();
  const { exitCode } = await gnnctl(['job', 'logs', 'mine', '--timeout', '50ms']);
  expect(exitCode).toBe(9);
});

test('usage errors end with 2 and say what is wrong', async () => {
  expect((await gnnctl(['job', 'frobnicate'])).exitCode).toBe(2);
  expect((await gnnctl(['job', 'get'])).stderr).toContain("missing required argument 'job'");
  expect((await gnnctl(['job', 'list', '-o', 'xml'])).exitCode).toBe(2);
  expect((await gnnctl(['job', 'list', '--timeout', '5'])).exitCode).toBe(2);
  expect((await gnnctl(['job', 'create'])).exitCode).toBe(2);
  expect((await gnnctl(['job', 'create', '-f', join(folder, 'none.yaml')])).exitCode).toBe(2);
  expect((await gnnctl(['--help'])).exitCode).toBe(0);
});

test('logs carry their origin for people only', async () => {
  daemon.stream(streamLogs, async ({ role, tailLines, follow }, { send }) => {
    expect([role, tailLines, follow]).toEqual([ExecutorRole.TRAINER, 5, true]);
    const log = 'trainer@cpu:1#1';
    send({ role, device: 'cpu:1', log, lines: ['one', '\u001b[2Jtwo'] });
  });
  await daemon.listen();
  const args = ['job', 'logs', 'mine', '-f', '--role', 'trainer', '--tail', '5'];
  expect((await gnnctl(args)).stdout).toBe('one\n\\u001b[2Jtwo\n');
  expect((await gnnctl([...args, '-o', 'table'])).stdout).toBe(
    'trainer@cpu:1#1        | one\ntrainer@cpu:1#1        | two\n',
  );
});

test('a plan shows times, ways beside each other, what was measured, and why', async () => {
  daemon.unary(getJobPlan, ({ name }) => ({
    job: name,
    executors: [{ role: ExecutorRole.SAMPLER, device: 'cpu:0' }],
    samplerBatchNs: 20_000_000n,
    trainerBatchNs: 130_000_000n,
    k: 6.5,
    policy: PlacementPolicy.MINMAX,
    way: PlanWay.SWITCHING,
    ways: [
      {
        ...{ way: PlanWay.SWITCHING, samplers: 1, trainers: 2, batchesAtOnce: 3 },
        ...{ batchNs: 4_000_000n, epochNs: 400_000_000n, limit: PlanLimit.TRAINING },
      },
      {
        ...{ way: PlanWay.SHARING, samplers: 3, trainers: 0, batchesAtOnce: 3 },
        ...{ batchNs: 5_000_000n, epochNs: 500_000_000n, limit: PlanLimit.STEPS },
      },
    ],
    measurement: { epochs: 9, epochNs: 500_000_000n, batchNs: 5_000_000n },
    explanation: 'minmax predicts less',
  }));
  await daemon.listen();
  const { stdout } = await gnnctl(['job', 'plan', 'mine', '-o', 'table']);
  expect(stdout).toContain('T_s, Sampler   20.0 ms a batch\n');
  expect(stdout).toContain('Way            split with switching\n');
  expect(stdout).toContain('Predicted      4.00 ms a batch, 400 ms an epoch\n');
  expect(stdout).toContain(
    'Measured       5.00 ms a batch, 500 ms an epoch, 25 % more (9 epochs)\n',
  );
  expect(stdout).toMatch(/^split with switching +1 +2 +4\.00 ms +training +3 +followed$/m);
  expect(stdout).toMatch(/^time sharing +3 +0 +5\.00 ms +steps +3$/m);
  expect(stdout).toMatch(/^T_s, Sampler +20\.0 ms +-$/m);
  expect(stdout).toContain('Why            minmax predicts less\n');
});

const dataset = create(DatasetSchema, {
  name: 'datasets/npm',
  state: DatasetState.READY,
  numNodes: 304_031n,
  featureDtype: FeatureDtype.FLOAT16,
  task: DatasetTask.MULTI_LABEL,
  numClasses: 112,
  bytes: 2n ** 30n,
});

test('an import waits and shows its progress; the dataset is the data', async () => {
  daemon
    .unary(DatasetService.method.importDataset, ({ source, datasetId, format, ...more }) => {
      expect([source, datasetId, format]).toEqual([folder, 'npm', ImportFormat.NPY]);
      const { MULTI_LABEL: task } = DatasetTask;
      expect(more).toMatchObject({ featureDtype: FeatureDtype.FLOAT16, task, split: '3' });
      return { name: 'operations/1', progress: 0.1, message: 'reading' };
    })
    .unary(DatasetService.method.waitOperation, ({ name }) => ({
      name,
      done: true,
      progress: 1,
      result: { case: 'response' as const, value: anyPack(DatasetSchema, dataset) },
    }));
  await daemon.listen();
  const labels = ['--task', 'multi_label', '--split', '3'];
  const formats = ['--format', 'npy', '--feature-dtype', 'float16', ...labels];
  const args = ['dataset', 'import', folder, '--id', 'npm', ...formats];
  const piped = await gnnctl(args);
  expect(piped.exitCode).toBe(0);
  expect(piped.stdout).toContain('nodes\t304031\n');
  expect(piped.stdout).toContain('feature_dtype\tfloat16\n');
  expect(piped.stdout).toContain('task\tmulti_label\nclasses\t112\n');
  expect(piped.stderr).toBe('importing npm: reading\nimporting npm: done\n');
  const terminal = await gnnctl(args, { isTty: true });
  expect(terminal.stdout).toMatch(/Labels .*112$/m);
  expect(terminal.stderr).toContain('importing npm');
  expect(terminal.stderr).toContain('100 %');
  expect(terminal.stderr.endsWith('\u001b[?25h')).toBe(true);
  const name = await gnnctl([...args, '--no-wait', '-o', 'name']);
  expect(name.stdout).toBe('operations/1\n');
});

test('an import that fails lists every problem and ends by its code', async () => {
  daemon.unary(DatasetService.method.importDataset, () => ({
    name: 'operations/1',
    done: true,
    result: {
      case: 'error' as const,
      value: {
        code: status.INVALID_ARGUMENT,
        message: '2 problems',
        problems: [
          { path: 'edges.csv:7', description: '"x": expected a node id' },
          { path: 'labels.npy', description: 'truncated' },
        ],
      },
    },
  }));
  await daemon.listen();
  const { exitCode, stderr } = await gnnctl(['dataset', 'import', '/x', '--id', 'a']);
  expect(exitCode).toBe(3);
  expect(stderr).toContain('  edges.csv:7: "x": expected a node id\n  labels.npy: truncated\n');
});

test.each([
  ['/data/Citation_V2.npz', 'citation-v2'],
  ['/data/2024 npm deps/', 'npm-deps'],
])('a dataset without an id is called as its source: %s', async (source, expected) => {
  const ids: string[] = [];
  daemon.unary(DatasetService.method.importDataset, ({ datasetId }) => {
    ids.push(datasetId);
    return { name: 'operations/1', done: false };
  });
  await daemon.listen();
  await gnnctl(['dataset', 'import', source, '--no-wait']);
  const { exitCode, stderr } = await gnnctl(['dataset', 'import', '/data/___', '--no-wait']);
  expect([ids, exitCode]).toEqual([[expected], 2]);
  expect(stderr).toContain('--id: "___" makes no id; name one');
});

test('a damaged dataset is told file by file', async () => {
  const validation = create(DatasetValidationSchema, {
    problems: [{ path: 'indices.npy', description: 'row 3 is out of range' }],
    problemCount: 1n,
  });
  daemon.unary(DatasetService.method.validateDataset, () => ({
    name: 'operations/1',
    done: true,
    result: { case: 'response' as const, value: anyPack(DatasetValidationSchema, validation) },
  }));
  await daemon.listen();
  const { exitCode, stdout } = await gnnctl(['dataset', 'validate', 'npm', '-o', 'table']);
  expect(exitCode).toBe(13);
  expect(stdout).toContain('indices.npy  row 3 is out of range\n');
});

test('devices, host and version', async () => {
  daemon
    .unary(HostService.method.listDevices, () => ({
      devices: [
        {
          name: 'devices/cpu:0',
          kind: DeviceKind.CPU,
          state: DeviceState.ALLOCATED,
          job: 'jobs/a',
          cores: [0, 1],
        },
        {
          ...{ name: 'devices/cuda:0/0', kind: DeviceKind.CUDA, state: DeviceState.FREE },
          ...{ uuid: 'GPU-7', memoryBytes: 2n ** 37n, budgetBytes: 2n ** 36n },
        },
        {
          ...{ name: 'devices/cuda:1', kind: DeviceKind.CUDA, state: DeviceState.UNUSED },
          ...{ uuid: 'GPU-8', memoryBytes: 2n ** 37n, note: 'MIG is on' },
        },
      ],
    }))
    .unary(HostService.method.getHost, () => ({
      hostname: 'here',
      version: '1.2.3',
      ready: false,
      notes: ['no CUDA driver'],
      jobs: { RUNNING: 1n, FAILED: 0n },
    }));
  await daemon.listen();
  const devices = await gnnctl(['device', 'list', '-o', 'table']);
  expect(devices.stdout.split('\n').map((line) => line.trimEnd())).toEqual([
    'DEVICE    KIND  STATE      JOB  CORES  MEMORY               UUID   PEERS  NOTE',
    'cpu:0     CPU   ALLOCATED  a    0,1',
    'cuda:0/0  CUDA  FREE       -           64.0 GiB of 128 GiB  GPU-7',
    'cuda:1    CUDA  UNUSED     -           128 GiB              GPU-8         MIG is on',
    '',
  ]);
  const host = await gnnctl(['host', 'status', '-o', 'table']);
  expect(host.exitCode).toBe(8);
  expect(host.stdout).toContain('Jobs        1 RUNNING\n');
  expect(host.stdout).toContain('Notes       no CUDA driver');
  const version = await gnnctl(['version', '--server']);
  expect(version.stdout).toMatch(/^gnnctl \d+\.\d+\.\d+\ngnnd 1\.2\.3\n$/);
});
