import {
  chmodSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  statSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { Standardize } from '../../src/api/gen/gnnd/v1/features_pb.ts';
import { type Job, JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { SamplingAlgorithm } from '../../src/api/gen/gnnd/v1/sampling_pb.ts';
import { Reason } from '../../src/api/gen/gnnd/v1/types_pb.ts';
import { TestDaemon } from '../support/daemon.ts';
import { ringGraph } from '../support/ring-graph.ts';

/**
 * One bit of a file flips after its import, and neither its size nor its time of writing tells: a
 * job fails by the file's name, or makes what was made of the dataset again; none trains another
 * model.
 */

let daemon: TestDaemon;
let jobs = 0;

beforeAll(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gnnd-damage-'));
  daemon = await TestDaemon.start({ folder });
  const source = join(folder, 'source');
  mkdirSync(source);
  for (const [name, bytes] of Object.entries(ringGraph.files)) {
    writeFileSync(join(source, name), bytes);
  }
  await daemon.import('ring', source);
});

/** Twice is never. In place: the file may be mapped. */
function flip(path: string): void {
  const { atime, mtime, size } = statSync(path);
  chmodSync(path, 0o640);
  const file = openSync(path, 'r+');
  const byte = Buffer.alloc(1);
  readSync(file, byte, 0, 1, size - 2);
  byte[0] = (byte[0] ?? 0) ^ 0x40;
  writeSync(file, byte, 0, 1, size - 2);
  closeSync(file);
  utimesSync(path, atime, mtime);
}

const datasetFile = (name: string) => join(daemon.folder, 'state', 'datasets', 'ring', name);

const spec = {
  dataset: 'ring',
  model: { type: ModelType.GRAPHSAGE, hiddenDim: 8 },
  sampling: { fanouts: [2, 2], algorithm: SamplingAlgorithm.KHOP_WEIGHTED },
  training: { epochs: 2, batchSize: 20 },
  resources: { devices: 1 },
} satisfies Parameters<TestDaemon['createJob']>[1];

async function ended(more: object = {}): Promise<Job> {
  jobs += 1;
  const id = `job-${jobs}`;
  await daemon.createJob(id, { ...spec, ...more });
  const isOver = ({ state }: Job) => state === JobState.FAILED || state === JobState.SUCCEEDED;
  return daemon.until(id, isOver);
}

const modelOf = ({ result, message }: Job) => result?.parametersSha256 ?? message;

test('of any file it fails the next job by name, until that is mended', async () => {
  const before = modelOf(await ended());
  for (const name of Object.keys(ringGraph.files)) {
    flip(datasetFile(name));
    const damaged = await ended();
    flip(datasetFile(name));
    expect([damaged.state, damaged.reason]).toEqual([JobState.FAILED, Reason.DATASET_CORRUPT]);
    expect(damaged.message).toContain(`dataset ring: ${name} was changed after its import`);
    expect(damaged.message).toContain('gnnctl dataset validate ring');
    expect(damaged.attempts).toHaveLength(1);
  }
  expect(modelOf(await ended())).toBe(before);
});

test('a bit that flips while a job trains is found at its end', async () => {
  const training = { ...spec.training, epochs: 300 };
  await daemon.createJob('long', { ...spec, training });
  await daemon.until('long', ({ progress }) => (progress?.epoch ?? 0) >= 1);
  flip(datasetFile('features.npy'));
  const job = await daemon.until('long', ({ state }) => state === JobState.FAILED);
  flip(datasetFile('features.npy'));
  expect(job.reason).toBe(Reason.DATASET_CORRUPT);
  expect(job.message).toContain('features.npy was changed');
});

test('what was made of a dataset is made again where a bit of it flipped', async () => {
  const more = {
    features: { standardize: Standardize.ON },
    sampling: { fanouts: [2, 2], locality: { maxScale: 2 } },
    cache: { ratio: 0.2 },
  };
  const before = modelOf(await ended(more));
  const folder = join(daemon.folder, 'state', 'cache', 'features');
  const made = readdirSync(folder).filter((name) => !name.endsWith('.sha256'));
  const kinds = ['-favoured.npy', '-hotness.json', '-order.npy', '.moments', '-standardized.npy'];
  for (const kind of kinds) {
    const name = made.find((each) => each.endsWith(kind));
    if (name === undefined) throw new Error(`no file of ${kind} among ${made.join(', ')}`);
    const path = join(folder, name);
    const whole = readFileSync(path);
    flip(path);
    expect(modelOf(await ended(more)), kind).toBe(before);
    expect(readFileSync(path).equals(whole), kind).toBe(true);
    expect(daemon.logs).toMatch(new RegExp(`"derived.damaged".*${name}`));
  }
});
