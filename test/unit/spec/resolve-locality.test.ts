import { describe, expect, it } from 'vitest';
import { resolveJobSpec } from '../../../src/spec/resolve-job-spec.ts';
import { adapts, favours } from '../../../src/spec/rules/locality.ts';
import { contextOf, okOf, violationsIn } from '../../support/spec-context.ts';

const context = contextOf({ deviceNames: ['cpu:0', 'cpu:1', 'cpu:2', 'sim:0'] });

/** A spec with these fields of sampling, and a cache. */
function resolve(sampling: Record<string, unknown>, others: Record<string, unknown> = {}) {
  const spec = { dataset: 'cora', resources: { deviceKind: 'CPU' }, cache: { ratio: 0.1 } };
  const training = { epochs: 1, ...((others['training'] as object | undefined) ?? {}) };
  return resolveJobSpec({ ...spec, sampling, ...others, training } as never, context);
}

function violationsOf(...given: Parameters<typeof resolve>) {
  return violationsIn(resolve(...given));
}

function resolved(...given: Parameters<typeof resolve>) {
  return okOf(resolve(...given));
}

const scale = 'spec.sampling.locality.max_scale';
const on = { locality: { maxScale: 4 } };

describe('locality', () => {
  it('is off unless asked for', () => {
    const spec = resolved({});
    expect(favours(spec)).toBe(false);
    expect(spec.sampling.locality).toEqual({
      ...{ maxScale: 1, schedule: 'FIXED', ratio: 0, hopNodes: 8192 },
    });
  });

  it('favours as many rows as a Trainer caches, unless it is told how many', () => {
    expect(resolved(on).sampling.locality.ratio).toBe(0.1);
    const wider = { locality: { maxScale: 2.0625, ratio: 0.4 } };
    expect(resolved(wider).sampling.locality).toMatchObject({ maxScale: 2.0625, ratio: 0.4 });
    expect(favours(resolved(wider))).toBe(true);
  });

  it.each([
    ['RANDOM_WALK', { algorithm: 'RANDOM_WALK' }],
    ['KHOP_WEIGHTED', { algorithm: 'KHOP_WEIGHTED', fanouts: [5] }],
    ['LABOR', { algorithm: 'LABOR', fanouts: [5] }],
    ['a plug-in', { algorithm: 'KHOP_PLUGIN', fanouts: [5], plugin: { path: '/p.so' } }],
  ])('is refused for %s', (_, sampling) => {
    expect(violationsOf({ ...sampling, ...on })).toContainEqual({
      path: scale,
      description: '4: only for algorithm KHOP_UNIFORM',
    });
    // The neutral value may be given where no one reads the field.
    expect(violationsOf({ ...sampling, locality: { maxScale: 1 } })).not.toContainEqual(
      expect.objectContaining({ path: scale }),
    );
  });

  it.each([
    ['GAT', { type: 'GAT' }, /GAT has no aggregate that weights keep unbiased/],
    ['GATV2', { type: 'GATV2' }, /no aggregate/],
    ['a TORCHSCRIPT', { type: 'TORCHSCRIPT', script: { path: '/m.pt' } }, /no aggregate/],
    ['SGC', { type: 'SGC' }, /SGC reads propagated features/],
    ['SIGN', { type: 'SIGN' }, /SIGN reads propagated features/],
    ['HOGA', { type: 'HOGA' }, /HOGA reads propagated features/],
  ])('is refused for %s', (_, model, description) => {
    expect(violationsOf(on, { model })).toContainEqual({
      path: scale,
      description: expect.stringMatching(description),
    });
  });

  it('is refused where every neighbour is taken anyway', () => {
    expect(violationsOf({ fanouts: [-1, -1], ...on })).toContainEqual({
      path: scale,
      description: expect.stringMatching(/all neighbours are taken/),
    });
    expect(violationsOf({ fanouts: [5, -1], ...on })).toEqual([]);
  });

  it('takes sixteenths from 1 to 8', () => {
    expect(violationsOf({ locality: { maxScale: 1.1 } })).toEqual([
      { path: scale, description: '1.1: expected a multiple of 0.0625' },
    ]);
    for (const maxScale of [0.5, 8.5]) {
      expect(violationsOf({ locality: { maxScale } })[0]?.path).toBe(scale);
    }
  });

  it('draws distinct neighbours', () => {
    expect(violationsOf({ replace: true, ...on }).map(({ path }) => path)).toEqual([
      'spec.sampling.replace',
    ]);
  });

  it.each([
    ['none', { ratio: 0 }, '0'],
    ['one that takes the memory there is', {}, 'automatic'],
  ])('needs a cache whose size the spec says: %s', (_, cache, given) => {
    expect(violationsOf(on, { cache })).toContainEqual({
      path: 'spec.cache.ratio',
      description: expect.stringMatching(new RegExp(`^${given}: .*expected a share above 0`)),
    });
  });

  it('has no order by what its own epochs read', () => {
    const cache = { ratio: 0.1, policy: 'OPTIMAL' };
    expect(violationsOf(on, { cache }).map(({ path }) => path)).toEqual(['spec.cache.policy']);
  });

  it('adapts to measured times in relaxed jobs only', () => {
    const locality = { maxScale: 8, schedule: 'ADAPTIVE' };
    expect(violationsOf({ locality })).toEqual([
      {
        path: 'spec.sampling.locality.schedule',
        description: expect.stringMatching(/determinism RELAXED/),
      },
    ]);
    const relaxed = resolved({ locality }, { training: { determinism: 'RELAXED' } });
    expect(adapts(relaxed)).toBe(true);
    expect(adapts(resolved(on))).toBe(false);
  });

  it('runs on cores: devices are refused by field, and not chosen', () => {
    const resources = { deviceNames: ['sim:0'] };
    expect(violationsOf(on, { resources })).toContainEqual({
      path: scale,
      description: expect.stringMatching(/^max_scale 4: runs on CPU devices only/),
    });
  });
});
