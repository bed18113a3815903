import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readSources, root } from './sources.ts';

/** docs/*-checklist.md name tests by file and name; a renamed test shows here. */

const page = readFileSync(join(root, 'docs', 'gnnlab-checklist.md'), 'utf8');
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

describe('the checklist of GNNLab', () => {
  it('has the items 1 to 32', () => {
    const numbers = [...page.matchAll(/^\| (\d+) \|/gm)].map(([, number]) => Number(number));
    expect(numbers).toEqual(Array.from({ length: 32 }, (_, index) => index + 1));
  });

  it('names tests that exist', () => {
    expect(references(page).length).toBeGreaterThan(50);
    expect(missingFrom(page)).toEqual([]);
  });

  it('would show a file and a name that do not', () => {
    const text = '`test/unit/none.test.ts` "a"; `native/test/core/sample/walk_test.cc` "walks"';
    expect(missingFrom(text)).toEqual(['test/unit/none.test.ts', 'walks']);
  });
});

describe('the checklist of pre-propagation', () => {
  const rows = readFileSync(join(root, 'docs', 'ppgnn-checklist.md'), 'utf8');

  it('has the items 1 to 20', () => {
    const numbers = [...rows.matchAll(/^\| (\d+) \|/gm)].map(([, number]) => Number(number));
    expect(numbers).toEqual(Array.from({ length: 20 }, (_, index) => index + 1));
  });

  it('names tests that exist', () => {
    expect(references(rows).length).toBeGreaterThan(15);
    expect(missingFrom(rows)).toEqual([]);
  });
});

describe('the checklist of placement', () => {
  const items = readFileSync(join(root, 'docs', 'placement-checklist.md'), 'utf8');

  it('has the items 1 to 21', () => {
    const numbers = [...items.matchAll(/^\| (\d+) \|/gm)].map(([, number]) => Number(number));
    expect(numbers).toEqual(Array.from({ length: 21 }, (_, index) => index + 1));
  });

  it('names tests that exist', () => {
    expect(references(items).length).toBeGreaterThan(15);
    expect(missingFrom(items)).toEqual([]);
  });
});

describe('the checklist of historical embeddings', () => {
  const items = readFileSync(join(root, 'docs', 'freshgnn-checklist.md'), 'utf8');

  it('has the items 1 to 24', () => {
    const numbers = [...items.matchAll(/^\| (\d+) \|/gm)].map(([, number]) => Number(number));
    expect(numbers).toEqual(Array.from({ length: 24 }, (_, index) => index + 1));
  });

  it('names tests that exist', () => {
    expect(references(items).length).toBeGreaterThan(15);
    expect(missingFrom(items)).toEqual([]);
  });
});

describe('the forty faults', () => {
  const text = readFileSync(join(root, 'docs', 'reliability.md'), 'utf8');
  const rows = text.split('\n').filter((line) => /^\| \d+ \|/.test(line));
  const items = rows.join('\n');

  it('are all there', () => {
    const numbers = [...items.matchAll(/^\| (\d+) \|/gm)].map(([, number]) => Number(number));
    expect(numbers).toEqual(Array.from({ length: 40 }, (_, index) => index + 1));
  });

  it('have a test that exists, or a reason why there is none', () => {
    expect(references(items).length).toBeGreaterThan(50);
    expect(missingFrom(items)).toEqual([]);
    const silent = rows.filter((row) => !/`test\/|`native\/|\*\*|as 1 /.test(row));
    expect(silent).toEqual([]);
  });
});
