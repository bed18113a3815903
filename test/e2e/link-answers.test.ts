import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { beforeAll, expect, test } from 'vitest';
import { DatasetService } from '../../src/api/gen/gnnd/v1/dataset_service_pb.ts';
import { Standardize } from '../../src/api/gen/gnnd/v1/features_pb.ts';
import { InferenceOutput, JobKind } from '../../src/api/gen/gnnd/v1/inference_pb.ts';
import { type Job, JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobTask } from '../../src/api/gen/gnnd/v1/links_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { Reason } from '../../src/api/gen/gnnd/v1/types_pb.ts';
import { runCli } from '../../src/cli/program.ts';
import { temporaryFolder } from '../support/at-end.ts';
import type { SpecInit } from '../support/crews.ts';
import { TestDaemon } from '../support/daemon.ts';
import { refusalOf } from '../support/refusal.ts';
import { createTestIo } from '../unit/cli/test-io.ts';
import { folderOf, int64 } from '../unit/datasets/workbench.ts';

/** What comes out of a job of links: rows of nodes, scores of pairs, and who is nearest. */

let daemon: TestDaemon;
const folder = temporaryFolder('gnnd-answers-');
const at = (name: string) => join(folder, name);

const links: SpecInit = {
  task: JobTask.LINKS,
  model: { type: ModelType.GRAPHSAGE, hiddenDim: 16, dropout: 0 },
  sampling: { fanouts: [5, 5] },
  resources: { devices: 1 },
};

beforeAll(async () => {
  daemon = await TestDaemon.start({ cpuDevices: 2, datasets: ['cora'] });
  await daemon.train('cited', {
    ...links,
    ...{ dataset: 'cora', features: { standardize: Standardize.ON } },
    training: { epochs: 3, batchSize: 512, randomSeed: 7n },
    links: { split: { validation: 0.05, test: 0.1, randomSeed: 7n }, evaluation: { count: 100 } },
  });
});

async function gnnctl(...args: string[]) {
  const { io, stdout, stderr } = createTestIo();
  const exitCode = await runCli(['--address', daemon.address, ...args], io);
  return { exitCode, stdout: stdout(), stderr: stderr() };
}

async function predicted(out: string, ...args: string[]): Promise<string> {
  const { exitCode, stderr } = await gnnctl('predict', ...args, '--out', at(out));
  expect(exitCode, stderr).toBe(0);
  return at(out);
}

/** Numbers of a .npy file of int64 or float32. */
function numbersIn(path: string): readonly number[] {
  const bytes = readFileSync(path);
  const data = bytes.subarray(10 + bytes.readUInt16LE(8));
  const values = data.buffer.slice(data.byteOffset, data.byteOffset + data.length);
  const isWide = bytes.toString('latin1', 0, 128).includes('<i8');
  return isWide ? [...new BigInt64Array(values)].map(Number) : [...new Float32Array(values)];
}

function rowsIn(path: string, width: number): readonly (readonly number[])[] {
  const numbers = numbersIn(path);
  const rows = Array.from({ length: numbers.length / width }, (_, row) => row * width);
  return rows.map((first) => numbers.slice(first, first + width));
}

const dot = (one: readonly number[] = [], other: readonly number[] = []) =>
  one.reduce((sum, value, column) => sum + value * (other[column] ?? 0), 0);

let rows: readonly (readonly number[])[];

test('embeddings are the rows that the head reads', async () => {
  const out = await predicted('rows', 'cited', '--outputs', 'embeddings', '--id', 'rows');
  rows = rowsIn(join(out, 'embeddings.npy'), 16);
  expect(rows).toHaveLength(2708);
  const facts = JSON.parse(readFileSync(join(out, 'inference.json'), 'utf8'));
  expect(facts).toMatchObject({ task: 'LINKS', outputs: ['embeddings'], layer: 2, rows: 2708 });
  expect((await gnnctl('job', 'get', 'rows')).stdout).toMatch(/predicts\tALL nodes by cited/);
});

test('scores of pairs are in their order, what the head makes of both rows', async () => {
  const pairs = Array.from({ length: 5000 }, (_, n) => [(7 * n) % 2708, (11 * n + 1) % 2708]);
  const text = pairs.map((ends) => ends.join(',')).join('\n');
  writeFileSync(at('pairs.csv'), `source,target\n${text}\n`);
  const args = ['cited', '--outputs', 'scores', '--pairs', at('pairs.csv'), '--id', 'scored'];
  const out = await predicted('scored', ...args, '--format', 'npy', 'parquet');
  expect(numbersIn(join(out, 'pairs.npy'))).toEqual(pairs.flat());
  const scores = numbersIn(join(out, 'scores.npy'));
  for (const [pair, [source = 0, destination = 0]] of pairs.entries()) {
    const expected = dot(rows[source], rows[destination]);
    const unit = Math.max(1, Math.abs(expected));
    expect(Math.abs((scores[pair] ?? Number.NaN) - expected)).toBeLessThan(1e-4 * unit);
  }
  expect((await gnnctl('job', 'get', 'scored')).stdout).toMatch(/predicts\tpairs by cited/);
  const job = await daemon.job('scored');
  expect(job.result?.predictions?.nodes).toBe(5000n);
});

