import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { runCli } from '../../src/cli/program.ts';
import type { SpecInit } from '../support/crews.ts';
import { repository, TestDaemon } from '../support/daemon.ts';
import { createTestIo } from '../unit/cli/test-io.ts';

/** What a user deletes is gone, and what the daemon may remove goes; nothing else does. */

let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await TestDaemon.start({ cpuDevices: 2 });
  await daemon.import('cora', join(repository, 'test/fixtures/cora.npz'));
}, 120_000);

afterAll(() => daemon?.stop());

function spec(epochs: number): SpecInit {
  return {
    dataset: 'cora',
    model: { hiddenDim: 8 },
    sampling: { fanouts: [3, 3] },
    training: { epochs },
  };
}

async function gnnctl(...args: readonly string[]) {
  const io = createTestIo({});
  const exitCode = await runCli(['--address', daemon.address, ...args], io.io);
  return { exitCode, stdout: io.stdout(), stderr: io.stderr() };
}

const jobFolders = () => readdirSync(join(daemon.folder, 'state', 'jobs'));

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 20));
}

test('gnnctl deletes an ended job with its files; its id can be used again', async () => {
  await daemon.createJob('mine', spec(1));
  const { uid } = await daemon.succeeded('mine');
  expect(jobFolders()).toContain(uid);
  const { exitCode, stderr } = await gnnctl('job', 'delete', 'mine');
  expect([exitCode, stderr]).toEqual([0, 'deleted jobs/mine\n']);
  expect((await gnnctl('job', 'get', 'mine')).stderr).toContain('there is no job mine');
  await until(() => !jobFolders().includes(uid));
  expect((await gnnctl('job', 'delete', 'mine')).exitCode).toBe(4);
  expect((await gnnctl('job', 'delete', 'mine', '--allow-missing')).exitCode).toBe(0);
  await daemon.createJob('mine', spec(1));
  expect((await daemon.succeeded('mine')).uid).not.toBe(uid);
}, 120_000);

test('a running job is deleted by force only, and can leave its checkpoints', async () => {
  await daemon.createJob('long', spec(100_000));
  await daemon.until('long', ({ state }) => state === JobState.RUNNING);
  const refused = await gnnctl('job', 'delete', 'long');
  expect(refused.exitCode).toBe(5);
  expect(refused.stderr).toContain('cancel it first');
  const watch = gnnctl('job', 'watch', 'long', '-o', 'plain');
  const deleted = await gnnctl('job', 'delete', 'long', '--force');
  expect([deleted.exitCode, deleted.stderr]).toEqual([
    0,
    'long is being cancelled first\ndeleted jobs/long\n',
  ]);
  expect((await watch).stdout).toContain('CANCELLED');
  await daemon.createJob('kept', spec(1));
  const { uid } = await daemon.succeeded('kept');
  const kept = join(daemon.folder, 'state', 'jobs', uid, 'checkpoint');
  const answer = await gnnctl('job', 'delete', 'kept', '--keep-checkpoint');
  expect(answer.stderr).toBe(`deleted jobs/kept; checkpoints: ${kept}\n`);
  await until(() => !existsSync(join(kept, '..', 'attempts')));
  expect(existsSync(kept)).toBe(true);
}, 120_000);

test('a dataset is deleted when no job needs it', async () => {
  await daemon.import('other', join(repository, 'test/fixtures/citeseer.npz'));
  await daemon.createJob('user', { ...spec(100_000), dataset: 'other' });
  const refused = await gnnctl('dataset', 'delete', 'other');
  expect(refused.exitCode).toBe(5);
  expect(refused.stderr).toContain('wait for these jobs or cancel them: user');
  expect((await gnnctl('job', 'delete', 'user', '--force')).exitCode).toBe(0);
  const { exitCode, stderr } = await gnnctl('dataset', 'delete', 'other');
  expect(exitCode).toBe(0);
  expect(stderr).toMatch(/^deleted datasets\/other \(.+ MiB\)\n$/);
  await daemon.import('other', join(repository, 'test/fixtures/citeseer.npz'));
}, 120_000);

test('a daemon killed right after a deletion was acknowledged has no such job', async () => {
  await daemon.createJob('doomed', spec(1));
  const { uid } = await daemon.succeeded('doomed');
  expect((await gnnctl('job', 'delete', 'doomed')).exitCode).toBe(0);
  await daemon.kill('SIGKILL');
  daemon = await TestDaemon.start({ cpuDevices: 2, folder: daemon.folder });
  expect((await gnnctl('job', 'get', 'doomed')).exitCode).toBe(4);
  await until(() => !jobFolders().includes(uid));
  expect((await gnnctl('job', 'get', 'mine')).exitCode).toBe(0);
}, 120_000);
