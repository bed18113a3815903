import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as later } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { repository } from '../support/daemon.ts';
import { writeLargeGraph } from '../support/large-graph.ts';
import { skipped } from '../support/skipped.ts';

/**
 * deploy/gnnd.service under a real systemd, the first process of namespaces of its own: with all
 * that the unit takes away, gnnd trains, is watched, starts again and stops. As root.
 */

const systemd = '/lib/systemd/systemd';
const canRun = process.getuid?.() === 0 && existsSync(systemd);
let folder = '';
let machine: ChildProcess | undefined;
let init = 0;

beforeAll(async () => {
  if (!canRun) return;
  folder = mkdtempSync(join(tmpdir(), 'gnnd-systemd-'));
  const script = (name: string) => join(repository, 'test', 'support', name);
  const namespaces = ['--mount', '--pid', '--fork', '--uts', '--ipc', '--cgroup', '--kill-child'];
  const graph = join(folder, 'graph');
  writeLargeGraph(graph, { numNodes: 20_000, degree: 8, features: 16 });
  const own = join(folder, 'machine');
  mkdirSync(own);
  const prepared = [script('systemd-clone.sh'), repository, graph];
  machine = spawn('unshare', [...namespaces, script('systemd.sh'), own, '/', ...prepared]);
  let said = '';
  for (const stream of [machine.stdout, machine.stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      said += chunk;
    });
  }
  while (init === 0 || !inside('test', '-S', '/run/systemd/private').isOk) {
    if (machine.exitCode !== null) throw new Error(`systemd does not start: ${said}`);
    await later(100);
    init = childOf(machine.pid ?? 0);
  }
}, 60_000);

afterAll(() => {
  machine?.kill('SIGKILL');
  if (folder !== '') rmSync(folder, { recursive: true, force: true });
});

/** The child of unshare: the first process of the namespaces. */
function childOf(pid: number): number {
  const path = `/proc/${pid}/task/${pid}/children`;
  return existsSync(path) ? Number(readFileSync(path, 'utf8').trim().split(' ')[0] || 0) : 0;
}

function inside(...command: readonly string[]) {
  const enter = ['-t', String(init), '-m', '-p', '-u', '-i', '-C', ...command];
  const { status, stdout, stderr } = spawnSync('nsenter', enter, { encoding: 'utf8' });
  return { isOk: status === 0, text: stdout + stderr };
}

function property(name: string): string {
  return inside('systemctl', 'show', '-p', name, '--value', 'gnnd').text.trim();
}

async function until(name: string, value: string): Promise<void> {
  const endsAt = Date.now() + 60_000;
  while (property(name) !== value) {
    if (Date.now() > endsAt) {
      const { text } = inside('systemctl', 'status', '--no-pager', '-n', '30', 'gnnd');
      throw new Error(`${name} is ${property(name)}, not ${value}: ${text}`);
    }
    await later(200);
  }
}

function gnnctl(...words: readonly string[]) {
  const cli = join(repository, 'dist', 'cli', 'main.js');
  const address = ['--address', 'unix:/run/gnnd/gnnd.sock'];
  return inside(process.execPath, cli, ...address, ...words);
}

describe.skipIf(!canRun)('the unit under systemd', () => {
  test('is started once gnnd serves, under all that the unit takes away', async () => {
    await until('ActiveState', 'active');
    expect(gnnctl('host', 'status').isOk).toBe(true);
    const pid = property('MainPID');
    const status = inside('cat', `/proc/${pid}/status`).text;
    expect(status).toMatch(/^NoNewPrivs:\s+1$/m);
    expect(status).toMatch(/^CapBnd:\s+0+$/m);
    expect(status).toMatch(/^Seccomp:\s+2$/m);
  }, 90_000);

  test('a job trains there, and its executors are confined', () => {
    const spec = {
      dataset: 'graph',
      model: { type: 'GRAPHSAGE', hidden_dim: 16 },
      sampling: { fanouts: [10, 5] },
      training: { epochs: 3 },
    };
    inside('sh', '-c', `cat > /tmp/spec.yaml <<'E'\n${stringify(spec)}\nE`);
    const imported = gnnctl('dataset', 'import', '/srv/graph', '--id', 'graph');
    expect(imported.isOk, imported.text).toBe(true);
    const job = gnnctl('job', 'create', '-f', '/tmp/spec.yaml', '--id', 'under', '--wait');
    expect(job.isOk, job.text).toBe(true);
    expect(gnnctl('job', 'logs', 'under').text).toContain('"confined":true');
  }, 120_000);

  test('a daemon whose loop stands still is ended and started again', async () => {
    const pid = property('MainPID');
    inside('kill', '-STOP', pid);
    await until('NRestarts', '1');
    await until('ActiveState', 'active');
    expect(property('MainPID')).not.toBe(pid);
    expect(gnnctl('job', 'get', 'under').text).toContain('SUCCEEDED');
  }, 120_000);

  test('stops in order, and leaves nothing', async () => {
    expect(inside('systemctl', 'stop', 'gnnd').isOk).toBe(true);
    expect([property('ActiveState'), property('Result')]).toEqual(['inactive', 'success']);
    expect(inside('pgrep', '-u', 'gnnd').text).toBe('');
  }, 150_000);
});

test.skipIf(canRun)('the unit under systemd', () => {
  skipped('gnnd.service', 'this is not root, or there is no systemd');
});
