import { describe, expect, it } from 'vitest';
import { resolveJobSpec } from '../../../src/spec/resolve-job-spec.ts';
import { contextOf, violationsIn } from '../../support/spec-context.ts';

const context = contextOf();

function resolve(fields: object) {
  return resolveJobSpec({ dataset: 'cora', training: { epochs: 1 }, ...fields }, context);
}

function violationsOf(fields: object) {
  return violationsIn(resolve(fields));
}

describe('cache ratios', () => {
  const ratios = [
    ['ratio', 'spec.cache.ratio'],
    ['standbyRatio', 'spec.cache.standby_ratio'],
  ] as const;

  it.each(ratios)('%s takes a share, none and all of it included, or -1', (field) => {
    for (const value of [0, 0.1, 1, -1]) {
      expect(resolve({ cache: { [field]: value } })).toMatchObject({
        ok: { cache: { [field]: value } },
      });
    }
  });

  it.each(ratios)('%s refuses all else', (field, path) => {
    for (const value of [-0.1, 1.01, -2, Number.NaN, Number.POSITIVE_INFINITY]) {
      const description = `${value}: expected a finite number in [0, 1], or -1 for automatic`;
      expect(violationsOf({ cache: { [field]: value } })).toEqual([{ path, description }]);
    }
  });
});

describe('prefetch', () => {
  it.each(['AUTO', 'ON', 'OFF'] as const)('may be %s', (prefetch) => {
    expect(resolve({ cache: { prefetch } })).toMatchObject({ ok: { cache: { prefetch } } });
  });

  it('refuses a value that is none of ours', () => {
    const [violation] = violationsOf({ cache: { prefetch: 'SOMETIMES' } });
    expect(violation?.path).toBe('spec.cache.prefetch');
  });
});

describe('memory budgets', () => {
  const budgets = [
    ['deviceMemoryBytes', 'spec.resources.device_memory_bytes'],
    ['hostMemoryBytes', 'spec.resources.host_memory_bytes'],
  ] as const;

  it.each(budgets)('%s takes 0 as not set, else a number of bytes', (field, path) => {
    for (const value of [0, 1, 2 ** 42]) {
      expect(resolve({ resources: { [field]: value } })).toMatchObject({
        ok: { resources: { [field]: value } },
      });
    }
    for (const value of [-1, 2 ** 42 + 1, 0.5]) {
      expect(violationsOf({ resources: { [field]: value } }).map((v) => v.path)).toEqual([path]);
    }
  });
});
