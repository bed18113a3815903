import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { sweepTemporary } from '../../../src/base/atomic-file.ts';
import { readCheckpoint } from '../../../src/files/checkpoint.ts';
import { operationsOf, writeCrashImage } from '../../support/crash-images.ts';
import { repository } from '../../support/daemon.ts';
import { faultsLibrary } from '../../support/faults.ts';
import { forAll } from '../../support/random.ts';
import { skipped } from '../../support/skipped.ts';

/** A checkpoint whose writer dies at each of its writes, or with the host's power. */

/** Writes a checkpoint in which every parameter is `value`, and says so. */
const program = `
  const { writeCheckpoint } = await import(process.argv[1]);
  const [folder, value] = [process.argv[2], Number(process.argv[3])];
  const tensors = [{ name: 'a.weight', shape: [64, 64], offset: 0 }];
  const manifest = { tensors, widths: [], numFloats: 4096 };
  const floats = new Float32Array(4096).fill(value);
  const model = { type: 'GRAPHSAGE' };
  await writeCheckpoint(folder, manifest, { last: floats, best: floats, model, facts: {} });
  process.stdout.write('written\\n');
`;

let root = '';
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'gnnd-killed-writes-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** How the writer ended; null: well. */
function writes(folder: string, value: number, env: NodeJS.ProcessEnv = {}): string | null {
  const module = pathToFileURL(join(repository, 'dist/files/checkpoint.js')).href;
  const args = ['--input-type=module', '-e', program, module, folder, String(value)];
  const options = { env: { ...process.env, ...env }, encoding: 'utf8' } as const;
  const { status, signal, stderr } = spawnSync(process.execPath, args, options);
  if (status !== null && status !== 0) throw new Error(stderr);
  return signal;
}

/** The value of a checkpoint that verifies; null: none is there. Throws where one is damaged. */
async function valueIn(folder: string): Promise<number | null> {
  const names = (() => {
    try {
      return readdirSync(folder);
    } catch {
      return null;
    }
  })();
  if (names === null) return null;
  const values = new Set<number | undefined>();
  for (const kind of ['LAST', 'BEST'] as const) {
    const { bytes } = await readCheckpoint(folder, kind);
    values.add(bytes.readFloatLE(bytes.length - 4));
  }
  expect(values.size).toBe(1);
  return [...values][0] ?? null;
}

test('whichever write its writer dies at, a checkpoint is old, new or none', async () => {
  const library = faultsLibrary();
  if (library === null) {
    skipped('deaths at writes', 'there is no C compiler');
    return;
  }
  const folder = join(root, 'checkpoint');
  const found = new Map<number | null, number>();
  let signal: string | null = 'SIGKILL';
  let at = 0;
  while (signal !== null) {
    at += 1;
    expect(writes(folder, 1)).toBe(null);
    const fault = { GNND_FAULT_IO: root, GNND_FAULT_KILL: '1', GNND_FAULT_AT: String(at) };
    signal = writes(folder, 2, { LD_PRELOAD: library, ...fault });
    const value = await valueIn(folder);
    found.set(value, (found.get(value) ?? 0) + 1);
    // The next start removes what the dead writer left, and the next writer is not hindered.
    sweepTemporary(root, 2);
    expect(readdirSync(root)).toEqual(value === null ? [] : ['checkpoint']);
    if (signal === 'SIGKILL') expect(writes(folder, 3)).toBe(null);
    expect(await valueIn(folder)).toBe(signal === 'SIGKILL' ? 3 : 2);
  }
  // Three files (made, written, synced, renamed, their folder synced), a folder that goes and one
  // that takes its place.
  expect(at).toBeGreaterThan(20);
  expect([...found.keys()].every((value) => value === null || value === 1 || value === 2)).toBe(
    true,
  );
  expect(found.get(1)).toBeGreaterThan(15);
  expect(found.get(2)).toBeGreaterThan(0);
}, 240_000);

test('what a failing power leaves of one is nothing, or whole', async () => {
  const library = faultsLibrary();
  if (library === null) {
    skipped('a record of what is written', 'there is no C compiler');
    return;
  }
  const record = join(root, 'record');
  const place = join(root, 'state');
  mkdirSync(place);
  const env = { LD_PRELOAD: library, GNND_FAULT_IO: place, GNND_FAULT_RECORD: record };
  expect(writes(join(place, 'checkpoint'), 2, env)).toBe(null);
  const operations = operationsOf(readFileSync(record));
  const said = operations.findIndex(({ kind }) => kind === 'SAY');
  expect(said).toBeGreaterThan(15);
  const images: { readonly folder: string; readonly end: number }[] = [];
  forAll(100, (random) => {
    const end = random.integer(1, operations.length);
    const folder = join(root, `image-${images.length}`);
    writeCrashImage(operations, { root: place, folder, end, random });
    images.push({ folder, end });
  });
  const values = [];
  for (const { folder, end } of images) {
    const value = await valueIn(join(folder, 'checkpoint'));
    expect(value).toBeOneOf(end > said ? [2] : [null, 2]);
    values.push(value);
  }
  expect(values).toContain(2);
  expect(values).toContain(null);
});
