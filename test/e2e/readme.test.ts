import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { temporaryFolder } from '../support/at-end.ts';
import { repository, TestDaemon } from '../support/daemon.ts';

/** README's "Your own job", command by command, as somebody types it. */

let daemon: TestDaemon;
const folder = temporaryFolder('gnnd-readme-');

beforeAll(async () => {
  daemon = await TestDaemon.start();
});

test('the commands of the README do what it says', () => {
  const readme = readFileSync(join(repository, 'README.md'), 'utf8');
  const part = readme.split('\n## Your own job\n')[1]?.split('\n## ')[0] ?? '';
  const spec = /```yaml\n(.*?)```/s.exec(part)?.[1] ?? '';
  writeFileSync(join(folder, 'job.yaml'), spec.replace('epochs: 200', 'epochs: 20'));
  const lines = [...part.matchAll(/^ {4}npx gnnctl (.*?)(?: +#.*)?$/gm)].map(
    ([, words = '']) => words,
  );
  expect(lines.map((line) => line.split(' ').slice(0, 2).join(' '))).toEqual([
    ...['dataset import', 'job create', 'job plan', 'page', 'checkpoint export'],
  ]);
  const main = join(repository, 'dist', 'cli', 'main.js');
  const said = lines.map((line) =>
    execFileSync(process.execPath, [main, ...line.replace('$PWD', repository).split(' ')], {
      cwd: folder,
      env: { ...process.env, GNND_ADDRESS: daemon.address },
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    }),
  );
  expect(said[1]).toMatch(/SUCCEEDED/);
  expect(said[3]).toMatch(/http:\/\/127\.0\.0\.1:\d+\//);
  for (const name of ['model.safetensors', 'predictions.npy', 'export.json']) {
    expect(existsSync(join(folder, 'model', name)), name).toBe(true);
  }
});
