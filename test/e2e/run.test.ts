import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { temporaryFolder } from '../support/at-end.ts';
import { executorPids, repository } from '../support/daemon.ts';
import { until } from '../support/until.ts';

/** `gnnd run`: what an engine starts, stops and starts again. */

const folder = temporaryFolder('gnnd-run-test-');

beforeAll(() => {
  const spec = 'spec:\n  dataset: cora\n  training: {epochs: 60, batch_size: 20}\n';
  writeFileSync(join(folder, 'job.yaml'), spec);
});

interface Running {
  readonly process: ChildProcess;
  /** All that it has said so far. */
  readonly said: () => string;
}

function start(state: string, ...more: string[]): Running {
  return startWith(join(repository, 'test', 'fixtures', 'cora.npz'), state, more);
}

function startWith(source: string, state: string, more: readonly string[] = []): Running {
  const args = ['run', '-f', 'job.yaml', '--state-dir', state, '--cpu-devices', '2', ...more];
  const script = join(repository, 'dist', 'main.js');
  const process = spawn('node', [script, ...args, '--import', source], { cwd: folder });
  let said = '';
  for (const stream of [process.stdout, process.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
  }
  return { process, said: () => said };
}

async function ended({ process, said }: Running): Promise<{ code: number | null; said: string }> {
  if (process.exitCode === null && process.signalCode === null) await once(process, 'close');
  return { code: process.exitCode, said: said() };
}

/** Until it has said such a thing. */
async function says(running: Running, what: RegExp): Promise<void> {
  await until(() => {
    if (running.process.exitCode !== null) throw new Error(running.said());
    return what.test(running.said());
  });
}

function digestIn(state: string): string {
  const jobs = join(folder, state, 'jobs');
  const [job = ''] = readdirSync(jobs);
  const file = join(jobs, job, 'checkpoint', 'last.safetensors');
  return createHash('sha256').update(readFileSync(file)).digest('hex');
}

describe('gnnd run', () => {
  test('goes on after a signal and after SIGKILL, to the model of an undisturbed run', async () => {
    const undisturbed = await ended(start('whole'));
    expect(undisturbed).toMatchObject({ code: 0, said: expect.stringContaining('SUCCEEDED') });

    const stopped = start('parts');
    await says(stopped, /epoch +2\//);
    const pid = stopped.process.pid ?? 0;
    stopped.process.kill('SIGTERM');
    expect(await ended(stopped)).toMatchObject({
      code: 130,
      said: expect.stringContaining('the same command goes on with it'),
    });
    expect(executorPids(pid)).toEqual([]);

    const killed = start('parts');
    await says(killed, /it goes on[\s\S]*RUNNING, training[\s\S]*epoch/);
    killed.process.kill('SIGKILL');
    expect(await ended(killed)).toMatchObject({ code: null });

    expect(await ended(start('parts'))).toMatchObject({ code: 0 });
    expect(digestIn('parts')).toBe(digestIn('whole'));
    // Once more, as an engine does that did not hear of the end.
    expect(await ended(start('parts'))).toMatchObject({ code: 0 });
  });

  test('leaves a job of another spec alone, and says what is wrong with one', async () => {
    expect(await ended(start('other', '--set', 'training.epochs=1'))).toMatchObject({ code: 0 });
    const other = await ended(start('other'));
    expect(other).toMatchObject({ code: 5, said: expect.stringContaining('from another spec') });
    const wrong = await ended(start('wrong', '--set', 'training.epochs=0'));
    expect(wrong).toMatchObject({ code: 3, said: expect.stringContaining('training.epochs') });
  });

  test('ends with the exit code of a job that failed', async () => {
    const failed = await ended(start('failed', '--set', 'timeouts.run_ms=1'));
    expect(failed).toMatchObject({ code: 10, said: expect.stringContaining('RUN_TIMEOUT') });
  });

  test('says what an import noticed, and which dataset is too wide to learn from', async () => {
    const columns = 2 ** 18 + 1;
    const names = Array.from({ length: columns }, (_, at) => `x${at}`).join(',');
    const rows = [1, 2, 3].map((id) => `${id},1,train${',0'.repeat(columns)}`);
    const wide = mkdtempSync(join(folder, 'wide-'));
    writeFileSync(join(wide, 'nodes.csv'), [`id,label,split,${names}`, ...rows, ''].join('\n'));
    writeFileSync(join(wide, 'edges.csv'), 'source,target\n1,2\n');
    const { code, said } = await ended(startWith(wide, 'wide'));
    expect(code).toBe(3);
    expect(said).toMatch(/^notice: class 0 has no node: /m);
    expect(said).toContain(
      'spec.dataset: cora has 262,145 features, a model takes at most 262,144',
    );
  });
});
