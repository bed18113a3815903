import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import { beforeAll, expect, test } from 'vitest';
import {
  type Dataset,
  DatasetService,
  DatasetValidationSchema,
  FeatureDtype,
} from '../../src/api/gen/gnnd/v1/dataset_service_pb.ts';
import { Standardize } from '../../src/api/gen/gnnd/v1/features_pb.ts';
import type { Job } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { PlacementPolicy } from '../../src/api/gen/gnnd/v1/resources_pb.ts';
import { float16Widener, roundToFloat16 } from '../../src/datasets/float16.ts';
import type { NpyType, NpyValues } from '../../src/datasets/npy.ts';
import { temporaryFolder } from '../support/at-end.ts';
import { TestDaemon } from '../support/daemon.ts';
import { npy } from '../unit/datasets/workbench.ts';

/**
 * Features in float16 take half the bytes wherever they lie, and change no bit of a model that was
 * trained on float32 features of the same values.
 */

let daemon: TestDaemon;
const folder = temporaryFolder('gnnd-float16-');

const numNodes = 2708;
/** Odd, so that rows end within a vector and start unaligned. */
const numFeatures = 37;

beforeAll(async () => {
  daemon = await TestDaemon.start({ cpuDevices: 2, datasets: ['cora'] });
  const cora = await datasetOf('cora');
  const labels = new Int32Array(readFileSync(join(cora.path, 'labels.npy')).buffer, 128, numNodes);
  const exact = Float32Array.from({ length: numNodes * numFeatures }, (_, at) =>
    feature(Math.floor(at / numFeatures), at % numFeatures, labels),
  );
  const halves = roundToFloat16(exact, () => expect.unreachable());
  await importWith('exact', 'float32', exact);
  await importWith('half', 'float32', exact, FeatureDtype.FLOAT16);
  await importWith('half-as-it-is', 'float16', halves);
  await importWith('rounded', 'float32', float16Widener()(halves));
});

function datasetOf(id: string): Promise<Dataset> {
  return daemon.call(DatasetService.method.getDataset, { name: `datasets/${id}` });
}

/** Noise in [-1, 1], the same in every run, and a hint at the class. */
function feature(node: number, column: number, labels: Int32Array): number {
  const value = Math.sin(12.9898 * (node + 1) + 78.233 * (column + 1)) * 43758.5453;
  return 2 * (value - Math.floor(value)) - 1 + (labels[node] === column ? 1 : 0);
}

/** Imports cora with other features. */
async function importWith(
  id: string,
  type: NpyType,
  values: NpyValues,
  featureDtype = FeatureDtype.UNSPECIFIED,
): Promise<void> {
  const source = join(folder, id);
  mkdirSync(source);
  cpSync((await datasetOf('cora')).path, source, {
    recursive: true,
    filter: (path) => !/features\.npy$|\.json$/.test(path),
  });
  writeFileSync(join(source, 'features.npy'), npy(type, [numNodes, numFeatures], values));
  await daemon.import(id, source, { featureDtype });
}

interface Run {
  readonly dataset: string;
  readonly fanouts?: readonly number[];
  readonly model?: ModelType;
  readonly ratio?: number;
  readonly standardize?: boolean;
  readonly memory?: { readonly hostMemoryBytes?: bigint };
}

let serial = 0;

async function run({ dataset, fanouts = [5, 3], model, ratio, standardize, memory }: Run) {
  serial += 1;
  return daemon.train(`job-${serial}`, {
    dataset,
    model: { type: model ?? ModelType.GRAPHSAGE, layers: 2, hiddenDim: 8, dropout: 0.3 },
    sampling: { fanouts: [...fanouts] },
    features: { standardize: standardize ? Standardize.ON : Standardize.OFF },
    cache: ratio === undefined ? {} : { ratio },
    training: { epochs: 2, batchSize: 10, staleness: 1, randomSeed: 3n, threadsPerTrainer: 1 },
    resources: { devices: 2, ...memory },
    placement: { policy: PlacementPolicy.FIXED, samplers: 1 },
  });
}

/** What every epoch ended with, and what was measured on it. */
function modelsOf(job: Job) {
  expect(job.result?.parametersSha256).toMatch(/^[0-9a-f]{64}$/);
  return [
    ...job.epochs.map(({ parametersSha256, valAccuracy }) => [parametersSha256, valAccuracy]),
    job.result?.testAccuracyLast,
  ];
}

/** Bytes that the job which ended last read, by tier; it had slot 0. */
async function bytesOf(job: Job): Promise<Readonly<Record<string, number>>> {
  let text = '';
  // Scrapes that come soon after one another get the same text.
  while (!text.includes(`uid="${job.uid}"`)) text = await daemon.scrape();
  const found = text.matchAll(
    /^gnnd_cache_bytes_total\{job_slot="0",tier="(\w+)",result="HIT"\} (\d+)$/gm,
  );
  return Object.fromEntries([...found].map(([, tier, bytes]) => [tier, Number(bytes)]));
}