/** The nodes that each node has an edge with, of links of any side. */
async function neighboursIn(dataset: string): Promise<readonly ReadonlySet<number>[]> {
  const { getDataset } = DatasetService.method;
  const { path } = await daemon.call(getDataset, { name: `datasets/${dataset}` });
  const indptr = numbersIn(join(path, 'indptr.npy'));
  const bytes = readFileSync(join(path, 'indices.npy'));
  const dataAt = 10 + bytes.readUInt16LE(8);
  const of = Array.from({ length: indptr.length - 1 }, () => new Set<number>());
  for (const [node, neighbours] of of.entries()) {
    for (let edge = indptr[node] ?? 0; edge < (indptr[node + 1] ?? 0); edge += 1) {
      const other = bytes.readUInt32LE(dataAt + 4 * edge);
      neighbours.add(other);
      of[other]?.add(node);
    }
  }
  return of;
}

/** The k best scores of a node, one after the other. */
function bestOf(node: number, k: number, without: ReadonlySet<number>): readonly number[] {
  const others = rows.flatMap((row, other) =>
    other === node || without.has(other) ? [] : [dot(rows[node], row)],
  );
  return others.sort((one, other) => other - one).slice(0, k);
}

test('the nearest are the best of all scores, without whom a node is linked to', async () => {
  const neighbours = await neighboursIn('cora');
  const degrees = neighbours.map(({ size }) => size);
  const nodes = [5, degrees.indexOf(Math.max(...degrees)), 2707].sort((a, b) => a - b);
  writeFileSync(at('nodes.npy'), int64(...nodes));
  const asked = ['cited', '--outputs', 'nearest', '--k', '4', '--nodes-file', at('nodes.npy')];
  for (const more of [[], ['--with-known']]) {
    const out = await predicted(`nearest${more.length}`, ...asked, ...more);
    const found = rowsIn(join(out, 'nearest.npy'), 4);
    const scores = rowsIn(join(out, 'scores.npy'), 4);
    expect(numbersIn(join(out, 'nodes.npy'))).toEqual(nodes);
    for (const [row, node] of nodes.entries()) {
      const known = more.length === 0 ? (neighbours[node] ?? new Set()) : new Set<number>();
      const best = bestOf(node, 4, known);
      expect(new Set(found[row]).size).toBe(4);
      for (const [rank, other] of (found[row] ?? []).entries()) {
        expect(known.has(other) || other === node).toBe(false);
        const unit = Math.max(1, Math.abs(best[rank] ?? 0));
        expect(Math.abs(dot(rows[node], rows[other]) - (best[rank] ?? 0)) / unit).toBeLessThan(
          1e-4,
        );
        expect(Math.abs((scores[row]?.[rank] ?? 0) - (best[rank] ?? 0)) / unit).toBeLessThan(1e-4);
      }
    }
  }
});

test('a table of users and items comes to the best items of a user', async () => {
  const items = Array.from({ length: 12 }, (_, item) => `item${item}`);
  const bought = (user: number) => items.filter((_, item) => (item + user) % 4 < 2);
  const users = Array.from({ length: 30 }, (_, user) => user);
  const lines = users.flatMap((user) => bought(user).map((item) => `user${user},${item}`));
  const table = folderOf({ 'edges.csv': `source,target\n${lines.join('\n')}\n` });
  await daemon.import('shop', join(table, 'edges.csv'));
  const split = { validation: 0.1, test: 0.1, randomSeed: 1n };
  await daemon.train('shopping', {
    ...{ ...links, dataset: 'shop', training: { epochs: 2, randomSeed: 1n } },
    links: { split, evaluation: { count: 20 } },
  });
  writeFileSync(at('items.txt'), `${items.join('\n')}\n`);
  const asked = ['shopping', '--outputs', 'nearest', '--node-ids', 'user3', 'user4', '--k', '3'];
  const { stdout, exitCode } = await gnnctl('predict', ...asked, '--among-file', at('items.txt'));
  expect(exitCode).toBe(0);
  const [header, ...rest] = stdout.trim().split('\n');
  expect(header).toBe('node,id,rank,nearest,nearest_id,score');
  expect(rest).toHaveLength(6);
  for (const line of rest) {
    const [, id = '', rank, , item = ''] = line.split(',');
    expect(id).toMatch(/^user[34]$/);
    expect(Number(rank)).toBeLessThanOrEqual(3);
    expect(items).toContain(item);
    expect(bought(Number(id.slice(4)))).not.toContain(item);
  }
});

test('what cannot be asked is told by field, everything at once', async () => {
  const inference = { job: 'cited', outputs: [InferenceOutput.NEAREST], k: 0, pairsFile: 'pairs' };
  const wrong = daemon.createJob('wrong', { kind: JobKind.INFERENCE, inference });
  const { code, fields } = await refusalOf(wrong);
  expect(code).toBe(status.INVALID_ARGUMENT);
  expect(fields).toEqual({
    'spec.inference.k': '0: expected 1 or more',
    'spec.inference.pairs_file': '"pairs": only for outputs SCORES',
  });
});

test('pairs beyond the graph are told by their lines, before anything is computed', async () => {
  writeFileSync(at('beyond.csv'), '0,1\n2,2708\n-1,4\n');
  const outputs = [InferenceOutput.SCORES];
  const inference = { job: 'cited', outputs, pairsFile: at('beyond.csv') };
  await daemon.createJob('beyond', { kind: JobKind.INFERENCE, inference });
  const isFailed = ({ state }: Job) => state === JobState.FAILED;
  const { reason, message } = await daemon.until('beyond', isFailed);
  expect(Reason[reason]).toBe('SPEC_INVALID');
  expect(message).toContain('spec.inference.pairs_file');
  expect(message).toContain('beyond.csv:2: "2708": expected a node, an integer from 0 to 2707');
  expect(message).toContain('beyond.csv:3: "-1"');
});
