import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { repository } from '../support/daemon.ts';

/**
 * Files compiled for a wider instruction set share no symbol with others: of two weak ones the
 * linker keeps either, and a processor without those instructions would then meet them anywhere.
 */

const build = join(repository, 'build/native/CMakeFiles');
const wideSets = ['avx2', 'avx512', 'neon'];

function objectsOf(set: string): readonly string[] {
  const folder = join(build, `gnnd_loops_${set}.dir`);
  return readdirSync(folder, { recursive: true })
    .map(String)
    .filter((path) => path.endsWith('.o'))
    .map((path) => join(folder, path));
}

/** What others could be linked to: kind and name of each symbol that the object exports. */
function exportsOf(object: string): readonly { kind: string; name: string }[] {
  const lines = execFileSync('nm', ['--defined-only', '--extern-only', '--demangle', object], {
    encoding: 'utf8',
  }).split('\n');
  return lines.flatMap((line) => {
    const [, kind, name] = /^[0-9a-f]+ (\w) (.*)$/.exec(line) ?? [];
    return kind === undefined || name === undefined ? [] : [{ kind, name }];
  });
}

const built = readdirSync(build);
const sets = wideSets.filter((set) => built.includes(`gnnd_loops_${set}.dir`));

test('loops are compiled once for each instruction set, from the same files', () => {
  expect(sets.length).toBeGreaterThanOrEqual(1);
  const names = (set: string) =>
    objectsOf(set).map((path) => path.slice(path.indexOf('.dir/') + 5));
  expect(names('plain').length).toBeGreaterThanOrEqual(7);
  for (const set of sets) expect(names(set)).toEqual(names('plain'));
});

test.each(sets)(
  'what is compiled for %s exports its tables of functions and nothing else',
  (set) => {
    for (const object of objectsOf(set)) {
      const exported = exportsOf(object);
      expect({ object, exported: exported.length > 0 }).toEqual({ object, exported: true });
      // No weak function or object, nothing unique, and no name without the set's.
      const others = exported.filter(
        ({ kind, name }) =>
          !/^[RD]$/.test(kind) || !new RegExp(`^gnnd::${set}::k\\w+Loops$`).test(name),
      );
      expect({ object, others }).toEqual({ object, others: [] });
    }
  },
);

test('a weak symbol would be seen', () => {
  // Any object of ours that instantiates the standard library's templates has some.
  const folder = join(build, 'gnnd_core.dir/native/core');
  const object = readdirSync(folder, { recursive: true }).map(String);
  const kinds = object
    .filter((path) => path.endsWith('sampler.cc.o'))
    .flatMap((path) => exportsOf(join(folder, path)))
    .map(({ kind }) => kind);
  expect(kinds).toContain('W');
});
