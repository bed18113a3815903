import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { DatasetService, type Propagation } from '../../src/api/gen/gnnd/v1/dataset_service_pb.ts';
import { type Job, JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import type { JobSpecSchema } from '../../src/api/gen/gnnd/v1/job_spec_pb.ts';
import { RowTier } from '../../src/api/gen/gnnd/v1/memory_plan_pb.ts';
import { ModelType, ModelVariant } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { DeviceChoice, RowsFrom } from '../../src/api/gen/gnnd/v1/resources_pb.ts';
import { Reason } from '../../src/api/gen/gnnd/v1/types_pb.ts';
import { runCli } from '../../src/cli/program.ts';
import { executorPids, repository, TestDaemon } from '../support/daemon.ts';
import { findPython, pythonScripts, runPython } from '../support/python.ts';
import { refusalOf } from '../support/refusal.ts';
import { skipped } from '../support/skipped.ts';
import { createTestIo } from '../unit/cli/test-io.ts';

/** Models over rows of propagated features: the same model from any number of Trainers. */

let daemon: TestDaemon;

beforeAll(async () => {
  const flags = ['--sim-devices', '0,1', '--sim-memory-bytes', '400000000'];
  daemon = await TestDaemon.start({ datasets: ['cora'], cpuDevices: 3, flags });
});

type Spec = MessageInitShape<typeof JobSpecSchema>;

const base = {
  dataset: 'cora',
  propagation: { hops: 2, standardize: false },
  training: { epochs: 12, batchSize: 32, optimizer: { learningRate: 0.01 } },
} satisfies Spec;

const models = [
  ['sgc', { ...base, model: { type: ModelType.SGC } }],
  ['sign', { ...base, model: { type: ModelType.SIGN, hiddenDim: 16 } }],
  [
    'sign-disk',
    {
      ...base,
      model: { type: ModelType.SIGN, hiddenDim: 16 },
      training: { ...base.training, rowChunk: 1 },
      resources: { rowsFrom: RowsFrom.DISK },
    },
  ],
  [
    'sign-standardized',
    {
      ...base,
      model: { type: ModelType.SIGN, hiddenDim: 16 },
      propagation: { hops: 2, standardize: true },
    },
  ],
  [
    'sign-concat',
    {
      ...base,
      model: { type: ModelType.SIGN, variant: ModelVariant.CONCAT, hiddenDim: 16 },
      training: { ...base.training, rowChunk: 16, staleness: 1, batchesPerStep: 2 },
    },
  ],
  ['hoga', { ...base, model: { type: ModelType.HOGA, hiddenDim: 16, heads: 2, residual: true } }],
  [
    'hoga-dac24',
    {
      ...base,
      model: { type: ModelType.HOGA, variant: ModelVariant.DAC24, hiddenDim: 16, heads: 2 },
    },
  ],
] satisfies [string, Spec][];

const digestsOf = ({ epochs }: Job) => epochs.map(({ parametersSha256 }) => parametersSha256);

test.each(models)('%s: 1, 2 and 3 Trainers make the same parameters', async (name, spec) => {
  const digests: (readonly string[])[] = [];
  for (const devices of [1, 2, 3]) {
    const resources = { ...('resources' in spec ? spec.resources : {}), devices };
    const job = await daemon.train(`${name}-${devices}`, { ...spec, resources });
    expect(job.epochs.length).toBe(12);
    // Predicting the rarest class alone gives 0.07, the commonest 0.3.
    if (name !== 'hoga-dac24') expect(job.result?.testAccuracyBest).toBeGreaterThan(0.5);
    expect(job.epochs.at(-1)?.loss).toBeLessThan(0.95 * (job.epochs[0]?.loss ?? 0));
    digests.push(digestsOf(job));
  }
  expect(new Set(digests[0]).size).toBe(12);
  expect(digests[1]).toEqual(digests[0]);
  expect(digests[2]).toEqual(digests[0]);
});

test('rows read from disk past the page cache make the same model, bit for bit', async () => {
  const [mapped, disk] = [await daemon.job('sign-2'), await daemon.job('sign-disk-2')];
  expect(digestsOf(disk)).toEqual(digestsOf(mapped));
  const { rows } = await daemon.call(JobService.method.getJobPlan, { name: 'jobs/sign-disk-2' });
  expect(rows).toMatchObject({ tier: RowTier.DISK, reason: 'the job asks for DISK' });
});

describe('on simulated devices', () => {
  const shown = ['sgc', 'sign', 'sign-concat', 'hoga', 'hoga-dac24'];
  const spec = (name: string, rowsFrom: RowsFrom, devices: number, hops?: number): Spec => {
    const found = models.find(([each]) => each === name)?.[1];
    if (found === undefined) throw new Error(`no model ${name}`);
    const resources = { devices, deviceKind: DeviceChoice.SIM, rowsFrom };
    return { ...found, resources, ...(hops === undefined ? {} : { propagation: { hops } }) };
  };
  const planOf = async (id: string) =>
    (await daemon.call(JobService.method.getJobPlan, { name: `jobs/${id}` })).rows;

  test.each(shown)(
    '%s: rows gathered by the host make the parameters of CPU devices',
    async (name) => {
      const job = await daemon.train(`${name}-sim`, spec(name, RowsFrom.HOST, 1));
      expect(digestsOf(job)).toEqual(digestsOf(await daemon.job(`${name}-2`)));
      const ofCpu = await daemon.job(`${name}-2`);
      expect(job.result?.testAccuracyBest).toBe(ofCpu.result?.testAccuracyBest);
      expect(await planOf(`${name}-sim`)).toMatchObject({ tier: RowTier.HOST });
    },
  );

  test('rows in their own memory make the same parameters, and the plan says why', async () => {
    const job = await daemon.train('sign-device', spec('sign', RowsFrom.AUTO, 2));
    expect(digestsOf(job)).toEqual(digestsOf(await daemon.job('sign-2')));
    const plan = await planOf('sign-device');
    expect(plan).toMatchObject({ tier: RowTier.DEVICE, refused: [] });
    expect(plan?.reason).toContain('all rows');
  });

  test('one that takes rows from disk makes the same parameters, too', async () => {
    const job = await daemon.train('sign-disk-sim', spec('sign-disk', RowsFrom.DISK, 2));
    expect(digestsOf(job)).toEqual(digestsOf(await daemon.job('sign-2')));
  });

  test('a propagation is multiplied there, without being asked', async () => {
    const hops = async () =>
      Number(/^gnnd_propagation_device_hops_total (.*)$/m.exec(await daemon.scrape())?.[1]);
    const before = await hops();
    await daemon.train('sgc-propagated', spec('sgc', RowsFrom.AUTO, 1, 3));
    await expect.poll(hops).toBe(before + 3);
    // Others count what jobs share.
    const { listPropagations, deletePropagation } = DatasetService.method;
    const { propagations } = await daemon.call(listPropagations, {});
    const made = propagations.find(({ propagation }) => propagation?.hops === 3);
    await daemon.call(deletePropagation, { name: made?.name ?? '' });
  });
});

test('what stays together is chosen where rows are read, and frozen with the job', async () => {
  const chunkOf = async (name: string, rowsFrom: RowsFrom) => {
    const spec = { ...base, model: { type: ModelType.SIGN, hiddenDim: 16 } };
    await daemon.createJob(name, { ...spec, resources: { devices: 1, rowsFrom } });
    return (await daemon.succeeded(name)).effectiveSpec?.training?.rowChunk;
  };
  expect(await chunkOf('chunk-auto', RowsFrom.AUTO)).toBe(1);
  expect(await chunkOf('chunk-host', RowsFrom.HOST)).toBe(1);
  // 32 rows of 1,433 columns are fewer than 256 KiB: a batch.
  expect(await chunkOf('chunk-disk', RowsFrom.DISK)).toBe(32);
  const spec = { ...base, model: { type: ModelType.SIGN, hiddenDim: 16 } };
  const asked = { ...spec, resources: { rowsFrom: RowsFrom.DEVICE } };
  expect(await refusalOf(daemon.createJob('device', asked))).toMatchObject({
    fields: { 'spec.resources.rows_from': expect.stringContaining('expected AUTO, HOST or DISK') },
  });
});

/** What jobs with plain rows, and those with standardised ones, train on. */
async function propagationOf(standardize: boolean): Promise<Propagation> {
  const { propagations } = await daemon.call(DatasetService.method.listPropagations, {});
  const found = propagations.filter((each) => each.propagation?.standardize === standardize);
  // Jobs that mean the same share one.
  expect(found.map(({ complete }) => complete)).toEqual([true]);
  const [only] = found;
  if (only === undefined) throw new Error('no propagation');
  return only;
}

test('jobs that mean the same share one propagation', async () => {
  const [plain, standardized] = [await propagationOf(false), await propagationOf(true)];
  expect(plain.name).not.toBe(standardized.name);
});

test('ways to train are compared, and nothing is made', async () => {
  const { listJobs } = JobService.method;
  const jobs = (await daemon.call(listJobs, {})).jobs.length;
  const { io, stdout, stderr } = createTestIo();
  const command = ['--address', daemon.address, '-o', 'json', 'job', 'suggest', 'cora'];
  expect(await runCli([...command, '--hops', '4'], io)).toBe(0);
  const { ways, suggestion } = JSON.parse(stdout());
  expect(ways.map(({ way }: { way: string }) => way)).toEqual(['FULL', 'SAMPLED', 'PROPAGATED']);
  for (const { refusal, epochSeconds, memoryBytes } of ways) {
    expect(refusal).toBe(null);
    expect(epochSeconds).toBeGreaterThan(0);
    expect(memoryBytes).toBeGreaterThan(0);
  }
  // Five files of 1,640 rows, and their nodes and labels.
  expect(ways[2].diskBytes).toBeGreaterThan(5 * 4 * 1640 * 1433);
  expect(suggestion.way).toBe('SAMPLED');
  expect(stderr()).toContain('try SAMPLED first');
  expect((await daemon.call(listJobs, {})).jobs.length).toBe(jobs);
});

test('the plan says where rows come from, and why', async () => {
  const { rows } = await daemon.call(JobService.method.getJobPlan, { name: 'jobs/sign-1' });
  // 1,640 labelled rows of 1,433 columns, three hops.
  const bytes = BigInt(4 * 1640 * 1433 * 3);
  expect(rows).toMatchObject({ tier: RowTier.HOST, bytes, chunk: 1 });
  expect(rows?.reason).toContain('single rows are shuffled');
});

test.each([
  ['sgc', 'SGC', { features: 1433, classes: 7 }],
  ['sign', 'SIGN', { hops: 2, features: 1433, hidden: 16, classes: 7 }],
  ['hoga', 'HOGA', { hops: 2, features: 1433, hidden: 16, classes: 7, heads: 2, residual: true }],
])('the module of plain PyTorch loads the checkpoint: %s', async (job, kind, args) => {
  const python = await findPython('torch');
  if (python === null) return void skipped(`checkpoints of ${kind}`, 'there is no torch');
  const { result } = await daemon.job(`${job}-1`);
  const { path } = await propagationOf(false);
  const accuracy = await runPython(python, [
    join(pythonScripts, 'rows_checkpoint.py'),
    join(repository, 'src', 'python', 'gnnd', 'rows.py'),
    join(result?.checkpointDir ?? '', 'last.safetensors'),
    path,
    kind,
    JSON.stringify(args),
  ]);
  expect(Number(accuracy)).toBeCloseTo(result?.testAccuracyLast ?? 0, 6);
});

test('a checkpoint and its export are enough for rows that nobody standardised', async () => {
  const python = await findPython('torch');
  if (python === null) return void skipped('standardised rows in PyTorch', 'there is no torch');
  const { result } = await daemon.job('sign-standardized-1');
  const folder = mkdtempSync(join(tmpdir(), 'gnnd-rows-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const exported = join(folder, 'exported');
  const { io } = createTestIo();
  const command = ['--address', daemon.address, 'checkpoint', 'export', 'sign-standardized-1'];
  const flags = ['--which', 'last', '--predictions', 'none'];
  expect(await runCli([...command, exported, ...flags], io)).toBe(0);
  const { rows } = JSON.parse(readFileSync(join(exported, 'export.json'), 'utf8'));
  const tokens = ['hop0', 'op0-hop1', 'op0-hop2'];
  expect(rows).toMatchObject({ standardized: true, hops: 2, tokens });
  expect(rows.mean.map(({ length }: []) => length)).toEqual([1433, 1433, 1433]);
  const { path } = await propagationOf(false);
  const accuracy = await runPython(python, [
    join(pythonScripts, 'rows_checkpoint.py'),
    join(repository, 'src', 'python', 'gnnd', 'rows.py'),
    join(exported, 'model.safetensors'),
    path,
    'SIGN',
    JSON.stringify({ hops: 2, features: 1433, hidden: 16, classes: 7 }),
    join(exported, 'export.json'),
  ]);
  expect(Number(accuracy)).toBeCloseTo(result?.testAccuracyLast ?? 0, 2);
});

test('a file that changed on the disk is found at its next use, by name', async () => {
  const { path, name } = await propagationOf(true);
  const file = join(path, 'rows', 'op0-hop1.npy');
  const bytes = readFileSync(file);
  bytes[bytes.length - 1] = (bytes[bytes.length - 1] ?? 0) ^ 1;
  writeFileSync(file, bytes);
  const spec = {
    ...base,
    model: { type: ModelType.SIGN, hiddenDim: 16 },
    propagation: { hops: 2, standardize: true },
    resources: { devices: 1 },
  };
  await daemon.createJob('damaged', spec);
  const isFailed = ({ state }: Job) => state === JobState.FAILED;
  const { reason, message } = await daemon.until('damaged', isFailed);
  expect(Reason[reason]).toBe('DATASET_CORRUPT');
  expect(message).toContain(file);
  const id = name.slice('propagations/'.length);
  expect(message).toContain(`gnnctl dataset delete-propagation ${id}`);
  await daemon.call(DatasetService.method.deletePropagation, { name });
  const mended = await daemon.train('mended', spec);
  expect(digestsOf(mended)).toEqual(digestsOf(await daemon.job('sign-standardized-1')));
});

test('killed Trainers leave no trace in the model', async () => {
  const spec = {
    ...base,
    model: { type: ModelType.SIGN, hiddenDim: 16 },
    training: { ...base.training, epochs: 200 },
  };
  const undisturbed = await daemon.train('calm', { ...spec, resources: { devices: 1 } });
  await daemon.createJob('killed', { ...spec, resources: { devices: 2 } });
  for (const atLeast of [20, 60]) {
    await daemon.until('killed', ({ numEpochs }) => numEpochs >= atLeast);
    const [pid] = executorPids(daemon.pid);
    if (pid !== undefined) process.kill(pid, 'SIGKILL');
  }
  const killed = await daemon.succeeded('killed');
  expect(digestsOf(killed)).toEqual(digestsOf(undisturbed));
});
