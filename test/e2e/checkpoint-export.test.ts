import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { beforeAll, expect, test } from 'vitest';
import {
  CheckpointService,
  PredictionNodes,
} from '../../src/api/gen/gnnd/v1/checkpoint_service_pb.ts';
import { DatasetService } from '../../src/api/gen/gnnd/v1/dataset_service_pb.ts';
import { Standardize } from '../../src/api/gen/gnnd/v1/features_pb.ts';
import type { Job } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { SamplingAlgorithm } from '../../src/api/gen/gnnd/v1/sampling_pb.ts';
import { runCli } from '../../src/cli/program.ts';
import { temporaryFolder } from '../support/at-end.ts';
import { executorPids, repository, TestDaemon } from '../support/daemon.ts';
import { findPython, geometricPython, runPython } from '../support/python.ts';
import { ringGraph } from '../support/ring-graph.ts';
import { skipped } from '../support/skipped.ts';
import { hangMs, until } from '../support/until.ts';
import { createTestIo } from '../unit/cli/test-io.ts';

/** What `gnnctl checkpoint export` writes is what the job left, and what it predicts. */

let daemon: TestDaemon;
const folder = temporaryFolder('gnnd-export-');
const datasetFolders = new Map<string, string>();
const jobs = new Map<string, Job>();

const models = {
  sage: {
    dataset: 'cora',
    model: { type: ModelType.GRAPHSAGE, hiddenDim: 32 },
    sampling: { fanouts: [5, 5] },
  },
  gat: {
    dataset: 'cora',
    model: { type: ModelType.GAT, hiddenDim: 16, heads: 4 },
    sampling: { fanouts: [5, 5] },
    features: { standardize: Standardize.ON },
  },
  gcn: {
    dataset: 'cora',
    model: { type: ModelType.GCN, hiddenDim: 16 },
    sampling: { fanouts: [-1, -1] },
  },
  // This model takes weighted means; plain means predict other classes.
  weighted: {
    dataset: 'ring',
    model: { type: ModelType.GRAPHSAGE, hiddenDim: 16 },
    sampling: { algorithm: SamplingAlgorithm.KHOP_WEIGHTED, fanouts: [5, 5] },
  },
};

beforeAll(async () => {
  daemon = await TestDaemon.start({ cpuDevices: 1, datasets: ['cora'] });
  const ring = join(folder, 'ring-source');
  mkdirSync(ring);
  for (const [name, bytes] of Object.entries(ringGraph.files)) {
    writeFileSync(join(ring, name), bytes);
  }
  await daemon.import('ring', ring);
  for (const id of ['cora', 'ring']) {
    const dataset = await daemon.call(DatasetService.method.getDataset, { name: `datasets/${id}` });
    datasetFolders.set(id, dataset.path);
  }
  for (const [id, spec] of Object.entries(models)) {
    const training = { epochs: 12, batchSize: 70, optimizer: { learningRate: 0.01 } };
    jobs.set(id, await daemon.train(id, { ...spec, training }));
  }
});

const gnnctl = (...args: readonly string[]) => cli('checkpoint', ...args);

async function cli(...args: readonly string[]) {
  const { io, stdout, stderr } = createTestIo();
  const exitCode = await runCli(['--address', daemon.address, ...args], io);
  return { exitCode, stdout: stdout(), stderr: stderr() };
}

const numpy = findPython('numpy');

async function check(exported: string, dataset = 'cora') {
  const python = await numpy;
  if (python === null) throw new Error('no Python with numpy');
  const script = join(repository, 'test', 'e2e', 'python', 'check_export.py');
  return JSON.parse(await runPython(python, [script, exported, datasetFolderOf(dataset)]));
}

function bytesOf(path: string): ReadonlyMap<string, Buffer> {
  return new Map(readdirSync(path).map((name) => [name, readFileSync(join(path, name))]));
}

function datasetFolderOf(id: string): string {
  const path = datasetFolders.get(id);
  if (path === undefined) throw new Error(`no dataset ${id}`);
  return path;
}

function resultOf(id: string) {
  const result = jobs.get(id)?.result;
  if (result === undefined) throw new Error(`job ${id} has no result`);
  return result;
}

