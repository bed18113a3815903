import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readSources, root } from './sources.ts';

/** docs/*-checklist.md name tests by file and name; a renamed test shows here. */

const tests = new Map(
  readSources(/^(native\/)?test\/.*_?test\.(ts|cc)$/).map(({ path, text }) => [path, text]),
);

/** [file, names behind it] of a text that says: `file` "name", "name"; `file` "name". */
function references(text: string): readonly (readonly [string, readonly string[]])[] {
  return text
    .split(/`(?=(?:native\/)?test\/)/)
    .slice(1)
    .map((part) => {
      const [path = '', ...rest] = part.split('`');
      return [path, [...rest.join('`').matchAll(/"([^"\n]+)"/g)].map(([, name]) => name ?? '')];
    });
}

function missingFrom(text: string): readonly string[] {
  return references(text).flatMap(([path, names]) => {
    const source = tests.get(path);
    const isThere = (name: string) =>
      ["'", '"'].some((quote) => source?.includes(`${quote}${name}${quote}`));
    return source === undefined ? [path] : names.filter((name) => !isThere(name));
  });
}

const pageOf = (name: string) => readFileSync(join(root, 'docs', name), 'utf8');
const numbersOf = (text: string) =>
  [...text.matchAll(/^\| (\d+) \|/gm)].map(([, number]) => Number(number));
const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

describe.each([
  ['GNNLab', 'gnnlab-checklist.md', 32, 50],
  ['pre-propagation', 'ppgnn-checklist.md', 20, 15],
  ['placement', 'placement-checklist.md', 21, 15],
  ['historical embeddings', 'freshgnn-checklist.md', 24, 15],
])('the checklist of %s', (_, name, items, tested) => {
  const page = pageOf(name);

  it('has all its items', () => {
    expect(numbersOf(page)).toEqual(upTo(items));
  });

  it('names tests that exist', () => {
    expect(references(page).length).toBeGreaterThan(tested);
    expect(missingFrom(page)).toEqual([]);
  });
});

it('a checklist would show a file and a name that do not exist', () => {
  const text = '`test/unit/none.test.ts` "a"; `native/test/core/sample/walk_test.cc` "walks"';
  expect(missingFrom(text)).toEqual(['test/unit/none.test.ts', 'walks']);
});

describe('the forty faults', () => {
  const rows = pageOf('reliability.md')
    .split('\n')
    .filter((line) => /^\| \d+ \|/.test(line));
  const items = rows.join('\n');

  it('are all there', () => {
    expect(numbersOf(items)).toEqual(upTo(40));
  });

  it('have a test that exists, or a reason why there is none', () => {
    expect(references(items).length).toBeGreaterThan(50);
    expect(missingFrom(items)).toEqual([]);
    const silent = rows.filter((row) => !/`test\/|`native\/|\*\*|as 1 /.test(row));
    expect(silent).toEqual([]);
  });
});
