import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  CheckpointKind,
  CheckpointService,
  type ExportCheckpointRequest,
  type ExportCheckpointResponseSchema,
  PredictionNodes,
} from '../../../src/api/gen/gnnd/v1/checkpoint_service_pb.ts';
import { runCli } from '../../../src/cli/program.ts';
import { until } from '../../support/until.ts';
import { createTestIo, type TestIo, type TestIoOptions } from '../../unit/cli/test-io.ts';
import { FakeDaemon, FakeError } from './fake-daemon.ts';

/** `gnnctl checkpoint` against a daemon that says what a test wants. */

let daemon: FakeDaemon;
let folder: string;
let target: string;

beforeEach(() => {
  daemon = new FakeDaemon();
  folder = mkdtempSync(join(tmpdir(), 'gnnctl-export-'));
  target = join(folder, 'new', 'model');
});
afterEach(() => {
  daemon.close();
  rmSync(folder, { recursive: true, force: true });
});

const { listCheckpoints, exportCheckpoint } = CheckpointService.method;
type Part = NonNullable<MessageInitShape<typeof ExportCheckpointResponseSchema>['part']>;

const checkpoint = {
  job: 'jobs/mine',
  kind: CheckpointKind.BEST,
  epoch: 7,
  valAccuracy: 0.75,
  testAccuracy: 0.5,
  bytes: 6n,
};

function file(name: string, ...pieces: readonly string[]): readonly Part[] {
  const bytes = BigInt(pieces.join('').length);
  return [
    { case: 'file', value: { name, bytes } },
    ...pieces.map((piece): Part => ({ case: 'data', value: Buffer.from(piece) })),
  ];
}

const progress: Part = {
  case: 'progress',
  value: { progress: 0.5, message: 'predicting all nodes' },
};
const head: Part = { case: 'checkpoint', value: checkpoint };
const model = file('model.safetensors', 'abc', 'def');
const logits = file('logits.npy', 'numbers');
const summary = file('export.json', '{}');
const whole = [head, ...model, progress, ...logits, ...summary];

async function serve(parts: readonly Part[], end: () => Promise<void> = async () => {}) {
  const requests: ExportCheckpointRequest[] = [];
  daemon.stream(exportCheckpoint, async (request, { send }) => {
    requests.push(request);
    for (const part of parts) send({ part });
    await end();
  });
  await daemon.listen();
  return requests;
}

async function gnnctl(args: readonly string[], options: TestIoOptions = {}) {
  const io = createTestIo(options);
  const exitCode = await runCli(['--address', daemon.address, 'checkpoint', ...args], io.io);
  return { exitCode, stdout: io.stdout(), stderr: io.stderr() };
}

function filesOf(path: string) {
  return Object.fromEntries(
    readdirSync(path).map((name) => [name, readFileSync(join(path, name), 'utf8')]),
  );
}

const exported = { 'model.safetensors': 'abcdef', 'logits.npy': 'numbers', 'export.json': '{}' };

test('all files of an export take their places, in folders made for them', async () => {
  const requests = await serve(whole);
  const { exitCode, stdout, stderr } = await gnnctl(['export', 'mine', target]);
  expect([exitCode, filesOf(target)]).toEqual([0, exported]);
  expect(requests).toMatchObject([
    { name: 'jobs/mine', kind: CheckpointKind.BEST, predictions: PredictionNodes.ALL },
  ]);
  expect(stderr).toBe('exporting mine: predicting all nodes\nexporting mine: done\n');
  expect(stdout).toContain('job\tjobs/mine\ncheckpoint\tbest\n');
  expect(stdout).toContain(`folder\t${target}\nmodel.safetensors\t6\nlogits.npy\t7\n`);
});

test('what is exported is asked for by name', async () => {
  const requests = await serve(whole);
  const args = ['--which', 'last', '--predictions', 'test', '--memory', '2GiB', '-o', 'name'];
  const { stdout } = await gnnctl(['export', 'jobs/mine', target, ...args]);
  expect(stdout).toBe(`${target}\n`);
  expect(requests).toMatchObject([
    { kind: CheckpointKind.LAST, predictions: PredictionNodes.TEST, memoryBytes: 2n ** 31n },
  ]);
  for (const wrong of [
    ['--which', 'first'],
    ['--predictions', 'some'],
    ['--memory', 'much'],
  ]) {
    expect((await gnnctl(['export', 'mine', target, ...wrong])).exitCode).toBe(2);
  }
});

test('an earlier export is replaced by force only, and then nothing of it stays', async () => {
  const requests = await serve(whole);
  const first = join(folder, 'first');
  await gnnctl(['export', 'mine', first]);
  writeFileSync(join(first, 'nodes.npy'), 'of an earlier export');
  writeFileSync(join(first, 'notes.txt'), "the user's");
  const { exitCode, stderr } = await gnnctl(['export', 'mine', first]);
  expect([exitCode, requests.length]).toEqual([5, 1]);
  expect(stderr).toContain('holds model.safetensors, nodes.npy, logits.npy, export.json');
  expect((await gnnctl(['export', 'mine', first, '--force'])).exitCode).toBe(0);
  expect(filesOf(first)).toEqual({ ...exported, 'notes.txt': "the user's" });
});