/** What its plan counts for a cached row. */
async function rowBytesOf({ name }: Job): Promise<number> {
  return Number((await daemon.call(JobService.method.getJobPlan, { name })).cache?.rowBytes);
}

test('datasets say how their features are stored', async () => {
  const [exact, half, asItIs, rounded] = await Promise.all(
    ['exact', 'half', 'half-as-it-is', 'rounded'].map(datasetOf),
  );
  const { FLOAT16, FLOAT32 } = FeatureDtype;
  const dtypes = [exact, half, asItIs, rounded].map((dataset) => dataset?.featureDtype);
  expect(dtypes).toEqual([FLOAT32, FLOAT16, FLOAT16, FLOAT32]);
  const saved = Number(exact?.bytes) - Number(half?.bytes);
  expect(saved).toBeGreaterThanOrEqual(2 * numNodes * numFeatures);
  const files = [half, asItIs].map((dataset) =>
    readFileSync(join(dataset?.path ?? '', 'features.npy')),
  );
  expect(files[0]?.equals(files[1] ?? Buffer.of())).toBe(true);
});

test('a dataset in float16 is checked to its last element', async () => {
  const { validateDataset } = DatasetService.method;
  const started = await daemon.call(validateDataset, { name: 'datasets/half' });
  const { result } = await daemon.ended(started);
  expect(result.case).toBe('response');
  if (result.case !== 'response') return;
  expect(anyUnpack(result.value, DatasetValidationSchema)?.valid).toBe(true);
});

test.each([
  ['rows gathered one by one, GraphSAGE', [5, 3], ModelType.GRAPHSAGE, 0.2, 'HOST'],
  ['rows read while they are aggregated, GraphSAGE', [2, 1], ModelType.GRAPHSAGE, 0, 'HOST'],
  ['rows read while they are aggregated, GCN, from disk', [2, 1], ModelType.GCN, 0.2, 'DISK'],
] as const)(
  'every epoch ends as with float32 features of the same values, for half the bytes: %s',
  async (_, fanouts, model, ratio, tier) => {
    const memory = tier === 'DISK' ? { hostMemoryBytes: BigInt(numNodes * numFeatures) } : {};
    const all = { fanouts, model, ratio, memory };
    const rounded = await run({ ...all, dataset: 'rounded' });
    const full = await bytesOf(rounded);
    const halved = await run({ ...all, dataset: 'half' });
    const half = await bytesOf(halved);
    expect(modelsOf(halved)).toEqual(modelsOf(rounded));
    expect((half['DEVICE'] ?? 0) > 0).toBe(ratio > 0);
    expect(half[tier]).toBeGreaterThan(0);
    expect(await rowBytesOf(halved)).toBe(2 * numFeatures);
    for (const each of ['DEVICE', 'HOST', 'DISK']) {
      expect(2 * (half[each] ?? Number.NaN), each).toBe(full[each]);
    }
    // Which says something only because rounding the features matters.
    const unrounded = await run({ ...all, dataset: 'exact' });
    expect(modelsOf(unrounded)).not.toEqual(modelsOf(rounded));
  },
);

test('standardised features are float32, those of the stored values', async () => {
  const rounded = await run({ dataset: 'rounded', standardize: true, ratio: 0.2 });
  const bytes = await bytesOf(rounded);
  const half = await run({ dataset: 'half', standardize: true, ratio: 0.2 });
  expect(modelsOf(half)).toEqual(modelsOf(rounded));
  expect(await bytesOf(half)).toEqual(bytes);
  expect(await rowBytesOf(half)).toBe(4 * numFeatures);
});

test('the report on caches counts the bytes that lie on disk', async () => {
  const report = async (name: string) => {
    const request = { name: `datasets/${name}`, samplings: [{ fanouts: [5, 3] }], epochs: 2 };
    const { samplings } = await daemon.call(DatasetService.method.reportCache, request);
    return samplings[0];
  };
  const [full, half] = [await report('rounded'), await report('half')];
  expect(half?.inputRows).toBe(full?.inputRows);
  expect(2 * (half?.inputBytes ?? 0)).toBe(full?.inputBytes);
  const moved = [half, full].map((part) => part?.policies[0]?.cells[0]?.bytesMoved ?? 0);
  expect(2 * (moved[0] ?? 0)).toBe(moved[1]);
});

test('features beyond float16 are refused with the first of them', async () => {
  const values = new Float32Array(numNodes * numFeatures);
  values[5 * numFeatures + 2] = 1e6;
  values[6 * numFeatures] = -65505;
  await expect(importWith('large', 'float32', values, FeatureDtype.FLOAT16)).rejects.toThrow(
    /features\.npy.*has 1000000 at row 5, column 2 and 1 more, beyond 65504/,
  );
});
