import { expect, test } from 'vitest';
import { defaultStaleness } from '../../../src/spec/resolve-job-spec.ts';
import { warningsOf } from '../../../src/spec/spec-warnings.ts';
import { resolvedSpec } from '../../support/api-fakes.ts';

function warnings(
  devices: number,
  staleness: number,
  stalenessCompensation: 'PREDICT' | 'NONE' = 'NONE',
): readonly string[] {
  const { training, resources, ...rest } = resolvedSpec();
  return warningsOf({
    ...rest,
    training: { ...training, staleness, stalenessCompensation },
    resources: { ...resources, devices },
  });
}

test('a delay above the default says what it costs', () => {
  for (const devices of [1, 2, 4]) {
    const usual = defaultStaleness(devices);
    const [warning, ...more] = warnings(devices, usual + 1);
    expect(more).toEqual([]);
    expect(warning).toContain(`training.staleness is ${usual + 1}, the default ${usual}: `);
    expect(warning).toContain('costs accuracy');
    expect(warning).toContain('won back by training.staleness_compensation: PREDICT');
    expect(warnings(devices, usual + 1, 'PREDICT')[0]).toContain('even predicted');
  }
});

test('the default and what lies below it need no words', () => {
  for (const devices of [1, 2, 4]) {
    for (let staleness = 0; staleness <= defaultStaleness(devices); staleness += 1) {
      expect(warnings(devices, staleness)).toEqual([]);
    }
  }
});
