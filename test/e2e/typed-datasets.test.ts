import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { DatasetService } from '../../src/api/gen/gnnd/v1/dataset_service_pb.ts';
import { gnnctlExit } from '../../src/base/exit-codes.ts';
import { repository, TestDaemon } from '../support/daemon.ts';
import { library, pairs, typedFolder } from '../unit/datasets/typed-folder.ts';

/** A graph of several types from its folder to its end, as people see it. */

let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await TestDaemon.start();
});

function gnnctl(...args: string[]) {
  const entry = join(repository, 'dist', 'cli', 'main.js');
  const env = { ...process.env, GNND_ADDRESS: daemon.address };
  const ended = spawnSync(process.execPath, [entry, ...args], { env, encoding: 'utf8' });
  return { exitCode: ended.status, text: `${ended.stdout}${ended.stderr}` };
}

const links = {
  'links/train.npy': pairs([0, 0], [1, 2]),
  'links/val.npy': pairs([0, 1]),
  'links/test.npy': pairs([1, 0]),
};

test('is imported, shown, checked, refused to jobs, found damaged by name, deleted', async () => {
  const source = typedFolder({ ...library, ...links });
  const imported = gnnctl('dataset', 'import', source, '--id', 'typed');
  expect(imported).toMatchObject({ exitCode: 0 });
  const { text } = gnnctl('dataset', 'show', 'typed', '-o', 'table');
  expect(text).toMatch(/Types {2,}2\nRelations {2,}4\n/);
  const lines = text.split('\n').map((line) => line.replaceAll(/ {2,}/g, ' | '));
  expect(lines).toContain('author | 2 | none | none');
  expect(lines).toContain('paper | 3 | 2 float32 | 2 classes, classification | 1 / 1 / 1');
  expect(lines).toContain('author | ── writes ──► | paper | 4 | 2 / 1 / 1');
  expect(lines).toContain('paper | ── rev_writes ──► | author | 4 | author__writes__paper');
  const valid = gnnctl('dataset', 'validate', 'typed', '-o', 'table');
  expect(valid).toMatchObject({ exitCode: 0, text: expect.stringMatching(/Valid +yes\n/) });

  const has = 'typed has 2 types of nodes and 4 relations';
  const why = `${has}; expected a dataset of one type and one relation`;
  const spec = join(
    typedFolder({ 'job.yaml': 'dataset: typed\nmodel: { type: GRAPHSAGE }\n' }),
    'job.yaml',
  );
  const job = gnnctl('job', 'create', '-f', spec);
  expect(job.exitCode).toBe(gnnctlExit.INVALID_ARGUMENT);
  expect(job.text).toContain(
    'GRAPHSAGE: the dataset has 2 types of nodes and 4 relations; expected one of RSAGE, RGCN, HGT',
  );
  const propagated = gnnctl('dataset', 'propagate', 'typed', '--hops', '1');
  expect(propagated.exitCode).not.toBe(0);
  expect(propagated.text).toContain(why);
  const { reportCache, simulatePlacement } = DatasetService.method;
  for (const answer of [
    daemon.call(reportCache, request),
    daemon.call(simulatePlacement, request),
  ]) {
    await expect(answer).rejects.toMatchObject({ message: expect.stringContaining(why) });
  }

  const { path } = await daemon.call(DatasetService.method.getDataset, request);
  const array = join(path, 'edges', 'paper__rev_writes__author', 'indices.npy');
  chmodSync(array, 0o640);
  const bytes = readFileSync(array);
  bytes.writeInt32LE(3, bytes.length - 4);
  writeFileSync(array, bytes);
  const damaged = gnnctl('dataset', 'validate', 'typed', '-o', 'table');
  expect(damaged.exitCode).toBe(gnnctlExit.INTERNAL);
  expect(damaged.text).toMatch(/rev_writes__author\/indices\.npy {2,}was changed: its SHA-256/);
  expect(damaged.text).toContain('must be below the 3 nodes of paper, found 3 at index 3');

  expect(gnnctl('dataset', 'delete', 'typed')).toMatchObject({ exitCode: 0 });
  expect(existsSync(path)).toBe(false);
  expect(gnnctl('dataset', 'list').text).toContain('no datasets');
});

const request = { name: 'datasets/typed' };

test('says all that is wrong with its folder', () => {
  const { 'types.json': _, ...rest } = library;
  const wrong = {
    ...rest,
    'types.json': '{"paper": 3, "authors": 2}',
    'links/val.npy': pairs([0, 0]),
  };
  const args = ['dataset', 'import', typedFolder(wrong), '--id', 'wrong'];
  const { exitCode, text } = gnnctl(...args);
  expect(exitCode).not.toBe(0);
  expect(text).toContain(
    "edges/author__writes__paper.npy: 'author' is no type of types.json; did you mean authors?",
  );
});
