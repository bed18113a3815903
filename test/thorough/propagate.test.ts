import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  DatasetService,
  type PropagateDatasetRequestSchema,
  type Propagation,
  PropagationSchema,
} from '../../src/api/gen/gnnd/v1/dataset_service_pb.ts';
import { PropagationOperator } from '../../src/api/gen/gnnd/v1/propagation_pb.ts';
import type { Operation } from '../../src/api/gen/gnnd/v1/types_pb.ts';
import { executorPids, TestDaemon } from '../support/daemon.ts';
import { refusalOf } from '../support/refusal.ts';
import { skipped } from '../support/skipped.ts';
import { until } from '../support/until.ts';

/** Propagation through a real daemon: its files, and what becomes of them in bad times. */

let daemon: TestDaemon;

beforeAll(async () => {
  const flags = ['--sim-devices', '1', '--sim-memory-bytes', '100000000'];
  daemon = await TestDaemon.start({ datasets: ['cora'], flags });
});

const { propagateDataset, planPropagation, listPropagations, deletePropagation } =
  DatasetService.method;
const { cancelOperation } = DatasetService.method;

type Request = MessageInitShape<typeof PropagateDatasetRequestSchema>;

const start = (request: Request = {}, at = daemon) =>
  at.call(propagateDataset, { name: 'datasets/cora', ...request });

function madeBy({ result }: Operation): Propagation {
  if (result.case !== 'response') throw new Error(JSON.stringify(result.value));
  const made = anyUnpack(result.value, PropagationSchema);
  if (made === undefined) throw new Error('no propagation');
  return made;
}

async function propagate(request: Request = {}, at = daemon): Promise<Propagation> {
  return madeBy(await at.ended(await start(request, at)));
}

interface Manifest {
  readonly rows: number;
  readonly files: readonly { readonly name: string; readonly sha256: string }[];
}

function manifestOf({ path }: Propagation): Manifest {
  return JSON.parse(readFileSync(join(path, 'propagation.json'), 'utf8'));
}

/** Long enough to be met at work. */
const long: Request = {
  propagation: { operators: [PropagationOperator.PPR], hops: 8, terms: 40 },
};

async function untilAtWork(operation: Operation, at = daemon): Promise<void> {
  const { getOperation } = DatasetService.method;
  await until(async () => {
    const { done, progress } = await at.call(getOperation, { name: operation.name });
    if (done) throw new Error('it was too quick');
    return progress > 0.05;
  });
}

