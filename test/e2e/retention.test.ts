import { existsSync, readdirSync, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Standardize } from '../../src/api/gen/gnnd/v1/features_pb.ts';
import { JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService, WatchType } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { runCli } from '../../src/cli/program.ts';
import { watchJob } from '../../src/cli/read/watch-stream.ts';
import { createApiClient } from '../../src/cli/session/client.ts';
import type { SpecInit } from '../support/crews.ts';
import { repository, TestDaemon } from '../support/daemon.ts';
import { until } from '../support/until.ts';
import { createTestIo } from '../unit/cli/test-io.ts';

/** What a user deletes is gone, and what the daemon may remove goes; nothing else does. */

let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await TestDaemon.start({ cpuDevices: 2, datasets: ['cora'] });
});

function spec(epochs: number): SpecInit {
  return {
    dataset: 'cora',
    model: { hiddenDim: 8 },
    sampling: { fanouts: [3, 3] },
    training: { epochs },
  };
}

async function gnnctlOf({ address }: TestDaemon, ...args: readonly string[]) {
  const io = createTestIo({});
  const exitCode = await runCli(['--address', address, ...args], io.io);
  return { exitCode, stdout: io.stdout(), stderr: io.stderr() };
}

const gnnctl = (...args: readonly string[]) => gnnctlOf(daemon, ...args);

const jobFolders = () => readdirSync(join(daemon.folder, 'state', 'jobs'));

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
});

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
});

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
});

test('a derived file that a job uses again is the last to go', async () => {
  const folder = join(daemon.folder, 'state', 'cache', 'features');
  const standardized = {
    ...spec(1),
    features: { standardize: Standardize.ON },
    cache: { ratio: 0.2 },
  };
  await daemon.createJob('makes', standardized);
  await daemon.succeeded('makes');
  const files = readdirSync(folder).map((name) => join(folder, name));
  expect(files.some((path) => path.endsWith('-standardized.npy'))).toBe(true);
  expect(files.some((path) => path.endsWith('-order.npy'))).toBe(true);
  for (const path of files) utimesSync(path, 1, 1);
  await daemon.createJob('uses', standardized);
  await daemon.succeeded('uses');
  expect(files.filter((path) => statSync(path).mtimeMs === 1000)).toEqual([]);
});

test('a daemon killed right after a deletion was acknowledged has no such job', async () => {
  await daemon.createJob('doomed', spec(1));
  const { uid } = await daemon.succeeded('doomed');
  expect((await gnnctl('job', 'delete', 'doomed')).exitCode).toBe(0);
  await daemon.kill('SIGKILL');
  daemon = await TestDaemon.start({ cpuDevices: 2, folder: daemon.folder });
  expect((await gnnctl('job', 'get', 'doomed')).exitCode).toBe(4);
  await until(() => !jobFolders().includes(uid));
  expect((await gnnctl('job', 'get', 'mine')).exitCode).toBe(0);
});

describe('a daemon with limits', () => {
  let limited: TestDaemon;

  beforeAll(async () => {
    const env = { GNND_JOBS_RETAIN_COUNT: '1', GNND_EVENTS_RETAIN_COUNT: '1' };
    limited = await TestDaemon.start({ cpuDevices: 2, env, datasets: ['cora'] });
  });

  afterAll(() => limited?.stop());

  const ids = async () => {
    const { stdout } = await gnnctlOf(limited, 'job', 'list', '-o', 'name');
    return stdout.trim().split('\n');
  };

  test('gc --dry-run removes nothing; gc removes exactly what it said', async () => {
    for (const id of ['first', 'second']) {
      await limited.createJob(id, spec(1));
      await limited.succeeded(id);
    }
    const said = await gnnctlOf(limited, 'gc', '--dry-run');
    expect(said.exitCode).toBe(0);
    expect(said.stdout).toMatch(/^JOB\tjobs\/first\t\d+\tthe last 1 jobs ended stay/m);
    expect(said.stdout).toMatch(/^EVENTS\t\d+ events, up to revision \d+\t\d+\t/m);
    expect(said.stderr).toMatch(/^2 things, .+; nothing was removed\n$/);
    expect(await ids()).toEqual(['jobs/second', 'jobs/first']);
    const done = await gnnctlOf(limited, 'gc');
    expect(done.stdout).toBe(said.stdout);
    expect(done.stderr).toMatch(/^removed 2 things/);
    expect(await ids()).toEqual(['jobs/second']);
    expect(readdirSync(join(limited.folder, 'state', 'jobs'))).toHaveLength(1);
    expect(await limited.scrape()).toContain('gnnd_retention_removed_total{kind="JOB"} 1');
  });

  test('a watch that resumes before the horizon begins anew, by itself', async () => {
    const real = createApiClient(limited.address);
    const asked: bigint[] = [];
    const apart = { resources: { devices: 1 } }; // so that both run
    const client: typeof real = {
      ...real,
      async *stream(method, request, options) {
        asked.push((request as { readonly startRevision: bigint }).startRevision);
        if (asked.length === 2) {
          // While the connection is lost, others make history.
          await limited.createJob('third', { ...spec(1), ...apart });
          await limited.succeeded('third');
          expect((await gnnctlOf(limited, 'gc')).exitCode).toBe(0);
        }
        for await (const event of real.stream(method, request, options)) {
          yield event;
          if (asked.length === 1) return;
        }
      },
    };
    await limited.createJob('long', { ...spec(100_000), ...apart });
    const abort = new AbortController();
    const watch = watchJob(client, 'jobs/long', { signal: abort.signal, nowMs: () => 0 });
    const kinds: string[] = [];
    for await (const update of watch) {
      if (update.kind !== 'event') throw new Error('the watch was lost');
      kinds.push(WatchType[update.response.type]);
      if (kinds.length === 2) break;
    }
    expect(kinds).toEqual(['SNAPSHOT', 'SNAPSHOT']);
    expect(asked).toEqual([0n, expect.any(BigInt), 0n]);
    expect(asked[1]).toBeGreaterThan(0n);
    const call = { name: 'jobs/long', startRevision: asked[1] ?? 0n };
    const refused = real.stream(JobService.method.watchJob, call, { signal: abort.signal });
    await expect(refused[Symbol.asyncIterator]().next()).rejects.toMatchObject({
      reason: 'REVISION_COMPACTED',
    });
    real.close();
  });
});
