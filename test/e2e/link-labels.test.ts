import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Job } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobTask, LinkExclusion, LinkHead, LinkLoss } from '../../src/api/gen/gnnd/v1/links_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { DeviceChoice } from '../../src/api/gen/gnnd/v1/resources_pb.ts';
import { DatasetTask } from '../../src/api/gen/gnnd/v1/types_pb.ts';
import { runCli } from '../../src/cli/program.ts';
import { temporaryFolder } from '../support/at-end.ts';
import type { SpecInit } from '../support/crews.ts';
import { TestDaemon } from '../support/daemon.ts';
import { randomOf } from '../support/random.ts';
import { refusalOf } from '../support/refusal.ts';
import { createTestIo } from '../unit/cli/test-io.ts';
import { folderOf, npy } from '../unit/datasets/workbench.ts';

/** Classes, labels and numbers of links: what is known of pairs of nodes, learnt of both ends. */

let daemon: TestDaemon;
const folder = temporaryFolder('gnnd-link-labels-');

const numNodes = 600;
const groups = 3;
const groupOf = (node: number) => node % groups;

/**
 * Edges by chance, which are what labels are of. Features are a hint of a node's group, and a
 * link's label follows from both groups: not from one end, nor from their scalar product.
 */
type Known = (source: number, destination: number) => readonly number[];
function graphOf(type: 'int64' | 'uint8' | 'float32', known: Known): string {
  const random = randomOf(5);
  const seen = new Set<number>();
  while (seen.size < 6000) {
    const [one, other] = [random.integer(0, numNodes - 1), random.integer(0, numNodes - 1)];
    if (one !== other) seen.add(one * numNodes + other);
  }
  const pairs = [...seen].map((key) => [Math.floor(key / numNodes), key % numNodes] as const);
  const ends = [...pairs.map(([source]) => source), ...pairs.map(([, target]) => target)];
  const features = Float32Array.from(
    { length: numNodes * 8 },
    (_, at) => random.unit() - 0.5 + (at % 8 === groupOf(Math.floor(at / 8)) ? 1 : 0),
  );
  const into = folderOf({
    'edge_index.npy': npy('int64', [2, pairs.length], BigInt64Array.from(ends, BigInt)),
    'features.npy': npy('float32', [numNodes, 8], features),
  });
  mkdirSync(join(into, 'links'));
  const sides = { train: [0, 4000], val: [4000, 5000], test: [5000, 6000] } as const;
  for (const [side, [first, end]] of Object.entries(sides)) {
    const part = pairs.slice(first, end);
    const listed = BigInt64Array.from(part.flat(), BigInt);
    const values = part.flatMap(([source, destination]) => known(source, destination));
    const width = values.length / part.length;
    const arrays = { int64: BigInt64Array, uint8: Uint8Array, float32: Float32Array };
    const typed =
      type === 'int64'
        ? BigInt64Array.from(values, BigInt)
        : (arrays[type] as Uint8ArrayConstructor | Float32ArrayConstructor).from(values);
    const shape = width === 1 ? [part.length] : [part.length, width];
    writeFileSync(join(into, 'links', `${side}.npy`), npy('int64', [part.length, 2], listed));
    writeFileSync(join(into, 'links', `${side}_labels.npy`), npy(type, shape, typed));
  }
  return into;
}

const distance: Known = (one, other) => [(groupOf(one) - groupOf(other) + groups) % groups];

beforeAll(async () => {
  const flags = ['--sim-devices', '0,1', '--sim-memory-bytes', '400000000'];
  daemon = await TestDaemon.start({ cpuDevices: 3, datasets: ['cora'], flags });
  await daemon.import('classes', graphOf('int64', distance));
  const same: Known = (one, other) => [
    groupOf(one) === groupOf(other) ? 1 : 0,
    groupOf(one) === 0 ? 1 : 0,
  ];
  await daemon.import('labels', graphOf('uint8', same));
  const number: Known = (one, other) => [groupOf(one) * 2 - groupOf(other), groupOf(one)];
  await daemon.import('numbers', graphOf('float32', number));
  const rating: Known = (one, other) => [groupOf(one) === groupOf(other) ? 2.5 : -1];
  await daemon.import('ratings', graphOf('float32', rating));
});

