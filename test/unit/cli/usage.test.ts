import { Command } from 'commander';
import { expect, test } from 'vitest';
import { runCli } from '../../../src/cli/program.ts';
import { explainUsage } from '../../../src/cli/read/usage.ts';
import { createTestIo } from './test-io.ts';

async function saidOf(line: string): Promise<string> {
  const io = createTestIo();
  expect(await runCli(line.split(' '), io.io), line).toBe(2);
  return io.stderr();
}

test.each([
  ['jbo list', 'job'],
  ['jobs list', 'job'],
  ['job lst', 'list'],
  ['job creat -f a', 'create'],
  ['dataset improt x', 'import'],
  ['import x', 'gnnctl dataset import'],
  ['drain cpu:0', 'gnnctl device drain'],
  ['job create --dryrun', '--dry-run'],
  ['job create --flie a', '--file'],
  ['cache report x --seed 1', '--random-seed'],
  ['job list --adress unix:/a', '--address'],
  ['checkpoint export a b --which bets', 'best'],
  ['predict a --outputs logit', 'logits'],
  ['job create job.yaml', 'gnnctl job create -f FILE'],
  ['job list --state RUNING', 'RUNNING'],
  ['job list -o jsn', 'json'],
  ['dataset import x --format parket', 'parquet'],
  ['dataset import x --task multilabel', 'multi_label'],
])('gnnctl %s: did you mean %s?', async (line, meant) => {
  expect(await saidOf(line)).toContain(`(did you mean ${meant}?)`);
});

test.each(['xyzzy', 'job get', 'job list -x'])('gnnctl %s: nothing is near', async (line) => {
  expect(await saidOf(line)).not.toContain('did you mean');
});

test('commands of any program are explained, and once', () => {
  let said = '';
  const program = new Command('p').exitOverride().configureOutput({
    writeErr: (text) => {
      said += text;
    },
  });
  program.command('serve').option('--state-dir <folder>');
  explainUsage(program);
  expect(() => program.parse(['serve', '--sate-dir', 'a'], { from: 'user' })).toThrow('--sate-dir');
  expect(said).toBe("error: unknown option '--sate-dir'\n(did you mean --state-dir?)\n");
});