describe('a propagation', () => {
  test('has the files that its manifest says, and what was planned', async () => {
    const plan = await daemon.call(planPropagation, { request: { name: 'datasets/cora' } });
    const made = await propagate();
    expect(made).toMatchObject({ name: plan.name, complete: true, rows: 1640n });
    expect(plan.complete).toBe(false);
    expect(plan.bytes).toBeGreaterThanOrEqual(made.bytes);
    expect(Number(plan.bytes)).toBeLessThan(1.02 * Number(made.bytes));
    const manifest = manifestOf(made);
    const hops = ['hop0', 'op0-hop1', 'op0-hop2', 'op0-hop3'].map((hop) => `${hop}.npy`);
    const files = ['nodes.npy', 'labels.npy', ...hops, ...hops.map((hop) => `${hop}.moments`)];
    expect(manifest.files.map(({ name }) => name).sort()).toEqual(files.sort());
    expect(readdirSync(join(made.path, 'rows')).sort()).toEqual(
      manifest.files.map(({ name }) => name).sort(),
    );
    for (const { name, sha256 } of manifest.files) {
      const bytes = readFileSync(join(made.path, 'rows', name));
      expect(createHash('sha256').update(bytes).digest('hex')).toBe(sha256);
    }
  });

  test('is counted: its hops, its bytes, and that it ended', async () => {
    const count = async (name: string) => {
      const [, value] = new RegExp(`^${name} (.*)$`, 'm').exec(await daemon.scrape()) ?? [];
      return Number(value);
    };
    const names = ['hops_total', 'bytes_total', 'ends_total{outcome="COMPLETE"}'];
    const counts = () =>
      Promise.all(names.map((name) => count(`gnnd_propagation_${name.replace(/[{}]/g, '\\$&')}`)));
    const before = await counts();
    const operators = [PropagationOperator.ROW, PropagationOperator.PPR];
    const made = await propagate({ propagation: { operators, hops: 2, terms: 3 } });
    // Metrics show an earlier rendering for half a second.
    await expect
      .poll(async () => (await counts()).map((value, index) => value - (before[index] ?? 0)))
      .toEqual([4, Number(made.bytes), 1]);
    expect(await count('gnnd_propagations_running')).toBe(0);
    await daemon.call(deletePropagation, { name: made.name });
  });

  test('is shared by all who mean the same, whatever threads and memory they give', async () => {
    const first = await propagate({ propagation: { hops: 2 } });
    const again = await Promise.all([
      propagate({ propagation: { hops: 2, selfLoops: true }, threads: 2 }),
      propagate({ propagation: { hops: 2 }, memoryBytes: 1n << 20n }),
    ]);
    for (const { name, digest } of again) {
      expect({ name, digest }).toEqual({ name: first.name, digest: first.digest });
    }
    await daemon.call(deletePropagation, { name: first.name });
    const anew = await propagate({ propagation: { hops: 2 }, memoryBytes: 1n << 20n, threads: 3 });
    expect(anew.digest).toBe(first.digest);
  });

  test('is listed, and deleted once', async () => {
    const { name } = await propagate({ propagation: { hops: 1 } });
    const names = async (dataset: string) =>
      (await daemon.call(listPropagations, { dataset })).propagations.map((each) => each.name);
    expect(await names('')).toContain(name);
    expect(await names('datasets/cora')).toContain(name);
    expect(await names('datasets/other')).toEqual([]);
    const { bytes } = await daemon.call(deletePropagation, { name });
    expect(bytes).toBeGreaterThan(0n);
    expect(await names('')).not.toContain(name);
    expect(await refusalOf(daemon.call(deletePropagation, { name }))).toMatchObject({
      code: status.NOT_FOUND,
    });
    expect(await daemon.call(deletePropagation, { name, allowMissing: true })).toMatchObject({
      bytes: 0n,
    });
  });

  test('is refused with all that is wrong with the request', async () => {
    const request = {
      propagation: { operators: [PropagationOperator.PPR, 9], hops: 0, alpha: 1.5, heatTime: 1 },
      threads: -1,
      memoryBytes: -1n,
    };
    expect(await refusalOf(start(request))).toMatchObject({
      code: status.INVALID_ARGUMENT,
      fields: {
        'propagation.operators[1]': expect.stringContaining('SYMMETRIC, ROW, PPR, HEAT'),
        'propagation.hops': expect.stringContaining('1 to 64'),
        'propagation.alpha': expect.stringContaining('(0, 1]'),
        'propagation.heat_time': expect.stringContaining('only with HEAT'),
        threads: expect.anything(),
        memory_bytes: expect.anything(),
      },
    });
    expect(await refusalOf(start({ memoryBytes: 1000n }))).toMatchObject({
      code: status.INVALID_ARGUMENT,
      fields: { memory_bytes: expect.stringContaining('one column of 2708 nodes') },
    });
    expect(await refusalOf(start({ name: 'datasets/none' }))).toMatchObject({
      code: status.NOT_FOUND,
    });
  });
});

describe('a propagation on a simulated device', () => {
  const request: Request = {
    propagation: {
      operators: [PropagationOperator.SYMMETRIC, PropagationOperator.PPR],
      hops: 2,
      terms: 4,
      standardize: true,
    },
  };
  const count = async (name: string, at = daemon) => {
    const [, value] =
      new RegExp(`^gnnd_propagation_${name} (.*)$`, 'm').exec(await at.scrape()) ?? [];
    return Number(value);
  };
  let expected: Manifest;

  beforeAll(async () => {
    const made = await propagate(request);
    expected = manifestOf(made);
    await daemon.call(deletePropagation, { name: made.name });
  });

  test('has the bytes of cores, and is counted as what it is', async () => {
    const before = [await count('hops_total'), await count('device_hops_total')];
    const made = await propagate({ ...request, device: 'sim:0' });
    expect(manifestOf(made)).toEqual(expected);
    await expect
      .poll(async () => [await count('hops_total'), await count('device_hops_total')])
      .toEqual(before.map((hops) => hops + 4));
    await daemon.call(deletePropagation, { name: made.name });
  });

  test('goes on with the bytes of cores after a kill', async () => {
    // The simulated device is slow.
    const propagation = { operators: [PropagationOperator.PPR], hops: 2, terms: 4 };
    const operation = await start({ propagation, device: 'sim:0', memoryBytes: 1n << 22n });
    await untilAtWork(operation);
    for (const pid of executorPids(daemon.pid)) process.kill(pid, 'SIGKILL');
    expect((await daemon.ended(operation)).result.case).toBe('error');
    const onCores = await propagate({ propagation });
    const files = manifestOf(onCores);
    await daemon.call(deletePropagation, { name: onCores.name });
    const anew = await propagate({ propagation, device: 'sim:0' });
    expect(manifestOf(anew)).toEqual(files);
    await daemon.call(deletePropagation, { name: anew.name });
  });

  test('that is lost goes on with cores, which the log says', async () => {
    const flags = ['--sim-devices', '1', '--sim-memory-bytes', '100000000'];
    const env = { GNND_SIM_FAULT: 'lost:9' };
    const faulty = await TestDaemon.start({ datasets: ['cora'], flags, env });
    const made = await propagate({ ...request, device: 'sim:0' }, faulty);
    expect(manifestOf(made).files).toEqual(expected.files);
    expect(await count('device_hops_total', faulty)).toBeLessThan(4);
    const log = readFileSync(join(faulty.folder, 'state', 'log', 'propagator.log'), 'utf8');
    expect(log.match(/^gnnd\.cores: .*$/gm)).toEqual([expect.stringContaining('simulated error')]);
    await faulty.stop();
  });

  test('is refused by a name that no such device has', async () => {
    expect(await refusalOf(start({ ...request, device: 'cpu:0' }))).toMatchObject({
      code: status.INVALID_ARGUMENT,
      fields: { device: expect.stringContaining('expected sim:0') },
    });
  });
});

