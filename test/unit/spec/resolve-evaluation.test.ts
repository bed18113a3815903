import { describe, expect, it } from 'vitest';
import type { DatasetTask, JobSpec, JobSpecInput } from '../../../src/spec/job-spec.ts';
import type { DecidingMetric } from '../../../src/spec/metrics.ts';
import { resolveJobSpec } from '../../../src/spec/resolve-job-spec.ts';
import { contextOf, violationsIn } from '../../support/spec-context.ts';

const context = contextOf({
  numNodes: 1000,
  trainNodes: 140,
  valNodes: 500,
  hasEdgeWeights: false,
});

function resolve(spec: Partial<JobSpecInput>, numNodes: number | null = 1000) {
  const input = { dataset: 'cora', training: { epochs: 1 }, ...spec };
  return resolveJobSpec(input, { ...context, numNodes });
}

function resolved(
  spec: Partial<JobSpecInput>,
  numNodes: number | null = 1000,
): JobSpec['evaluation'] {
  const resolution = resolve(spec, numNodes);
  if ('ok' in resolution) return resolution.ok.evaluation;
  throw new Error(JSON.stringify(resolution.violations));
}

function violations(spec: Partial<JobSpecInput>) {
  return violationsIn(resolve(spec));
}

const everyPath = 'spec.evaluation.every_epochs';
const fanoutsPath = 'spec.evaluation.fanouts';

