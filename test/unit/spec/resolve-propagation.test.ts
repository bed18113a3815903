import { describe, expect, it } from 'vitest';
import { PropagationSpecSchema } from '../../../src/api/gen/gnnd/v1/propagation_pb.ts';
import { idOf } from '../../../src/prepare/propagations.ts';
import { type PropagationInput, resolvePropagation } from '../../../src/spec/rules/propagation.ts';
import { messageOf, plainOf } from '../../../src/spec/spec-codec.ts';

const defaults = {
  operators: ['SYMMETRIC'],
  hops: 3,
  selfLoops: true,
  alpha: 0,
  heatTime: 0,
  terms: 0,
  rowDtype: 'FLOAT32',
  randomSeed: '0',
  standardize: true,
  permute: true,
};

function violationsOf(given: object) {
  const resolution = resolvePropagation(given as PropagationInput);
  return 'ok' in resolution ? [] : resolution.violations;
}

describe('what is propagated', () => {
  it('has defaults, and 0 where no operator reads a field', () => {
    expect(resolvePropagation({})).toEqual({ ok: defaults });
    expect(resolvePropagation({ operators: ['PPR', 'ROW'], hops: 2 })).toMatchObject({
      ok: { operators: ['PPR', 'ROW'], hops: 2, alpha: 0.15, heatTime: 0, terms: 10 },
    });
    expect(resolvePropagation({ operators: ['HEAT'] })).toMatchObject({
      ok: { alpha: 0, heatTime: 3, terms: 10 },
    });
  });

  it('standardises rows unless told otherwise', () => {
    expect(resolvePropagation({ standardize: true })).toEqual(resolvePropagation({}));
    const plain = resolvePropagation({ standardize: false });
    expect(plain).toMatchObject({ ok: { standardize: false } });
  });

  it('resolves to itself', () => {
    const resolution = resolvePropagation({ operators: ['PPR', 'HEAT'], alpha: 1 });
    if (!('ok' in resolution)) throw new Error('refused');
    expect(resolvePropagation(resolution.ok)).toEqual(resolution);
  });

  it('is told all that is wrong, each with its path', () => {
    const given = {
      ...{ operators: ['PPR', 'LAPLACE', 'PPR'], hops: 0, alpha: 0, heatTime: -1, terms: 1001 },
      ...{ rowDtype: 'INT8', randomSeed: '-1' },
    };
    expect(violationsOf(given).map(({ path }) => path)).toEqual([
      'propagation.operators[1]',
      'propagation.hops',
      'propagation.heat_time',
      'propagation.terms',
      'propagation.row_dtype',
      'propagation.random_seed',
      'propagation.operators[2]',
      'propagation.alpha',
    ]);
  });

  it.each([0, -0.1, 1.01, Number.NaN, Number.POSITIVE_INFINITY])('refuses alpha %s', (alpha) => {
    expect(violationsOf({ operators: ['PPR'], alpha })).toEqual([
      { path: 'propagation.alpha', description: expect.stringContaining('(0, 1]') },
    ]);
  });

  it('takes what it was resolved to', () => {
    const cases: readonly PropagationInput[] = [{}, { operators: ['HEAT'], terms: 3 }];
    for (const given of cases) {
      const first = resolvePropagation(given);
      if (!('ok' in first)) throw new Error('was refused');
      expect(resolvePropagation(first.ok)).toEqual(first);
    }
  });

  it('refuses R = 0 and more than 64', () => {
    for (const hops of [0, -1, 1.5, 65]) {
      expect(violationsOf({ hops })).toEqual([
        {
          path: 'propagation.hops',
          description: `${hops}: expected an integer from 1 to 64`,
        },
      ]);
    }
  });

  it('refuses parameters of operators that are not there', () => {
    expect(violationsOf({ alpha: 0.5, heatTime: 2, terms: 5 })).toEqual([
      { path: 'propagation.alpha', description: '0.5: only with PPR among the operators' },
      { path: 'propagation.heat_time', description: '2: only with HEAT among the operators' },
      { path: 'propagation.terms', description: '5: only with PPR or HEAT among the operators' },
    ]);
  });

  it('crosses the wire as it is, also an operator that this version does not know', () => {
    const given: PropagationInput = { operators: ['PPR', 'ROW'], hops: 4, rowDtype: 'BFLOAT16' };
    const message = messageOf(PropagationSpecSchema, given);
    expect(plainOf(PropagationSpecSchema, message)).toEqual(given);
    const strange = plainOf<PropagationInput>(PropagationSpecSchema, {
      ...message,
      operators: [2, 9],
    } as typeof message);
    expect(violationsOf(strange)[0]?.path).toBe('propagation.operators[1]');
  });
});

describe('the id of a propagation', () => {
  const source = (given: PropagationInput, datasetDigest = 'aa', standardize = false) => {
    const resolution = resolvePropagation(given);
    if (!('ok' in resolution)) throw new Error('refused');
    return { dataset: 'any', datasetDigest, propagation: resolution.ok, standardize };
  };

  it('is the same for the same work and another for any other', () => {
    const id = idOf(source({}));
    expect(idOf({ ...source({ hops: 3, selfLoops: true }), dataset: 'other' })).toBe(id);
    const others = [
      source({ hops: 4 }),
      source({ operators: ['ROW'] }),
      source({ operators: ['SYMMETRIC', 'ROW'] }),
      source({ rowDtype: 'FLOAT16' }),
      source({ randomSeed: '1' }),
      source({ selfLoops: false }),
      source({}, 'bb'),
      source({}, 'aa', true),
      source({ standardize: false }),
      source({ permute: false }),
    ].map(idOf);
    expect(new Set([id, ...others]).size).toBe(others.length + 1);
  });
});
