import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, test } from 'vitest';
import { JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import {
  type DaemonOptions,
  executorPids,
  repository,
  spawnDaemon,
  TestDaemon,
} from '../support/daemon.ts';
import { skipped } from '../support/skipped.ts';
import { until } from '../support/until.ts';

/** What a daemon finds around it: streams that nobody reads, signals and variables of others. */

const daemons: TestDaemon[] = [];

async function started(options: DaemonOptions): Promise<TestDaemon> {
  const daemon = await TestDaemon.start(options);
  daemons.push(daemon);
  return daemon;
}

afterEach(async () => {
  for (const daemon of daemons.splice(0)) await daemon.stop();
});

const cora = join(repository, 'test', 'fixtures', 'cora.npz');
const spec = (epochs: number) => ({
  dataset: 'cora',
  model: { hiddenDim: 16 },
  sampling: { fanouts: [5, 5] },
  training: { epochs, batchSize: 20 },
  resources: { devices: 1 },
});

/** Each is a line of the log, of some 300 bytes. */
async function fillLog(daemon: TestDaemon, lines: number): Promise<void> {
  const name = `jobs/${'x'.repeat(60)}`;
  const calls = Array.from({ length: lines }, () =>
    daemon.call(JobService.method.cancelJob, { name }).catch(() => {}),
  );
  await Promise.all(calls);
}

describe('a log that cannot be written', () => {
  const streams = {
    'whose reader is gone': 'exec 2> >(head -n 1 >/dev/null)',
    'whose disk is full': 'exec 2>/dev/full',
    'that is closed': 'exec 2>&-',
  };
  test.each(Object.entries(streams))('%s ends neither daemon nor job', async (_, before) => {
    const daemon = await started({ before, cpuDevices: 1 });
    await daemon.import('cora', cora);
    await fillLog(daemon, 30);
    await daemon.train('job', spec(2));
    expect(await daemon.kill('SIGTERM')).toBe(0);
  });

  test('nor does an output that nobody reads any more', async () => {
    const daemon = await started({ before: 'exec > >(head -n 1)', cpuDevices: 1 });
    await daemon.import('cora', cora);
    expect(await daemon.kill('SIGTERM')).toBe(0);
  });

  test('keeps nobody waiting while its reader stalls, and is whole when that goes on', async () => {
    const daemon = await started({ cpuDevices: 1 });
    daemon.process.stderr?.pause();
    const lines = 600;
    await fillLog(daemon, lines);
    await daemon.import('cora', cora);
    expect(daemon.logs.split('api.audit').length - 1).toBeLessThan(lines);
    daemon.process.stderr?.resume();
    expect(await daemon.kill('SIGTERM')).toBe(0);
    const logged = daemon.logs.trim().split('\n');
    const told = logged.map((line) => JSON.parse(line).msg);
    expect(told.filter((msg) => msg === 'api.audit').length).toBeGreaterThanOrEqual(lines);
    expect(told.at(-1)).toBe('daemon.stopped');
  });
});

/** TCP ports that a process listens on, by /proc. */
function portsOf(pid: number): readonly number[] {
  const folder = `/proc/${pid}/fd`;
  const sockets = new Set(
    readdirSync(folder).map((fd) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(join(folder, fd)))?.[1];
      } catch {
        return undefined;
      }
    }),
  );
  const listening = '0A';
  return ['tcp', 'tcp6'].flatMap((name) =>
    readFileSync(`/proc/${pid}/net/${name}`, 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .filter((words) => words[3] === listening && sockets.has(words[9]))
      .map((words) => Number.parseInt(words[1]?.split(':')[1] ?? '', 16)),
  );
}

/** Waits until a plain Node that gets the same signal, only later, has opened its debugger. */
async function untilOthersOpen(): Promise<void> {
  const runs = "console.log('runs'); setInterval(() => {}, 2 ** 30)";
  const other = spawn(process.execPath, ['--inspect-port=0', '-e', runs]);
  await once(other.stdout, 'data');
  other.kill('SIGUSR1');
  await until(() => portsOf(other.pid ?? 0).length > 0);
  other.kill('SIGKILL');
}

