import { describe, expect, it } from 'vitest';
import type { JobSpec, JobSpecInput } from '../../../src/spec/job-spec.ts';
import { resolveJobSpec } from '../../../src/spec/resolve-job-spec.ts';
import type { PluginLookup } from '../../../src/spec/rules/rule.ts';
import { leafAt } from '../../../src/spec/spec-fields.ts';
import { contextOf, okOf, violationsIn } from '../../support/spec-context.ts';

type ModelInput = NonNullable<JobSpecInput['model']>;
type TrainingInput = NonNullable<JobSpecInput['training']>;

const digest = 'ab'.repeat(32);
const context = contextOf({
  numNodes: 2708,
  trainNodes: 140,
  valNodes: 500,
  hasEdgeWeights: true,
  pluginFile: ((path) =>
    path === '/plugins/mine.pt' ? { sha256: digest } : { problem: 'is not there' }) as PluginLookup,
});
const walks = { algorithm: 'RANDOM_WALK' } as const;

function resolve(
  model: ModelInput,
  sampling: JobSpecInput['sampling'] = {},
  training: TrainingInput = {},
) {
  const spec = { dataset: 'cora', training: { epochs: 12, ...training }, model, sampling };
  return resolveJobSpec(spec, context);
}

function resolved(...given: Parameters<typeof resolve>): JobSpec {
  return okOf(resolve(...given));
}

function violations(...given: Parameters<typeof resolve>) {
  return violationsIn(resolve(...given));
}

function paths(...given: Parameters<typeof resolve>): readonly string[] {
  return violations(...given).map(({ path }) => path);
}

const training = (part: TrainingInput) => [{}, {}, part] as const;
const optimizer = (part: TrainingInput['optimizer']) => training({ optimizer: part });
const schedule = (part: TrainingInput['lrSchedule']) => training({ lrSchedule: part });

describe('a TorchScript model', () => {
  const mine = { type: 'TORCHSCRIPT', script: { path: '/plugins/mine.pt' } } as const;

  it('is frozen with its digest, and says everything else itself', () => {
    const once = resolved(mine, { fanouts: [5, 5, 5] });
    expect(once.model).toEqual({
      type: 'TORCHSCRIPT',
      layers: 3,
      hiddenDim: 0,
      dropout: 0,
      inputDropout: 0,
      heads: 1,
      attentionDropout: 0,
      activation: 'RELU',
      normalization: 'NONE',
      residual: false,
      variant: 'NONE',
      hopLayers: 0,
      hopHiddenDim: 0,
      bases: 0,
      script: { path: '/plugins/mine.pt', sha256: digest },
    });
    expect(resolveJobSpec(once, context)).toEqual({ ok: once });
  });

  it('must name a file that may be loaded and is the one that was meant', () => {
    expect(paths({ type: 'TORCHSCRIPT' })).toEqual(['spec.model.script.path']);
    expect(paths({ type: 'TORCHSCRIPT', script: { path: '/a.pt' } })).toEqual([
      'spec.model.script.path',
    ]);
    expect(paths({ ...mine, script: { ...mine.script, sha256: 'cd' } })).toEqual([
      'spec.model.script.sha256',
    ]);
  });

  it('leaves no choice to fields of other models, nor its own to them', () => {
    const foreign = {
      hiddenDim: 16,
      dropout: 0.5,
      inputDropout: 0.1,
      heads: 2,
      attentionDropout: 0.1,
      activation: 'ELU',
      normalization: 'L2',
      residual: true,
    } as const;
    expect(paths({ ...mine, ...foreign })).toHaveLength(8);
    expect(paths({ script: { ...mine.script, sha256: digest } })).toEqual([
      'spec.model.script.path',
      'spec.model.script.sha256',
    ]);
  });

  it('is fed by every sampler, and decays all of its parameters or none', () => {
    for (const algorithm of ['KHOP_UNIFORM', 'KHOP_WEIGHTED', 'RANDOM_WALK', 'LABOR'] as const) {
      expect(
        paths({ ...mine, layers: algorithm === 'RANDOM_WALK' ? 3 : 2 }, { algorithm }),
      ).toEqual([]);
    }
    const optimizer = { weightDecayScope: 'FIRST_LAYER' } as const;
    expect(paths(mine, {}, { optimizer })).toEqual(['spec.training.optimizer.weight_decay_scope']);
  });

  it('computes in the precision of its file', () => {
    expect(paths(mine, {}, { precision: 'FLOAT32' })).toEqual([]);
    for (const precision of ['BFLOAT16', 'TF32'] as const) {
      expect(paths(mine, {}, { precision })).toEqual(['spec.training.precision']);
    }
    expect(paths({ type: 'GAT' }, {}, { precision: 'BFLOAT16' })).toEqual([]);
  });
});

