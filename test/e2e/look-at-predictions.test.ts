import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { JobService } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { runCli } from '../../src/cli/program.ts';
import { temporaryFolder } from '../support/at-end.ts';
import { TestDaemon } from '../support/daemon.ts';
import { createTestIo } from '../unit/cli/test-io.ts';

/** What `gnnctl predict` shows to somebody who looks, and what it leaves. */

let daemon: TestDaemon;
const folder = temporaryFolder('gnnd-look-');

beforeAll(async () => {
  daemon = await TestDaemon.start();
  const tables = join(folder, 'named');
  mkdirSync(tables);
  const splits = ['train', 'val', 'test', ''];
  const each = Array.from({ length: 40 }, (_, at) => at);
  const label = (at: number) => ['ham', 'spam, eggs'][at % 2];
  const rows = each.map((at) => `n${at},"${label(at)}",${splits[at % 4]},${at % 2}`);
  writeFileSync(join(tables, 'nodes.csv'), `id,label,split,x\n${rows.join('\n')}\n`);
  const edges = each.map((at) => `n${at},n${(at + 2) % 40}`);
  writeFileSync(join(tables, 'edges.csv'), `source,target\n${edges.join('\n')}\n`);
  await daemon.import('named', tables);
  await daemon.train('by-name', {
    dataset: 'named',
    model: { type: ModelType.GCN, hiddenDim: 4 },
    sampling: { fanouts: [2, 2] },
    training: { epochs: 1, batchSize: 8 },
    resources: { devices: 1 },
  });
});

async function predict(isTty: boolean, ...words: readonly string[]): Promise<string> {
  const { io, stdout, stderr } = createTestIo({ isTty, columns: 200 });
  const flags = ['--address', daemon.address, '--color', 'never'];
  expect(await runCli([...flags, 'predict', 'by-name', ...words], io), stderr()).toBe(0);
  return stdout();
}

async function jobCount(): Promise<number> {
  return (await daemon.call(JobService.method.listJobs, { pageSize: 500 })).jobs.length;
}

test('CSV that was printed whole is deleted, unless it is to be kept or has a name', async () => {
  const before = await jobCount();
  expect(await predict(false, '--node-ids', 'n30')).toMatch(/^node,id,prediction,class\n30,n30,/);
  expect(await jobCount()).toBe(before);
  await predict(false, '--node-ids', 'n30', '--keep');
  await predict(false, '--node-ids', 'n30', '--id', 'mine');
  expect(await jobCount()).toBe(before + 2);
});

test('a terminal gets the first rows, counts, and where all of it is', async () => {
  const text = await predict(true, '--id', 'looked-at');
  expect(text).toMatch(/^ID +CLASS +PROBABILITY\nn0 +(ham|spam, eggs) +[01]\.\d{3}\n/);
  expect(text.split('\n\n')[0]?.split('\n')).toHaveLength(11);
  expect(text).toMatch(/\nNodes +40\nClasses +(ham|spam, eggs) \d+/);
  const { result } = await daemon.job('looked-at');
  expect(text).toContain(`${result?.predictions?.folder}; copied by:`);
  expect(text).toContain('gnnctl job predictions looked-at FOLDER');
});

test('a folder of arrays is told with how many nodes each class has', async () => {
  const text = await predict(true, '--nodes', 'test', '--out', join(folder, 'copied'));
  const counts = /Classes +(.*)/.exec(text)?.[1] ?? '';
  const sum = [...counts.matchAll(/ (\d+)(?:,|$)/g)].reduce((all, [, n]) => all + Number(n), 0);
  expect([sum, counts]).toEqual([10, expect.stringMatching(/^(ham|spam, eggs) \d+/)]);
});

test('embeddings are shown by their first numbers, and are the only file of numbers', async () => {
  const text = await predict(true, '--outputs', 'EMBEDDINGS', '--layer', '1', '--id', 'rows');
  expect(text).toMatch(/^ID +EMBEDDING\nn0( +-?\d\S*){4}\n/);
  expect(text).not.toContain('Classes');
  const table = await predict(false, '--outputs', 'embeddings', 'logits', '--node-ids', 'n30');
  const rows = ['embeddings_0', 'embeddings_1', 'embeddings_2', 'embeddings_3'];
  const columns = ['node', 'id', 'prediction', 'class', 'logits_0', 'logits_1', ...rows];
  expect(table.split('\n')).toEqual([columns.join(), expect.stringMatching(/^30,n30,/), '']);
  const out = join(folder, 'rows');
  await predict(true, '--outputs', 'embeddings', '--format', 'npy', 'parquet', '--out', out);
  expect(readdirSync(out).sort()).toEqual([
    ...['embeddings.npy', 'inference.json', 'predictions.parquet'],
  ]);
});
