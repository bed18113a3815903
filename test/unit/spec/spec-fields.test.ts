import { describe, expect, it } from 'vitest';
import { expectationOf } from '../../../src/spec/resolve-fields.ts';
import { decodeSpec, encodeSpec, withSpecs } from '../../../src/spec/spec-codec.ts';
import { defaultOf, leafAt, rangeOf, specLeaves } from '../../../src/spec/spec-fields.ts';
import { resolvedSpec } from '../../support/api-fakes.ts';

describe('the fields of a job spec', () => {
  it('all say what they are, in a sentence', () => {
    expect(specLeaves.length).toBeGreaterThan(70);
    for (const { path, option } of specLeaves) expect(option.about, path).toMatch(/^[A-Z].*\.$/);
  });

  it('have a default, or a rule that knows one, or are required', () => {
    for (const { path, option } of specLeaves) {
      const hasOne = option.default !== undefined || option.defaultRule !== '';
      expect(hasOne !== option.required, path).toBe(true);
    }
  });

  it('have defaults within their own bounds', () => {
    for (const { path, kind, isList, option, choices, fallback } of specLeaves) {
      if (fallback === undefined) continue;
      if (kind === 'ENUM') expect(choices, path).toEqual(expect.arrayContaining([fallback].flat()));
      if (kind !== 'INTEGER' && kind !== 'REAL') continue;
      for (const value of isList ? (fallback as number[]) : [fallback as number]) {
        const isSpecial = option.also.some((special) => special.value === value);
        const { gt = Number.NEGATIVE_INFINITY, gte = gt, lt = Number.POSITIVE_INFINITY } = option;
        const isWithin = value >= gte && value > gt && value < lt && value <= (option.lte ?? lt);
        expect(isSpecial || isWithin, path).toBe(true);
      }
    }
  });

  it('are read by jobs that another field names, with values that it has', () => {
    for (const { path, owners } of specLeaves) {
      for (const owner of owners) {
        expect(owner.values.length, path).toBeGreaterThan(0);
        expect(leafAt(owner.path).choices, path).toEqual(expect.arrayContaining([...owner.values]));
      }
    }
    const ownersOf = (path: string) => leafAt(path).owners.map(({ name }) => name);
    expect(ownersOf('model.heads').join()).toMatch(/^type GAT, .* or HGT$/);
    expect(ownersOf('sampling.plugin.options')).toEqual(['algorithm KHOP_PLUGIN']);
    expect(leafAt('model.dropout').owners[0]?.values).not.toContain('TORCHSCRIPT');
    // Those of a group, and its own.
    expect(ownersOf('links.temperature')).toEqual(['task LINKS or LINK_LABELS', 'loss SOFTMAX']);
  });

  it('say their bounds', () => {
    expect(rangeOf('model.layers')).toEqual({ min: 1, max: 8 });
    expect(defaultOf('training.staleness')).toBe(0);
    expect(expectationOf(leafAt('sampling.fanouts'))).toBe(
      'an integer from 1 to 4096, or -1 for all neighbours',
    );
    expect(expectationOf(leafAt('training.optimizer.epsilon'))).toBe('a finite number above 0');
    expect(() => leafAt('model.depth')).toThrow('no field model.depth');
    expect(() => rangeOf('training.optimizer.epsilon')).toThrow('no bounds');
    expect(() => defaultOf('model.layers')).toThrow('no default');
  });
});

describe('a stored spec', () => {
  it('is read back with every field as it was', () => {
    expect(decodeSpec(encodeSpec(resolvedSpec()), 'a job')).toEqual(resolvedSpec());
  });

  it('is decoded when somebody looks at it, once', () => {
    const [spec, effectiveSpec] = [encodeSpec({ dataset: 'a' }), encodeSpec(resolvedSpec())];
    const record = withSpecs({ id: 'mine' }, { spec, effectiveSpec });
    expect(Object.getOwnPropertyDescriptor(record, 'spec')?.get).toBeDefined();
    expect(record.spec.dataset).toBe('a');
    expect(record.spec).toBe(record.spec);
    expect(Object.getOwnPropertyDescriptor(record, 'spec')?.get).toBeUndefined();
    expect({ ...record }.effectiveSpec).toEqual(resolvedSpec());
    const damaged = withSpecs({ id: 'mine' }, { spec: Buffer.from([255]), effectiveSpec });
    expect(() => damaged.spec).toThrow(/holds no spec in job mine\.spec/);
  });
});