describe('the model', () => {
  it.each(['GAT', 'GATV2'] as const)('%s has four heads unless told otherwise', (type) => {
    expect(resolved({ type }).model).toMatchObject({ heads: 4, attentionDropout: 0 });
    expect(resolved({ type, heads: 8, attentionDropout: 0.6 }).model).toMatchObject({
      heads: 8,
      attentionDropout: 0.6,
    });
  });

  it('has a width that its heads share', () => {
    expect(paths({ type: 'GAT', hiddenDim: 64, heads: 64 })).toEqual([]);
    expect(violations({ type: 'GATV2', hiddenDim: 18 })).toEqual([
      {
        path: 'spec.model.hidden_dim',
        description: '18: expected a multiple of 4, model.heads, which share it',
      },
    ]);
  });

  it.each([0, 65, 1.5, Number.NaN])('takes no %s heads', (heads) => {
    expect(paths({ type: 'GAT', heads })).toEqual(['spec.model.heads']);
  });

  it.each([-0.1, 1, Number.NaN])('drops no share of %s of its attention', (attentionDropout) => {
    expect(paths({ type: 'GAT', attentionDropout })).toEqual(['spec.model.attention_dropout']);
  });

  const ownersOf = (path: string) => `only for ${leafAt(path).owners[0]?.name}`;
  it.each([
    ['GRAPHSAGE', {}],
    ['GCN', {}],
    ['PINSAGE', walks],
  ] as const)('%s has no attention', (type, sampling) => {
    expect(resolved({ type, heads: 1, attentionDropout: 0 }, sampling).model.heads).toBe(1);
    expect(violations({ type, heads: 2, attentionDropout: 0.5 }, sampling)).toEqual([
      { path: 'spec.model.heads', description: `2: ${ownersOf('model.heads')}` },
      {
        path: 'spec.model.attention_dropout',
        description: `0.5: ${ownersOf('model.attention_dropout')}`,
      },
    ]);
  });

  it('PINSAGE needs random walks, which GRAPHSAGE takes, too', () => {
    expect(violations({ type: 'PINSAGE' })).toEqual([
      { path: 'spec.sampling.algorithm', description: 'KHOP_UNIFORM: PINSAGE needs RANDOM_WALK' },
    ]);
    expect(paths({ type: 'PINSAGE' }, walks)).toEqual([]);
    expect(paths({ type: 'GRAPHSAGE' }, walks)).toEqual([]);
  });

  it('PINSAGE has rows of norm 1', () => {
    expect(resolved({ type: 'PINSAGE' }, walks).model.normalization).toBe('L2');
    for (const normalization of ['NONE', 'LAYER'] as const) {
      expect(paths({ type: 'PINSAGE', normalization }, walks)).toEqual([
        'spec.model.normalization',
      ]);
    }
  });

  it.each(['GRAPHSAGE', 'GCN', 'GAT', 'GATV2'] as const)(
    '%s takes every activation and normalisation, and no others',
    (type) => {
      for (const activation of ['RELU', 'ELU', 'LEAKY_RELU'] as const) {
        for (const normalization of ['NONE', 'L2', 'LAYER'] as const) {
          const model = { type, activation, normalization, residual: true };
          expect(resolved(model).model).toMatchObject(model);
        }
      }
      const wrong = { type, activation: '9', normalization: '9', residual: 1 } as unknown;
      expect(paths(wrong as ModelInput)).toEqual([
        'spec.model.activation',
        'spec.model.normalization',
        'spec.model.residual',
      ]);
    },
  );

  it.each([
    ['GRAPHSAGE', {}],
    ['GCN', {}],
    ['GAT', {}],
    ['GATV2', {}],
    ['PINSAGE', walks],
  ] as const)('resolves to itself once resolved: %s', (type, sampling) => {
    const once = resolved({ type }, sampling);
    expect(resolveJobSpec(once, context)).toEqual({ ok: once });
  });
});