describe('nobody gets a debugger, nor a core file', () => {
  const inspected = {
    'by a signal': {},
    'by NODE_OPTIONS': { NODE_OPTIONS: '--inspect=0' },
    'by NODE_OPTIONS of another form': { NODE_OPTIONS: '--inspect-port=0 --inspect' },
  };
  test.each(Object.entries(inspected))('%s', async (_, env) => {
    const before = 'ulimit -S -c $(ulimit -H -c)';
    const daemon = await started({ cpuDevices: 1, env, before });
    const own = [Number(daemon.metrics.split(':').at(-1))];
    await daemon.import('cora', cora);
    await daemon.createJob('job', spec(5000));
    await daemon.until('job', ({ state }) => state === JobState.RUNNING);
    const children = executorPids(daemon.pid);
    expect(children.length).toBeGreaterThan(0);
    for (const pid of [daemon.pid, ...children]) process.kill(pid, 'SIGUSR1');
    await untilOthersOpen();
    expect(portsOf(daemon.pid)).toEqual(own);
    expect(executorPids(daemon.pid)).toEqual(children);
    for (const pid of children) {
      expect(portsOf(pid)).toEqual([]);
      expect(readFileSync(`/proc/${pid}/environ`, 'utf8')).not.toMatch(/NODE_OPTIONS/);
      expect(readFileSync(`/proc/${pid}/limits`, 'utf8')).toMatch(/^Max core file size +0 /m);
    }
    expect(daemon.logs.includes('daemon.debugger_closed')).toBe('NODE_OPTIONS' in env);
  });
});

test.each(['000', '077'])(
  'with a umask of %s modes are those that are documented',
  async (umask) => {
    const daemon = await started({ cpuDevices: 1, before: `umask ${umask}` });
    await daemon.import('cora', cora);
    await daemon.train('job', spec(2));
    const root = daemon.folder;
    const modes = readdirSync(root, { recursive: true })
      .map(String)
      .filter((path) => path === 'gnnd.sock' || path.startsWith('state'))
      // What the daemon puts in place by a rename may be gone by now.
      .flatMap((path) => {
        const stats = lstatSync(join(root, path), { throwIfNoEntry: false });
        return stats === undefined ? [] : [{ path, stats }];
      });
    const wrong = modes.filter(({ stats }) => {
      const mode = stats.mode & 0o777;
      if (stats.isSocket()) return mode !== 0o660;
      if (stats.isDirectory()) return mode !== 0o750;
      return ![0o640, 0o440, 0o600].includes(mode);
    });
    expect(wrong.map(({ path, stats }) => [path, (stats.mode & 0o777).toString(8)])).toEqual([]);
    expect(modes.some(({ path }) => path.endsWith('last.safetensors'))).toBe(true);
  },
);

test('a user that nobody knows, without a home, reads what is wrong and no stack', () => {
  if (process.getuid?.() !== 0) {
    skipped('a user without a name', 'only root becomes another user');
    return;
  }
  const who = {
    uid: 54321,
    gid: 54321,
    env: { PATH: process.env['PATH'] },
    encoding: 'utf8',
  } as const;
  const call = (...words: string[]) => spawnSync(process.execPath, words, who);
  const main = join(repository, 'dist', 'main.js');
  expect(call(main, 'config', 'print').stdout).toContain(
    'state_dir: /.local/state/gnnd  # default',
  );
  const serve = call(main, 'serve');
  expect(serve.stderr).toMatch(/^gnnd: the state directory \/.local\/state\/gnnd cannot be used/);
  expect(serve.status).toBe(73);
  const client = call(join(repository, 'dist', 'cli', 'main.js'), 'job', 'list');
  expect(client.stderr).toMatch(/^error: cannot reach gnnd at unix:\/run\/gnnd\/gnnd.sock/);
  expect(client.status).toBe(8);
});

