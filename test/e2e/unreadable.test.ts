import {
  chmodSync,
  closeSync,
  cpSync,
  ftruncateSync,
  openSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import { beforeAll, expect, test } from 'vitest';
import {
  DatasetService,
  DatasetValidationSchema,
} from '../../src/api/gen/gnnd/v1/dataset_service_pb.ts';
import { Standardize } from '../../src/api/gen/gnnd/v1/features_pb.ts';
import { type Job, JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { Reason } from '../../src/api/gen/gnnd/v1/types_pb.ts';
import { formatNpyHeader } from '../../src/datasets/npy.ts';
import { executorPids, TestDaemon } from '../support/daemon.ts';
import { until } from '../support/until.ts';

/**
 * A file that shrinks while it is mapped is SIGBUS for whoever reads it, as a bad block of a disk
 * is: a process of ours dies of it, the daemon says which file it was, and goes on.
 */

let daemon: TestDaemon;
/** Sparse: it takes a while to read, and no disk. */
const largeFeatures = { nodes: 2708, columns: 100_000 };

beforeAll(async () => {
  const first = await TestDaemon.start({ datasets: ['cora'] });
  for (const id of ['shrinking', 'standardized', 'checked', 'exported'])
    copyOfCora(first.folder, id);
  for (const id of ['standardized', 'checked']) enlarge(first.folder, id);
  await first.stop(true);
  // Adopts what lies there by now.
  daemon = await TestDaemon.start({ folder: first.folder });
});

function folderOf(stateOf: string, id: string): string {
  return join(stateOf, 'state', 'datasets', id);
}

function featuresOf(id: string): string {
  return join(folderOf(daemon.folder, id), 'features.npy');
}

function copyOfCora(folder: string, id: string): void {
  cpSync(folderOf(folder, 'cora'), folderOf(folder, id), { recursive: true });
  chmodSync(join(folderOf(folder, id), 'features.npy'), 0o640);
}

function enlarge(folder: string, id: string): void {
  const place = folderOf(folder, id);
  const { nodes, columns } = largeFeatures;
  const manifest = JSON.parse(readFileSync(join(place, 'dataset.json'), 'utf8'));
  // A folder of an earlier version may lack a checksum: what is read first is the mapped file.
  const { 'features.npy': _, ...sha256 } = manifest.sha256;
  rmSync(join(place, 'dataset.json'));
  writeFileSync(
    join(place, 'dataset.json'),
    JSON.stringify({ ...manifest, num_features: columns, sha256 }),
  );
  const header = formatNpyHeader({ type: 'float32', shape: [nodes, columns] });
  rmSync(join(place, 'features.npy'));
  const fd = openSync(join(place, 'features.npy'), 'wx');
  writeFileSync(fd, header);
  ftruncateSync(fd, header.length + 4 * nodes * columns);
  closeSync(fd);
}

/** Shrinks a file once a process of the daemon's reads it where it is mapped. */
async function shrinkWhenMapped(path: string): Promise<void> {
  const isMapped = () => executorPids(daemon.pid).some((pid) => mapsOf(pid).includes(path));
  await until(isMapped, { everyMs: 2 });
  truncateSync(path, 4096);
}

function mapsOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/maps`, 'utf8');
  } catch {
    return '';
  }
}

const spec = (dataset: string, epochs: number) => ({
  dataset,
  model: { type: ModelType.GRAPHSAGE, hiddenDim: 8 },
  sampling: { fanouts: [5, 5] },
  cache: { ratio: 0 },
  training: { epochs, batchSize: 20 },
  resources: { devices: 2 },
  restart: { maxAttempts: 3 },
});

const hasFailed = ({ state }: Job) => state === JobState.FAILED;

test('while a job standardises it: the job fails with its name, the daemon lives', async () => {
  const features = { standardize: Standardize.ON };
  await daemon.createJob('standardizes', { ...spec('standardized', 1), features });
  await shrinkWhenMapped(featuresOf('standardized'));
  const job = await daemon.until('standardizes', hasFailed);
  expect(job.reason).toBe(Reason.DATASET_CORRUPT);
  expect(job.message).toContain('dataset standardized');
  expect(job.message).toContain(`${featuresOf('standardized')} cannot be read`);
  expect(job.attempts).toHaveLength(1);
  expect(daemon.process.exitCode).toBeNull();
});

test('while a job trains: the job fails with its name, nobody is replaced in vain', async () => {
  await daemon.createJob('trains', spec('shrinking', 100_000));
  await daemon.until('trains', ({ progress }) => (progress?.epoch ?? 0) >= 1);
  truncateSync(featuresOf('shrinking'), 4096);
  const job = await daemon.until('trains', hasFailed);
  expect(job.reason).toBe(Reason.DATASET_CORRUPT);
  expect(job.message).toContain(`${featuresOf('shrinking')} cannot be read`);
  expect(job.attempts).toHaveLength(1);
  expect(job.attempts[0]?.executorRestarts).toBe(0);
});

test('while it is checked: the check says so', async () => {
  const { validateDataset } = DatasetService.method;
  const started = await daemon.call(validateDataset, { name: 'datasets/checked' });
  await shrinkWhenMapped(featuresOf('checked'));
  const { result } = await daemon.ended(started);
  const found =
    result.case === 'response' ? anyUnpack(result.value, DatasetValidationSchema) : undefined;
  expect(found?.problems.map(({ description }) => description)).toEqual([
    expect.stringContaining(`${featuresOf('checked')} cannot be read`),
  ]);
});

test('a signal that somebody sends is a crash like any other', async () => {
  await daemon.createJob('hit', spec('cora', 40));
  await daemon.until('hit', ({ progress }) => (progress?.epoch ?? 0) >= 1);
  const pids = executorPids(daemon.pid);
  for (const pid of pids) process.kill(pid, 'SIGBUS');
  const job = await daemon.succeeded('hit');
  expect(job.attempts[0]?.executorRestarts).toBe(pids.length);
});
