import { describe, expect, test } from 'vitest';
import {
  fullLinks,
  type Links,
  linksOf,
  noLinks,
  pairLinks,
} from '../../../src/placement/links.ts';
import { samplersAmong } from '../../../src/placement/samplers.ts';
import { curveOf } from './made.ts';

const hotness = curveOf(Array.from({ length: 200 }, (_, rank) => (1 + rank) ** -0.8));

function chosen(count: number, links: Links, budget: (device: number) => number = () => 20) {
  const budgets = links.map((_, device) => budget(device));
  const costs = { host: 1, links: { NVLINK: 0.2 } };
  return samplersAmong(count, { hotness, budgets, links, costs });
}

/** 0 and 3, 1 and 2 are joined, as bridges may be plugged. */
const crossed = linksOf(4, (i, j) => (i + j === 3 ? 'NVLINK' : null));

describe('Samplers are', () => {
  test.each([
    ['none', 0, pairLinks(4), []],
    ['the first ones without links', 3, noLinks(8), [0, 1, 2]],
    ['the first ones where all are linked', 3, fullLinks(8), [0, 1, 2]],
    ['one of a pair, if they are one', 1, pairLinks(8), [0]],
    ['a pair, if they are two', 2, pairLinks(8), [0, 1]],
    ['a pair and one, if they are three', 3, pairLinks(8), [0, 1, 2]],
    ['a pair wherever it is', 2, crossed, [0, 3]],
    ['who has no link, if they are one', 1, linksOf(3, (i) => (i === 1 ? 'NVLINK' : null)), [0]],
    ['all but one', 3, pairLinks(4), [0, 1, 2]],
  ])('%s', (_, count, links, expected) => {
    expect(chosen(count, links)).toEqual(expected);
  });

  test('those that could hold the fewest rows, where links do not matter', () => {
    expect(chosen(1, noLinks(3), (device) => [20, 5, 20][device] ?? 0)).toEqual([1]);
  });

  test('a whole pair rather than two devices with a little less room', () => {
    expect(chosen(2, pairLinks(4), (device) => (device % 2 === 0 ? 19 : 20))).toEqual([0, 1]);
  });

  test.each([-1, 4, 1.5])('never %d of 4', (count) => {
    expect(() => chosen(count, pairLinks(4))).toThrow('Samplers among 4 devices');
  });

  test('chosen of 16 devices in pairs', () => {
    expect(chosen(8, pairLinks(16))).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });
});