const common: SpecInit = {
  task: JobTask.LINK_LABELS,
  model: { type: ModelType.GRAPHSAGE, hiddenDim: 32, dropout: 0 },
  sampling: { fanouts: [5, 5] },
  training: { epochs: 12, batchSize: 256, randomSeed: 3n, optimizer: { learningRate: 0.01 } },
  resources: { devices: 1 },
};

function testOf(job: Job): Readonly<Record<string, number>> {
  const metrics = job.result?.testMetricsBest ?? [];
  return Object.fromEntries(metrics.map(({ name, value }) => [name, value]));
}

const digestsOf = ({ epochs }: Job) => epochs.map(({ parametersSha256 }) => parametersSha256);

async function gnnctl(...args: string[]): Promise<string> {
  const { io, stdout, stderr } = createTestIo();
  const code = await runCli(['--address', daemon.address, ...args], io);
  if (code !== 0) throw new Error(`gnnctl ${args.join(' ')}: ${stderr()}`);
  return stdout();
}

describe('classes of links', () => {
  let job: Job;

  beforeAll(async () => {
    job = await daemon.train('classes-1', { ...common, dataset: 'classes' });
  });

  test('are learnt, which their ends alone do not tell, by metrics of classes', () => {
    // By chance a third.
    expect(testOf(job)['accuracy']).toBeGreaterThan(0.85);
    expect(Object.keys(testOf(job)).slice(0, 3)).toEqual(['accuracy', 'micro_f1', 'macro_f1']);
    expect(job.result?.testAccuracyBest).toBe(testOf(job)['accuracy']);
    expect(job.epochs.at(-1)?.loss).toBeLessThan(job.epochs[0]?.loss ?? 0);
  });

  test('what is not said is decided, and frozen with the job', () => {
    expect(job.effectiveSpec?.links).toMatchObject({
      labels: DatasetTask.CLASSIFICATION,
      ...{ labelCount: 3n, head: LinkHead.MLP, exclude: LinkExclusion.NONE },
    });
  });

  test.each([2, 3])('%i devices make the same model', async (devices) => {
    const spec = { ...common, dataset: 'classes', resources: { devices } };
    const other = await daemon.train(`classes-${devices}`, spec);
    expect(digestsOf(other)).toEqual(digestsOf(job));
    expect(testOf(other)).toEqual(testOf(job));
  });

  test('a Trainer that is killed changes nothing', async () => {
    await daemon.createJob('killed', { ...common, dataset: 'classes', resources: { devices: 2 } });
    const seen = await daemon.until('killed', ({ progress }) => (progress?.epoch ?? 0) >= 2);
    for (const { pid } of seen.progress?.executors ?? []) process.kill(pid, 'SIGKILL');
    const end = await daemon.succeeded('killed');
    expect(digestsOf(end)).toEqual(digestsOf(job));
  });

  test('a simulated device makes the same model', async () => {
    const resources = { devices: 1, deviceKind: DeviceChoice.SIM };
    const other = await daemon.train('sim', { ...common, dataset: 'classes', resources });
    expect(digestsOf(other)).toEqual(digestsOf(job));
  });

  test('weights of classes are theirs', async () => {
    const training = { ...common.training, epochs: 2, classWeights: [1, 1, 0.1] };
    const other = await daemon.train('weighted', { ...common, dataset: 'classes', training });
    expect(digestsOf(other)[0]).not.toBe(digestsOf(job)[0]);
    const wrong = { ...training, classWeights: [1, 2] };
    const { fields } = await refusalOf(
      daemon.createJob('weights', { ...common, dataset: 'classes', training: wrong }),
    );
    expect(fields['spec.training.class_weights']).toMatch(/^2 given: expected 3/);
  });

  test('gnnctl and Prometheus have their metrics', async () => {
    expect(await gnnctl('job', 'get', 'classes-1')).toMatch(/accuracy/i);
    const history = await gnnctl('job', 'history', 'classes-1', '-o', 'jsonl');
    expect(history.split('\n')[0]).toMatch(/val_macro_f1/);
    expect(await daemon.scrape()).toMatch(/gnnd_eval_metric\{[^}]*metric="MACRO_F1"[^}]*\} 0\.\d/);
  });

  test('logits of other pairs come out', async () => {
    const pairs = Array.from({ length: 90 }, (_, pair) => [pair, (7 * pair + 1) % 600] as const);
    writeFileSync(join(folder, 'pairs.csv'), `source,target\n${pairs.join('\n')}\n`);
    const out = join(folder, 'scored');
    const flags = ['--outputs', 'scores', '--pairs', join(folder, 'pairs.csv')];
    await gnnctl('predict', 'classes-1', '--id', 'scored', '--out', out, ...flags);
    const bytes = readFileSync(join(out, 'scores.npy'));
    expect(bytes.toString('latin1', 0, 128)).toContain('(90, 3)');
    const data = bytes.subarray(10 + bytes.readUInt16LE(8));
    const logits = [
      ...new Float32Array(data.buffer.slice(data.byteOffset, data.byteOffset + 1080)),
    ];
    const right = pairs.filter(([one, other], pair) => {
      const own = logits.slice(3 * pair, 3 * pair + 3);
      return own.indexOf(Math.max(...own)) === distance(one, other)[0];
    });
    expect(right.length).toBeGreaterThan(70);
    await expect(
      gnnctl('predict', 'classes-1', '--outputs', 'nearest', '--k', '3'),
    ).rejects.toThrow(/what is known of links/);
  });
});

