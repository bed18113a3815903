import { describe, expect, test } from 'vitest';
import { idProblem, NodeIds } from '../../src/datasets/node-ids.ts';
import { loadCore } from '../../src/native/load.ts';
import { forAll, type Random } from '../support/random.ts';

function linesOf(ids: NodeIds): string | null {
  const lines = ids.lines();
  return lines === null ? null : Buffer.concat([...lines]).toString('utf8');
}

/** Some that repeat, some that begin alike, some that are the next number. */
function randomId(random: Random): string {
  if (random.chance(0.3)) return String(random.integer(0, 20));
  const letters = ['a', '0', 'Z', '\u00e9', '\u20ac', '\u{1f600}', ' '];
  const length = random.chance(0.05) ? 300 : random.integer(0, 4);
  return Array.from({ length }, () => random.pick(letters)).join('');
}

describe('node ids', () => {
  test('have the numbers that a map would give them', () => {
    forAll(200, (random) => {
      const texts = Array.from({ length: random.integer(0, 200) }, () => randomId(random));
      const ids = new NodeIds(loadCore());
      const numbers = new Map<string, number>();
      for (const each of texts) {
        const isNew = !numbers.has(each);
        expect(ids.add(each)).toBe(isNew ? numbers.size : null);
        if (isNew) numbers.set(each, numbers.size);
      }
      expect(ids.size).toBe(numbers.size);
      for (const each of [...texts, randomId(random), '', '7']) {
        expect(ids.numberOf(each), each).toBe(numbers.get(each));
      }
      const isCounted = [...numbers.keys()].every((each, at) => each === String(at));
      const lines = [...numbers.keys()].map((each) => `${each}\n`).join('');
      expect(linesOf(ids)).toBe(isCounted ? null : lines);
    });
  });

  test('fill several chunks and grow the table', () => {
    const ids = new NodeIds(loadCore());
    const nodes = 300_000;
    const idOf = (node: number) => `paper/${node}${node % 7 === 0 ? '-\u00e9' : ''}`;
    const numbers = Array.from({ length: nodes }, (_, node) => ids.add(idOf(node)));
    expect(numbers.findIndex((number, node) => number !== node)).toBe(-1);
    for (let node = 0; node < nodes; node += 997) expect(ids.numberOf(idOf(node))).toBe(node);
    expect(ids.numberOf('paper/300000')).toBe(undefined);
    expect(ids.numberOf('paper/')).toBe(undefined);
    const lines = linesOf(ids)?.split('\n') ?? [];
    expect(lines.length).toBe(nodes + 1);
    expect(lines[nodes - 1]).toBe(idOf(nodes - 1));
  });

  test('are short, and one line', () => {
    expect(idProblem('a'.repeat(1024))).toBe(null);
    expect(idProblem('a'.repeat(1025))).toBe('of 1,025 characters, expected at most 1,024');
    expect(idProblem('a\nb')).toBe('with a line break');
    const ids = new NodeIds(loadCore());
    expect(ids.add('\u20ac'.repeat(1024))).toBe(0);
    expect(ids.numberOf('\u20ac'.repeat(1024))).toBe(0);
    expect(ids.numberOf('\u20ac'.repeat(1025))).toBe(undefined);
  });
});
