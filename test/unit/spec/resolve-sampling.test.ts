import { describe, expect, it } from 'vitest';
import type { JobSpec, JobSpecInput } from '../../../src/spec/job-spec.ts';
import { resolveJobSpec } from '../../../src/spec/resolve-job-spec.ts';
import type { PluginLookup } from '../../../src/spec/rules/rule.ts';
import { contextOf, okOf } from '../../support/spec-context.ts';

type SamplingInput = JobSpecInput['sampling'];

const digest = 'ab'.repeat(32);
const context = contextOf({
  numNodes: 2708,
  trainNodes: 140,
  valNodes: 500,
  hasEdgeWeights: true,
  pluginFile: ((path) =>
    path === '/plugins/mine.so' ? { sha256: digest } : { problem: 'is not there' }) as PluginLookup,
});

function resolve(sampling: SamplingInput, model?: JobSpecInput['model'], where = context) {
  return resolveJobSpec({ dataset: 'cora', training: { epochs: 1 }, model, sampling }, where);
}

function resolved(sampling: SamplingInput, model?: JobSpecInput['model']): JobSpec {
  return okOf(resolve(sampling, model));
}

function paths(sampling: SamplingInput, model?: JobSpecInput['model'], where = context) {
  const resolution = resolve(sampling, model, where);
  return 'ok' in resolution ? [] : resolution.violations.map(({ path }) => path);
}

describe('sampling', () => {
  it('walks as PinSAGE does unless told otherwise', () => {
    const { model, sampling } = resolved({ algorithm: 'RANDOM_WALK' });
    expect(model.layers).toBe(3);
    expect(sampling).toEqual({
      fanouts: [],
      algorithm: 'RANDOM_WALK',
      replace: false,
      expansion: 'ALL',
      walk: { walks: 4, length: 3, restartProb: 0.5, neighbors: 5 },
      labor: { dependencyWindow: 0 },
      plugin: { path: '', options: '', weights: false, sha256: '' },
      locality: { maxScale: 1, schedule: 'FIXED', ratio: 0, hopNodes: 0 },
    });
    expect(resolved({ algorithm: 'RANDOM_WALK' }, { layers: 2 }).model.layers).toBe(2);
  });

  it('makes batches of LABOR independent unless told otherwise', () => {
    expect(resolved({ algorithm: 'LABOR' }).sampling.labor).toEqual({ dependencyWindow: 1 });
  });

  it.each(['KHOP_UNIFORM', 'KHOP_WEIGHTED', 'RANDOM_WALK', 'LABOR'] as const)(
    'resolves what it resolved to the same: %s',
    (algorithm) => {
      const once = resolved({ algorithm, expansion: 'NEW' });
      expect(resolved(once.sampling, once.model)).toEqual(once);
    },
  );

  it('samples by weight only where there are weights, or the dataset is not known', () => {
    const by = { algorithm: 'KHOP_WEIGHTED' } as const;
    expect(paths(by, undefined, { ...context, hasEdgeWeights: false })).toEqual([
      'spec.sampling.algorithm',
    ]);
    expect(paths(by, undefined, { ...context, hasEdgeWeights: null })).toEqual([]);
    expect(paths(by)).toEqual([]);
  });

  it('refuses walks that are none, by field', () => {
    const walk = { walks: 0, length: 0, restartProb: 1, neighbors: 0 };
    expect(paths({ algorithm: 'RANDOM_WALK', walk })).toEqual([
      'spec.sampling.walk.walks',
      'spec.sampling.walk.length',
      'spec.sampling.walk.restart_prob',
      'spec.sampling.walk.neighbors',
    ]);
    const wild = { walks: 65, length: 1e9, restartProb: Number.NaN, neighbors: 4097 };
    expect(paths({ algorithm: 'RANDOM_WALK', walk: wild })).toHaveLength(4);
    expect(paths({ algorithm: 'RANDOM_WALK', walk: { restartProb: -0.1 } })).toEqual([
      'spec.sampling.walk.restart_prob',
    ]);
  });

  it('refuses fields of another algorithm', () => {
    expect(paths({ walk: { length: 3 }, labor: { dependencyWindow: 2 } })).toEqual([
      'spec.sampling.walk.length',
      'spec.sampling.labor.dependency_window',
    ]);
    expect(paths({ algorithm: 'RANDOM_WALK', fanouts: [5] })).toEqual(['spec.sampling.fanouts']);
    expect(paths({ algorithm: 'LABOR', replace: true })).toEqual(['spec.sampling.replace']);
    expect(paths({ algorithm: 'RANDOM_WALK', replace: true })).toEqual(['spec.sampling.replace']);
    expect(paths({ replace: true })).toEqual([]);
  });

  it('bounds the dependency window', () => {
    const window = (dependencyWindow: number) =>
      paths({ algorithm: 'LABOR', labor: { dependencyWindow } });
    expect(window(1)).toEqual([]);
    expect(window(65_536)).toEqual([]);
    for (const wrong of [0, 65_537, 1.5]) {
      expect(window(wrong)).toEqual(['spec.sampling.labor.dependency_window']);
    }
  });

  it('trains GCN on uniform draws of distinct neighbours only', () => {
    const gcn = { type: 'GCN' } as const;
    expect(paths({ expansion: 'NEW' }, gcn)).toEqual([]);
    expect(paths({ replace: true }, gcn)).toEqual(['spec.sampling.replace']);
    for (const algorithm of ['KHOP_WEIGHTED', 'LABOR', 'RANDOM_WALK'] as const) {
      expect(paths({ algorithm }, gcn)).toEqual(['spec.sampling.algorithm']);
    }
  });
});

