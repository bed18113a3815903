import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  type CheckpointSchema,
  CheckpointService,
} from '../../../src/api/gen/gnnd/v1/checkpoint_service_pb.ts';
import { DatasetSchema, DatasetService } from '../../../src/api/gen/gnnd/v1/dataset_service_pb.ts';
import { HostService } from '../../../src/api/gen/gnnd/v1/host_service_pb.ts';
import { JobState } from '../../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { ModelType } from '../../../src/api/gen/gnnd/v1/model_pb.ts';
import { runCli } from '../../../src/cli/program.ts';
import { sampleJob, startMs } from '../../unit/cli/sample-job.ts';
import { createTestIo, stoppedClock } from '../../unit/cli/test-io.ts';
import { FakeDaemon } from './fake-daemon.ts';

/** What programs read: `-o plain`, and what they do not have to. */

let daemon: FakeDaemon;

beforeEach(() => {
  daemon = new FakeDaemon();
});
afterEach(() => daemon.close());

async function gnnctl(...args: readonly string[]) {
  const { io, stdout, stderr } = createTestIo({ clock: stoppedClock(startMs + 66_000) });
  const exitCode = await runCli(['--address', daemon.address, ...args], io);
  return { exitCode, stdout: stdout(), stderr: stderr() };
}

async function facts(...args: readonly string[]): Promise<Readonly<Record<string, string>>> {
  const { stdout } = await gnnctl(...args, '-o', 'plain');
  return Object.fromEntries(
    stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split('\t')),
  );
}

const ended = sampleJob({
  state: JobState.SUCCEEDED,
  endTime: timestampFromMs(startMs + 61_000),
  result: { bestEpoch: 4, epochs: 10, parametersSha256: 'ab' },
});

const checkpoints: MessageInitShape<typeof CheckpointSchema>[] = [{ job: 'jobs/a', epoch: 4 }];

function serve(): FakeDaemon {
  return daemon
    .unary(JobService.method.getJob, () => ended)
    .unary(JobService.method.listJobs, () => ({ jobs: [ended] }))
    .unary(JobService.method.getJobPlan, ({ name }) => ({
      job: name,
      samplerBatchNs: 20_000_000n,
      k: 6.5,
      cache: { trainerRows: 10n, explanation: 'as asked for' },
    }))
    .unary(DatasetService.method.getDataset, () => create(DatasetSchema, { bytes: 1024n }))
    .unary(DatasetService.method.listDatasets, () => ({ datasets: [{ bytes: 1024n }] }))
    .unary(CheckpointService.method.listCheckpoints, () => ({ checkpoints }))
    .unary(HostService.method.getHost, () => ({
      ready: true,
      startTime: timestampFromMs(startMs),
      memoryBytes: 1024n,
      pid: 7,
    }));
}

test('keys are words, and end in the unit of what follows', async () => {
  await serve().listen();
  const commands = [
    ['job', 'get', 'a'],
    ['job', 'plan', 'a'],
    ['dataset', 'get', 'a'],
    ['host', 'status'],
  ];
  for (const command of commands) {
    for (const key of Object.keys(await facts(...command))) expect(key).toMatch(/^[a-z0-9_]+$/);
  }
  expect(await facts('job', 'plan', 'a')).toMatchObject({
    sampler_batch_ns: '20000000',
    k: '6.5',
    cache_trainer_rows: '10',
    cache_why: 'as asked for',
  });
  const startTime = new Date(startMs).toISOString();
  expect(await facts('job', 'get', 'a')).toMatchObject({
    create_time: startTime,
    run_ms: '60000',
    parameters_sha256: 'ab',
  });
  expect(await facts('host', 'status')).toMatchObject({
    start_time: startTime,
    memory_bytes: '1024',
    pid: '7',
  });
  expect(await facts('dataset', 'get', 'a')).toMatchObject({ bytes: '1024' });
});

test('columns that hold something else than for people have another title', async () => {
  await serve().listen();
  const head = async (...args: readonly string[]) =>
    ((await gnnctl(...args, '-o', 'plain')).stdout.split('\n')[0] ?? '').split('\t');
  expect(await head('job', 'list')).toEqual(expect.arrayContaining(['RUN MS', 'CREATED']));
  expect(await head('job', 'list')).not.toEqual(expect.arrayContaining(['AGE']));
  expect(await head('dataset', 'list')).toContain('BYTES');
  expect((await gnnctl('job', 'list', '-o', 'table')).stdout).toMatch(/TIME +AGE/);
});

test('epochs count from 1 wherever gnnctl names one', async () => {
  await serve().listen();
  expect(await facts('job', 'get', 'a')).toMatchObject({ best_epoch: '5', epochs: '10/10' });
  const { stdout } = await gnnctl('checkpoint', 'list', 'a', '-o', 'plain', '--no-headers');
  expect(stdout.split('\t')[1]).toBe('5');
});

test('a module of the user has no width to show', async () => {
  const effectiveSpec = { model: { type: ModelType.TORCHSCRIPT, hiddenDim: 0 } };
  daemon.unary(JobService.method.listJobs, () => ({ jobs: [sampleJob({ effectiveSpec })] }));
  await daemon.listen();
  const { stdout } = await gnnctl('job', 'list', '-o', 'wide');
  expect(stdout).toMatch(/ TORCHSCRIPT +accuracy$/m);
  expect(stdout).not.toContain('TORCHSCRIPT 0');
});

test('an import that failed is not said to be done', async () => {
  const value = { code: status.INVALID_ARGUMENT, message: '1 problem' };
  daemon
    .unary(DatasetService.method.importDataset, () => ({
      name: 'operations/1',
      message: 'reading',
    }))
    .unary(DatasetService.method.waitOperation, ({ name }) => ({
      name,
      done: true,
      result: { case: 'error' as const, value },
    }));
  await daemon.listen();
  const { exitCode, stderr } = await gnnctl('dataset', 'import', '/x', '--id', 'a');
  expect(exitCode).toBe(3);
  expect(stderr).toBe('importing a: reading\nerror: importing a failed: 1 problem\n');
});
