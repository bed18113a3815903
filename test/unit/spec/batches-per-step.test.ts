import { describe, expect, test } from 'vitest';
import { automaticSteps, stepsText, trainersOf } from '../../../src/spec/batches-per-step.ts';
import type { JobSpec, JobSpecInput } from '../../../src/spec/job-spec.ts';
import { resolveJobSpec } from '../../../src/spec/resolve-job-spec.ts';
import type { ResolveContext } from '../../../src/spec/rules/rule.ts';
import { warningsOf } from '../../../src/spec/spec-warnings.ts';
import { forAll } from '../../support/random.ts';
import { noPlugins, okOf } from '../../support/spec-context.ts';

const names = (kind: string) => Array.from({ length: 8 }, (_, index) => `${kind}:${index}`);
const context: ResolveContext = {
  deviceNames: [...names('cpu'), ...names('sim')],
  deviceCores: Array.from({ length: 16 }, () => 1),
  matrixLibrary: 'ONEDNN',
  numNodes: 1_000_000,
  numEdges: 9_000_000,
  trainNodes: 600_000,
  valNodes: 500,
  hasEdgeWeights: true,
  pluginFile: noPlugins,
};

interface Asked {
  readonly training?: Omit<JobSpecInput['training'] & object, 'epochs'>;
  readonly resources?: JobSpecInput['resources'];
  readonly others?: Partial<JobSpecInput>;
}

function inputOf({ training, resources, others }: Asked): JobSpecInput {
  return { dataset: 'a', ...others, training: { epochs: 4, ...training }, resources };
}

function resolved(input: JobSpecInput, where: ResolveContext = context): JobSpec {
  return okOf(resolveJobSpec(input, where));
}

const sim = (devices: number) => ({ deviceKind: 'SIM', devices }) as const;
const cpu = (devices: number) => ({ deviceKind: 'CPU', devices }) as const;
const one = { threadsPerTrainer: 1 };
/** What the learning rate is multiplied by. */
/** In a job whose epochs have many batches, as of this context. */
const factorOf = (batches: number) => Math.sqrt(batches);

