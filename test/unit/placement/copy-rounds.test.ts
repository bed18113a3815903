import { describe, expect, test } from 'vitest';
import { copyRounds, usedBy, type Wiring } from '../../../src/placement/copy-rounds.ts';
import { forAll } from '../../support/random.ts';

/** Devices in fours, twos, … to a switch. */
function switches(devices: number, each: number): Wiring {
  const switchOf = Array.from({ length: devices }, (_, i) => Math.floor(i / each));
  return { switchOf, isDirect: () => false };
}

/** All joined directly. */
function direct(devices: number): Wiring {
  return { ...switches(devices, 1), isDirect: () => true };
}

describe('rounds of copies between all devices', () => {
  test('of four, two to a switch, are five: both near pairs, then one over the bridge each', () => {
    expect(copyRounds(switches(4, 2)).map(String)).toEqual(['0,1,2,3', '0,3', '1,2', '0,2', '1,3']);
  });

  test('of four that are all joined are three, in which nobody waits', () => {
    expect(copyRounds(direct(4)).map(String)).toEqual(['0,3,1,2', '0,1,2,3', '0,2,1,3']);
  });

  test.each([2, 3, 4, 5, 6, 7, 8, 12, 16])(
    'of %d that are all joined are as many as a device has peers, one more where they are odd',
    (devices) => {
      const rounds = copyRounds(direct(devices));
      expect(rounds).toHaveLength(devices % 2 === 0 ? devices - 1 : devices);
      expect(rounds.map(({ length }) => length)).toEqual(rounds.map(() => Math.floor(devices / 2)));
    },
  );

  test('of eight, four to a switch, are three of near pairs and one for each other pair', () => {
    const rounds = copyRounds(switches(8, 4));
    expect(rounds).toHaveLength(3 + 16);
    expect(rounds.slice(0, 3).map(({ length }) => length)).toEqual([4, 4, 4]);
  });

  test('of one device are none', () => {
    expect(copyRounds(direct(1))).toEqual([]);
  });

  test('have every pair once, and nothing twice in a round, whatever joins them', () => {
    forAll(80, (random) => {
      const devices = random.pick([2, 3, 4, 6, 8]);
      const switchOf = Array.from({ length: devices }, () => random.integer(0, 2));
      const joined = new Set<string>();
      const isDirect = (i: number, j: number) => joined.has([i, j].sort().join());
      for (let i = 0; i < devices; i += 1) {
        for (let j = i + 1; j < devices; j += 1) if (random.chance(0.3)) joined.add(`${i},${j}`);
      }
      const wiring = { switchOf, isDirect };
      const rounds = copyRounds(wiring);
      const all = rounds.flat().map((pair) => pair.join());
      expect(new Set(all).size).toBe((devices * (devices - 1)) / 2);
      expect(all).toHaveLength(new Set(all).size);
      for (const round of rounds) {
        const uses = round.flatMap((pair) => usedBy(pair, wiring));
        expect(new Set(uses).size).toBe(uses.length);
      }
      // No fewer rounds than the most wanted thing has copies to carry.
      const wanted = new Map<string, number>();
      for (const pair of rounds.flat()) {
        for (const use of usedBy(pair, wiring)) wanted.set(use, (wanted.get(use) ?? 0) + 1);
      }
      expect(rounds.length).toBeGreaterThanOrEqual(Math.max(...wanted.values()));
    });
  });
});
