import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { repository } from '../support/daemon.ts';

/**
 * Files compiled for a wider instruction set share no symbol with others: of two weak ones the
 * linker keeps either, and a processor without those instructions would then meet them anywhere.
 */

const objects = join(repository, 'build/native/CMakeFiles');

function wideObjects(): readonly string[] {
  return readdirSync(objects, { recursive: true })
    .map(String)
    .filter((path) => /_avx(2|512)\.cc\.o$/.test(path) && path.startsWith('gnnd_'))
    .map((path) => join(objects, path));
}

test('what is compiled for a wider instruction set exports no weak symbol', () => {
  const wide = wideObjects();
  expect(wide.length).toBeGreaterThanOrEqual(14);
  for (const object of wide) {
    const symbols = execFileSync('nm', ['--defined-only', '--demangle', object], {
      encoding: 'utf8',
    }).split('\n');
    // A weak function or object, or a unique one.
    expect({ object, shared: symbols.filter((line) => /^[0-9a-f]+ [WwVvu] /.test(line)) }).toEqual({
      object,
      shared: [],
    });
  }
});
