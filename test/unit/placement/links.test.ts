import { describe, expect, test } from 'vitest';
import {
  checkLinks,
  fullLinks,
  islandChoices,
  linksAmong,
  linksOf,
  noLinks,
  pairLinks,
  peerCost,
} from '../../../src/placement/links.ts';
import { forAll } from '../../support/random.ts';

const costs = { host: 1, links: { NVLINK: 0.1, PCIE: 0.6, HOST_BUS: 1.5 } };

/** Eight devices as two meshes of four, each device joined to its twin in the other one. */
const cubeMesh = linksOf(8, (i, j) =>
  Math.floor(i / 4) === Math.floor(j / 4) || j === i + 4 ? 'NVLINK' : null,
);

describe('islands', () => {
  test.each([
    ['no links', noLinks(4), []],
    ['2', pairLinks(2), [[[0, 1]]]],
    [
      '2 + 2',
      pairLinks(4),
      [
        [
          [0, 1],
          [2, 3],
        ],
      ],
    ],
    [
      '2 * 4',
      pairLinks(8),
      [
        [
          [0, 1],
          [2, 3],
          [4, 5],
          [6, 7],
        ],
      ],
    ],
    ['pairs, one device alone', pairLinks(3), [[[0, 1], [2]]]],
    ['4', fullLinks(4), [[[0, 1, 2, 3]]]],
    ['8', fullLinks(8), [[[0, 1, 2, 3, 4, 5, 6, 7]]]],
    ['16', fullLinks(16), [[Array.from({ length: 16 }, (_, i) => i)]]],
    [
      'two meshes with bridges',
      cubeMesh,
      [
        [
          [0, 1, 2, 3],
          [4, 5, 6, 7],
        ],
      ],
    ],
    [
      'a chain',
      linksOf(4, (i, j) => (j === i + 1 ? 'NVLINK' : null)),
      [
        [
          [0, 1],
          [2, 3],
        ],
      ],
    ],
    [
      'a chain whose ends are its middle',
      linksOf(4, (i, j) => (i === 0 && j !== 3 ? 'NVLINK' : i === 1 && j === 3 ? 'NVLINK' : null)),
      [
        [
          [0, 2],
          [1, 3],
        ],
      ],
    ],
    [
      'bridges of pairs, a bus between them',
      linksOf(4, (i, j) => (i % 2 === 0 && j === i + 1 ? 'NVLINK' : 'PCIE')),
      [
        [
          [0, 1],
          [2, 3],
        ],
        [[0, 1, 2, 3]],
      ],
    ],
    ['links that are dearer than the host', fullLinks(4, 'HOST_BUS'), []],
  ])('%s', (_, links, expected) => {
    expect(islandChoices(links, costs)).toEqual(expected);
  });

  test('have every device once, only devices that are linked, and as many pairs as can be', () => {
    forAll(40, (random) => {
      const devices = random.integer(2, 7);
      const links = linksOf(devices, () => (random.chance(0.6) ? 'NVLINK' : null));
      for (const islands of islandChoices(links, costs)) {
        expect(islands.flat().sort((a, b) => a - b)).toEqual(links.map((_, i) => i));
        for (const island of islands) {
          for (const i of island) {
            for (const j of island) expect(i === j || peerCost(links, costs, i, j) < 1).toBe(true);
          }
        }
        const pairs = islands.reduce((sum, { length }) => sum + (length * (length - 1)) / 2, 0);
        expect(pairs).toBe(mostPairs(devices, (i, j) => links[i]?.[j] !== null));
      }
    });
  });
});

/** Most pairs of devices, found by trying all partitions. */
function mostPairs(devices: number, isJoined: (i: number, j: number) => boolean): number {
  const place = (device: number, islands: readonly (readonly number[])[]): number => {
    if (device === devices) {
      return islands.reduce((sum, { length }) => sum + (length * (length - 1)) / 2, 0);
    }
    const joins = islands.flatMap((island, k) =>
      island.every((other) => isJoined(other, device))
        ? [
            place(
              device + 1,
              islands.map((one, i) => (i === k ? [...one, device] : one)),
            ),
          ]
        : [],
    );
    return Math.max(place(device + 1, [...islands, [device]]), ...joins);
  };
  return place(0, []);
}

describe('what a row of another device costs', () => {
  test('is what its link was measured at, never next to nothing', () => {
    expect(peerCost(fullLinks(2), costs, 0, 1)).toBe(0.1);
    expect(peerCost(fullLinks(2), { host: 50, links: { NVLINK: 0.1 } }, 0, 1)).toBe(1);
  });

  test.each([
    ['without a link', noLinks(2)],
    ['over one that is slower than the host', fullLinks(2, 'HOST_BUS')],
  ])('is beyond the host %s', (_, links) => {
    expect(peerCost(links, costs, 0, 1)).toBe(Infinity);
  });
});

test('links among some devices are those, by their new numbers', () => {
  expect(linksAmong(pairLinks(4), [1, 2, 3])).toEqual(
    linksOf(3, (i, j) => (i === 1 && j === 2 ? 'NVLINK' : null)),
  );
});

test.each([
  ['none at all', [], costs, 'links are of 0 devices'],
  ['17', noLinks(17), costs, 'links are of 17 devices, expected 1 to 16'],
  [
    'one-sided',
    [
      [null, 'NVLINK'],
      [null, null],
    ],
    costs,
    'links of device 0',
  ],
  ['to itself', [['NVLINK']], costs, 'links of device 0'],
  ['a free host', noLinks(1), { host: 0, links: {} }, 'a row from the host costs 0'],
  ['a negative cost', noLinks(1), { host: 1, links: { PCIE: -1 } }, 'a row over PCIE costs -1'],
] as const)('links that cannot be: %s', (_, links, prices, message) => {
  expect(() => checkLinks(links, prices)).toThrow(message);
});