describe('the optimizer', () => {
  it.each(['ADAM', 'ADAMW', 'SGD'] as const)('may be %s', (type) => {
    const once = resolved(...optimizer({ type, clipNorm: 5 }));
    expect(once.training.optimizer).toMatchObject({ type, momentum: 0, clipNorm: 5 });
    expect(resolveJobSpec(once, context)).toEqual({ ok: once });
  });

  it('has momentum where it is SGD only', () => {
    const momentum = 0.9;
    expect(resolved(...optimizer({ type: 'SGD', momentum })).training.optimizer.momentum).toBe(0.9);
    expect(violations(...optimizer({ momentum }))).toEqual([
      { path: 'spec.training.optimizer.momentum', description: '0.9: only for type SGD' },
    ]);
  });

  it.each([-0.1, 1, Number.NaN])('takes no momentum of %s', (momentum) => {
    expect(paths(...optimizer({ type: 'SGD', momentum }))).toEqual([
      'spec.training.optimizer.momentum',
    ]);
  });

  it.each([-1, Number.NaN, Number.POSITIVE_INFINITY])('clips at no norm of %s', (clipNorm) => {
    expect(paths(...optimizer({ clipNorm }))).toEqual(['spec.training.optimizer.clip_norm']);
  });

  it('is of a known type', () => {
    expect(paths(...optimizer({ type: '9' as 'SGD' }))).toEqual(['spec.training.optimizer.type']);
  });
});

describe('the learning rate', () => {
  it('stays unless told otherwise', () => {
    const lrSchedule = { type: 'CONSTANT', stepEpochs: 0, gamma: 0, warmupEpochs: 0 };
    expect(resolved({}).training.lrSchedule).toEqual(lrSchedule);
  });

  it('falls to a tenth every ten epochs if it goes by steps', () => {
    const once = resolved(...schedule({ type: 'STEP' }));
    expect(once.training.lrSchedule).toEqual({
      type: 'STEP',
      stepEpochs: 10,
      gamma: 0.1,
      warmupEpochs: 0,
    });
    expect(resolveJobSpec(once, context)).toEqual({ ok: once });
  });

  it.each([
    [{ type: 'STEP', stepEpochs: 0 }, 'step_epochs'],
    [{ type: 'STEP', stepEpochs: 1.5 }, 'step_epochs'],
    [{ type: 'STEP', gamma: 0 }, 'gamma'],
    [{ type: 'STEP', gamma: 1.1 }, 'gamma'],
    [{ type: 'STEP', gamma: Number.NaN }, 'gamma'],
    [{ type: 'COSINE', stepEpochs: 3 }, 'step_epochs'],
    [{ gamma: 0.5 }, 'gamma'],
    [{ warmupEpochs: -1 }, 'warmup_epochs'],
    [{ warmupEpochs: 13 }, 'warmup_epochs'],
    [{ type: '9' as 'STEP' }, 'type'],
  ] as const)('refuses %j', (part, field) => {
    expect(paths(...schedule(part))).toEqual([`spec.training.lr_schedule.${field}`]);
  });

  it('may rise over every epoch of the job', () => {
    expect(paths(...schedule({ type: 'COSINE', warmupEpochs: 12 }))).toEqual([]);
  });
});
