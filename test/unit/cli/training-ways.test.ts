import { describe, expect, it, test } from 'vitest';
import {
  type GraphSizes,
  secondsOf,
  suggestionOf,
  type Way,
  type WayFinding,
  workOf,
} from '../../../src/cli/show/training-ways.ts';

/** The arithmetic of `gnnctl job suggest`, against numbers worked out by hand. */

const settings = { hiddenDim: 10, batchSize: 100, fanouts: [2, 3], hops: 2 };
/** So large that no node is met twice. */
const sparse: GraphSizes = {
  ...{ nodes: 1e12, edges: 4e12, features: 8, classes: 5, train: 1000 },
};

describe('the work of a way', () => {
  it('sampled: fanouts multiply, rows are gathered once a batch, no gradient of features', () => {
    const { batchRows, epochBytes, epochProducts, onceBytes } = workOf('SAMPLED', sparse, settings);
    // 100 targets, 200 drawn; then 300 rows, 900 drawn; 1,200 rows of features.
    expect(batchRows).toBeCloseTo(1200, -1);
    const bytes = 2 * 200 * 10 * 4 + 900 * 8 * 4 + 1200 * 8 * 4;
    expect(epochBytes / (10 * bytes)).toBeCloseTo(1, 2);
    const products = 2 * 100 * 10 * 5 + 2 * 300 * 8 * 10;
    expect(epochProducts / (3 * 10 * products)).toBeCloseTo(1, 2);
    expect(onceBytes).toBe(0);
  });

  it('full: every neighbour is drawn, and no more rows than there are nodes', () => {
    const small = { ...sparse, nodes: 500, edges: 20_000 };
    const { batchRows } = workOf('FULL', small, settings);
    expect(batchRows).toBeLessThanOrEqual(500);
    expect(batchRows).toBeGreaterThan(499);
    const { epochBytes } = workOf('FULL', sparse, settings);
    expect(epochBytes).toBeGreaterThan(workOf('SAMPLED', sparse, settings).epochBytes);
  });

  it('propagated: rows of all hops, and the edges once for each hop', () => {
    const work = workOf('PROPAGATED', sparse, settings);
    expect(work.batchRows).toBe(300);
    expect(work.epochBytes).toBe(1000 * 3 * 8 * 4);
    expect(work.epochProducts).toBe(3 * 1000 * (24 * 10 + 10 * 10 + 10 * 5));
    expect(work.onceBytes).toBe(2 * (4e12 + 2e12) * 8 * 4);
  });

  it('takes half the time on twice the cores', () => {
    const work = workOf('PROPAGATED', sparse, settings);
    const [one, two] = [secondsOf(work, 1), secondsOf(work, 2)];
    expect(two.epoch).toBe(one.epoch / 2);
    expect(two.once).toBe(one.once / 2);
  });
});

describe('what to try first', () => {
  const finding = (way: Way, epochSeconds: number, more: Partial<WayFinding> = {}): WayFinding => {
    return { way, epochSeconds, onceSeconds: 0, refusal: null, ...more };
  };

  test.each<[string, readonly WayFinding[], Way | null, string]>([
    ['minutes', [finding('SAMPLED', 2), finding('PROPAGATED', 0.1)], 'SAMPLED', 'most accurate'],
    ['hours', [finding('SAMPLED', 200), finding('PROPAGATED', 2)], 'PROPAGATED', '100 times'],
    [
      'hours of propagation',
      [finding('SAMPLED', 200), finding('PROPAGATED', 2, { onceSeconds: 3000 })],
      'SAMPLED',
      'saves little',
    ],
    [
      'no memory for one',
      [finding('SAMPLED', 1, { refusal: 'memory' }), finding('PROPAGATED', 9)],
      'PROPAGATED',
      'refused',
    ],
    ['none', [finding('SAMPLED', 1, { refusal: 'memory' })], null, ''],
  ])('%s', (_, findings, way, reason) => {
    const suggestion = suggestionOf(findings, 20);
    expect(suggestion?.way ?? null).toBe(way);
    expect(suggestion?.reason ?? '').toContain(reason);
  });
});
