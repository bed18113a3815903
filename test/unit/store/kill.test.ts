import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openTestStore, temporaryStorePath } from './store-fixtures.ts';

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
      files: [resolve('test/unit/store/commit-loop.ts')],
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

/** Lets a process commit until it has acknowledged `lines` lines, then kills it. */
async function commitUntilKilled(path: string, lines: number): Promise<Acknowledged[]> {
  const program = join(buildFolder, 'test/unit/store/commit-loop.js');
  const child = spawn(process.execPath, [program, path], { stdio: ['ignore', 'pipe', 'inherit'] });
  const exit = once(child, 'exit');
  const acknowledged: Acknowledged[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    // What was in the pipe when the process died was acknowledged, too.
    acknowledged.push(JSON.parse(line));
    if (acknowledged.length === lines) child.kill('SIGKILL');
  }
  expect(await exit).toEqual([null, 'SIGKILL']);
  return acknowledged;
}

test('a daemon that is killed while it commits has lost nothing that it acknowledged', async () => {
  const path = temporaryStorePath();
  const acknowledged: Acknowledged[] = [];
  for (const lines of [1, 2, 40, 101]) {
    acknowledged.push(...(await commitUntilKilled(path, lines)));
    const store = openTestStore(path);
    expect(store.lastStopWasClean).toBe(false);
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
}, 60_000);
