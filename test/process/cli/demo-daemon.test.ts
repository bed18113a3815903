import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startDemoDaemon } from '../../../src/cli/demo/demo-daemon.ts';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gnnctl-demo-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Starts a script in place of the daemon. */
function start(script: string, signal = new AbortController().signal) {
  const path = join(folder, 'main.mjs');
  writeFileSync(path, script);
  return startDemoDaemon({ script: path, args: [folder], logFile: join(folder, 'log'), signal });
}

const ready = 'console.log(JSON.stringify({msg: "daemon.ready", metrics: "127.0.0.1:9"}));';

test('a daemon is there once it says so, and stopped by SIGTERM', async () => {
  const daemon = await start(
    `import { writeFileSync } from 'node:fs';
     process.on('SIGTERM', () => {
      writeFileSync(process.argv[3] + '/stopped', '');
      process.exit();
    });
     console.log('no JSON');
     ${ready}
     setInterval(() => {}, 1000);`,
  );
  expect(daemon.metrics).toBe('127.0.0.1:9');
  await daemon.stop();
  expect(existsSync(join(folder, 'stopped'))).toBe(true);
  await daemon.stop();
});

test('a daemon that ends before it is ready is told with the end of its log', async () => {
  await expect(start('console.error("state dir is locked"); process.exit(73);')).rejects.toThrow(
    /ended before it was ready.*state dir is locked/s,
  );
});

test('an interrupt while it starts leaves no process behind', async () => {
  const abort = new AbortController();
  const starting = start(
    `import { renameSync, writeFileSync } from 'node:fs';
     // The file appears whole: an empty one would read as process 0, which is always there.
     writeFileSync(process.argv[3] + '/pid.part', String(process.pid));
     renameSync(process.argv[3] + '/pid.part', process.argv[3] + '/pid');
     setInterval(() => {}, 1000);`,
    abort.signal,
  );
  await expect.poll(() => existsSync(join(folder, 'pid'))).toBe(true);
  abort.abort(new Error('enough'));
  await expect(starting).rejects.toThrow('enough');
  const pid = Number(readFileSync(join(folder, 'pid'), 'utf8'));
  expect(() => process.kill(pid, 0)).toThrow('ESRCH');
});
