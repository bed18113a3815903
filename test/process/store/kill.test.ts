import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { operationsOf, writeCrashImage } from '../../support/crash-images.ts';
import { faultsLibrary } from '../../support/faults.ts';
import { forAll } from '../../support/random.ts';
import { skipped } from '../../support/skipped.ts';
import { openTestStore, temporaryStorePath } from '../../unit/store/store-fixtures.ts';

/** Below node_modules, so that the compiled program finds its packages. */
const cacheFolder = resolve('node_modules/.cache');
let buildFolder = '';

beforeAll(() => {
  mkdirSync(cacheFolder, { recursive: true });
  buildFolder = mkdtempSync(join(cacheFolder, 'gnnd-kill-'));
  const config = join(buildFolder, 'tsconfig.json');
  writeFileSync(
    config,
    JSON.stringify({
      extends: resolve('tsconfig.json'),
      compilerOptions: {
        noEmit: false,
        rootDir: resolve('.'),
        outDir: buildFolder,
        allowImportingTsExtensions: false,
        rewriteRelativeImportExtensions: true,
        typeRoots: [resolve('node_modules/@types')],
      },
      include: [],
      files: [resolve('test/process/store/commit-loop.ts')],
    }),
  );
  writeFileSync(join(buildFolder, 'package.json'), '{"type": "module"}');
  const built = spawnSync(resolve('node_modules/.bin/tsc'), ['-p', config], { encoding: 'utf8' });
  expect(built.stdout).toBe('');
  expect(built.status).toBe(0);
}, 60_000);

afterAll(() => rmSync(buildFolder, { recursive: true, force: true }));

interface Acknowledged {
  readonly id: string;
  readonly revision?: number;
  readonly state?: string;
  readonly epochs?: number;
}

/** Lets a process commit until it has acknowledged `lines` lines, then kills it; how it ended. */
async function commits(path: string, lines: number, env: NodeJS.ProcessEnv = {}) {
  const program = join(buildFolder, 'test/process/store/commit-loop.js');
  const child = spawn(process.execPath, [program, path], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const exit = once(child, 'exit');
  const acknowledged: Acknowledged[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    // Lines in the pipe when the process died were acknowledged, too.
    acknowledged.push(JSON.parse(line));
    if (acknowledged.length === lines) child.kill('SIGKILL');
  }
  const [, signal] = await exit;
  return { acknowledged, said, wasKilled: signal === 'SIGKILL' };
}

/** The next daemon has all of it, and no revision is missing. */
function expectKept(path: string, acknowledged: readonly Acknowledged[]): void {
  const store = openTestStore(path);
  for (const { id, revision, state, epochs } of acknowledged) {
    const job = store.getJob(id);
    expect(store.findRequest('CreateJob', `r-${id}`)?.resource).toBe(`jobs/${id}`);
    expect(job?.revision ?? 0).toBeGreaterThanOrEqual(revision ?? 0);
    if (state !== undefined) expect(job).toMatchObject({ state, attempts: [{ number: 1 }] });
    if (epochs !== undefined) expect(store.epochCount(id, 1)).toBe(epochs);
  }
  const revisions = store
    .nonTerminalJobs()
    .flatMap(({ id }) => [...store.events(id, 0, 10), ...store.epochs(id, 1, 0, 10)])
    .map(({ revision }) => revision);
  revisions.sort((a, b) => a - b);
  expect(revisions).toEqual([...Array(store.revision()).keys()].map((i) => i + 1));
  store.close();
}

test('a daemon that is killed while it commits has lost nothing that it acknowledged', async () => {
  const path = temporaryStorePath();
  const acknowledged: Acknowledged[] = [];
  for (const lines of [1, 2, 40, 101]) {
    const run = await commits(path, lines);
    expect(run.wasKilled).toBe(true);
    acknowledged.push(...run.acknowledged);
    expectKept(path, acknowledged);
  }
}, 60_000);

test('whatever a failing power leaves unsynced, what was acknowledged is kept', async () => {
  const library = faultsLibrary();
  if (library === null) {
    skipped('a record of what is written', 'there is no C compiler');
    return;
  }
  const path = temporaryStorePath();
  const root = dirname(path);
  const record = join(buildFolder, 'record');
  await commits(path, 60, {
    LD_PRELOAD: library,
    GNND_FAULT_IO: root,
    GNND_FAULT_RECORD: record,
  });
  const operations = operationsOf(readFileSync(record));
  expect(operations.filter(({ kind }) => kind === 'SYNC').length).toBeGreaterThan(20);
  let kept = 0;
  forAll(150, (random) => {
    const end = random.integer(1, operations.length);
    const folder = dirname(temporaryStorePath());
    writeCrashImage(operations, { root, folder, end, random });
    const said = operations.slice(0, end).flatMap((it) => (it.kind === 'SAY' ? [it.text] : []));
    const lines = said.join('').trim().split('\n');
    const acknowledged = lines.filter((line) => line !== '').map((line) => JSON.parse(line));
    expectKept(join(folder, basename(path)), acknowledged);
    kept += acknowledged.length;
  });
  expect(kept).toBeGreaterThan(500);
}, 120_000);

test.each([
  ['fails once (EIO)', { GNND_FAULT_ERRNO: String(constants.errno.EIO) }],
  [
    'finds the disk full from then on',
    { GNND_FAULT_ERRNO: String(constants.errno.ENOSPC), GNND_FAULT_STAYS: '1' },
  ],
])(
  'whichever write or sync of the store %s, what was acknowledged is kept',
  async (_, fault) => {
    const library = faultsLibrary();
    if (library === null) {
      skipped('a disk that fails', 'there is no C compiler');
      return;
    }
    let failed = 0;
    // The schema, the log's beginning, and commits, each of which takes several.
    for (let at = 1; at <= 60; at += at < 24 ? 1 : 6) {
      const path = temporaryStorePath();
      const run = await commits(path, 6, {
        ...fault,
        LD_PRELOAD: library,
        GNND_FAULT_IO: dirname(path),
        GNND_FAULT_AT: String(at),
      });
      expectKept(path, run.acknowledged);
      // It came later than that, or to what SQLite can do without.
      if (run.wasKilled) continue;
      // Whoever cannot write says so and ends; nothing is tried again behind the back of a sync.
      expect(run.said, `at ${at}`).toMatch(/STORE_UNAVAILABLE|STATE_DISK_FULL|disk|SQLITE_/);
      failed += 1;
    }
    expect(failed).toBeGreaterThan(12);
  },
  240_000,
);