test.each(Object.entries(models))(
  'the export of a %s predicts as well as its job says, to the last node',
  async (id, { dataset }) => {
    const result = resultOf(id);
    const best = join(folder, id, 'best');
    expect(await gnnctl('export', id, best)).toMatchObject({ exitCode: 0 });
    const { accuracy } = await check(best, dataset);
    expect(accuracy).toEqual({ val: result.bestValAccuracy, test: result.testAccuracyBest });
    const left = readFileSync(join(result.checkpointDir, 'best.safetensors'));
    expect(readFileSync(join(best, 'model.safetensors'))).toEqual(left);

    const last = join(folder, id, 'last');
    const args = ['--which', 'last', '--predictions', 'test'];
    expect(await gnnctl('export', id, last, ...args)).toMatchObject({ exitCode: 0 });
    const checked = await check(last, dataset);
    expect(checked.accuracy).toEqual({ test: result.testAccuracyLast });
    expect(checked.parametersSha256).toBe(result.parametersSha256);

    const report = JSON.parse((await cli('job', 'report', id, '-o', 'json')).stdout);
    expect(report).toMatchObject({ job: id, task: 'CLASSIFICATION', nodes: 'test' });
    expect(report.accuracy).toBe(result.testAccuracyBest);
  },
);

test('torch_geometric computes the exported logits from the exported model', async (context) => {
  const python = await geometricPython();
  if (python === null) {
    context.skip(skipped('exports against torch_geometric', 'no torch_geometric'));
    return;
  }
  const script = join(repository, 'test', 'process', 'checkpoint', 'pyg_compat.py');
  const exports = ['sage', 'gat', 'gcn'].map((id) => join(folder, id, 'best'));
  const args = [script, datasetFolderOf('cora'), ...exports];
  const said = await python(args);
  expect(said.trim().split('\n')).toHaveLength(exports.length);
});

test('the same export has the same bytes; the model alone needs no predictions', async () => {
  const [one, two, alone] = ['one', 'two', 'alone'].map((name) => join(folder, name));
  if (one === undefined || two === undefined || alone === undefined) return;
  await gnnctl('export', 'sage', one);
  await gnnctl('export', 'sage', two);
  expect(bytesOf(two)).toEqual(bytesOf(one));
  expect([...bytesOf(one).keys()].sort()).toEqual([
    'export.json',
    'logits.npy',
    'model.safetensors',
    'predictions.npy',
  ]);
  // In parts, and over an earlier export, of which nothing stays.
  await gnnctl('export', 'sage', two, '--predictions', 'val', '--memory', '1MiB', '--force');
  await check(two);
  await gnnctl('export', 'sage', two, '--predictions', 'none', '--force');
  await gnnctl('export', 'sage', alone, '--predictions', 'none');
  expect([...bytesOf(alone).keys()].sort()).toEqual(['export.json', 'model.safetensors']);
  expect(bytesOf(two)).toEqual(bytesOf(alone));
  await check(alone);
});

test('both checkpoints of a job are listed', async () => {
  const { stdout } = await gnnctl('list', 'sage', '-o', 'json');
  const result = resultOf('sage');
  expect(JSON.parse(stdout).checkpoints).toMatchObject([
    {
      kind: 'CHECKPOINT_KIND_BEST',
      epoch: result.bestEpoch,
      testAccuracy: result.testAccuracyBest,
    },
    { kind: 'CHECKPOINT_KIND_LAST', epoch: 11, parametersSha256: result.parametersSha256 },
  ]);
  const plain = await gnnctl('list', 'sage', '-o', 'plain');
  expect(plain.stdout).toMatch(/^CHECKPOINT\tEPOCH\t.*\nbest\t\d+\t/);
});

test('what is there already is not written over', async () => {
  const target = join(folder, 'taken');
  await gnnctl('export', 'sage', target, '--predictions', 'none');
  const before = bytesOf(target);
  const refused = await gnnctl('export', 'gat', target);
  expect(refused.exitCode).toBe(5);
  expect(refused.stderr).toContain('holds model.safetensors, export.json');
  expect(bytesOf(target)).toEqual(before);
});

test('a busy device holds no export up, and a running job has none', async () => {
  await daemon.createJob('endless', { dataset: 'cora', training: { epochs: 100_000 } });
  const running = (job: Job) => job.epochs.length > 0;
  const before = await daemon.until('endless', running);
  const beside = join(folder, 'beside');
  expect(await gnnctl('export', 'sage', beside)).toMatchObject({ exitCode: 0 });
  const { accuracy } = await check(beside);
  expect(accuracy.test).toBe(resultOf('sage').testAccuracyBest);
  const early = await gnnctl('export', 'endless', join(folder, 'early'));
  expect(early.exitCode).toBe(5);
  expect(early.stderr).toContain(
    'job endless is RUNNING: only a job that SUCCEEDED has checkpoints',
  );
  await daemon.until('endless', (job) => job.numEpochs > before.numEpochs);
  await daemon.call(JobService.method.cancelJob, { name: 'jobs/endless' });
});

