import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FeatureDtype } from '../../src/api/gen/gnnd/v1/dataset_service_pb.ts';
import { Prefetch } from '../../src/api/gen/gnnd/v1/features_pb.ts';
import { InferenceNodes, JobKind } from '../../src/api/gen/gnnd/v1/inference_pb.ts';
import { type Job, JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { SamplingAlgorithm } from '../../src/api/gen/gnnd/v1/sampling_pb.ts';
import { Reason } from '../../src/api/gen/gnnd/v1/types_pb.ts';
import { pair, type SpecInit } from '../support/crews.ts';
import { repository, TestDaemon } from '../support/daemon.ts';
import { findPython, pythonScripts, runPython } from '../support/python.ts';
import { refusalOf } from '../support/refusal.ts';
import { skipped } from '../support/skipped.ts';
import { tutorialCode } from '../support/tutorial.ts';

/** Models of users: the one of docs/plugins.md, and those that break their contract. */

const python = await findPython('torch');
const isSkipped = python === null && skipped('models of users', 'no Python has torch');

const folder = mkdtempSync(join(tmpdir(), 'gnnd-scripts-'));
const pluginsDir = join(folder, 'plugins');
const module = join(folder, 'sage.py');
/** What people save who have not read the contract. */
const plainSource = `
import sys, torch
model = torch.nn.Linear(3, 2)
if sys.argv[1] == "state":
    torch.save(model.state_dict(), sys.argv[2])
else:
    torch.jit.script(model).save(sys.argv[2])
`;
// Cora's columns and classes.
const sizes = ['1433', '16', '7', '2'];
let daemon: TestDaemon;

/** The tutorial's model with another line in it. */
function changed(name: string, line: string, instead: string): string {
  const source = join(folder, name);
  const text = readFileSync(module, 'utf8');
  if (!text.includes(line)) throw new Error(`the tutorial has no line ${line}`);
  writeFileSync(source, text.replace(line, instead));
  return source;
}

/** Runs scripts that save a file in the plug-in folder each: [script, arguments..., file]. */
async function save(...commands: readonly (readonly string[])[]): Promise<void> {
  const placed = commands.map((words) => [
    ...words.slice(0, -1),
    join(pluginsDir, words.at(-1) ?? ''),
  ]);
  const all = [join(pythonScripts, 'run_all.py'), JSON.stringify(placed)];
  await runPython(python ?? '', all);
}

function spec(file: string, sampling: SpecInit['sampling'] = { fanouts: [10, 5] }): SpecInit {
  return {
    dataset: 'cora',
    model: { type: ModelType.TORCHSCRIPT, layers: 2, script: { path: join(pluginsDir, file) } },
    sampling,
    training: {
      epochs: 12,
      batchSize: 10,
      staleness: 2,
      randomSeed: 5n,
      threadsPerTrainer: 1,
      optimizer: { learningRate: 0.01 },
    },
    timeouts: { stallMs: 10_000n },
  };
}

function failureOf(id: string): Promise<Job> {
  return daemon.until(id, ({ state }) => state === JobState.FAILED);
}

describe.skipIf(isSkipped)('a model of the user', () => {
  beforeAll(async () => {
    mkdirSync(pluginsDir);
    writeFileSync(module, tutorialCode('python'));
    // Runs the module as the tutorial says.
    await runPython(python ?? '', [module, ...sizes, join(pluginsDir, 'sage.pt')]);
    const rows = '        rows = indptr.numel() - 1\n';
    const fail = `${rows}        if rows > 2:\n            raise ValueError("too many rows")\n`;
    const raises = changed('raises.py', rows, fail);
    const plain = join(folder, 'plain.py');
    writeFileSync(plain, plainSource);
    await save(
      [module, '1433', '16', '7', '3', 'three.pt'],
      [module, '1433', '16', '6', '2', 'classes.pt'],
      [module, '1432', '16', '7', '2', 'columns.pt'],
      [raises, ...sizes, 'raises.pt'],
      [plain, 'state', 'state.pt'],
      [plain, 'linear', 'linear.pt'],
    );
    writeFileSync(join(pluginsDir, 'text.pt'), 'this is no archive');
    const env = { GNND_PLUGINS_DIR: pluginsDir };
    daemon = await TestDaemon.start({ cpuDevices: 4, datasets: ['cora'], env });
  });

  afterAll(async () => {
    await daemon.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test('learns, and its checkpoint loads in Python', async () => {
    const job = await daemon.train('sage', { ...spec('sage.pt'), ...pair });
    const ours = {
      ...spec('sage.pt'),
      model: { type: ModelType.GRAPHSAGE, layers: 2, hiddenDim: 16 },
    };
    await daemon.createJob('ours', ours);
    const builtIn = (await daemon.succeeded('ours')).result;
    // Other initial values and dropout masks: some percent of cora's thousand test nodes.
    expect(job.result?.testAccuracyBest).toBeGreaterThan((builtIn?.testAccuracyBest ?? 1) - 0.05);
    expect(job.effectiveSpec?.model?.script?.sha256).toMatch(/^[0-9a-f]{64}$/);
    const plan = await daemon.call(JobService.method.getJobPlan, { name: 'jobs/sage' });
    expect(plan.parameterCount).toBe(BigInt(2 * 1433 * 16 + 16 + 2 * 16 * 7 + 7));

    const checkpoint = join(job.result?.checkpointDir ?? '', 'last.safetensors');
    const dataset = join(daemon.folder, 'state', 'datasets', 'cora');
    const script = join(pythonScripts, 'script_checkpoint.py');
    const said = await runPython(python ?? '', [script, module, checkpoint, dataset, ...sizes]);
    expect(Number(said)).toBeCloseTo(job.result?.testAccuracyLast ?? 0, 2);
  });

  test('predicts as it was evaluated', async () => {
    const { result: trained } = await daemon.job('sage');
    const inference = { job: 'sage', nodes: InferenceNodes.TEST };
    const spec = { kind: JobKind.INFERENCE, inference, resources: { devices: 2 } };
    const { result } = await daemon.train('predicted', spec);
    const dataset = join(daemon.folder, 'state', 'datasets', 'cora');
    const labels = readFileSync(join(dataset, 'labels.npy'));
    const values = (name: string) => {
      const bytes = readFileSync(join(result?.predictions?.folder ?? '', name));
      const at = 10 + bytes.readUInt16LE(8);
      const count = (bytes.length - at) / 8;
      return Array.from({ length: count }, (_, i) => Number(bytes.readBigInt64LE(at + 8 * i)));
    };
    const [nodes, classes] = [values('nodes.npy'), values('predictions.npy')];
    const labelsAt = labels.length - 4 * 2708;
    const isRight = (node: number, row: number) =>
      labels.readInt32LE(labelsAt + 4 * node) === classes[row];
    expect(nodes.filter(isRight).length / nodes.length).toBe(trained?.testAccuracyBest);
  });

  test('ends the same when features in float16 are extracted ahead', async () => {
    const cora = join(repository, 'test', 'fixtures', 'cora.npz');
    await daemon.import('halves', cora, { featureDtype: FeatureDtype.FLOAT16 });
    const found: string[] = [];
    for (const prefetch of [Prefetch.ON, Prefetch.OFF]) {
      const id = `halves-${found.length}`;
      await daemon.createJob(id, { ...spec('sage.pt'), dataset: 'halves', cache: { prefetch } });
      found.push((await daemon.succeeded(id)).result?.parametersSha256 ?? '');
    }
    expect(found[0]).toMatch(/^[0-9a-f]{64}$/);
    expect(found[0]).toBe(found[1]);
  });

  test('takes the weights that a sampler gives', async () => {
    await daemon.createJob('labor', spec('sage.pt', { algorithm: SamplingAlgorithm.LABOR }));
    const job = await daemon.succeeded('labor');
    expect(job.result?.testAccuracyBest).toBeGreaterThan(0.5);
  });

  test.each([
    ['three', /num_layers is 3, the job has 2 hops/],
    ['classes', /layer 1 gave 6 columns, the dataset has 7 classes/],
    ['columns', /layer 0: .*mat1 and mat2 shapes cannot be multiplied/],
    ['raises', /layer 0: .*too many rows/],
  ])('against the contract ends the job with a sentence: %s', async (name, message) => {
    await daemon.createJob(name, spec(`${name}.pt`));
    const job = await failureOf(name);
    expect(job.reason).toBe(Reason.PLUGIN_FAILED);
    expect(job.message).toMatch(message);
    expect(job.attempts).toHaveLength(1);
  });

  test('that may not be loaded is refused with its field', async () => {
    const { code, fields } = await refusalOf(daemon.createJob('none', spec('none.pt')));
    expect(code).toBe(status.INVALID_ARGUMENT);
    expect(fields['spec.model.script.path']).toMatch(/there is no such file/);
  });

  test.each([
    ['text', /is no file that torch\.jit\.save wrote/],
    ['state', /holds no program.*torch\.jit\.script\(model\)\.save/],
    ['linear', /modules of torch alone, which have no method layer/],
  ])('that is none is refused at creation: %s', async (name, message) => {
    const { fields } = await refusalOf(daemon.createJob(name, spec(`${name}.pt`)));
    expect(fields['spec.model.script.path']).toMatch(message);
  });
});