test('several labels of a link are learnt', async () => {
  const job = await daemon.train('labels-1', { ...common, dataset: 'labels' });
  expect(Object.keys(testOf(job))[0]).toBe('micro_f1');
  expect(testOf(job)['micro_f1']).toBeGreaterThan(0.85);
});

test('numbers of links are learnt, also by a scalar product', async () => {
  const job = await daemon.train('numbers-1', { ...common, dataset: 'numbers' });
  expect(Object.keys(testOf(job))).toEqual(['mae', 'rmse']);
  // Whoever always says the mean is 1 and more off.
  expect(testOf(job)['mae']).toBeLessThan(0.6);
  const dot = { ...common, dataset: 'ratings', links: { head: LinkHead.DOT } };
  expect(testOf(await daemon.train('ratings-1', dot))['mae']).toBeLessThan(0.8);
});

test('models over propagated rows learn them, too', async () => {
  const { sampling: _, ...rest } = common;
  const spec: SpecInit = {
    ...rest,
    dataset: 'classes',
    model: { type: ModelType.SIGN, hiddenDim: 32 },
    propagation: { hops: 1 },
  };
  const one = await daemon.train('rows-1', spec);
  expect(testOf(one)['accuracy']).toBeGreaterThan(0.8);
  const two = await daemon.train('rows-2', { ...spec, resources: { devices: 2 } });
  expect(digestsOf(two)).toEqual(digestsOf(one));
});

test('what cannot be is told by field, everything at once', async () => {
  const wrong = daemon.createJob('wrong', {
    ...common,
    dataset: 'classes',
    links: {
      ...{ head: LinkHead.DOT, loss: LinkLoss.BPR, labels: DatasetTask.REGRESSION },
      negatives: { count: 3 },
      evaluation: { count: 100 },
    },
  });
  const { code, fields } = await refusalOf(wrong);
  expect(code).toBe(status.INVALID_ARGUMENT);
  expect(fields).toMatchObject({
    'spec.links.head': expect.stringContaining('expected MLP'),
    'spec.links.loss': expect.stringContaining('only for task LINKS'),
    'spec.links.negatives.count': expect.stringContaining('only for task LINKS'),
    'spec.links.evaluation.count': expect.stringContaining('only for task LINKS'),
    'spec.links.labels': expect.stringContaining('have CLASSIFICATION'),
  });
  const none = await refusalOf(daemon.createJob('none', { ...common, dataset: 'cora' }));
  expect(none.fields['spec.task']).toMatch(/knows nothing of links.*train_labels\.npy/);
});
