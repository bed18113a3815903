import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, renameSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CheckpointService } from '../../src/api/gen/gnnd/v1/checkpoint_service_pb.ts';
import { DatasetService } from '../../src/api/gen/gnnd/v1/dataset_service_pb.ts';
import { JobService } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import type { Operation } from '../../src/api/gen/gnnd/v1/types_pb.ts';
import { daemonExit, gnnctlExit } from '../../src/base/exit-codes.ts';
import { executorPids, repository, spawnDaemon, TestDaemon } from '../support/daemon.ts';
import { refusalOf } from '../support/refusal.ts';
import { until } from '../support/until.ts';
import { folderOf, makeFolder, pathGraph } from '../unit/datasets/workbench.ts';

/**
 * Files that are none, or that never answer: a FIFO without a writer stands for a disk that hangs.
 * One daemon serves all tests, and at the end it still trains and stops.
 */

let daemon: TestDaemon;
let server: Server;

beforeAll(async () => {
  daemon = await TestDaemon.start({ datasets: ['cora'] });
});

afterAll(async () => {
  server?.close();
});

const spec = {
  dataset: 'cora',
  model: { type: ModelType.GCN, hiddenDim: 8 },
  sampling: { fanouts: [5, 5] },
  training: { epochs: 2, batchSize: 70 },
  resources: { devices: 1 },
};

function mkfifo(path: string): string {
  execFileSync('mkfifo', [path]);
  return path;
}

const { importDataset, cancelOperation } = DatasetService.method;

async function failureOf(source: string, datasetId: string): Promise<readonly string[]> {
  const { result } = await daemon.ended(await daemon.call(importDataset, { datasetId, source }));
  if (result.case !== 'error') throw new Error(`the import of ${source} succeeded`);
  return result.value.problems.map(({ path, description }) => `${path}: ${description}`);
}

describe('a source that is no regular file', () => {
  test.each([
    ['a FIFO', (folder: string) => mkfifo(join(folder, 'f'))],
    ['a character device', () => '/dev/zero'],
    [
      'a socket',
      (folder: string) => {
        server = createServer().listen(join(folder, 's'));
        return join(folder, 's');
      },
    ],
  ])('is refused at once: %s', async (type, make) => {
    const source = make(makeFolder());
    const call = daemon.call(importDataset, { datasetId: 'odd', source });
    expect(await refusalOf(call)).toMatchObject({
      code: status.INVALID_ARGUMENT,
      fields: { source: expect.stringContaining(`${source}': is ${type}, expected a regular`) },
    });
  });

  test('fails its import within a folder, with its name and type', async () => {
    const csv = folderOf({ 'edges.csv': 'source,target\n' });
    const nodes = mkfifo(join(csv, 'nodes.csv'));
    expect(await failureOf(csv, 'csv-fifo')).toEqual([
      `nodes.csv: cannot be read: ${nodes} is a FIFO, expected a regular file`,
    ]);
    const arrays = folderOf(pathGraph);
    rmSync(join(arrays, 'labels.npy'));
    mkdirSync(join(arrays, 'labels.npy'));
    mkfifo(join(arrays, 'names.txt'));
    expect((await failureOf(arrays, 'npy-odd'))[0]).toContain('labels.npy is a folder');
    mkfifo(join(arrays, 'meta.json'));
    expect((await failureOf(arrays, 'npy-odd'))[0]).toContain('meta.json is a FIFO');
  });
});