test('an export that ends early leaves no file and no folder', async () => {
  const refuse = () => {
    throw new FakeError(status.DATA_LOSS, 'labels.npy is short', { reason: 'DATASET_CORRUPT' });
  };
  await serve([head, ...model], refuse);
  const { exitCode, stderr } = await gnnctl(['export', 'mine', target]);
  expect([exitCode, stderr]).toEqual([13, expect.stringContaining('labels.npy is short')]);
  expect(readdirSync(folder)).toEqual([]);
});

test.each([
  ['before export.json', [head, ...model], 'within export.json'],
  ['within a file', [head, ...model.slice(0, 2), ...summary], 'within model.safetensors'],
  ['without a file', [head, ...model.slice(1)], 'within the first file'],
  ['with a name of its own', [head, ...file('../evil', 'x')], 'unknown name: ../evil'],
])('a daemon that ends an export %s is not believed', async (_, parts, said) => {
  await serve(parts);
  const { exitCode, stderr } = await gnnctl(['export', 'mine', target]);
  expect([exitCode, stderr]).toEqual([13, expect.stringContaining(said)]);
  expect(readdirSync(folder)).toEqual([]);
});

test('a full disk ends with 6, names the file and leaves nothing', async () => {
  const earlier = join(folder, 'earlier');
  await serve(whole);
  await gnnctl(['export', 'mine', earlier]);
  daemon.crash();
  const aside = join(earlier, `.export.tmp-${process.pid}`);
  daemon.stream(exportCheckpoint, async (_, { send }) => {
    // Whatever is written there meets a full disk.
    symlinkSync('/dev/full', join(aside, 'logits.npy'));
    for (const part of whole) send({ part });
  });
  await daemon.listen();
  const { exitCode, stderr } = await gnnctl(['export', 'mine', earlier, '--force']);
  expect(exitCode).toBe(6);
  expect(stderr).toContain(`cannot write ${join(earlier, 'logits.npy')}: ENOSPC: no space left`);
  expect(filesOf(earlier)).toEqual(exported);
});

test('a folder that cannot be made is named, before the daemon is asked', async () => {
  const requests = await serve(whole);
  writeFileSync(join(folder, 'file'), '');
  const { exitCode, stderr } = await gnnctl(['export', 'mine', join(folder, 'file', 'below')]);
  expect([exitCode, requests]).toEqual([5, []]);
  expect(stderr).toContain(`cannot write ${join(folder, 'file', 'below')}: ENOTDIR`);
  // Where the kernel makes no folder, Node's own way of making several never ends.
  const below = await gnnctl(['export', 'mine', '/proc/gnnd/below']);
  expect(below.exitCode).not.toBe(0);
  expect(below.stderr).toContain('cannot write /proc/gnnd/below: ENOENT');
});

test('Ctrl-C stops an export and leaves nothing', async () => {
  let test: TestIo | null = null;
  let isCancelled = false;
  daemon.stream(exportCheckpoint, async (_, { send, cancelled }) => {
    for (const part of [head, ...model, progress]) send({ part });
    await cancelled;
    isCancelled = true;
  });
  await daemon.listen();
  const interrupt = (text: string) => {
    if (text.includes('predicting')) test?.interrupt();
  };
  test = createTestIo({ onWrite: interrupt });
  const args = ['--address', daemon.address, 'checkpoint', 'export', 'mine', target];
  expect(await runCli(args, test.io)).toBe(130);
  expect(test.stderr()).toContain('nothing was written');
  expect(readdirSync(folder)).toEqual([]);
  await until(() => isCancelled);
  expect(existsSync(target)).toBe(false);
});

test('a terminal sees a bar', async () => {
  await serve(whole);
  const { stderr } = await gnnctl(['export', 'mine', target], { isTty: true });
  expect(stderr).toMatch(/exporting mine {2}.*50 %.*predicting all nodes/);
});

test('checkpoints are listed for people and for programs', async () => {
  const last = { ...checkpoint, kind: CheckpointKind.LAST, epoch: 9 };
  daemon.unary(listCheckpoints, ({ name }) => ({
    checkpoints: [{ ...checkpoint, job: name }, last],
  }));
  await daemon.listen();
  const plain = await gnnctl(['list', 'mine']);
  expect(plain.stdout.split('\n')[1]).toBe('best\t8\t0.75\t0.5\t6\t\t');
  const table = await gnnctl(['list', 'mine', '-o', 'table']);
  expect(table.stdout).toMatch(/best +8 +accuracy 75\.0 % +accuracy 50\.0 % +6 B\nlast +10/);
  const json = await gnnctl(['list', 'mine', '-o', 'json']);
  expect(JSON.parse(json.stdout).checkpoints[1]).toMatchObject({ epoch: 9, bytes: '6' });
  expect((await gnnctl(['list', 'mine', '-o', 'name'])).stdout).toBe('best\nlast\n');
});
