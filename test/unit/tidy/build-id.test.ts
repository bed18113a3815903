import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readSources, root } from './sources.ts';

/** The build id covers every source that decides bits, and the options they are compiled with. */

const script = join(root, 'native/cmake/write_build_id.cmake');

/** The build id of a tree, and the text it is the digest of. */
function buildIdOf(tree: string, options: string): { id: string; text: string } {
  writeFileSync(join(folder, 'options.txt'), options);
  const given = [`-DROOT=${tree}`, `-DOPTIONS=${join(folder, 'options.txt')}`, `-DOUT=${folder}`];
  // Where setup puts a cmake if the system has none.
  const path = `${join(root, '.cache/tools/bin')}:${process.env['PATH']}`;
  execFileSync('cmake', [...given, '-P', script], { env: { ...process.env, PATH: path } });
  const id = /"([0-9a-f]{32})"/.exec(readFileSync(join(folder, 'build_id.cc'), 'utf8'))?.[1] ?? '';
  return { id, text: readFileSync(join(folder, 'build_id.txt'), 'utf8') };
}

function put(path: string, text: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
}

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gnnd-build-id-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

test('the build id is the digest of every native source but the tests', () => {
  const { id, text } = buildIdOf(root, 'flags -O3\n');
  const sources = readSources(/^native\/(?!test\/)|^CMakeLists\.txt$/);
  const lines = sources.map(
    (source) => `${createHash('sha256').update(source.text).digest('hex')}  ${source.path}\n`,
  );
  expect(new Set(text.split(/(?<=\n)/))).toEqual(new Set([...lines, 'flags -O3\n']));
  expect(createHash('sha256').update(text).digest('hex').slice(0, 32)).toBe(id);
  // Files that draw, compute and add up are checked by name.
  for (const path of ['core/vec/avx2.h', 'core/draw/philox.h', 'core/kernels/optimizer.cc']) {
    expect(text).toContain(`  native/${path}\n`);
  }
});

test('a change, a new name and another option each make another build', () => {
  const files = ['native/core/a.cc', 'native/train/b.h', 'native/cmake/c.cmake', 'CMakeLists.txt'];
  for (const file of files) put(file, file);
  const ids = [buildIdOf(folder, 'one').id];
  for (const file of files) {
    put(file, `${file} changed`);
    ids.push(buildIdOf(folder, 'one').id);
  }
  put('native/core/d.h', '');
  ids.push(buildIdOf(folder, 'one').id);
  ids.push(buildIdOf(folder, 'two').id);
  expect(new Set(ids).size).toBe(files.length + 3);
  put('native/test/e.cc', '');
  expect(buildIdOf(folder, 'two').id).toBe(ids.at(-1));
});
