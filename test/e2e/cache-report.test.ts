import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { DatasetService } from '../../src/api/gen/gnnd/v1/dataset_service_pb.ts';
import { temporaryFolder } from '../support/at-end.ts';
import { executorPids, repository, TestDaemon } from '../support/daemon.ts';
import { until } from '../support/until.ts';

/** What `gnnctl cache report` says, and that it is so. */

const exec = promisify(execFile);
const gnnctl = join(repository, 'dist', 'cli', 'main.js');

let daemon: TestDaemon;
const folder = temporaryFolder('gnnd-report-');

beforeAll(async () => {
  daemon = await TestDaemon.start({ cpuDevices: 1, datasets: ['citeseer'] });
});

function report(...args: readonly string[]) {
  const all = ['--address', daemon.address, 'cache', 'report', 'citeseer', ...args];
  return exec(process.execPath, [gnnctl, ...all]);
}

const sampled = ['--fanouts', '5,3', '--fanouts', '2,2,2', '--batch-size', '16', '--epochs', '4'];
const others = [
  '{algorithm: RANDOM_WALK}',
  '{algorithm: LABOR, fanouts: [5, 3]}',
  '{fanouts: [4, 4], replace: true, expansion: NEW}',
].flatMap((sampling) => ['--sampling', sampling]);

test('every cell is what NumPy makes of the dumped samples', async () => {
  const dump = join(daemon.folder, 'state', 'dumps', 'sampled');
  const asked = ['--presample-epochs', '1,3', '--ratios', '0,0.1,0.3,1', '--random-seed', '77'];
  const { stdout } = await report(
    ...sampled,
    ...others,
    ...asked,
    '--dump-dir',
    dump,
    '-o',
    'json',
  );
  const path = join(folder, 'report.json');
  writeFileSync(path, stdout);
  const dataset = await daemon.call(DatasetService.method.getDataset, {
    name: 'datasets/citeseer',
  });
  const script = join(repository, 'test', 'e2e', 'python', 'cache_report.py');
  const python = process.env['GNND_PYTHON'] ?? join(repository, '.venv', 'bin', 'python');
  const check = await exec(python, [script, dataset.path, dump, path, '77']);
  // 5 samplings; OPTIMAL, 2 of PRESC, 2 of COMBINED, PROBABILITY, DEGREE, RANDOM; 4 ratios.
  expect(check.stdout).toBe('160 cells recomputed, 0 differences\n');
});

test('the same report comes out as a table, as tab-separated text and as a plot', async () => {
  const svg = join(folder, 'report.svg');
  const table = (await report(...sampled, '--svg', svg, '-o', 'table')).stdout;
  expect(table).toContain('Similarity');
  expect(table).toMatch(/COMBINED#1 +10\.0 %/);
  const plain = (await report(...sampled, '-o', 'plain')).stdout.trimEnd().split('\n');
  expect(plain[0]).toBe(
    'SAMPLING\tPOLICY\tRATIO\tROWS\tHIT RATE\tOF OPTIMAL\tMOVED AN EPOCH\tRANKING',
  );
  // 2 samplings, 6 policies, 6 ratios.
  expect(plain).toHaveLength(1 + 2 * 6 * 6);
  const drawing = readFileSync(svg, 'utf8');
  expect(drawing.match(/<path [^>]*stroke-width/g)).toHaveLength(2 * 6);
  expect(drawing).toContain('PROBABILITY');
  expect(drawing).not.toMatch(/NaN|undefined|Infinity/);
});

describe('a request that cannot be', () => {
  test('is refused with every wrong field', async () => {
    const call = daemon.call(DatasetService.method.reportCache, {
      name: 'datasets/citeseer',
      samplings: [{ fanouts: [10] }, { fanouts: [0, 5000] }],
      ratios: [0.5, 1.5, -0.1],
      presampleEpochs: [0],
      epochs: 101,
      dumpDir: 'relative',
    });
    await expect(call).rejects.toThrow(
      /epochs, presample_epochs\[0\], ratios\[1\], ratios\[2\], dump_dir and 2 more/,
    );
  });

  test('names a dataset that is not there', async () => {
    const call = daemon.call(DatasetService.method.reportCache, { name: 'datasets/none' });
    await expect(call).rejects.toThrow('there is no dataset none');
  });

  test('is refused by gnnctl where it is no number', async () => {
    await expect(report('--ratios', '0.1,much')).rejects.toMatchObject({ code: 2 });
  });
});

test('a call that is cancelled leaves no process behind', async () => {
  const child = execFile(process.execPath, [
    gnnctl,
    ...['--address', daemon.address, 'cache', 'report', 'citeseer'],
    ...['--epochs', '100', '--batch-size', '1', '--fanouts', '-1,-1,-1'],
  ]);
  await until(() => executorPids(daemon.pid).length > 0);
  child.kill('SIGKILL');
  await until(() => executorPids(daemon.pid).length === 0);
});
