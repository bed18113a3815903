import { expect, test } from 'vitest';
import { readSources } from './sources.ts';

/** Places where a process can be killed, and rules that can be dropped: a native test does it. */

const product = readSources(/^native\/(core|train|cuda)\/.*\.(h|cc)$/);
const tests = readSources(/^native\/test\/.*_test\.cc$/);

function namesOf(macro: string): readonly string[] {
  const names = product.flatMap(({ path, text }) =>
    path.endsWith('base/failpoint.h')
      ? []
      : [...text.matchAll(new RegExp(`${macro}\\("([^"]+)"\\)`, 'g'))].map(
          ([, name]) => name ?? '',
        ),
  );
  return [...new Set(names)].sort();
}

const unnamed = (names: readonly string[]) =>
  names.filter((name) => !tests.some(({ text }) => text.includes(`"${name}"`)));

test('every named point is one at which a test kills', () => {
  const points = namesOf('GNND_FAILPOINT');
  expect(points.length).toBeGreaterThan(50);
  expect(unnamed(points)).toEqual([]);
});

test('every rule that can be dropped is dropped by a test', () => {
  const rules = namesOf('GNND_BROKEN');
  expect(rules.length).toBeGreaterThan(25);
  expect(unnamed(rules)).toEqual([]);
});

test('a point that nobody names would be seen', () => {
  expect(unnamed(['claim.after', 'claim.never'])).toEqual(['claim.never']);
});
