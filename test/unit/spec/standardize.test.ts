import { describe, expect, it } from 'vitest';
import type { JobSpecInput } from '../../../src/spec/job-spec.ts';
import { resolveJobSpec } from '../../../src/spec/resolve-job-spec.ts';
import type { ColumnStatistics } from '../../../src/spec/standardize.ts';
import { standardizeText } from '../../../src/spec/standardize.ts';
import { contextOf, okOf } from '../../support/spec-context.ts';

const dense: ColumnStatistics = {
  ...{ rows: 1000, zero_share: 0.01, varying: 128, standardized: 0 },
  ...{ deviation_median: 0.04, deviation_largest: 0.05 },
};

function choiceOf(
  changes: Partial<ColumnStatistics> | null,
  trainNodes: number,
  fields: JobSpecInput = {},
): string {
  const columns = changes === null ? null : { ...dense, ...changes };
  const context = contextOf({ columns, trainNodes, deviceNames: ['cpu:0', 'cpu:1'] });
  const given = { dataset: 'any', training: { epochs: 1 }, ...fields };
  const spec = okOf(resolveJobSpec(given, context));
  const text = standardizeText(given, spec, context);
  expect(text.startsWith(spec.features.standardize)).toBe(true);
  expect(resolveJobSpec(spec, context)).toEqual({ ok: spec });
  return text;
}

describe('features.standardize: AUTO', () => {
  it('standardises dense columns, with however few training nodes', () => {
    expect(choiceOf({}, 5000)).toBe('ON, chosen: the columns are dense: 1 % of the values are 0');
    expect(choiceOf({ varying: 768 }, 60)).toMatch(/^ON, chosen: the columns are dense/);
  });

  it('standardises sparse columns where there are training nodes enough', () => {
    const sparse = { zero_share: 0.95, varying: 128 };
    expect(choiceOf(sparse, 37_750)).toBe(
      'ON, chosen: 37,750 training nodes for 128 columns are enough, though 95 % of the values are 0',
    );
    expect(choiceOf(sparse, 256)).toMatch(/^ON/);
    expect(choiceOf(sparse, 255)).toMatch(/^OFF/);
  });

  it('leaves words of a text raw where few of the nodes are known', () => {
    expect(choiceOf({ zero_share: 0.987, varying: 1432 }, 140)).toBe(
      'OFF, chosen: 99 % of the values are 0, and 140 training nodes for 1,432 columns are too ' +
        'few to learn the rare ones from',
    );
  });

  it('standardises counts that would drown all else, with however few training nodes', () => {
    const counts = { zero_share: 0.8, varying: 500, deviation_largest: 35_135 };
    expect(choiceOf(counts, 20)).toBe(
      'ON, chosen: the largest deviation of a column is 35000, and would drown the others',
    );
  });

  it('leaves alone what has nothing to gain', () => {
    expect(choiceOf({ standardized: 116 }, 5000)).toBe(
      'OFF, chosen: the columns have mean 0 and deviation 1 already',
    );
    expect(choiceOf({ standardized: 115 }, 5000)).toMatch(/^ON/);
    expect(choiceOf({ varying: 0 }, 5000)).toBe(
      'OFF, chosen: all columns of its dataset are constant',
    );
    expect(choiceOf(null, 5000)).toBe(
      'OFF, chosen: nothing is known of the columns of its dataset',
    );
  });

  it('leaves features alone that the model takes otherwise', () => {
    expect(choiceOf({}, 5000, { model: { type: 'SIGN' } })).toBe(
      'OFF, chosen: rows are standardised after they are propagated',
    );
    const loader = { kind: 'LOAD', resources: { devices: 2 } } as const;
    expect(choiceOf({}, 5000, loader)).toBe('OFF, chosen: a loader lends features as they are');
    const plain = { model: { type: 'SIGN' }, propagation: { standardize: false } } as const;
    expect(choiceOf({}, 5000, plain)).toMatch(/^ON, chosen: the columns are dense/);
  });

  it('leaves rows that are propagated of rare words raw, too', () => {
    const words = { zero_share: 0.987, varying: 1432 };
    const model = { type: 'SGC' } as const;
    expect(choiceOf(words, 140, { model })).toMatch(/^OFF, chosen: 99 % of the values are 0/);
    const rows = (trainNodes: number, fields: JobSpecInput = {}) => {
      const context = contextOf({ columns: { ...dense, ...words }, trainNodes });
      const given = { dataset: 'any', model, ...fields };
      return okOf(resolveJobSpec(given, context)).propagation.standardize;
    };
    expect(rows(140)).toBe(false);
    expect(rows(2864)).toBe(true);
    expect(rows(140, { propagation: { standardize: true } })).toBe(true);
    expect(choiceOf(words, 140, { model, propagation: { standardize: true } })).toBe(
      'OFF, chosen: rows are standardised after they are propagated',
    );
  });

  it('says what was asked for', () => {
    expect(choiceOf({}, 5000, { features: { standardize: 'OFF' } })).toBe('OFF, as asked for');
    expect(choiceOf(null, 5, { features: { standardize: 'ON' } })).toBe('ON, as asked for');
    expect(choiceOf({}, 5000, { features: { standardize: 'AUTO' } })).toMatch(/^ON, chosen/);
  });
});
