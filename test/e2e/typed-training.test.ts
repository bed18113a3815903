import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { EvaluationMethod } from '../../src/api/gen/gnnd/v1/evaluation_pb.ts';
import { ExecutorRole } from '../../src/api/gen/gnnd/v1/executor_pb.ts';
import { Standardize } from '../../src/api/gen/gnnd/v1/features_pb.ts';
import {
  InferenceFormat,
  InferenceNodes,
  InferenceOutput,
  JobKind,
} from '../../src/api/gen/gnnd/v1/inference_pb.ts';
import type { Job } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { runCli } from '../../src/cli/program.ts';
import { crew, expectSame, jobsOn, pair, type SpecInit } from '../support/crews.ts';
import { TestDaemon } from '../support/daemon.ts';
import { randomOf } from '../support/random.ts';
import { createTestIo } from '../unit/cli/test-io.ts';
import { type Files, pairs, typedFolder } from '../unit/datasets/typed-folder.ts';
import { int64, npy } from '../unit/datasets/workbench.ts';

/** Models over several types, from a folder to a model that is the same for every crew. */

let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await TestDaemon.start({ cpuDevices: 4 });
  await daemon.import('shop', typedFolder(shop()));
});

const classes = 3;
const items = 240;
const users = 60;
const tags = 12;

/**
 * Items whose features say nothing, users with features that tell which class of items they like,
 * and tags without features, most of one class.
 */
function shop(): Files {
  const random = randomOf(7);
  const classOf = (node: number) => node % classes;
  const near = (node: number, count: number) => {
    const fitting = Math.floor(random.integer(0, count / classes - 1)) * classes + classOf(node);
    return random.chance(0.85) ? fitting : random.integer(0, count - 1);
  };
  const edges = (sources: number, each: number): [number, number][] =>
    Array.from({ length: items * each }, (_, at) => [near(at % items, sources), at % items]);
  const noise = Float32Array.from({ length: items * 4 }, () => random.unit());
  const tastes = Float32Array.from(
    { length: users * classes },
    (_, at) => Number(Math.floor(at / classes) % classes === at % classes) + random.unit(),
  );
  const nodes = (part: number) =>
    int64(
      ...Array.from({ length: items }, (_, at) => at).filter(
        (at) => at % 4 === part || (part === 0 && at % 4 === 3),
      ),
    );
  return {
    'types.json': JSON.stringify({ item: items, user: users, tag: tags }),
    'nodes/item/features.npy': npy('float32', [items, 4], noise),
    'nodes/item/labels.npy': int64(...Array.from({ length: items }, (_, at) => classOf(at))),
    'nodes/item/train.npy': nodes(0),
    'nodes/item/val.npy': nodes(1),
    'nodes/item/test.npy': nodes(2),
    'nodes/user/features.npy': npy('float32', [users, classes], tastes),
    'edges/user__likes__item.npy': pairs(...edges(users, 3)),
    'edges/tag__describes__item.npy': pairs(...edges(tags, 2)),
    // Along which most evaluated items have no edge.
    'edges/item__replaces__item.npy': pairs([0, 4]),
  };
}

const batchesPerEpoch = 8;
const jobs = jobsOn(() => daemon, batchesPerEpoch);

const spec: SpecInit = {
  dataset: 'shop',
  sampling: { fanouts: [5, 5] },
  relations: { fanouts: ['tag__describes__item=2/1'] },
  features: { standardize: Standardize.ON },
  training: {
    ...{ batchSize: 16, epochs: 30, randomSeed: 5n, staleness: 1, batchesPerStep: 2 },
    optimizer: { learningRate: 0.01 },
  },
  evaluation: { method: EvaluationMethod.EXACT },
  timeouts: { stallMs: 2000n },
  restart: { executorRestarts: 100 },
};

const models: Readonly<Record<string, SpecInit['model']>> = {
  RSAGE: { type: ModelType.RSAGE, hiddenDim: 16, dropout: 0.1 },
  RGCN: { type: ModelType.RGCN, hiddenDim: 16, dropout: 0.1, bases: 2 },
  HGT: { type: ModelType.HGT, hiddenDim: 16, dropout: 0.1, heads: 2 },
};

describe.each(Object.entries(models))('%s', (_, model) => {
  const own = { ...spec, model };
  let expected: Job;

  beforeAll(async () => {
    expected = await jobs.run({ ...own, ...pair });
  });

  test('learns from what lies two relations away', () => {
    expect(expected.effectiveSpec?.relations?.target).toBe('item');
    expect(expected.result?.testAccuracyBest).toBeGreaterThan(0.75);
  });

  test('is the same model for every crew, and when executors die', async () => {
    expectSame(await jobs.run({ ...own, ...crew(1, 3) }), expected);
    expectSame(await jobs.run({ ...own, resources: { devices: 1 } }), expected);
    expectSame(await jobs.killed(own, [ExecutorRole.SAMPLER, ExecutorRole.TRAINER]), expected);
  });
});

