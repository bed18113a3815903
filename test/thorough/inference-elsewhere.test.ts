import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { DatasetService } from '../../src/api/gen/gnnd/v1/dataset_service_pb.ts';
import { Standardize } from '../../src/api/gen/gnnd/v1/features_pb.ts';
import {
  InferenceNodes,
  InferenceOutput,
  JobKind,
} from '../../src/api/gen/gnnd/v1/inference_pb.ts';
import type { Job } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { runCli } from '../../src/cli/program.ts';
import { temporaryFolder } from '../support/at-end.ts';
import { TestDaemon } from '../support/daemon.ts';
import { refusalOf } from '../support/refusal.ts';
import { createTestIo } from '../unit/cli/test-io.ts';

/** Models predict graphs that they were not trained on, where those are what the models take. */

let daemon: TestDaemon;
const folder = temporaryFolder('gnnd-elsewhere-');
let cora: string;

type Spec = Parameters<TestDaemon['createJob']>[1];

const training = { epochs: 3, batchSize: 70 };
const models = {
  sage: {
    model: { type: ModelType.GRAPHSAGE, hiddenDim: 16 },
    sampling: { fanouts: [5, 5] },
    features: { standardize: Standardize.ON },
  },
  gcn: { model: { type: ModelType.GCN, hiddenDim: 16 }, sampling: { fanouts: [-1, -1] } },
  sign: {
    model: { type: ModelType.SIGN, hiddenDim: 16 },
    propagation: { hops: 2, standardize: true },
  },
} satisfies Record<string, Spec>;

const specOf = (id: keyof typeof models) => ({ ...models[id], training });

beforeAll(async () => {
  daemon = await TestDaemon.start({ datasets: ['cora'] });
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

interface Inference {
  readonly job?: string;
  readonly path?: string;
  readonly nodes?: InferenceNodes;
  readonly nodesFile?: string;
}

function infer(id: string, given: Inference, more: { readonly dataset?: string } = {}) {
  const inference = { ...given, outputs: [InferenceOutput.LOGITS] };
  return daemon.train(id, { kind: JobKind.INFERENCE, inference, ...more });
}

function logitsOf({ result }: Job): string {
  const path = join(result?.predictions?.folder ?? '', 'logits.npy');
  return createHash('sha256').update(readFileSync(path)).digest('hex');
}

/** Arrays of Cora in a folder, changed as asked; null leaves one out. */
async function coraWith(id: string, changes: Readonly<Record<string, Uint8Array | string | null>>) {
  const source = join(folder, `source-${id}`);
  mkdirSync(source);
  for (const name of readdirSync(cora)) {
    if (name.endsWith('.npy') && changes[name] !== null)
      cpSync(join(cora, name), join(source, name));
  }
  for (const [name, bytes] of Object.entries(changes)) {
    if (bytes !== null) writeFileSync(join(source, name), bytes);
  }
  await daemon.import(id, source);
}

test('a graph without labels is predicted as with labels, and trains no job', async () => {
  const gone = { 'labels.npy': null, 'train.npy': null, 'val.npy': null, 'test.npy': null };
  await coraWith('bare', gone);
  const shown = await gnnctl('dataset', 'get', 'bare');
  expect(shown.stdout).toMatch(/^notice\tthere are no labels: .*\n(.*\n)*classes\t0$/m);
  writeFileSync(join(folder, 'some.txt'), '5\n17\n2000\n');
  for (const id of ['sage', 'gcn', 'sign']) {
    const whole = await infer(`${id}-labelled`, { job: id });
    const bare = await infer(`${id}-bare`, { job: id }, { dataset: 'bare' });
    expect(logitsOf(bare)).toBe(logitsOf(whole));
    expect(bare.message).toContain('columns of features have no names');
    expect(whole.message).toBe('');
  }
  const nodesFile = join(folder, 'some.txt');
  const listed = { job: 'gcn', nodes: InferenceNodes.LISTED, nodesFile };
  const { result } = await infer('gcn-bare-some', listed, { dataset: 'bare' });
  expect(result?.predictions?.nodes).toBe(3n);
  const refused = await refusalOf(
    daemon.createJob('learns', { ...specOf('gcn'), dataset: 'bare' }),
  );
  expect(refused.fields['spec.dataset']).toContain('has no labels');
  expect(refused.fields['spec.dataset']).toContain('gnnctl predict JOB --dataset bare');
});

test('columns of another dataset are those of the model by name, or are refused', async () => {
  const names = Array.from({ length: 1433 }, (_, column) => `word-${column}`);
  const named = (feature_names: readonly string[]) => JSON.stringify({ feature_names });
  const features = readFileSync(join(cora, 'features.npy'));
  features[features.length - 2] = (features[features.length - 2] ?? 0) ^ 1;
  await coraWith('named', { 'meta.json': named(names) });
  await daemon.train('knows', { ...specOf('gcn'), dataset: 'named' });
  const other = (id: string, columns: readonly string[]) =>
    coraWith(id, { 'features.npy': features, 'meta.json': named(columns) });
  await other('same-names', names);
  expect((await infer('knows-same', { job: 'knows' }, { dataset: 'same-names' })).message).toBe('');
  await other('turned', names.toReversed());
  await other('others', ['sex', ...names.slice(1)]);
  const problemOf = async (dataset: string) => {
    const spec = { kind: JobKind.INFERENCE, inference: { job: 'knows' }, dataset };
    return (await refusalOf(daemon.createJob('refused', spec))).fields['spec.dataset'];
  };
  expect(await problemOf('turned')).toContain("column 0 is 'word-1432' here and 'word-0' in");
  expect(await problemOf('others')).toContain(
    "lacks the columns 'word-0' of the model and has 'sex'",
  );
  const out = join(folder, 'knows-export');
  expect((await gnnctl('checkpoint', 'export', 'knows', out)).exitCode).toBe(0);
  const facts = JSON.parse(readFileSync(join(out, 'export.json'), 'utf8'));
  expect(facts.feature_names).toEqual(names);
  const { message } = await infer('by-export', { path: out }, { dataset: 'same-names' });
  expect(message).toBe('');
});