describe('an import that hangs', () => {
  /** Starts an import whose Preparer is stopped while it works, as if it waited for a disk. */
  async function hanging(datasetId: string): Promise<Operation> {
    const stopped = stopNext();
    const operation = await daemon.call(importDataset, { datasetId, source: largeSource() });
    await stopped;
    return operation;
  }

  /** Stops the next process that the daemon starts. */
  async function stopNext(): Promise<void> {
    const before = new Set(executorPids(daemon.pid));
    const next = () => executorPids(daemon.pid).find((candidate) => !before.has(candidate));
    process.kill(await until(next, { everyMs: 2 }), 'SIGSTOP');
  }

  /** Calls that ask for an operation's end: gnnctl heeds Ctrl-C from before its first one. */
  async function waitsSoFar(): Promise<number> {
    const calls = /^grpc_server_started_total\{[^}]*"WaitOperation"[^}]*\} (\d+)$/m;
    return Number(calls.exec(await daemon.scrape())?.[1] ?? 0);
  }

  /** Takes long enough to be met at work. */
  function largeSource(): string {
    const rows = Array.from({ length: 20_000 }, (_, id) => `${id},0,train,1\n`).join('');
    return folderOf({ 'nodes.csv': `id,label,split,x\n${rows}`, 'edges.csv': '' });
  }

  test('does not stop the next one, and can be cancelled', async () => {
    const stuck = await hanging('stuck');
    const next = await daemon.call(importDataset, {
      datasetId: 'next',
      source: folderOf(pathGraph),
    });
    expect((await daemon.ended(next)).result.case).toBe('response');
    const { result } = await daemon.call(cancelOperation, { name: stuck.name });
    expect(result).toMatchObject({
      case: 'error',
      value: { code: status.CANCELLED, reason: 'OPERATION_CANCELLED' },
    });
    expect(executorPids(daemon.pid)).toEqual([]);
  });

  test('ends with Ctrl-C of gnnctl', async () => {
    const waitsBefore = await waitsSoFar();
    const stopped = stopNext();
    const entry = join(repository, 'dist', 'cli', 'main.js');
    const gnnctl = spawn(process.execPath, [
      ...[entry, '--address', daemon.address],
      ...['dataset', 'import', largeSource(), '--id', 'interrupted'],
    ]);
    let said = '';
    gnnctl.stderr.on('data', (text) => {
      said += text;
    });
    await stopped;
    await until(async () => (await waitsSoFar()) > waitsBefore);
    gnnctl.kill('SIGINT');
    const code = await new Promise((resolve) => gnnctl.once('close', resolve));
    expect(code).toBe(gnnctlExit.INTERRUPTED);
    expect(said).toContain('cancelled');
    const name = 'datasets/interrupted';
    const dataset = await daemon.call(DatasetService.method.getDataset, { name });
    expect(dataset.message).toBe('it was cancelled');
    expect(executorPids(daemon.pid)).toEqual([]);
  });

  test('does not stop the daemon from stopping', async () => {
    await hanging('until-the-end');
    expect(await daemon.stop(true)).toBe(daemonExit.OK);
    daemon = await TestDaemon.start({ folder: daemon.folder });
  });
});

describe('a FIFO among our own files', () => {
  test('as a checkpoint is answered, and nothing waits for it', async () => {
    await daemon.createJob('job', spec);
    const { result } = await daemon.succeeded('job');
    const path = join(result?.checkpointDir ?? '', 'last.safetensors');
    renameSync(path, `${path}.aside`);
    mkfifo(path);
    const call = daemon.call(CheckpointService.method.listCheckpoints, { name: 'jobs/job' });
    await expect(call).rejects.toMatchObject({
      code: status.DATA_LOSS,
      details: expect.stringContaining(`${path} is a FIFO, expected a regular file`),
    });
  });

  test('as dataset.json keeps no daemon from starting', async () => {
    const folder = join(daemon.folder, 'state', 'datasets', 'y');
    mkdirSync(folder);
    mkfifo(join(folder, 'dataset.json'));
    expect(await daemon.stop(true)).toBe(daemonExit.OK);
    daemon = await TestDaemon.start({ folder: daemon.folder });
    const { datasets } = await daemon.call(DatasetService.method.listDatasets, {});
    expect(datasets.map(({ name }) => name)).not.toContain('datasets/y');
  });
});

test('stopping has a final deadline, whatever hangs', async () => {
  await daemon.stop(true);
  const { folder } = daemon;
  daemon = await TestDaemon.start({ folder, env: { GNND_STOP_TIMEOUT_MS: '1000' } });
  const timeouts = { cancelGraceMs: 600_000n };
  const training = { ...spec.training, epochs: 100_000 };
  await daemon.createJob('endless', { ...spec, training, timeouts });
  await daemon.until('endless', ({ progress }) => (progress?.epoch ?? 0) >= 1);
  const pids = executorPids(daemon.pid);
  for (const pid of pids) process.kill(pid, 'SIGSTOP');
  expect(await daemon.stop(true)).toBe(daemonExit.STOP_TIMEOUT);
  expect(daemon.logs).toContain('daemon.stop_timeout');
  daemon = await TestDaemon.start({ folder });
  await daemon.call(JobService.method.cancelJob, { name: 'jobs/endless' });
});

test('a state directory that cannot be made is refused at once', async () => {
  const child = spawnDaemon('/proc/1/x');
  let said = '';
  child.stderr?.on('data', (text) => {
    said += text;
  });
  const code = await new Promise((resolve) => child.once('close', resolve));
  expect(code).toBe(daemonExit.STATE_DIR);
  expect(said).toContain('the state directory /proc/1/x/state cannot be used');
});

test('a deleted state directory ends the daemon, which acknowledges nothing more', async () => {
  const other = await TestDaemon.start();
  rmSync(join(other.folder, 'state'), { recursive: true });
  const ended = new Promise((resolve) => other.process.once('exit', resolve));
  const call = other.call(importDataset, { datasetId: 'lost', source: folderOf(pathGraph) });
  expect(await refusalOf(call)).toMatchObject({ code: status.UNAVAILABLE });
  expect(await ended).toBe(daemonExit.STORE_IO);
  expect(other.logs).toContain('was removed while it was in use');
  await other.stop();
});