describe('batches a step of a job that leaves them open', () => {
  const table: readonly (readonly [string, Asked, number])[] = [
    ['one simulated device', { resources: sim(1) }, 1],
    ['two of them', { resources: sim(2) }, 2],
    ['three', { resources: sim(3) }, 3],
    ['four', { resources: sim(4) }, 4],
    ['automatic in so many words', { resources: sim(4), training: { batchesPerStep: 0 } }, 4],
    ['one CPU device', { resources: cpu(1) }, 1],
    ['cores of four CPU devices that compute one batch', { resources: cpu(4) }, 1],
    ['two CPU devices with a thread each', { resources: cpu(2), training: one }, 2],
    ['four CPU devices with a thread each', { resources: cpu(4), training: one }, 4],
    [
      'those that do not sample, where that is fixed',
      { resources: sim(4), others: { placement: { policy: 'FIXED', samplers: 1 } } },
      3,
    ],
    [
      'all, where all sample',
      { resources: sim(4), others: { placement: { policy: 'FIXED', samplers: 4 } } },
      4,
    ],
    [
      'all but a Sampler, where nobody stands by',
      { resources: sim(3), others: { placement: { standby: 'OFF' } } },
      2,
    ],
    ['rows, which nobody samples', { resources: sim(4), others: { model: { type: 'SIGN' } } }, 4],
    ['a queue that holds fewer', { resources: sim(4), others: { queue: { capacity: 2 } } }, 2],
    [
      'a learning rate of the user',
      { resources: sim(4), training: { optimizer: { learningRate: 0.003 } } },
      1,
    ],
    ['a delay', { resources: sim(4), training: { staleness: 1 } }, 1],
    ['gradient descent', { resources: sim(4), training: { optimizer: { type: 'SGD' } } }, 1],
    [
      'a history',
      { resources: sim(4), others: { history: { staleSteps: 4, gradientShare: 0.5 } } },
      1,
    ],
  ];

  test.each(table)('%s', (_, asked, batches) => {
    const { training } = resolved(inputOf(asked));
    expect(training.batchesPerStep).toBe(batches);
    const rate = asked.training?.optimizer?.learningRate ?? 0.003;
    expect(training.optimizer.learningRate).toBeCloseTo(rate * factorOf(batches), 12);
  });

  test('a model of the user', () => {
    const input = inputOf({ resources: sim(4) });
    const { model, ...spec } = resolved(input);
    const of = (type: 'SIGN' | 'TORCHSCRIPT') =>
      automaticSteps(input, { ...spec, model: { ...model, type } }, 400).batchesPerStep;
    expect(of('SIGN')).toBe(4);
    expect(of('TORCHSCRIPT')).toBe(1);
  });

  test.each([
    [34, 2, 2],
    [100, 3, Math.sqrt(8)],
    [255, 5, Math.sqrt(8)],
    [256, 5, Math.sqrt(5)],
    [512, 8, Math.sqrt(8)],
  ])('a rate that makes up for steps where there are few: %i batches', (batches, most, factor) => {
    const where = { ...context, trainNodes: 1024 * batches };
    const { batchesPerStep, optimizer } = resolved(inputOf({ resources: sim(8) }), where).training;
    expect(batchesPerStep).toBe(most);
    expect(optimizer.learningRate).toBeCloseTo(0.003 * factor, 12);
  });

  test('as many as leave an epoch its steps', () => {
    const on = (batches: number) =>
      resolved(inputOf({ resources: sim(8) }), { ...context, trainNodes: 1024 * batches }).training
        .batchesPerStep;
    const shapes = [
      [1, 1],
      [31, 1],
      [34, 2],
      [71, 2],
      [72, 3],
      [127, 3],
      [128, 4],
      [200, 5],
      [511, 7],
      [512, 8],
      [1179, 8],
    ] as const;
    for (const [batches, most] of shapes) expect([batches, on(batches)]).toEqual([batches, most]);
  });

  test('a user who says how many gets them, and his learning rate or that of his batches', () => {
    const asked = inputOf({ resources: sim(4), training: { batchesPerStep: 8 } });
    const { training } = resolved(asked, { ...context, trainNodes: 140 });
    expect(training).toMatchObject({ batchesPerStep: 8, optimizer: { learningRate: 0.01 } });
    expect(stepsText(asked, resolved(asked))).toBe('8, as asked for');
  });

  test('from 1 to 64, or 0 for what is chosen', () => {
    const of = (batchesPerStep: number) => inputOf({ training: { batchesPerStep } });
    for (const value of [1, 64]) expect(resolved(of(value)).training.batchesPerStep).toBe(value);
    expect(resolved(of(0))).toEqual(resolved(inputOf({})));
    for (const value of [-1, 65, 1.5]) {
      expect(resolveJobSpec(of(value), context)).toEqual({
        violations: [
          {
            path: 'spec.training.batches_per_step',
            description: `${value}: expected an integer from 1 to 64, or 0 for automatic`,
          },
        ],
      });
    }
  });

  test('is a function of spec, host and dataset, bounded, and settled once', () => {
    forAll(300, (random) => {
      const input = inputOf({
        resources: random.pick([sim, cpu])(random.integer(1, 8)),
        training: {
          batchSize: random.integer(1, 4096),
          threadsPerTrainer: random.integer(0, 1),
          staleness: random.integer(0, 1),
        },
        others: { queue: { capacity: random.pick([0, random.integer(2, 16)]) } },
      });
      const where = { ...context, trainNodes: random.integer(1, 400_000) };
      const spec = resolved(input, where);
      const { batchesPerStep, batchSize } = spec.training;
      expect(resolved(input, where)).toEqual(spec);
      expect(resolved(spec, where)).toEqual(spec);
      expect(batchesPerStep).toBeGreaterThanOrEqual(1);
      expect(batchesPerStep).toBeLessThanOrEqual(trainersOf(spec));
      const batches = Math.ceil(where.trainNodes / batchSize);
      if (batchesPerStep > 1) {
        const steps = batches / batchesPerStep;
        expect(steps).toBeGreaterThanOrEqual(Math.max(16, 8 * batchesPerStep));
      }
      expect(stepsText(input, spec)).toMatch(new RegExp(`^${batchesPerStep}, chosen: `));
    });
  });
});