describe('evaluation', () => {
  it('is exact and after every epoch unless told otherwise', () => {
    const exact = {
      ...{ everyEpochs: 1, method: 'EXACT', fanouts: [], maxBytes: 2 ** 33, metric: 'AUTO' },
    };
    for (const evaluation of [undefined, {}, { method: 'AUTO' } as const, { fanouts: [] }]) {
      expect(resolved({ evaluation })).toEqual(exact);
      expect(resolved({ evaluation }, null)).toEqual(exact);
    }
  });

  it('is decided by the usual metric of the task, or by another that the task has', () => {
    const decided = (task: DatasetTask, metric?: DecidingMetric) => {
      const evaluation = metric === undefined ? {} : { metric };
      const targets = { task, count: 3 };
      const input = { dataset: 'd', training: { epochs: 1 }, evaluation };
      const resolution = resolveJobSpec(input, { ...context, targets });
      return 'ok' in resolution ? resolution.ok.evaluation.metric : resolution.violations;
    };
    expect(decided('CLASSIFICATION')).toBe('ACCURACY');
    expect(decided('MULTI_LABEL')).toBe('MICRO_F1');
    expect(decided('REGRESSION')).toBe('MAE');
    expect(decided('MULTI_LABEL', 'ROC_AUC')).toBe('ROC_AUC');
    expect(decided('CLASSIFICATION', 'AVERAGE_PRECISION')).toBe('AVERAGE_PRECISION');
    expect(decided('REGRESSION', 'RMSE')).toBe('RMSE');
    const path = 'spec.evaluation.metric';
    const description = 'RMSE: expected one of ACCURACY, MICRO_F1, MACRO_F1, ROC_AUC, '.concat(
      "AVERAGE_PRECISION: the dataset's task is CLASSIFICATION",
    );
    expect(decided('CLASSIFICATION', 'RMSE')).toEqual([{ path, description }]);
    expect(decided('MULTI_LABEL', 'ACCURACY')).toMatchObject([{ path }]);
    expect(decided('REGRESSION', 'ROC_AUC')).toMatchObject([{ path }]);
  });

  it('improves by a share below 1, or by any number where errors decide', () => {
    const least = (task: DatasetTask) => {
      const earlyStop = { patienceEpochs: 3, minDelta: 50 };
      const input = { dataset: 'd', training: { epochs: 9, earlyStop } };
      const targets = { task, count: 3 };
      return violationsIn(resolveJobSpec(input, { ...context, targets }));
    };
    expect(least('REGRESSION')).toEqual([]);
    const path = 'spec.training.early_stop.min_delta';
    const description = '50: expected below 1, for ACCURACY is a share';
    expect(least('CLASSIFICATION')).toEqual([{ path, description }]);
  });

  it.each([
    [1, 0],
    [2, 1],
    [3, 2],
    [8, 2],
  ])('%i layers hold the rows of %i hidden layers at once', (layers, held) => {
    const fanouts = Array<number>(layers).fill(5);
    const of = (maxBytes: number) =>
      resolved({
        model: { hiddenDim: 64 },
        sampling: { fanouts },
        evaluation: { method: 'AUTO', maxBytes },
      });
    const bytes = 1000 * held * 64 * 4;
    expect(of(Math.max(1, bytes)).method).toBe('EXACT');
    if (held > 0) expect(of(bytes - 1)).toMatchObject({ method: 'SAMPLED', fanouts });
  });

  it('is exact by default at the size of ogbn-products, sampled at that of papers100M', () => {
    const spec = { sampling: { fanouts: [15, 10, 5] } };
    expect(resolved(spec, 2_449_029).method).toBe('EXACT');
    expect(resolved(spec, 111_059_956).method).toBe('SAMPLED');
  });

  it('takes modules whose widths are not known for as wide as the default', () => {
    const sha256 = 'a'.repeat(64);
    const of = (maxBytes: number) => {
      const resolution = resolveJobSpec(
        {
          dataset: 'cora',
          model: { type: 'TORCHSCRIPT', script: { path: '/p/m.pt' } },
          training: { epochs: 1 },
          evaluation: { maxBytes },
        },
        { ...context, pluginFile: () => ({ sha256 }) },
      );
      if ('violations' in resolution) throw new Error(JSON.stringify(resolution.violations));
      return resolution.ok.evaluation.method;
    };
    expect(of(1000 * 256 * 4)).toBe('EXACT');
    expect(of(1000 * 256 * 4 - 1)).toBe('SAMPLED');
  });

  it('samples with fanouts of its own, else those of training', () => {
    const sampling = { fanouts: [4, -1] };
    const of = (evaluation: JobSpecInput['evaluation']) => resolved({ sampling, evaluation });
    expect(of({ method: 'SAMPLED' }).fanouts).toEqual([4, -1]);
    expect(of({ method: 'SAMPLED', fanouts: [25, 25] }).fanouts).toEqual([25, 25]);
    expect(of({ method: 'AUTO', fanouts: [25, 25], maxBytes: 1 }).fanouts).toEqual([25, 25]);
    expect(of({ method: 'AUTO', fanouts: [25, 25] }).fanouts).toEqual([]);
  });

  it('has no fanouts where walks draw', () => {
    const spec = {
      model: { type: 'PINSAGE' },
      sampling: { algorithm: 'RANDOM_WALK' },
    } as const;
    expect(resolved({ ...spec, evaluation: { method: 'SAMPLED' } }).fanouts).toEqual([]);
    expect(violations({ ...spec, evaluation: { method: 'SAMPLED', fanouts: [5, 5, 5] } })).toEqual([
      {
        path: fanoutsPath,
        description: 'expected none for RANDOM_WALK, whose walks are those of training',
      },
    ]);
  });

  it('refuses what lies outside its limits, with every path at once', () => {
    const evaluation = {
      everyEpochs: -1,
      method: 'EXACTLY' as 'EXACT',
      fanouts: [0, 4097],
      maxBytes: 0,
    };
    const paths = violations({ evaluation }).map(({ path }) => path);
    expect(paths).toEqual([
      everyPath,
      'spec.evaluation.method',
      `${fanoutsPath}[0]`,
      `${fanoutsPath}[1]`,
      'spec.evaluation.max_bytes',
    ]);
  });

  it('wants as many fanouts as layers, and none where it takes all neighbours', () => {
    expect(violations({ evaluation: { method: 'SAMPLED', fanouts: [5] } })).toEqual([
      { path: fanoutsPath, description: '1: expected 2, one for each layer' },
    ]);
    expect(violations({ evaluation: { method: 'EXACT', fanouts: [5, 5] } })).toEqual([
      { path: fanoutsPath, description: 'expected none for EXACT, which takes all neighbours' },
    ]);
  });

  it('comes before the end for a job that may stop early', () => {
    const training = { epochs: 9, earlyStop: { patienceEpochs: 2 } };
    expect(violations({ training, evaluation: { everyEpochs: 0 } })).toEqual([
      {
        path: everyPath,
        description:
          '0: expected 1 or more beside training.early_stop, which counts evaluations before the end',
      },
    ]);
    expect(resolved({ training, evaluation: { everyEpochs: 3 } }).everyEpochs).toBe(3);
    expect(resolved({ evaluation: { everyEpochs: 0 } }).everyEpochs).toBe(0);
  });
});