describe('a plug-in sampler', () => {
  const mine = { path: '/plugins/mine.so' };
  const by = (plugin: object, rest: object = {}) =>
    ({ algorithm: 'KHOP_PLUGIN', plugin, ...rest }) as const;

  it('is frozen with its digest, and nodes are ranked by counting', () => {
    const once = resolved(by(mine));
    expect(once.sampling.plugin).toEqual({
      path: '/plugins/mine.so',
      options: '',
      weights: false,
      sha256: digest,
    });
    expect(once.cache.policy).toBe('PRESC');
    expect(resolved(once.sampling, once.model)).toEqual(once);
    expect(resolved(by({ ...mine, sha256: digest.toUpperCase() }))).toEqual(once);
  });

  it('must name a file that may be loaded and is the one that was meant', () => {
    expect(paths(by({}))).toEqual(['spec.sampling.plugin.path']);
    expect(paths(by({ path: '/etc/passwd' }))).toEqual(['spec.sampling.plugin.path']);
    const other = { ...mine, sha256: 'cd'.repeat(32) };
    expect(paths(by(other))).toEqual(['spec.sampling.plugin.sha256']);
  });

  it('takes a line of options', () => {
    const options = (text: string) => paths(by({ ...mine, options: text }));
    expect(options('k=1;temperature=0.5')).toEqual([]);
    expect(options('x'.repeat(4096))).toEqual([]);
    for (const wrong of ['x'.repeat(4097), 'a\0b']) {
      expect(options(wrong)).toEqual(['spec.sampling.plugin.options']);
    }
  });

  it('decides by itself about repeats, and feeds models that take any neighbours', () => {
    expect(paths(by(mine, { replace: true }))).toEqual(['spec.sampling.replace']);
    expect(paths(by(mine), { type: 'GAT' })).toEqual([]);
    for (const type of ['GCN', 'PINSAGE'] as const) {
      expect(paths(by(mine), { type })).toEqual(['spec.sampling.algorithm']);
    }
  });

  it('has no place in other algorithms', () => {
    expect(paths({ plugin: { ...mine, options: 'a', weights: true, sha256: digest } })).toEqual([
      'spec.sampling.plugin.path',
      'spec.sampling.plugin.options',
      'spec.sampling.plugin.weights',
      'spec.sampling.plugin.sha256',
    ]);
  });

  it('is not ranked by probabilities, which nobody knows', () => {
    for (const policy of ['COMBINED', 'PROBABILITY'] as const) {
      const spec = { dataset: 'cora', training: { epochs: 1 }, cache: { policy } };
      expect(resolveJobSpec({ ...spec, sampling: by(mine) }, context)).toMatchObject({
        violations: [{ path: 'spec.cache.policy' }],
      });
    }
  });
});

describe('fanouts', () => {
  it('are 1 to 4096 or -1, and each wrong one is named by its place', () => {
    expect(paths({ fanouts: [1, 4096, -1] })).toEqual([]);
    expect(paths({ fanouts: [0, 10, -2, 4097, 1.5, Number.NaN] })).toEqual(
      [0, 2, 3, 4, 5].map((hop) => `spec.sampling.fanouts[${hop}]`),
    );
  });

  it('are at most 8', () => {
    expect(paths({ fanouts: Array(8).fill(5) })).toEqual([]);
    expect(paths({ fanouts: Array(9).fill(5) })).toEqual(['spec.sampling.fanouts']);
  });

  it('must be as many as the layers, if those are given', () => {
    expect(paths({ fanouts: [5, 5, 5] }, { layers: 3 })).toEqual([]);
    expect(resolve({ fanouts: [5, 5] }, { layers: 3 })).toEqual({
      violations: [
        { path: 'spec.model.layers', description: '3: expected 2, the number of sampling.fanouts' },
      ],
    });
    expect(paths(undefined, { layers: 3 })).toEqual(['spec.model.layers']);
  });
});
