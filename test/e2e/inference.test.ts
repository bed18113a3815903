import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DatasetService } from '../../src/api/gen/gnnd/v1/dataset_service_pb.ts';
import { EvaluationMethod } from '../../src/api/gen/gnnd/v1/evaluation_pb.ts';
import {
  InferenceFormat,
  InferenceNodes,
  InferenceOutput,
  JobKind,
} from '../../src/api/gen/gnnd/v1/inference_pb.ts';
import { type Job, JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import type { JobSpecSchema } from '../../src/api/gen/gnnd/v1/job_spec_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { runCli } from '../../src/cli/program.ts';
import { repository, TestDaemon } from '../support/daemon.ts';
import { findPython, pythonScripts, runPython } from '../support/python.ts';
import { skipped } from '../support/skipped.ts';
import { createTestIo } from '../unit/cli/test-io.ts';

/** An inference predicts what a plain forward pass does, whoever computes it and whoever dies. */

let daemon: TestDaemon;
let folder: string;
let cora: string;

type Spec = MessageInitShape<typeof JobSpecSchema>;

const training = { epochs: 6, batchSize: 70, optimizer: { learningRate: 0.01 } };
const models = {
  sage: {
    model: { type: ModelType.GRAPHSAGE, hiddenDim: 32 },
    sampling: { fanouts: [5, 5] },
    features: { standardize: true },
  },
  gcn: { model: { type: ModelType.GCN, hiddenDim: 16 }, sampling: { fanouts: [-1, -1] } },
  sgc: { model: { type: ModelType.SGC }, propagation: { hops: 2 } },
  sign: {
    model: { type: ModelType.SIGN, hiddenDim: 16 },
    propagation: { hops: 2, standardize: true },
    features: { standardize: true },
  },
  hoga: {
    model: { type: ModelType.HOGA, hiddenDim: 16, heads: 2, residual: true },
    propagation: { hops: 2 },
  },
} satisfies Record<string, Spec>;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gnnd-inference-'));
  daemon = await TestDaemon.start({ datasets: ['cora', 'citeseer'], cpuDevices: 3 });
  const dataset = await daemon.call(DatasetService.method.getDataset, { name: 'datasets/cora' });
  cora = dataset.path;
  for (const [id, spec] of Object.entries(models)) {
    await daemon.train(id, { dataset: 'cora', ...spec, training });
  }
});

afterAll(async () => {
  await daemon.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function gnnctl(...args: readonly string[]) {
  const { io, stdout, stderr } = createTestIo();
  const exitCode = await runCli(['--address', daemon.address, ...args], io);
  return { exitCode, stdout: stdout(), stderr: stderr() };
}

const everything = {
  outputs: [InferenceOutput.LOGITS, InferenceOutput.PROBABILITIES],
  formats: [InferenceFormat.NPY, InferenceFormat.PARQUET],
};

/** The job of an inference that SUCCEEDED. */
function infer(id: string, inference: Spec['inference'], more: Spec = {}): Promise<Job> {
  return daemon.train(id, { kind: JobKind.INFERENCE, inference: { ...everything, ...inference }, ...more });
}

function predictionsOf({ result }: Job) {
  if (result?.predictions === undefined) throw new Error('the job predicted nothing');
  return result.predictions;
}

/** Digests of all files, by their names. */
function digestsIn(path: string): Readonly<Record<string, string>> {
  const digest = (name: string) => createHash('sha256').update(readFileSync(join(path, name)));
  return Object.fromEntries(readdirSync(path).sort().map((name) => [name, digest(name).digest('hex')]));
}

test.each(Object.keys(models))('%s: all nodes, as a plain PyTorch forward pass', async (id) => {
  const job = await infer(`${id}-all`, { job: id });
  const { folder: path, nodes, sha256 } = predictionsOf(job);
  expect(nodes).toBe(2708n);
  const digests = digestsIn(path);
  expect(digests['inference.json']).toBe(sha256);
  expect(job.result?.parametersSha256).toBe(job.effectiveSpec?.inference?.parametersSha256);
  const python = await findPython('torch');
  if (python === null) return void skipped('predictions in PyTorch', 'there is no torch');
  const exported = join(folder, `export-${id}`);
  const flags = ['--predictions', 'none'];
  const { exitCode } = await gnnctl('checkpoint', 'export', id, exported, ...flags);
  expect(exitCode).toBe(0);
  const script = join(pythonScripts, 'predictions.py');
  const docs = join(repository, 'docs', 'pre-propagation.md');
  const found = JSON.parse(await runPython(python, [script, docs, path, exported, cora]));
  expect(found).toMatchObject({ nodes: 2708, classes: 0 });
  expect(found.logits).toBeLessThan(1e-4 * Math.max(1, found.largest));
  expect(found.probabilities).toBeLessThan(1e-4);
});