describe('an inference', () => {
  /** Files of what a model says of nodes and of its rows of layer 1, by so many Trainers. */
  async function predicted(job: string, nodes: InferenceNodes, devices: number) {
    const outputs = [InferenceOutput.LOGITS, InferenceOutput.EMBEDDINGS];
    const formats = [InferenceFormat.NPY];
    const inference = { job, nodes, outputs, formats, layer: 1 };
    const resources = { devices };
    const id = `${job}-${nodes}-${devices}`;
    const { result } = await daemon.train(id, { kind: JobKind.INFERENCE, inference, resources });
    const folder = result?.predictions?.folder ?? '';
    return (name: string) => readFileSync(join(folder, `${name}.npy`)).toString('latin1');
  }

  test.each([
    ['HGT', 1],
    ['RSAGE', 2],
    ['RGCN', 3],
  ])('of %s with %d layers gives what evaluations told, by any crew', async (type, layers) => {
    const model = { ...models[type], layers };
    const sampling = { fanouts: Array.from({ length: layers }, () => 4) };
    const training = { ...spec.training, epochs: 2 };
    const id = `inferred-${type.toLowerCase()}`;
    const given = { ...spec, relations: {}, model, sampling, training };
    const { result } = await daemon.train(id, given);
    const test = await predicted(id, InferenceNodes.TEST, 1);
    const body = (text: string) => Buffer.from(text.slice(text.indexOf('\n') + 1), 'latin1');
    const numbers = (text: string) => new BigInt64Array(new Uint8Array(body(text)).buffer);
    const nodes = numbers(test('nodes'));
    const said = numbers(test('predictions'));
    const hits = nodes.filter((node, row) => Number(node) % classes === Number(said[row]));
    expect(hits.length / nodes.length).toBeCloseTo(result?.testAccuracyBest ?? 0, 6);
    const [one, three] = [
      await predicted(id, InferenceNodes.ALL, 1),
      await predicted(id, InferenceNodes.ALL, 3),
    ];
    const width = layers === 1 ? classes : 16;
    expect(body(one('embeddings'))).toHaveLength(items * width * 4);
    for (const name of ['logits', 'embeddings', 'predictions']) expect(three(name)).toBe(one(name));
  });
});

const short = { ...spec, model: models['RSAGE'], training: { epochs: 1, batchSize: 60 } };

test('rows of types are made once, and kept for jobs that read the same', async () => {
  const folder = join(daemon.folder, 'state', 'cache', 'features');
  const made = () =>
    readdirSync(folder)
      .filter((name) => /-(mean|standardized)\.npy$/.test(name))
      .map((name) => [name, statSync(join(folder, name)).ino]);
  await daemon.train('once', short);
  const before = made();
  // A mean for tags, and three types standardised.
  expect(before).toHaveLength(4);
  await daemon.train('again', { ...short, sampling: { fanouts: [3, 3] } });
  expect(made()).toEqual(before);
});

test('gnnctl shows what takes part, and writes a job file', async () => {
  await daemon.train('shown', short);
  const lines = async (...args: string[]) => {
    const test = createTestIo({ env: { GNND_ADDRESS: daemon.address } });
    expect(await runCli(args, test.io), test.stderr()).toBe(0);
    return test.stdout();
  };
  const shown = await lines('job', 'get', 'shown', '-o', 'table');
  expect(shown).toMatch(/Model +RSAGE 16 of item, fanouts 5,5/);
  expect(shown).toMatch(/Relations +all; tag__describes__item=2\/1/);
  expect(await lines('job', 'plan', 'shown', '-o', 'table')).toMatch(/Slot size/);
  // Features and classes are those of each type.
  expect(await lines('dataset', 'list', '-o', 'table')).toMatch(
    /shop +READY +312 +[\d,]+ +120 +\S/,
  );
  const file = await lines('init', 'shop', '--file', '-');
  expect(file).toMatch(/A job on shop: 312 nodes of 3 types, [\d,]+ edges of 6 relations/);
  expect(file).toMatch(/type: RSAGE/);
  expect(file).toMatch(/target: item/);
  // Of two types with labels the first, unless one is asked for.
  const ofUsers = {
    'nodes/user/labels.npy': int64(...Array.from({ length: users }, (_, at) => at % 2)),
    'nodes/user/train.npy': int64(0, 3),
    'nodes/user/val.npy': int64(1, 4),
    'nodes/user/test.npy': int64(2, 5),
  };
  await daemon.import('two', typedFolder({ ...shop(), ...ofUsers }));
  expect(await lines('init', 'two', '--file', '-')).toMatch(/target: item/);
  const asked = await lines('init', 'two', '--target', 'user', '--file', '-');
  expect(asked).toMatch(/2 classes.*target: user/s);
});
