import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import {
  type CacheReportsOptions,
  createCacheReports,
} from '../../../src/artifacts/cache-reports.ts';
import { GnndError } from '../../../src/base/errors.ts';

const root = mkdtempSync(join(tmpdir(), 'gnnd-dumps-'));
const dumpsDir = join(root, 'dumps');
mkdirSync(join(dumpsDir, 'sub'), { recursive: true });
mkdirSync(join(root, 'outside'));
symlinkSync(join(root, 'outside'), join(dumpsDir, 'leads-out'));
afterAll(() => rmSync(root, { recursive: true }));

const counts = { numTrain: 10, numNodes: 10, numVal: 0 };
const dataset = { id: 'a', state: 'READY', path: root, schema: null, ...counts };

/** What is wrong with a request for a dump there; all others of its fields are wrong, too. */
async function problemOf(dumpDir: string): Promise<string | null> {
  const store = { getDataset: () => dataset };
  const host = {
    deviceNames: ['cpu:0'],
    deviceCores: [1],
    matrixLibrary: 'ONEDNN' as const,
    pluginFile: () => null,
  };
  const options = { store, host, dumpsDir, native: {}, stateDir: root };
  const reports = createCacheReports(options as unknown as CacheReportsOptions);
  const request = {
    ...{ dataset: 'a', samplings: [], batchSize: undefined, presampleEpochs: [], ratios: [] },
    ...{ randomSeed: undefined, epochs: 0, dumpDir },
  };
  const error = await reports.report(request, new AbortController().signal).catch((e) => e);
  if (!(error instanceof GnndError)) throw error;
  const found = error.violations.find(({ path }) => path === 'dump_dir');
  return found?.description ?? null;
}

test.each([
  ['a folder elsewhere', join(root, 'outside')],
  ['a link that leads out', join(dumpsDir, 'leads-out', 'new')],
  ['a way out of the folder', `${dumpsDir}/../outside`],
  ['a way out through what is not there', `${dumpsDir}/new/../../outside`],
  ['the folder itself', dumpsDir],
])('samples are not dumped into %s', async (_, dumpDir) => {
  expect(await problemOf(dumpDir)).toContain(`is not in ${dumpsDir}, the daemon's dumps_dir`);
});

test('samples are not dumped to a relative path', async () => {
  expect(await problemOf('dumps')).toContain('expected an absolute path');
});

test('samples may be dumped below the folder, and nowhere when nobody asks', async () => {
  expect(await problemOf(join(dumpsDir, 'sub', 'new', 'newer'))).toBe(null);
  expect(await problemOf('')).toBe(null);
});