describe('how they came about', () => {
  const text = (asked: Asked, where = context) => {
    const input = inputOf(asked);
    return stepsText(input, resolved(input, where));
  };

  test('by the devices that train, with the learning rate for them', () => {
    expect(text({ resources: sim(4) })).toBe(
      '4, chosen: one for each of 4 devices that train; learning rate 0.003 times 2 for that',
    );
  });

  test('fewer, for the steps of an epoch', () => {
    expect(text({ resources: sim(4) }, { ...context, trainNodes: 34_693 })).toContain(
      '2, chosen: one for each of 4 devices that train, at most 8, as far as an epoch keeps 16 steps',
    );
  });

  test('one, by what speaks for it', () => {
    expect(text({ resources: sim(1) })).toBe('1, chosen: it has one device');
    expect(text({ resources: cpu(4) })).toBe(
      '1, chosen: the cores of all its devices compute the same batch',
    );
    const rate = { optimizer: { learningRate: 0.01 } };
    expect(text({ resources: sim(4), training: rate })).toContain('its learning rate was set');
    expect(
      text({ resources: sim(4), training: { staleness: 1, optimizer: { type: 'SGD' } } }),
    ).toContain('with SGD and a delay was not measured');
    const fixed = { policy: 'FIXED', samplers: 1 } as const;
    expect(text({ resources: sim(2), others: { placement: fixed } })).toBe(
      '1, chosen: one of its devices trains',
    );
  });

  test('nothing of what is not trained', () => {
    const input = inputOf({ resources: sim(4) });
    expect(stepsText(input, { ...resolved(input), kind: 'INFERENCE' })).toBe('');
  });
});

describe('Trainers that wait', () => {
  const waiting = (asked: Asked) =>
    warningsOf(resolved(inputOf(asked))).filter((warning) => warning.includes('will wait'));

  test.each([
    [{ resources: sim(4), training: { batchesPerStep: 1 } }, '3 of 4', '1 batch is', 4],
    [{ resources: sim(8), training: { batchesPerStep: 2 } }, '6 of 8', '2 batches are', 8],
    [{ resources: sim(4), training: { staleness: 1 } }, '2 of 4', '2 batches are', 2],
    [{ resources: sim(5), training: { staleness: 1 } }, '3 of 5', '2 batches are', 3],
    [{ resources: cpu(2), training: { ...one, batchesPerStep: 1 } }, '1 of 2', '1 batch is', 2],
  ] as const)('%j: %s', (asked, share, computed, enough) => {
    const [warning, ...more] = waiting(asked);
    expect(more).toEqual([]);
    expect(warning).toContain(`${share} Trainers will wait, as ${computed} computed at once: `);
    expect(warning).toContain(`training.batches_per_step: ${enough} would use them`);
  });

  test.each<Asked>([
    { resources: sim(4) },
    { resources: sim(1) },
    { resources: cpu(4) },
    { resources: cpu(4), training: one },
    { resources: sim(4), training: { batchesPerStep: 4 } },
    { resources: sim(4), training: { staleness: 3 } },
  ])('nobody: %j', (asked) => {
    expect(waiting(asked)).toEqual([]);
  });

  test('are those of the plan, once it is known', () => {
    const spec = resolved(inputOf({ resources: sim(4), training: { batchesPerStep: 1 } }));
    expect(warningsOf(spec, 3)[0]).toMatch(/^2 of 3 Trainers .*batches_per_step: 3 would/);
    expect(warningsOf(spec, 1)).toEqual([]);
  });
});
