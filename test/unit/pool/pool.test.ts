import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { GnndError } from '../../../src/base/errors.ts';
import { createPool, type Pool, poolTask } from '../../../src/pool/pool.ts';
import { readSources } from '../tidy/sources.ts';
import { die, dieLater, double, hold, makeArrays, spin, throwAsTold } from './tasks.mjs';

const here = import.meta.url;
const [doubling, holding, spinning, dying, dyingLater, throwing] = [
  poolTask(here, './tasks.mjs', 'SHORT', double),
  poolTask(here, './tasks.mjs', 'LONG', hold),
  poolTask(here, './tasks.mjs', 'SHORT', spin),
  poolTask(here, './tasks.mjs', 'SHORT', die),
  poolTask(here, './tasks.mjs', 'SHORT', dieLater),
  poolTask(here, './tasks.mjs', 'SHORT', throwAsTold),
];

/** More calls at once than a pool of this host has threads. */
const many = 10;

let pools: Pool[] = [];
function pool(): Pool {
  const made = createPool();
  pools.push(made);
  return made;
}
afterEach(async () => {
  await Promise.all(pools.map((each) => each.close()));
  pools = [];
});

/** Shared with the threads. */
const newFlag = () => new Int32Array(new SharedArrayBuffer(8));

async function failureOf(call: Promise<unknown>): Promise<unknown> {
  return await call.then(
    (value) => new Error(`answered ${String(value)}`),
    (error: unknown) => error,
  );
}

/** Resolves when a thread has set the flag. */
async function isSet(flag: Int32Array): Promise<void> {
  while (Atomics.load(flag, 0) === 0) await sleep(1);
}

test('each call gets its own answer, however many come at once', async () => {
  const threads = pool();
  const numbers = Array.from({ length: 100 }, (_, i) => i);
  const found = await Promise.all(numbers.map((number) => threads.run(doubling, number)));
  expect(found).toEqual(numbers.map((number) => 2 * number));
});

test('arrays come back whole, whether their memory changes hands or is copied', async () => {
  const making = poolTask(here, './tasks.mjs', 'SHORT', makeArrays);
  const threads = pool();
  for (const length of [1, 100_000, 100_000]) {
    const { own, part } = await threads.run(making, length);
    expect([own.length, part.length]).toEqual([length, length]);
    expect([new Set(own), new Set(part)]).toEqual([new Set([7]), new Set([1])]);
  }
});

test('a task that throws rejects its call with the same error', async () => {
  const threads = pool();
  const expected = await failureOf(threads.run(throwing, { kind: 'EXPECTED' }));
  expect(expected).toBeInstanceOf(GnndError);
  expect(expected).toMatchObject({
    reason: 'SPEC_INVALID',
    message: 'no such thing',
    violations: [{ path: 'spec.model', description: 'none' }],
    resource: 'jobs/a',
    metadata: { what: 'it' },
    cause: { message: 'deeper', code: 'DATASET_CORRUPT' },
  });
  const bug = await failureOf(threads.run(throwing, { kind: 'BUG' }));
  expect(bug).not.toBeInstanceOf(GnndError);
  expect(bug).toMatchObject({ name: 'TypeError', message: 'a bug', code: 'EBUG' });
  expect(bug).toMatchObject({ stack: expect.stringContaining('tasks.mjs') });
});

test('a caller that goes away ends the work, and whoever waits gets the thread', async () => {
  const threads = pool();
  const reason = new Error('the caller hung up');
  for (let round = 0; round < many; round += 1) {
    const flag = newFlag();
    const caller = new AbortController();
    const call = failureOf(threads.run(spinning, flag, caller.signal));
    await isSet(flag);
    caller.abort(reason);
    expect(await call).toBe(reason);
  }
  expect(await threads.run(doubling, 21)).toBe(42);
});

test('a caller that goes away while it waits is let go at once', async () => {
  const threads = pool();
  const flag = newFlag();
  const held = Array.from({ length: many }, () => threads.run(holding, flag));
  const caller = new AbortController();
  const waiting = failureOf(threads.run(holding, flag, caller.signal));
  caller.abort('gone');
  expect(await waiting).toBe('gone');
  Atomics.store(flag, 0, 2);
  expect(new Set(await Promise.all(held))).toEqual(new Set(['held']));
  expect(flag[1]).toBe(many);
});

test('long tasks leave a thread to short ones', async () => {
  const threads = pool();
  const flag = newFlag();
  const held = Array.from({ length: many }, () => threads.run(holding, flag));
  expect(await threads.run(doubling, 1)).toBe(2);
  Atomics.store(flag, 0, 2);
  await Promise.all(held);
});

test('a thread that dies fails the one call that it worked for', async () => {
  const threads = pool();
  const flag = newFlag();
  const other = threads.run(holding, flag);
  for (const task of [dying, dyingLater]) {
    const error = await failureOf(threads.run(task, null));
    expect(String(error)).toMatch(/the thread of die(Later)? failed: .*(code: 3|out of the blue)/);
  }
  Atomics.store(flag, 0, 2);
  expect(await other).toBe('held');
  expect(await threads.run(doubling, 3)).toBe(6);
});

test('what cannot be copied to a thread is refused', async () => {
  const input = (() => {}) as unknown as number;
  expect(String(await failureOf(pool().run(doubling, input)))).toContain('could not be cloned');
});

test('closing ends what runs, and refuses what waits and what comes', async () => {
  const threads = pool();
  const flag = newFlag();
  const calls = Array.from({ length: many }, () => failureOf(threads.run(spinning, flag)));
  await isSet(flag);
  await threads.close();
  for (const error of await Promise.all(calls)) {
    expect(error).toMatchObject({ reason: 'DAEMON_STOPPING' });
  }
  expect(await failureOf(threads.run(doubling, 1))).toMatchObject({ reason: 'DAEMON_STOPPING' });
  await threads.close();
});

test('each task of the daemon is a function that its built module exports', async () => {
  const tasks = readSources(/^src\/.*\.ts$/).flatMap(({ path, text }) =>
    [...text.matchAll(/poolTask\(\s*import\.meta\.url,\s*'([^']+)',\s*'\w+',\s*(\w+),?\s*\)/g)].map(
      ([, module = '', name = '']) => ({ path, module, name }),
    ),
  );
  expect(tasks.length).toBeGreaterThan(0);
  for (const { path, module, name } of tasks) {
    const file = new URL(module.replace(/\.ts$/, '.js'), new URL(`../../../${path}`, here));
    const loaded = await import(file.href.replace('/src/', '/dist/'));
    expect(loaded[name], `${name} of ${module}, for ${path}`).toBeTypeOf('function');
  }
});
