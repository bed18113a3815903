import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { parquetReadObjects } from 'hyparquet';
import { beforeAll, expect, test } from 'vitest';
import { DatasetService } from '../../src/api/gen/gnnd/v1/dataset_service_pb.ts';
import { EvaluationMethod } from '../../src/api/gen/gnnd/v1/evaluation_pb.ts';
import { Standardize } from '../../src/api/gen/gnnd/v1/features_pb.ts';
import {
  InferenceFormat,
  InferenceNodes,
  InferenceOutput,
  JobKind,
} from '../../src/api/gen/gnnd/v1/inference_pb.ts';
import { type Job, JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import type { JobSpecSchema } from '../../src/api/gen/gnnd/v1/job_spec_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { Reason } from '../../src/api/gen/gnnd/v1/types_pb.ts';
import { runCli } from '../../src/cli/program.ts';
import { temporaryFolder } from '../support/at-end.ts';
import { executorPids, repository, TestDaemon } from '../support/daemon.ts';
import { writeLargeGraph } from '../support/large-graph.ts';
import { findPython, pythonScripts, runPython } from '../support/python.ts';
import { skipped } from '../support/skipped.ts';
import { until } from '../support/until.ts';
import { createTestIo } from '../unit/cli/test-io.ts';
import { int64 } from '../unit/datasets/workbench.ts';

/** An inference predicts what a plain forward pass does, whoever computes it and whoever dies. */

let daemon: TestDaemon;
const folder = temporaryFolder('gnnd-inference-');
let cora: string;

type Spec = MessageInitShape<typeof JobSpecSchema>;

const training = { epochs: 6, batchSize: 70, optimizer: { learningRate: 0.01 } };
const models = {
  sage: {
    model: { type: ModelType.GRAPHSAGE, hiddenDim: 32 },
    sampling: { fanouts: [5, 5] },
    features: { standardize: Standardize.ON },
  },
  gcn: { model: { type: ModelType.GCN, hiddenDim: 16 }, sampling: { fanouts: [-1, -1] } },
  sgc: { model: { type: ModelType.SGC }, propagation: { hops: 2 } },
  sign: {
    model: { type: ModelType.SIGN, hiddenDim: 16 },
    propagation: { hops: 2, standardize: true },
    features: { standardize: Standardize.ON },
  },
  hoga: {
    model: { type: ModelType.HOGA, hiddenDim: 16, heads: 2, residual: true },
    propagation: { hops: 2 },
  },
} satisfies Record<string, Spec>;

beforeAll(async () => {
  daemon = await TestDaemon.start({ datasets: ['cora', 'citeseer'], cpuDevices: 3 });
  const dataset = await daemon.call(DatasetService.method.getDataset, { name: 'datasets/cora' });
  cora = dataset.path;
  for (const [id, spec] of Object.entries(models)) {
    await daemon.train(id, { dataset: 'cora', ...spec, training });
  }
});

async function gnnctl(...args: readonly string[]) {
  const { io, stdout, stderr } = createTestIo();
  const exitCode = await runCli(['--address', daemon.address, ...args], io);
  return { exitCode, stdout: stdout(), stderr: stderr() };
}

const everything = {
  outputs: [...[InferenceOutput.LOGITS, InferenceOutput.PROBABILITIES, InferenceOutput.EMBEDDINGS]],
  formats: [InferenceFormat.NPY, InferenceFormat.PARQUET],
};

interface Inference {
  readonly job?: string;
  readonly path?: string;
  readonly nodes?: InferenceNodes;
  readonly nodesFile?: string;
  readonly formats?: InferenceFormat[];
}

interface More {
  readonly dataset?: string;
  readonly resources?: { readonly devices: number };
  readonly evaluation?: { readonly method: EvaluationMethod; readonly fanouts?: number[] };
}

/** The job of an inference that SUCCEEDED. */
function infer(id: string, inference: Inference, more: More = {}): Promise<Job> {
  const given = { ...everything, ...inference };
  return daemon.train(id, { kind: JobKind.INFERENCE, inference: given, ...more });
}

function predictionsOf({ result }: Job) {
  if (result?.predictions === undefined) throw new Error('the job predicted nothing');
  return result.predictions;
}

/** Digests of all files, by their names. */
function digestsIn(path: string): Readonly<Record<string, string>> {
  const digest = (name: string) => createHash('sha256').update(readFileSync(join(path, name)));
  return Object.fromEntries(
    readdirSync(path)
      .sort()
      .map((name) => [name, digest(name).digest('hex')]),
  );
}

/** What predictions.py found, of a job's folder of predictions; null without PyTorch. */
async function compare(path: string, model: string, dataset: string) {
  const python = await findPython('torch');
  if (python === null) {
    skipped('predictions in PyTorch', 'there is no torch');
    return null;
  }
  const exported = join(folder, `export-${model}`);
  if (!existsSync(exported)) {
    const flags = ['--predictions', 'none'];
    const { exitCode } = await gnnctl('checkpoint', 'export', model, exported, ...flags);
    expect(exitCode).toBe(0);
  }
  const script = join(pythonScripts, 'predictions.py');
  const modules = join(repository, 'src', 'python', 'gnnd', 'rows.py');
  return JSON.parse(await runPython(python, [script, modules, path, exported, dataset]));
}

function expectEqual(found: { readonly [key: string]: number } | null, nodes: number): void {
  if (found === null) return;
  expect(found).toMatchObject({ nodes, classes: 0 });
  expect(found['logits']).toBeLessThan(1e-4 * Math.max(1, found['largest'] ?? 0));
  expect(found['probabilities']).toBeLessThan(1e-4);
  expect(found['embeddings']).toBeLessThan(1e-4);
}

test.each(Object.keys(models))('%s: all nodes, as a plain PyTorch forward pass', async (id) => {
  const job = await infer(`${id}-all`, { job: id });
  const { folder: path, nodes, sha256 } = predictionsOf(job);
  expect(nodes).toBe(2708n);
  expect(digestsIn(path)['inference.json']).toBe(sha256);
  expect(job.result?.parametersSha256).toBe(job.effectiveSpec?.inference?.parametersSha256);
  expect(job.epochs).toEqual([]);
  expectEqual(await compare(path, id, cora), 2708);
});

/** Elements of a .npy file of int64 or float32. */
function elements(path: string): readonly number[] {
  const bytes = readFileSync(path);
  const data = bytes.subarray(10 + bytes.readUInt16LE(8));
  const isWide = bytes.toString('latin1', 0, 128).includes('<i8');
  const values = data.buffer.slice(data.byteOffset, data.byteOffset + data.length);
  return isWide ? [...new BigInt64Array(values)].map(Number) : [...new Float32Array(values)];
}

test.each(['sage', 'sign'])('%s: sets of nodes are rows of all nodes', async (id) => {
  const { folder: all } = predictionsOf(await daemon.job(`${id}-all`));
  const classes = elements(join(all, 'predictions.npy'));
  const logits = elements(join(all, 'logits.npy'));
  const text = join(folder, `${id}.txt`);
  writeFileSync(text, '2707\n3\n\n 17 \n3\n');
  const array = join(folder, `${id}.npy`);
  writeFileSync(array, int64(2707, 3, 17));
  const sets = [
    ['training', { nodes: InferenceNodes.TRAINING }, elements(join(cora, 'train.npy'))],
    ['validation', { nodes: InferenceNodes.VALIDATION }, elements(join(cora, 'val.npy'))],
    ['test', { nodes: InferenceNodes.TEST }, elements(join(cora, 'test.npy'))],
    ['text', { nodes: InferenceNodes.LISTED, nodesFile: text }, [3, 17, 2707]],
    ['array', { nodes: InferenceNodes.LISTED, nodesFile: array }, [3, 17, 2707]],
  ] as const;
  for (const [name, inference, nodes] of sets) {
    const job = await infer(`${id}-${name}`, { job: id, ...inference });
    const { folder: path } = predictionsOf(job);
    expect(elements(join(path, 'nodes.npy')), name).toEqual(nodes);
    expect(elements(join(path, 'predictions.npy')), name).toEqual(
      nodes.map((node) => classes[node]),
    );
    const found = elements(join(path, 'logits.npy'));
    found.forEach((logit, at) => {
      const place = 7 * (nodes[Math.floor(at / 7)] ?? 0) + (at % 7);
      expect(logit).toBeCloseTo(logits[place] ?? Number.NaN, 4);
    });
  }
  const [text2, array2] = ['text', 'array'].map((name) => daemon.job(`${id}-${name}`));
  const digestOf = async (job: Promise<Job> | undefined) =>
    job === undefined ? null : digestsIn(predictionsOf(await job).folder)['predictions.npy'];
  expect(await digestOf(text2)).toBe(await digestOf(array2));
});

test('nodes that have ids are listed by them, and predictions show them', async () => {
  const tables = join(folder, 'named');
  mkdirSync(tables);
  const splits = ['train', 'val', 'test', ''];
  const each = Array.from({ length: 40 }, (_, at) => at);
  const label = (at: number) => ['ham', 'spam, eggs'][at % 2];
  const rows = each.map((at) => `n${at},"${label(at)}",${splits[at % 4]},${at % 2}`);
  writeFileSync(join(tables, 'nodes.csv'), `id,label,split,x\n${rows.join('\n')}\n`);
  const edges = each.map((at) => `n${at},n${(at + 2) % 40}`);
  writeFileSync(join(tables, 'edges.csv'), `source,target\n${edges.join('\n')}\n`);
  await daemon.import('named', tables);
  await daemon.train('by-name', { dataset: 'named', ...models.gcn, training });
  const list = join(folder, 'ids.txt');
  writeFileSync(list, 'n30\nn7\n');
  const out = join(folder, 'by-name');
  const flags = ['--nodes-file', list, '--format', 'csv', '--out', out];
  const { exitCode, stderr } = await gnnctl('predict', 'by-name', ...flags);
  expect(stderr).not.toContain('error');
  expect(exitCode).toBe(0);
  expect(readFileSync(join(out, 'predictions.csv'), 'utf8')).toMatch(
    /^node,id,prediction,class\n7,n7,(0,ham|1,"spam, eggs")\n30,n30,(0,ham|1,"spam, eggs")\n$/,
  );
  const said = JSON.parse(readFileSync(join(out, 'inference.json'), 'utf8'));
  expect(said['class_names']).toEqual(['ham', 'spam, eggs']);
  // The same by themselves, on stdout.
  const shown = await gnnctl('predict', 'by-name', '--node-ids', 'n30', 'n7');
  expect(shown.exitCode).toBe(0);
  expect(shown.stdout).toBe(readFileSync(join(out, 'predictions.csv'), 'utf8'));
  const wrong = await gnnctl('predict', 'by-name', '--node-ids', 'n30', 'n70');
  expect(wrong.exitCode).not.toBe(0);
  expect(wrong.stderr).toContain(
    'spec.inference.node_ids: [1]: "n70": expected the id of a node, or its number from 0 to 39',
  );
});

test('nodes that are not there are told by their lines', async () => {
  const text = join(folder, 'wrong.txt');
  writeFileSync(text, '1\n2708\nthree\n');
  const inference = { job: 'sage', nodes: InferenceNodes.LISTED, nodesFile: text };
  await daemon.createJob('wrong-nodes', { kind: JobKind.INFERENCE, inference });
  const isFailed = ({ state }: Job) => state === JobState.FAILED;
  const { reason, message } = await daemon.until('wrong-nodes', isFailed);
  expect(Reason[reason]).toBe('SPEC_INVALID');
  expect(message).toContain('line 2: "2708": expected a node, an integer from 0 to 2707');
  expect(message).toContain('line 3: "three"');
});

test('Parquet holds what the arrays do', async () => {
  const { folder: path } = predictionsOf(await daemon.job('sage-test'));
  const bytes = readFileSync(join(path, 'predictions.parquet'));
  const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
  const rows = await parquetReadObjects({ file });
  const read = (name: string) => elements(join(path, `${name}.npy`));
  expect(rows.map(({ node }) => Number(node))).toEqual(read('nodes'));
  expect(rows.map(({ prediction }) => Number(prediction))).toEqual(read('predictions'));
  expect(rows.flatMap(({ logits }) => logits)).toEqual(read('logits'));
  expect(rows.flatMap(({ probabilities }) => probabilities)).toEqual(read('probabilities'));
  expect(rows.flatMap(({ embeddings }) => embeddings)).toEqual(read('embeddings'));
  expect(rows[0]?.['embeddings']).toHaveLength(32);
  const sums = rows.map((row) => row['probabilities'].reduce((a: number, b: number) => a + b, 0));
  for (const sum of sums) expect(sum).toBeCloseTo(1, 5);
});

test('a sampled inference of validation nodes is what the training said', async () => {
  const evaluation = { method: EvaluationMethod.SAMPLED };
  const spec = { dataset: 'cora', ...models.sage, evaluation, training };
  const trained = await daemon.train('sampled', spec);
  const job = await infer('sampled-val', { job: 'sampled', nodes: InferenceNodes.VALIDATION });
  expect(job.effectiveSpec?.evaluation?.method).toBe(EvaluationMethod.SAMPLED);
  const { folder: path } = predictionsOf(job);
  const labels = readFileSync(join(cora, 'labels.npy'));
  const labelAt = labels.length - 4 * 2708;
  const nodes = elements(join(path, 'nodes.npy'));
  const hits = elements(join(path, 'predictions.npy')).filter(
    (label, row) => label === labels.readInt32LE(labelAt + 4 * (nodes[row] ?? 0)),
  );
  expect(hits.length / nodes.length).toBe(trained.result?.bestValAccuracy);
});

/** Cora with other features: what a model makes of them depends on the training's moments. */
async function otherDataset(): Promise<string> {
  const source = join(folder, 'other');
  cpSync(cora, source, { recursive: true });
  rmSync(join(source, 'dataset.json'));
  const bytes = readFileSync(join(source, 'features.npy'));
  const at = bytes.length - 4 * 2708 * 1433;
  for (let i = 0; i < 2708 * 1433; i += 1) {
    bytes.writeFloatLE(0.5 * bytes.readFloatLE(at + 4 * i) + (i % 5 === 0 ? 0.25 : 0), at + 4 * i);
  }
  rmSync(join(source, 'features.npy'));
  writeFileSync(join(source, 'features.npy'), bytes);
  await daemon.import('other', source);
  const found = await daemon.call(DatasetService.method.getDataset, { name: 'datasets/other' });
  return found.path;
}

test("another dataset is standardised by the training's moments", async () => {
  const other = await otherDataset();
  for (const id of ['sage', 'sign', 'hoga']) {
    const job = await infer(`${id}-other`, { job: id }, { dataset: 'other' });
    const { folder: path } = predictionsOf(job);
    expectEqual(await compare(path, id, other), 2708);
    const exported = join(folder, `export-${id}`);
    const inference = { path: exported };
    const again = await infer(`${id}-exported`, inference, { dataset: 'other' });
    expect(digestsIn(predictionsOf(again).folder)['logits.npy']).toBe(
      digestsIn(path)['logits.npy'],
    );
  }
});

test('gnnctl predicts, and says before what it will take', async () => {
  const out = join(folder, 'taken');
  const args = ['predict', 'sign', '--nodes', 'all', '--out', out, '--outputs', 'logits'];
  const dry = await gnnctl(...args, '--dry-run');
  expect(dry.exitCode).toBe(0);
  expect(dry.stderr).toMatch(
    /inference: 2,708 nodes in at most 1 chunk; .* of files, .* beside them/,
  );
  expect(existsSync(out)).toBe(false);
  expect(await gnnctl(...args, '--id', 'taken')).toMatchObject({ exitCode: 0 });
  expect(digestsIn(out)).toEqual(digestsIn(predictionsOf(await daemon.job('taken')).folder));
  const twice = await gnnctl('job', 'predictions', 'taken', out);
  expect([twice.exitCode, twice.stderr]).toEqual([5, expect.stringContaining('--force')]);
  const forced = await gnnctl('job', 'predictions', 'taken', out, '--force');
  expect(forced.exitCode).toBe(0);
  const none = await gnnctl('checkpoint', 'export', 'taken', join(folder, 'no-model'));
  expect(none.stderr).toContain('job taken is an inference');
  const trains = await gnnctl('job', 'predictions', 'sage', join(folder, 'no-predictions'));
  expect(trains.stderr).toContain('gnnctl predict');
});

test('an export of a model over rows predicts validation and test nodes', async () => {
  const target = join(folder, 'rows-export');
  const args = ['checkpoint', 'export', 'sign', target, '--predictions', 'test'];
  expect(await gnnctl(...args)).toMatchObject({ exitCode: 0 });
  const { folder: path } = predictionsOf(await daemon.job('sign-test'));
  for (const name of ['nodes.npy', 'predictions.npy', 'logits.npy']) {
    expect(readFileSync(join(target, name)).equals(readFileSync(join(path, name))), name).toBe(
      true,
    );
  }
  const all = await gnnctl('checkpoint', 'export', 'sign', join(folder, 'rows-all'));
  expect(all.stderr).toContain('expected NONE, VAL or TEST');
});

test('everything wrong with a spec is told at once, before anything is made', async () => {
  const file = join(folder, 'wrong.yaml');
  const text = [
    ...['api_version: gnnd/v1', 'kind: Inference', 'spec:', '  dataset: citeseer'],
    ...['  model: {type: GAT}', '  resources: {devices: 99}'],
    ...['  inference: {job: sage, nodes: LISTED, outputs: [LOGITS, LOGITS]}', ''],
  ];
  writeFileSync(file, text.join('\n'));
  const { exitCode, stderr } = await gnnctl('job', 'create', '-f', file);
  expect(exitCode).toBe(3);
  for (const path of [
    ...['spec.model.type', 'spec.dataset', 'spec.resources.devices'],
    ...['spec.inference.nodes_file', 'spec.inference.outputs[1]'],
  ]) {
    expect(stderr).toContain(`${path}: `);
  }
  expect(stderr).toContain('has 3703 features, the model takes 1433');
  const nobody = await gnnctl(
    'job',
    'create',
    '--set',
    'kind=INFERENCE',
    '--set',
    'inference.job=x',
  );
  expect(nobody.stderr).toContain('spec.inference.job: "x": there is no such job');
});

// ---- crews and kills -------------------------------------------------------------------------

const crowd = { numNodes: 60_000, degree: 12, features: 64 };

const large = {
  exact: {
    model: { type: ModelType.GRAPHSAGE, hiddenDim: 64 },
    sampling: { fanouts: [3, 3, 3] },
    evaluation: { everyEpochs: 0 },
  },
  sampled: {
    model: { type: ModelType.GAT, hiddenDim: 64, heads: 4 },
    sampling: { fanouts: [8, 8] },
    evaluation: { everyEpochs: 0, method: EvaluationMethod.SAMPLED },
  },
  rows: {
    model: { type: ModelType.HOGA, hiddenDim: 64, heads: 4, hopLayers: 2 },
    propagation: { hops: 3 },
    evaluation: { everyEpochs: 0 },
  },
} satisfies Record<string, Spec>;

const inMidPrediction = (share: number) => (job: Job) => {
  const { rowsDone = 0n, rowsTotal = 0n } = job.progress?.evaluation ?? {};
  if (job.state === JobState.SUCCEEDED) throw new Error('it was over before it was hit');
  return rowsTotal > 0n && Number(rowsDone) >= share * Number(rowsTotal);
};

/** Rows that attempts computed until they were complete, in the order of their ends. */
function computedRows(): readonly number[] {
  return daemon.logs
    .split('\n')
    .filter((line) => line.includes('inference.predicted'))
    .map((line) => Number(/"rows":\s*(\d+)/.exec(line)?.[1] ?? /rows=(\d+)/.exec(line)?.[1]));
}

test.each(Object.keys(large))('%s: the same bytes from any crew, killed or not', async (id) => {
  if (!existsSync(join(folder, 'crowd'))) {
    writeLargeGraph(join(folder, 'crowd'), crowd);
    await daemon.import('crowd', join(folder, 'crowd'));
  }
  const job = `crowd-${id}`;
  const spec: Spec = large[id as keyof typeof large];
  await daemon.train(job, { dataset: 'crowd', ...spec, training: { epochs: 1, batchSize: 50 } });
  const crew = (devices: number) => ({ resources: { devices } });
  const alone = await infer(`${job}-1`, { job }, crew(1));
  const wanted = digestsIn(predictionsOf(alone).folder);
  const [total = 0] = computedRows().slice(-1);
  expect(total).toBeGreaterThanOrEqual(crowd.numNodes);
  for (const devices of [2, 3]) {
    const other = await infer(`${job}-${devices}`, { job }, crew(devices));
    expect(digestsIn(predictionsOf(other).folder)).toEqual(wanted);
    expect(computedRows().at(-1)).toBe(total);
  }
  // A Trainer dies, then another one, then the daemon with all of them.
  const inference = { ...everything, job };
  const killed = `${job}-killed`;
  await daemon.createJob(killed, { kind: JobKind.INFERENCE, inference, ...crew(2) });
  for (const share of [0.1, 0.3]) {
    await daemon.until(killed, inMidPrediction(share));
    const [pid] = executorPids(daemon.pid);
    if (pid !== undefined) process.kill(pid, 'SIGKILL');
  }
  const before = await daemon.until(killed, inMidPrediction(0.5));
  await daemon.kill('SIGKILL');
  const { uid } = before;
  expect(existsSync(join(daemon.folder, 'state', 'jobs', uid, 'predictions'))).toBe(false);
  daemon = await TestDaemon.start({ folder: daemon.folder, cpuDevices: 3 });
  const after = await daemon.succeeded(killed);
  expect(after.attempts.length).toBeGreaterThan(1);
  expect(digestsIn(predictionsOf(after).folder)).toEqual(wanted);
  // Rows that were done when the daemon died were not computed again.
  const done = Number(before.progress?.evaluation?.rowsDone);
  expect(computedRows().at(-1)).toBeLessThanOrEqual(total - done);
  // Files that attempts left for each other are removed at the job's end.
  const left = () => readdirSync(join(daemon.folder, 'state', 'jobs', uid)).sort();
  await until(() => left().length <= 2);
  expect(left()).toEqual(['attempts', 'predictions']);
});

test('more chunks are no more messages, and no more memory of the daemon', async () => {
  const measured = [];
  await daemon.train('small', {
    dataset: 'crowd',
    ...large.exact,
    training: { ...training, epochs: 1 },
  });
  for (const [name, factor] of [
    ['many', 1],
    ['more', 4],
  ] as const) {
    const source = join(folder, name);
    writeLargeGraph(source, { ...crowd, numNodes: 60_000 * factor, features: 64, degree: 4 });
    await daemon.import(name, source);
    const evaluation = { method: EvaluationMethod.SAMPLED, fanouts: [2, 2, 2] };
    const spec = { dataset: name, evaluation, resources: { devices: 2 } };
    const { uid } = await infer(`grown-${name}`, { job: 'small', formats: [] }, spec);
    const logs = join(daemon.folder, 'state', 'jobs', uid, 'attempts', '1', 'log');
    // An executor's log has a line for each message and each thing that it tells.
    const lines = readdirSync(logs).map((log) => readFileSync(join(logs, log), 'utf8').split('\n'));
    const ofJob = daemon.logs.split('\n').filter((line) => line.includes(`"grown-${name}"`));
    const chunks = Number(/"chunks":(\d+)/.exec(ofJob.join('\n'))?.[1]);
    const status = readFileSync(`/proc/${daemon.pid}/status`, 'utf8');
    const peakBytes = 1024 * Number(/VmHWM:\s*(\d+)/.exec(status)?.[1]);
    measured.push({ chunks, lines: lines.flat().length + ofJob.length, peakBytes });
  }
  const [many, more] = measured;
  if (many === undefined || more === undefined) throw new Error('nothing was measured');
  expect(many.chunks).toBe(Math.ceil(60_000 / 512));
  expect(more.chunks).toBe(Math.ceil(240_000 / 512));
  expect(more.lines).toBe(many.lines);
  // All logits are 3 MB, all features 61 MB.
  expect(more.peakBytes - many.peakBytes).toBeLessThan(32 * 2 ** 20);
});