test('a file of a source that leads out of sources_dir is not read', async () => {
  const top = mkdtempSync(join(tmpdir(), 'gnnd-sources-'));
  const allowed = join(top, 'allowed');
  mkdirSync(allowed);
  const daemon = await started({ datasets: ['cora'], flags: ['--sources-dir', allowed] });
  // A dataset's own folder is one of .npy files.
  const source = join(allowed, 'graph');
  cpSync(join(daemon.folder, 'state', 'datasets', 'cora'), source, { recursive: true });
  await daemon.import('whole', source);
  renameSync(join(source, 'features.npy'), join(top, 'secret.npy'));
  symlinkSync('../../secret.npy', join(source, 'features.npy'));
  await expect(daemon.import('leak', source)).rejects.toThrow(/features\.npy.*leads out of/);
  rmSync(top, { recursive: true, force: true });
});

describe('ports that are taken for others', () => {
  test('of metrics: a second daemon names what has to be another one', async () => {
    const daemon = await started({ cpuDevices: 1 });
    const folder = join(daemon.folder, 'second');
    const second = spawnDaemon(folder, { flags: ['--metrics-listen', daemon.metrics] });
    const [said] = await Promise.all([
      text(second.stderr ?? Readable.from([])),
      once(second, 'exit'),
    ]);
    expect(second.exitCode).toBe(71);
    expect(said).toContain(`cannot listen on metrics_listen ${daemon.metrics}: `);
    expect(said).toContain('--metrics-listen 127.0.0.1:0 takes a free port');
    // The advice of the message works.
    const flags = ['--metrics-listen', '127.0.0.1:0'];
    expect((await started({ folder, flags })).metrics).not.toBe(daemon.metrics);
  });

  test('of metrics: gnnctl says what it reached', async () => {
    const daemon = await started({ cpuDevices: 1 });
    const client = join(repository, 'dist', 'cli', 'main.js');
    const words = [client, '--address', daemon.metrics, 'job', 'list'];
    const { stderr, status } = spawnSync(process.execPath, words, { encoding: 'utf8' });
    const where = `gRPC is served at ${daemon.address}`;
    expect(stderr).toBe(`error: this is gnnd's metrics_listen, for HTTP; ${where}\n`);
    expect(status).toBe(1);
  });
});

test('a state directory without its store says so, and which jobs have left folders', async () => {
  const before = await started({ datasets: ['cora'], cpuDevices: 1 });
  const { uid } = await before.train('job', spec(2));
  await before.stop(true);
  daemons.length = 0;
  rmSync(join(before.folder, 'state', 'store'), { recursive: true });
  const after = await started({ folder: before.folder, cpuDevices: 1 });
  const folder = join(after.folder, 'state', 'jobs', uid);
  const client = join(repository, 'dist', 'cli', 'main.js');
  const words = [client, '--address', after.address, 'gc'];
  const { stderr, status } = spawnSync(process.execPath, words, { encoding: 'utf8' });
  expect([status, stderr]).toEqual([
    0,
    expect.stringContaining(`by hand what is not wanted:\n  ${folder}\n`),
  ]);
  expect(await after.kill('SIGTERM')).toBe(0);
  const lines = after.logs.split('\n').filter((line) => line !== '');
  const warned = lines.map((line) => JSON.parse(line)).filter(({ lvl }) => lvl === 'warn');
  // The first daemon found its dataset without a store.
  expect(warned).toMatchObject([
    { msg: 'store.missing', jobs: 0, datasets: 1 },
    { msg: 'store.missing', jobs: 1, datasets: 1 },
    { msg: 'jobs.orphans', count: 1, folders: [folder] },
  ]);
  expect(readdirSync(join(folder, 'checkpoint'))).toContain('last.safetensors');
});
