import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { repository } from '../support/daemon.ts';
import { skipped } from '../support/skipped.ts';
import { frozen, until } from '../support/until.ts';

/** Who watches the daemon's loop: a thread of its own, and systemd. */

const limits = { limitMs: 800, beatMs: 50 };

/** Stands still for a while when it is told to, then goes on, and ends when its input does. */
const program = `
  const { watchLoop } = await import(process.argv[1]);
  const { loadCore } = await import(process.argv[2]);
  const { createLog } = await import(process.argv[3]);
  const log = createLog({ level: 'info' });
  const limits = ${JSON.stringify(limits)};
  const manager = watchLoop({ native: loadCore(), log, env: process.env, ...limits });
  manager.ready();
  process.stdout.write('ready\\n');
  const still = new Int32Array(new SharedArrayBuffer(4));
  for await (const chunk of process.stdin) {
    if (String(chunk).includes('stand still')) Atomics.wait(still, 0, 0, 3000);
    process.stdout.write('went on\\n');
  }
  manager.stopping();
`;
/** Prints what a service tells systemd, which it plays. */
const listener = `
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
print('bound', flush=True)
while True:
    print(s.recv(4096).decode(), flush=True)
`;

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0).reverse()) end();
});

class Told {
  text = '';
  readonly child: ChildProcess;

  constructor(child: ChildProcess) {
    this.child = child;
    const hear = (chunk: Buffer) => {
      this.text += chunk;
    };
    child.stdout?.on('data', hear);
    child.stderr?.on('data', hear);
    ends.push(() => child.kill('SIGKILL'));
  }
  count(words: string): number {
    return this.text.split(words).length - 1;
  }
  async says(words: string, times = 1): Promise<void> {
    await until(() => this.count(words) >= times);
  }
}

function startWatched(env: NodeJS.ProcessEnv = {}): Told {
  const module = (path: string) => pathToFileURL(join(repository, 'dist', path)).href;
  const modules = ['service-manager.js', 'native/load.js', 'base/log.js'].map(module);
  const args = ['--input-type=module', '-e', program, ...modules];
  return new Told(spawn(process.execPath, args, { env: { ...process.env, ...env } }));
}

test('a loop that stands still is told of once, and once more when it goes on', async () => {
  const watched = startWatched();
  await watched.says('ready');
  for (const times of [1, 2]) {
    watched.child.stdin?.write('stand still\n');
    await watched.says('daemon.loop_blocked', times);
    expect(watched.count('went on')).toBe(times - 1);
    await watched.says('daemon.loop_resumed', times);
  }
  watched.child.stdin?.end();
  await once(watched.child, 'exit');
  expect(watched.count('daemon.loop_blocked')).toBe(2);
});

test('a process that was stopped has not stood still', async () => {
  const watched = startWatched();
  await watched.says('ready');
  await frozen([watched.child.pid ?? 0], 1.5 * limits.limitMs);
  watched.child.stdin?.write('go\n');
  await watched.says('daemon.loop_resumed');
  watched.child.stdin?.end();
  await once(watched.child, 'exit');
  expect(watched.count('daemon.loop_blocked')).toBe(0);
});

test('systemd hears of the start, of a loop that goes round, and of the stop', async () => {
  if (spawnSync('python3', ['--version']).error !== undefined) {
    skipped('what systemd hears', 'there is no python3 to play it');
    return;
  }
  const folder = mkdtempSync(join(tmpdir(), 'gnnd-notify-'));
  ends.push(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'notify');
  const systemd = new Told(spawn('python3', ['-c', listener, path]));
  await systemd.says('bound');
  const watched = startWatched({ NOTIFY_SOCKET: path, WATCHDOG_USEC: '60000000' });
  await systemd.says('READY=1');
  await systemd.says('WATCHDOG=1', 3);
  watched.child.stdin?.write('stand still\n');
  await watched.says('daemon.loop_blocked');
  const before = systemd.count('WATCHDOG=1');
  await watched.says('went on');
  await systemd.says('WATCHDOG=1', before + 3);
  watched.child.stdin?.end();
  await systemd.says('STOPPING=1');
  expect(systemd.text.indexOf('READY=1')).toBeLessThan(systemd.text.indexOf('WATCHDOG=1'));
});
