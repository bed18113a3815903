import { expect, it } from 'vitest';
import { lineOf, listed, readSources, type Source, type Violation } from './sources.ts';

/** Tests of processes wait for what happens (test/support/until.ts), and for no time to pass. */

const timer = /\bsetTimeout\b|timers\/promises|\bsleep\(/g;

function waits({ path, text }: Source): readonly Violation[] {
  return [...text.matchAll(timer)].map(({ 0: word, index }) => {
    return { path, line: lineOf(text, index), message: `${word}: wait with until()` };
  });
}

/** A hanging program that Python plays: nobody waits for its end. */
const hangs = /time\.sleep\((600|1000)\)/g;

it('no test of a daemon or of processes has a timer of its own', () => {
  const files = readSources(/^test\/(e2e|thorough|process)\/.*\.ts$/);
  expect(files.length).toBeGreaterThan(80);
  const violations = files.flatMap(({ path, text }) =>
    waits({ path, text: text.replaceAll(hangs, '') }),
  );
  expect(listed(violations)).toBe('');
});

it.each([
  'await new Promise((resolve) => setTimeout(resolve, 20));',
  "import { setTimeout as later } from 'node:timers/promises';",
  'await sleep(20);',
])('one is refused: %s', (text) => {
  expect(waits({ path: 'test/e2e/a.test.ts', text })).not.toEqual([]);
});
