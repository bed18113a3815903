import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { DatasetService } from '../../src/api/gen/gnnd/v1/dataset_service_pb.ts';
import { repository, TestDaemon } from '../support/daemon.ts';

/** Two daemons with a state each, and one folder of datasets and one of derived files for both. */

let shared: string;
const daemons: TestDaemon[] = [];

beforeEach(() => {
  shared = mkdtempSync(join(tmpdir(), 'gnnd-shared-'));
});

afterEach(async () => {
  for (const daemon of daemons.splice(0)) await daemon.stop();
  rmSync(shared, { recursive: true, force: true });
});

async function start(): Promise<TestDaemon> {
  const flags = ['--datasets-dir', join(shared, 'datasets'), '--cache-dir', join(shared, 'cache')];
  const daemon = await TestDaemon.start({ cpuDevices: 1, flags });
  daemons.push(daemon);
  return daemon;
}

const fixture = (name: string) => join(repository, 'test', 'fixtures', name);

/** What an import, a deletion and a propagation have there while they are under way. */
function underWay(): readonly string[] {
  const folders = ['datasets/.tmp-big-abc123', 'datasets/.deleted-old-xyz', 'cache/features'];
  for (const folder of folders) mkdirSync(join(shared, folder), { recursive: true });
  const file = 'cache/features/digest-standardized.npy.tmp-abc123';
  writeFileSync(join(shared, file), 'half');
  return [folders[0], folders[1], file].map((path) => join(shared, path ?? ''));
}

test("what one daemon writes no other's start removes", async () => {
  const first = await start();
  const paths = underWay();
  const second = await start();
  expect(paths.filter((path) => existsSync(path))).toEqual(paths);
  // A living daemon shuts no other out, and a daemon that is alone removes what is left.
  for (const daemon of [first, second]) await daemon.stop();
  daemons.length = 0;
  await start();
  expect(paths.filter((path) => existsSync(path))).toEqual([]);
});

test('the same dataset serves both, and another one under its id is refused', async () => {
  const [first, second] = [await start(), await start()];
  await first.import('graph', fixture('cora.npz'));
  await second.import('graph', fixture('cora.npz'));
  await first.import('other', fixture('cora.npz'));
  const importing = second.import('other', fixture('citeseer.npz'));
  await expect(importing).rejects.toThrow(/DATASET_EXISTS.*shares datasets_dir/);
  expect(readdirSync(join(shared, 'datasets')).sort()).toEqual(['graph', 'other']);
  const { getDataset } = DatasetService.method;
  const [a, b] = await Promise.all(
    daemons.map((daemon) => daemon.call(getDataset, { name: 'datasets/graph' })),
  );
  expect(a?.digest).toBe(b?.digest);
});