test('what cannot be exported is refused, and leaves no folder', async () => {
  const target = join(folder, 'deep', 'er');
  const unknown = await gnnctl('export', 'nobody', target);
  expect([unknown.exitCode, unknown.stderr]).toEqual([4, expect.stringContaining('no job nobody')]);
  const inFile = await gnnctl('export', 'sage', join(repository, 'package.json', 'below'));
  expect([inFile.exitCode, inFile.stderr]).toEqual([5, expect.stringContaining('ENOTDIR')]);
  const tooSmall = await gnnctl('export', 'sage', target, '--memory', '100B');
  expect([tooSmall.exitCode, tooSmall.stderr]).toEqual([
    3,
    expect.stringContaining('memory_bytes'),
  ]);
  expect(existsSync(join(folder, 'deep'))).toBe(false);
});

test('a dataset that is another one by now, and a damaged checkpoint, are refused', async () => {
  const target = join(folder, 'changed');
  const restoring = async (
    path: string,
    change: (bytes: Buffer) => Buffer,
    work: () => Promise<void>,
  ) => {
    const bytes = readFileSync(path);
    writeFileSync(path, change(Buffer.from(bytes)));
    await work().finally(() => writeFileSync(path, bytes));
  };
  const append = (bytes: Buffer) => Buffer.concat([bytes, Buffer.from('\n')]);
  await restoring(join(datasetFolderOf('cora'), 'dataset.json'), append, async () => {
    const { exitCode, stderr } = await gnnctl('export', 'sage', target);
    expect(exitCode).toBe(5);
    expect(stderr).toContain('dataset cora is not the one that job sage was trained on');
    // The model itself needs no dataset.
    const alone = join(folder, 'without-dataset');
    expect(await gnnctl('export', 'sage', alone, '--predictions', 'none')).toMatchObject({
      exitCode: 0,
    });
  });
  await restoring(
    join(datasetFolderOf('cora'), 'labels.npy'),
    (bytes) => bytes.subarray(0, -4),
    async () => {
      const { exitCode, stderr } = await gnnctl('export', 'sage', target);
      expect([exitCode, stderr]).toEqual([13, expect.stringContaining('labels.npy')]);
    },
  );
  const checkpoint = join(resultOf('sage').checkpointDir, 'best.safetensors');
  const flip = (bytes: Buffer) => {
    bytes[bytes.length - 9] = (bytes.at(-9) ?? 0) ^ 4;
    return bytes;
  };
  await restoring(checkpoint, flip, async () => {
    const { exitCode, stderr } = await gnnctl('export', 'sage', target);
    expect([exitCode, stderr]).toEqual([13, expect.stringContaining('best.safetensors')]);
  });
  expect(existsSync(target)).toBe(false);
});

/** A call of ExportCheckpoint that nobody reads to its end. */
function startExport() {
  const { exportCheckpoint } = CheckpointService.method;
  const request = { name: 'jobs/sage', predictions: PredictionNodes.ALL };
  const call = daemon.client.makeServerStreamRequest(
    `/${CheckpointService.typeName}/${exportCheckpoint.name}`,
    (value) => Buffer.from(toBinary(exportCheckpoint.input, value)),
    (bytes) => fromBinary(exportCheckpoint.output, bytes),
    create(exportCheckpoint.input, request),
    { deadline: Date.now() + hangMs },
  );
  call.on('error', () => {});
  call.on('data', () => {});
  return call;
}

const predictor = () => until(() => executorPids(daemon.pid)[0]);
const untilGone = (pid: number) => until(() => !existsSync(`/proc/${pid}`));

test('a client that goes away takes the predicting process with it', async () => {
  for (const pid of executorPids(daemon.pid)) await untilGone(pid);
  const call = startExport();
  const pid = await predictor();
  call.cancel();
  await untilGone(pid);
  // The cancelled export's place in the line is free.
  const after = await gnnctl('export', 'sage', join(folder, 'after'));
  expect(after.exitCode).toBe(0);
});

test('a predicting process that dies ends its export with an error', async () => {
  const target = join(folder, 'killed');
  const exporting = gnnctl('export', 'sage', target);
  process.kill(await predictor(), 'SIGKILL');
  const { exitCode, stderr } = await exporting;
  expect([exitCode, stderr]).toEqual([13, expect.stringContaining('incident')]);
  expect(existsSync(target)).toBe(false);
  expect(daemon.logs).toContain('died of SIGKILL');
});

test("the daemon's death leaves no predicting process and no partial files", async () => {
  const target = join(folder, 'orphan');
  const exporting = gnnctl('export', 'sage', target);
  const pid = await predictor();
  await daemon.kill('SIGKILL');
  await untilGone(pid);
  expect((await exporting).exitCode).toBe(8);
  expect(existsSync(target)).toBe(false);
});