describe('a propagation that is interrupted', () => {
  let expected: Manifest;

  beforeAll(async () => {
    const made = await propagate(long);
    expected = manifestOf(made);
    await daemon.call(deletePropagation, { name: made.name });
  });

  test('by a kill goes on, to the same bytes; nobody reads what is there meanwhile', async () => {
    const operation = await start(long);
    await untilAtWork(operation);
    const { propagations } = await daemon.call(listPropagations, {});
    const unfinished = propagations.find(({ propagation }) => propagation?.terms === 40);
    expect(unfinished?.complete).toBe(false);
    expect(
      await refusalOf(daemon.call(deletePropagation, { name: unfinished?.name ?? '' })),
    ).toMatchObject({
      reason: 'PROPAGATION_IN_USE',
    });
    for (const pid of executorPids(daemon.pid)) process.kill(pid, 'SIGKILL');
    expect((await daemon.ended(operation)).result.case).toBe('error');
    const made = await propagate(long);
    expect(manifestOf(made)).toEqual(expected);
    await daemon.call(deletePropagation, { name: made.name });
  });

  test('by its user likewise', async () => {
    const operation = await start(long);
    await untilAtWork(operation);
    const { result } = await daemon.call(cancelOperation, { name: operation.name });
    expect(result.value).toMatchObject({ reason: 'OPERATION_CANCELLED' });
    const made = await propagate(long);
    expect(manifestOf(made)).toEqual(expected);
    await daemon.call(deletePropagation, { name: made.name });
  });

  test('by the end of the daemon likewise', async () => {
    const first = await TestDaemon.start({ datasets: ['cora'] });
    await untilAtWork(await start(long, first), first);
    first.process.kill('SIGKILL');
    await new Promise((resolve) => first.process.once('exit', resolve));
    const propagations = join(first.folder, 'state', 'cache', 'propagations');
    const unfinished = readdirSync(propagations).find((name) => !name.includes('.')) ?? '';
    // The folder looks as if the daemon had also died during a deletion.
    mkdirSync(join(propagations, `${unfinished}.tmp-deleted`));
    const second = await TestDaemon.start({ folder: first.folder });
    expect(readdirSync(propagations)).toEqual([unfinished]);
    expect(manifestOf(await propagate(long, second))).toEqual(expected);
    await second.stop();
  });
});

describe('a disk that fills up', () => {
  const mounted = mkdtempSync(join(tmpdir(), 'gnnd-small-disk-'));
  const mount = (...args: string[]) => execFileSync('mount', [...args, mounted], { stdio: 'pipe' });
  let isMounted = false;
  try {
    mount('-t', 'tmpfs', '-o', 'size=14M', 'tmpfs');
    isMounted = true;
  } catch {
    skipped('a disk that fills up', 'no file system may be mounted here');
  }

  afterAll(() => {
    if (isMounted) execFileSync('umount', ['-l', mounted]);
    rmSync(mounted, { recursive: true, force: true });
  });

  test.skipIf(!isMounted)('ends it with a clear error, and it goes on with room', async () => {
    const small = await TestDaemon.start({
      datasets: ['cora'],
      flags: ['--cache-dir', join(mounted, 'cache')],
    });
    const request = { memoryBytes: 1n << 21n };
    const { result } = await small.ended(await start(request, small));
    expect(result.value).toMatchObject({
      reason: 'STATE_DISK_FULL',
      message: expect.stringContaining('No space left on device'),
    });
    const { propagations } = await small.call(listPropagations, {});
    expect(propagations.map(({ complete }) => complete)).toEqual([false]);
    mount('-o', 'remount,size=200M');
    const made = await propagate(request, small);
    expect(made.digest).toBe((await propagate()).digest);
    await small.stop();
  });
});
