import { describe, expect, it } from 'vitest';
import type { JobSpec, JobSpecInput } from '../../../src/spec/job-spec.ts';
import { resolveJobSpec } from '../../../src/spec/resolve-job-spec.ts';
import { contextOf, violationsIn } from '../../support/spec-context.ts';

type EarlyStop = NonNullable<JobSpecInput['training']>['earlyStop'];

function resolve(earlyStop: EarlyStop, valNodes: number | null = 500) {
  const input = { dataset: 'cora', training: { epochs: 1, earlyStop } };
  return resolveJobSpec(
    input,
    contextOf({ numNodes: 2708, trainNodes: 140, valNodes, hasEdgeWeights: false }),
  );
}

function resolved(earlyStop: EarlyStop): JobSpec['training']['earlyStop'] {
  const resolution = resolve(earlyStop);
  if ('ok' in resolution) return resolution.ok.training.earlyStop;
  throw new Error(JSON.stringify(resolution.violations));
}

function violations(earlyStop: EarlyStop, valNodes: number | null = 500) {
  return violationsIn(resolve(earlyStop, valNodes));
}

const patiencePath = 'spec.training.early_stop.patience_epochs';
const deltaPath = 'spec.training.early_stop.min_delta';

describe('early stopping', () => {
  it('is off until patience is given', () => {
    const off = { patienceEpochs: 0, minDelta: 0 };
    for (const given of [undefined, {}, off, { minDelta: 0 }]) expect(resolved(given)).toEqual(off);
    expect(resolved({ patienceEpochs: 5 })).toEqual({ patienceEpochs: 5, minDelta: 0 });
  });

  it('takes what lies within its limits', () => {
    for (const patienceEpochs of [1, 1_000_000]) {
      for (const minDelta of [0, 0.001, 0.999, 1e12]) {
        const given = { patienceEpochs, minDelta };
        expect(resolved(given)).toEqual(given);
      }
    }
  });

  it('refuses all else, with every path at once', () => {
    for (const patienceEpochs of [-1, 1.5, 1_000_001, Number.NaN]) {
      for (const minDelta of [-0.1, 1.1e12, Number.NaN, Number.POSITIVE_INFINITY]) {
        expect(violations({ patienceEpochs, minDelta })).toEqual([
          {
            path: patiencePath,
            description: `${patienceEpochs}: expected an integer from 1 to 1000000, or 0 for never`,
          },
          {
            path: deltaPath,
            description: `${minDelta}: expected a finite number in [0, 1000000000000]`,
          },
        ]);
      }
    }
  });

  it('has no use for a delta without patience', () => {
    expect(violations({ minDelta: 0.1 })).toEqual([
      { path: deltaPath, description: '0.1: only for a job with patience_epochs' },
    ]);
  });

  it('needs something to evaluate', () => {
    expect(violations({ patienceEpochs: 3, minDelta: -2 }, 0)).toEqual([
      {
        path: patiencePath,
        description: '3: the dataset has no validation nodes, so nothing is evaluated',
      },
      { path: deltaPath, description: '-2: expected a finite number in [0, 1000000000000]' },
    ]);
    expect(violations({}, 0)).toEqual([]);
    expect(violations({ patienceEpochs: 3 }, null)).toEqual([]);
  });
});
