import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { beforeAll, expect, test } from 'vitest';
import { runCli } from '../../src/cli/program.ts';
import { commandsIn } from '../support/advice.ts';
import { temporaryFolder } from '../support/at-end.ts';
import { wordsOf } from '../support/commands.ts';
import { repository, TestDaemon } from '../support/daemon.ts';
import { createTestIo } from '../unit/cli/test-io.ts';

/** What messages advise is typed as they say it, and is of use. */

let daemon: TestDaemon;
/** A shell has to quote its name. */
const folder = temporaryFolder('gnnd advice-');

beforeAll(async () => {
  daemon = await TestDaemon.start({ datasets: ['cora'] });
  const spec = [
    'dataset: cora',
    'model: {type: GCN, hidden_dim: 8}',
    'sampling: {fanouts: [2, 2]}',
    'training: {epochs: 1, batch_size: 70}',
    'resources: {devices: 1}',
  ];
  writeFileSync(join(folder, 'job.yaml'), spec.join('\n'));
  const made = await gnnctl(['job', 'create', '-f', 'job.yaml', '--id', 'first', '--wait']);
  expect(made.exitCode, made.said).toBe(0);
});

/** Names of files are those of the test's folder. */
async function gnnctl(words: readonly string[], address = daemon.address) {
  const io = createTestIo();
  const given = words.map((word) => (/^[\w ]+\.\w+$/.test(word) ? join(folder, word) : word));
  const exitCode = await runCli(['--address', address, ...given], io.io);
  return { exitCode, said: io.stderr() };
}

/** The commands of gnnctl in a message, with what this daemon has in place of capitals. */
function advisedBy(said: string): readonly (readonly string[])[] {
  const values = new Map([
    ['DATASET', 'cora'],
    ['JOB', 'first'],
    ['FILE', 'job.yaml'],
  ]);
  return said
    .split('\n')
    .flatMap(commandsIn)
    .filter(({ line }) => line.startsWith('gnnctl '))
    .map(({ line }) => wordsOf(line).slice(1))
    .map((words) => words.map((word) => values.get(word) ?? word));
}

// Those that delete something come last.
test.each<readonly [string, readonly string[], readonly string[]]>([
  ['no spec file', ['job', 'create'], ['job create', 'init cora', 'dataset list']],
  ['a spec file that is not there', ['job', 'create', '-f', 'none.yaml'], ['init cora']],
  ['a job that was created', ['job', 'create', '-f', 'job.yaml'], ['job watch']],
  [
    'a job file that was written',
    ['init', 'cora', '--file', 'new one.yaml'],
    ['job create', 'job suggest'],
  ],
  ['ways to train', ['job', 'suggest', 'cora'], ['job get first']],
  [
    'a key of another library',
    ['job', 'create', '-f', 'job.yaml', '--set', 'training.pretrained=a'],
    ['job create --from first@best'],
  ],
  ['an argument without its flag', ['job', 'create', 'job.yaml'], ['job create -f']],
  ['predictions of a training', ['job', 'predictions', 'first', 'new'], ['predict first']],
  ['a job id that is taken', ['job', 'create', '-f', 'job.yaml', '--id', 'first'], ['job delete']],
])('%s: what is advised succeeds', async (_, words, advised) => {
  const { said } = await gnnctl(words);
  const commands = advisedBy(said.replaceAll('JOB@', 'first@'));
  const shown = commands.map((command) => command.join(' '));
  expect(shown, said).toEqual(advised.map((start) => expect.stringMatching(`^${start}`)));
  for (const command of commands) {
    const output = command[0] === 'init' ? [...command, '--file', 'made.yaml', '--force'] : command;
    const answer = await gnnctl(output);
    expect([command.join(' '), answer.exitCode, answer.said]).toEqual([
      command.join(' '),
      0,
      answer.said,
    ]);
  }
});

test('what secures an address makes a token as it is typed', async () => {
  const gnnd = (words: readonly string[]) =>
    spawnSync(process.execPath, [join(repository, 'dist', 'main.js'), ...words], {
      env: { ...process.env, GNND_STATE_DIR: join(folder, 'state') },
      encoding: 'utf8',
    });
  const { stderr } = gnnd(['serve', '--listen', '0.0.0.0:4444']);
  const [advice] = commandsIn(stderr);
  expect(advice?.line).toMatch(/^gnnd token create NAME --role \w+$/);
  const { status, stdout } = gnnd(wordsOf(advice?.line ?? '').slice(1));
  expect([status, stdout.length > 20]).toEqual([0, true]);
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

test.each([
  ['a socket whose folder is not there yet', () => `unix:${join(folder, 'new', 'gnnd.sock')}`],
  ['TCP of this host', async () => `localhost:${await freePort()}`],
])('%s: the daemon that is advised starts, and answers there', async (_, addressOf) => {
  const address = await addressOf();
  const { exitCode, said } = await gnnctl(['job', 'list'], address);
  expect(exitCode).toBe(8);
  const [, command = ''] = /start one: +(npx gnnd .*)/.exec(said) ?? [];
  const env = {
    ...process.env,
    // Beside the daemons of others, and theirs.
    GNND_STATE_DIR: join(folder, 'state'),
    GNND_METRICS_LISTEN: '127.0.0.1:0',
    GNND_CUDA_DEVICES: 'none',
  };
  const child = spawn('bash', ['-c', `exec ${command}`], {
    cwd: repository,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const [line] = await once(createInterface({ input: child.stdout }), 'line');
    expect(JSON.parse(line)).toMatchObject({ msg: 'daemon.ready' });
    expect((await gnnctl(['job', 'list'], address)).exitCode).toBe(0);
  } finally {
    // npx has a child, the daemon: both are in the group of their own.
    process.kill(-(child.pid ?? 0), 'SIGTERM');
    await once(child, 'exit');
  }
});
