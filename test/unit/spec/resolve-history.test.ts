import { describe, expect, it } from 'vitest';
import { resolveJobSpec } from '../../../src/spec/resolve-job-spec.ts';
import { contextOf, violationsIn } from '../../support/spec-context.ts';

const context = contextOf({ deviceNames: ['cpu:0', 'cpu:1', 'cpu:2', 'sim:0'] });

function resolve(fields: Record<string, unknown>) {
  const { training, ...rest } = fields;
  const spec = { dataset: 'cora', resources: { deviceKind: 'CPU' }, ...rest };
  return resolveJobSpec(
    { ...spec, training: { epochs: 1, ...(training ?? {}) } } as never,
    context,
  );
}

function violationsOf(fields: Record<string, unknown>) {
  return violationsIn(resolve(fields));
}

const on = { staleSteps: 10 };

describe('history', () => {
  it('is off unless asked for', () => {
    expect(resolve({})).toMatchObject({
      ok: { history: { staleSteps: 0, gradientShare: 0.9, startStep: 0, levels: [] } },
    });
  });

  it('keeps the last hidden layer unless others are asked for', () => {
    const sampling = { fanouts: [5, 5, 5] };
    expect(resolve({ history: on, sampling })).toMatchObject({ ok: { history: { levels: [2] } } });
    expect(resolve({ history: { ...on, levels: [2, 1] }, sampling })).toMatchObject({
      ok: { history: { levels: [1, 2] } },
    });
  });

  it('keeps hidden layers only, each once', () => {
    const sampling = { fanouts: [5, 5, 5] };
    const path = 'spec.history.levels';
    expect(violationsOf({ history: { ...on, levels: [1, 3] }, sampling })).toEqual([
      { path, description: '3: expected 1 to 2, the hidden layers' },
    ]);
    expect(violationsOf({ history: { ...on, levels: [1, 1] }, sampling })).toEqual([
      { path, description: '1, 1: expected each level once' },
    ]);
  });

  it.each([
    ['a TORCHSCRIPT', { type: 'TORCHSCRIPT', file: '/m.pt' }, /TORCHSCRIPT/],
    ['SIGN', { type: 'SIGN' }, /propagated features/],
    ['SGC', { type: 'SGC' }, /propagated features/],
  ])('is refused for %s', (_, model, description) => {
    expect(violationsOf({ history: on, model })).toContainEqual({
      path: 'spec.history.stale_steps',
      description: expect.stringMatching(description),
    });
  });

  it('is refused for models of one layer', () => {
    expect(violationsOf({ history: on, sampling: { fanouts: [5] } })).toEqual([
      {
        path: 'spec.history.stale_steps',
        description: '10: a model of one layer has no hidden rows; expected 0',
      },
    ]);
  });

  it('goes with devices that have memory of their own', () => {
    expect(violationsOf({ history: on, resources: { deviceKind: 'SIM' } })).toEqual([]);
  });

  it('goes with several Trainers, and strict with no delay', () => {
    const several = {
      resources: { deviceKind: 'CPU', devices: 3 },
      placement: { policy: 'FIXED', samplers: 1 },
    };
    expect(violationsOf({ history: on, ...several })).toEqual([]);
    const [violation] = violationsOf({ history: on, ...several, training: { staleness: 1 } });
    expect(violation?.path).toBe('spec.training.staleness');
    expect(violation?.description).toContain('training.determinism RELAXED');
    const relaxed = { staleness: 1, determinism: 'RELAXED' };
    expect(violationsOf({ history: on, ...several, training: relaxed })).toEqual([]);
  });

  it('leaves nothing to be extracted ahead', () => {
    const [violation] = violationsOf({ history: on, cache: { prefetch: 'ON' } });
    expect(violation?.path).toBe('spec.cache.prefetch');
    expect(violationsOf({ cache: { prefetch: 'ON' } })).toEqual([]);
  });

  it('without a share there is none to refuse', () => {
    const none = { staleSteps: 10, gradientShare: 0 };
    expect(violationsOf({ history: none, training: { staleness: 1 } })).toEqual([]);
  });
});
