import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { DatasetService } from '../../src/api/gen/gnnd/v1/dataset_service_pb.ts';
import { LinkLayout, PlacementWay } from '../../src/api/gen/gnnd/v1/placement_pb.ts';
import { runCli } from '../../src/cli/program.ts';
import { temporaryFolder } from '../support/at-end.ts';
import { executorPids, repository, TestDaemon } from '../support/daemon.ts';
import { until } from '../support/until.ts';
import { createTestIo } from '../unit/cli/test-io.ts';

/** What `gnnctl placement simulate` says, and that it agrees with the cache report. */

let daemon: TestDaemon;
const folder = temporaryFolder('gnnd-placement-');

beforeAll(async () => {
  daemon = await TestDaemon.start({ cpuDevices: 1, datasets: ['citeseer'] });
});

const method = DatasetService.method;
const sampled = { sampling: { fanouts: [5, 3] }, batchSize: 16, epochs: 3, randomSeed: 7n };
const name = 'datasets/citeseer';

test('a prefix hits as the cache report says, and no way waits less than the plan', async () => {
  const ratios = [0.05, 0.2];
  const { samplings } = await daemon.call(method.reportCache, {
    ...{ name, ratios, samplings: [sampled.sampling], batchSize: 16, epochs: 3, randomSeed: 7n },
  });
  const [report] = samplings;
  const rates = report?.policies.find(({ policy }) => policy === 1)?.cells ?? [];
  const found = await daemon.call(method.simulatePlacement, { name, ...sampled, ratios });
  expect(found.inputRows).toBeCloseTo(report?.inputRows ?? 0, 6);
  expect(found.rowBytes).toBe(3703n * 4n);
  // 3 numbers of devices, 3 layouts, 2 ratios.
  expect(found.layouts).toHaveLength(18);
  for (const { links, ratio, devices, placements } of found.layouts) {
    const [planned, spread, prefix] = placements;
    expect(placements.map(({ way }) => way)).toEqual([
      PlacementWay.PLANNED,
      PlacementWay.SPREAD,
      PlacementWay.PREFIX,
      PlacementWay.PARTITION,
      PlacementWay.RANDOM,
    ]);
    if (planned === undefined || spread === undefined || prefix === undefined) throw new Error();
    // Borders lie in runs of ranks, whose rows count as equally hot.
    const rate = rates[ratios.indexOf(ratio)]?.hitRate ?? 0;
    for (const { ownShare } of prefix.devices) expect(ownShare).toBeCloseTo(rate, 2);
    expect(planned.devices).toHaveLength(devices);
    for (const { ownShare, peerShare, hostShare } of placements.flatMap((one) => one.devices)) {
      expect(ownShare + peerShare + hostShare).toBeCloseTo(1, 9);
    }
    if (links === LinkLayout.NONE) expect(planned).toEqual({ ...prefix, way: planned.way });
    for (const other of placements) {
      // Planned from one epoch that was sampled in advance, judged by three others.
      expect(planned.extractNs).toBeLessThanOrEqual(other.extractNs * 1.01);
      expect(spread.hostBytes).toBeLessThanOrEqual(other.hostBytes * 1.01);
    }
  }
});

async function simulate(...args: readonly string[]) {
  const { io, stdout, stderr } = createTestIo();
  const all = ['--address', daemon.address, 'placement', 'simulate', 'citeseer', ...args];
  const exitCode = await runCli(all, io);
  return { exitCode, stdout: stdout(), stderr: stderr() };
}

const asked = [
  '--fanouts',
  '5,3',
  '--batch-size',
  '16',
  '--devices',
  '2,8',
  '--links',
  'none,full',
];

test('the same comes out as a table, as tab-separated text and as a picture', async () => {
  const svg = join(folder, 'placement.svg');
  const table = (await simulate(...asked, '--svg', svg, '-o', 'table')).stdout;
  expect(table).toContain('nothing follows a plan yet');
  expect(table).toMatch(/8 +FULL +10\.0 % +PLANNED +0 /);
  const plain = (await simulate(...asked, '-o', 'plain')).stdout.trimEnd().split('\n');
  expect(plain[0]?.split('\t').slice(0, 5)).toEqual([
    'DEVICES',
    'LINKS',
    'RATIO',
    'PLACEMENT',
    'DEVICE',
  ]);
  // Each device of 2 layouts with 2 and 2 with 8 devices, in 5 ways.
  expect(plain).toHaveLength(1 + (2 * 2 + 2 * 8) * 5);
  const drawing = readFileSync(svg, 'utf8');
  expect(drawing).toContain('citeseer: the plan for 8, full, 10.0 %');
  expect(drawing).not.toMatch(/NaN|undefined|Infinity/);
});

describe('a request that cannot be', () => {
  test('is refused with every wrong field', async () => {
    const call = daemon.call(method.simulatePlacement, {
      name,
      sampling: { fanouts: [0] },
      deviceCounts: [2, 3],
      links: [LinkLayout.FULL, 9 as LinkLayout],
      ratios: [-1],
      epochs: 101,
      hostRate: -1,
    });
    await expect(call).rejects.toThrow(
      /device_counts\[1\], ratios\[0\], links\[1\], epochs, host_rate/,
    );
  });

  test.each([
    ['--links', 'both'],
    ['--host-rate', '0'],
    ['--devices', 'two'],
  ])('is refused by gnnctl: %s %s', async (...args) => {
    expect(await simulate(...args)).toMatchObject({ exitCode: 2, stdout: '' });
  });
});

test('a call that is cancelled leaves no process behind', async () => {
  const endless = ['--epochs', '100', '--batch-size', '1', '--fanouts', '-1,-1,-1'];
  const gnnctl = join(repository, 'dist', 'cli', 'main.js');
  const all = ['--address', daemon.address, 'placement', 'simulate', 'citeseer', ...endless];
  const child = execFile(process.execPath, [gnnctl, ...all]);
  await until(() => executorPids(daemon.pid).length > 0);
  child.kill('SIGKILL');
  await until(() => executorPids(daemon.pid).length === 0);
});
