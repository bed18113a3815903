import { describe, expect, it } from 'vitest';
import type { FieldViolation } from '../../../src/base/errors.ts';
import type { JobSpec, JobSpecInput } from '../../../src/spec/job-spec.ts';
import { resolveJobSpec } from '../../../src/spec/resolve-job-spec.ts';
import type { ResolveContext } from '../../../src/spec/rules/rule.ts';
import { forAll } from '../../support/random.ts';
import { randomSpec } from '../../support/random-spec.ts';
import { contextOf, okOf, violationsIn } from '../../support/spec-context.ts';

const context = contextOf({
  deviceNames: ['cpu:0', 'cpu:1', 'cpu:2', 'cpu:3'],
  deviceCores: [2, 2, 2, 2],
  numNodes: 100_000,
  trainNodes: 34_693,
  valNodes: 500,
  hasEdgeWeights: true,
});
const least: JobSpecInput = { dataset: 'cora', training: { epochs: 1 } };

function resolved(input: JobSpecInput, where: ResolveContext = context): JobSpec {
  return okOf(resolveJobSpec(input, where));
}

function violations(
  input: JobSpecInput,
  where: ResolveContext = context,
): readonly FieldViolation[] {
  return violationsIn(resolveJobSpec(input, where));
}

function paths(input: JobSpecInput, where: ResolveContext = context): readonly string[] {
  return violations(input, where).map((violation) => violation.path);
}

/** The least spec with one more field, given by its path in camel case. */
function withField(path: string, value: unknown): JobSpecInput {
  const root: Record<string, unknown> = structuredClone({ ...least });
  const keys = path.split('.');
  const last = keys.pop() ?? '';
  let parent = root;
  for (const key of keys) {
    const child = { ...(parent[key] as Record<string, unknown> | undefined) };
    parent[key] = child;
    parent = child;
  }
  parent[last] = value;
  return root as JobSpecInput;
}

function fieldOf(spec: JobSpec, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>((value, key) => (value as Record<string, unknown>)[key], spec);
}

const defaultOptimizer = {
  type: 'ADAM',
  learningRate: 0.003,
  beta1: 0.9,
  beta2: 0.999,
  epsilon: 1e-8,
  weightDecay: 0,
  weightDecayScope: 'ALL',
  momentum: 0,
  clipNorm: 0,
};

describe('resolveJobSpec', () => {
  it('fills in every default of the least spec', () => {
    expect(resolved(least)).toMatchObject({
      dataset: 'cora',
      model: {
        type: 'GRAPHSAGE',
        layers: 2,
        hiddenDim: 256,
        dropout: 0.5,
        inputDropout: 0,
        heads: 1,
        activation: 'RELU',
        normalization: 'NONE',
        residual: false,
        variant: 'NONE',
        hopLayers: 0,
        hopHiddenDim: 0,
        attentionDropout: 0,
        script: { path: '', sha256: '' },
      },
      sampling: {
        fanouts: [10, 10],
        algorithm: 'KHOP_UNIFORM',
        replace: false,
        expansion: 'ALL',
        walk: { walks: 0, length: 0, restartProb: 0, neighbors: 0 },
        labor: { dependencyWindow: 0 },
        plugin: { path: '', options: '', weights: false, sha256: '' },
      },
      features: { standardize: 'OFF' },
      cache: {
        policy: 'COMBINED',
        presampleEpochs: 1,
        ratio: -1,
        standbyRatio: -1,
        prefetch: 'AUTO',
      },
      training: {
        epochs: 1,
        batchSize: 1024,
        batchesPerStep: 1,
        staleness: 0,
        stalenessCompensation: 'NONE',
        randomSeed: '0',
        optimizer: defaultOptimizer,
        lrSchedule: { type: 'CONSTANT', stepEpochs: 0, gamma: 0, warmupEpochs: 0 },
        threadsPerTrainer: 0,
        matrixLibrary: 'ONEDNN',
        earlyStop: { patienceEpochs: 0, minDelta: 0 },
        determinism: 'STRICT',
      },
      evaluation: { everyEpochs: 1, method: 'EXACT', fanouts: [], maxBytes: 8_589_934_592 },
      resources: { devices: 4, deviceNames: [], deviceMemoryBytes: 0, hostMemoryBytes: 0 },
      placement: { policy: 'AUTO', samplers: 0, standby: 'AUTO' },
      queue: { capacity: 0, maxBytes: 1_073_741_824 },
      restart: { maxAttempts: 3, executorRestarts: 10 },
      timeouts: {
        pendingMs: 86_400_000,
        startupMs: 600_000,
        stallMs: 120_000,
        cancelGraceMs: 5000,
        runMs: 0,
      },
      priority: 100,
    });
  });

  it.each([1, 2, 4])('delays nothing unless told, on %i devices', (devices) => {
    const { training } = resolved({ ...least, resources: { devices } });
    expect(training).toMatchObject({ staleness: 0, stalenessCompensation: 'NONE' });
  });

  it.each([
    [0, undefined, 'NONE'],
    [2, undefined, 'PREDICT'],
    [2, 'NONE', 'NONE'],
    [0, 'PREDICT', 'PREDICT'],
  ] as const)('a delay of %i steps with %s is compensated by %s', (staleness, given, expected) => {
    const asked = { ...least.training, staleness, stalenessCompensation: given };
    const { training } = resolved({ ...least, training: asked });
    expect(training).toMatchObject({ staleness, stalenessCompensation: expected });
  });

  it('counts the devices that are named', () => {
    const { resources } = resolved({ ...least, resources: { deviceNames: ['cpu:2', 'cpu:0'] } });
    expect(resources).toMatchObject({ devices: 2, deviceNames: ['cpu:2', 'cpu:0'] });
  });

  it('makes as many layers as there are fanouts', () => {
    const { model } = resolved({ ...least, sampling: { fanouts: [15, 10, -1] } });
    expect(model.layers).toBe(3);
  });

  it('cuts the batch size to the training nodes, when they are known', () => {
    const small = { ...context, trainNodes: 140 };
    expect(resolved(least, small).training.batchSize).toBe(140);
    expect(resolved(withField('training.batchSize', 100), small).training.batchSize).toBe(100);
    expect(resolved(least, { ...context, trainNodes: null }).training.batchSize).toBe(1024);
  });

  it('leaves threads to the devices of a job, but for a script, whose bits they decide', () => {
    expect(resolved(least).training.threadsPerTrainer).toBe(0);
    const script = { ...least, model: { type: 'TORCHSCRIPT', script: { path: 'm.pt' } } } as const;
    const threads = (...deviceCores: number[]) =>
      resolved(script, { ...context, deviceCores, pluginFile: () => ({ sha256: '' }) }).training
        .threadsPerTrainer;
    expect([threads(1), threads(64, 8), threads(1024), threads(0)]).toEqual([1, 8, 256, 1]);
    const none = { ...script, training: { epochs: 1, threadsPerTrainer: 0 } };
    expect(paths(none)).toContain('spec.training.threads_per_trainer');
  });

  it.each([
    [[1, 1], 2],
    [[1, 1, 1, 1, 1, 1, 1, 1], 8],
    [[8, 8, 8, 8, 8, 8, 8, 8], 2],
    [[64], 1],
    [[32, 1], 1],
  ])('takes devices of %j cores: %i of them', (deviceCores, devices) => {
    const deviceNames = deviceCores.map((_, i) => `cpu:${i}`);
    expect(resolved(least, { ...context, deviceNames, deviceCores }).resources.devices).toBe(
      devices,
    );
  });

  it('multiplies with the fastest library of the host, never with one that it lacks', () => {
    const bare: ResolveContext = { ...context, matrixLibrary: 'OPENBLAS' };
    expect(resolved(least).training.matrixLibrary).toBe('ONEDNN');
    expect(resolved(least, bare).training.matrixLibrary).toBe('OPENBLAS');
    const training = (matrixLibrary: 'ONEDNN' | 'OPENBLAS') => ({
      ...least,
      training: { epochs: 1, matrixLibrary },
    });
    expect(resolved(training('OPENBLAS')).training.matrixLibrary).toBe('OPENBLAS');
    expect(paths(training('ONEDNN'), bare)).toEqual(['spec.training.matrix_library']);
  });

  it('PORTABLE multiplies by OpenBLAS, and refuses what goes by the processor', () => {
    const portable = { epochs: 1, determinism: 'PORTABLE' } as const;
    const asked = (more = {}) => ({ ...least, training: { ...portable, ...more } });
    expect(resolved(resolved(asked())).training.matrixLibrary).toBe('OPENBLAS');
    const bare = { ...context, matrixLibrary: 'OPENBLAS' } as const;
    expect(paths(asked(), bare)).toEqual(['spec.training.determinism']);
    expect(paths(asked({ matrixLibrary: 'ONEDNN' }))).toEqual(['spec.training.matrix_library']);
    expect(paths(asked({ precision: 'BFLOAT16' }))).toEqual(['spec.training.precision']);
  });

  it('takes 0 as a choice where it is in range, not as unset', () => {
    for (const path of ['model.dropout', 'priority', 'restart.executorRestarts']) {
      expect(fieldOf(resolved(withField(path, 0)), path)).toBe(0);
    }
    const twoDevices = { ...withField('training.staleness', 0), resources: { devices: 2 } };
    expect(resolved(twoDevices).training.staleness).toBe(0);
  });
});

/** path in camel case, path in the proto, lowest, highest. */
const integerFields: readonly (readonly [string, string, number, number])[] = [
  ['model.hiddenDim', 'spec.model.hidden_dim', 1, 4096],
  ['training.epochs', 'spec.training.epochs', 1, 1_000_000],
  ['training.staleness', 'spec.training.staleness', 0, 8],
  ['training.threadsPerTrainer', 'spec.training.threads_per_trainer', 0, 256],
  ['resources.devices', 'spec.resources.devices', 1, 4],
  ['cache.presampleEpochs', 'spec.cache.presample_epochs', 1, 10],
  ['queue.maxBytes', 'spec.queue.max_bytes', 1, 2 ** 42],
  ['restart.maxAttempts', 'spec.restart.max_attempts', 1, 100],
  ['restart.executorRestarts', 'spec.restart.executor_restarts', 0, 1000],
  ['timeouts.pendingMs', 'spec.timeouts.pending_ms', 1, 2_147_483_647],
  ['timeouts.startupMs', 'spec.timeouts.startup_ms', 1, 2_147_483_647],
  ['timeouts.stallMs', 'spec.timeouts.stall_ms', 1000, 2_147_483_647],
  ['timeouts.cancelGraceMs', 'spec.timeouts.cancel_grace_ms', 0, 2_147_483_647],
  ['timeouts.runMs', 'spec.timeouts.run_ms', 0, 2_147_483_647],
  ['priority', 'spec.priority', 0, 1000],
];

describe('integer fields', () => {
  it.each(integerFields)('%s takes both ends of its range', (path, _proto, min, max) => {
    expect(fieldOf(resolved(withField(path, min)), path)).toBe(min);
    expect(fieldOf(resolved(withField(path, max)), path)).toBe(max);
  });

  it.each(integerFields)('%s refuses all else and says its range', (path, proto, min, max) => {
    for (const value of [min - 1, max + 1, min + 0.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(violations(withField(path, value))).toEqual([
        {
          path: proto,
          description: `${value}: expected an integer from ${min} to ${max}`,
        },
      ]);
    }
  });

  it('refuses a batch size beyond its limits, though larger ones than the dataset are cut', () => {
    const batchSize = (value: number) => paths(withField('training.batchSize', value));
    expect(batchSize(2 ** 20)).toEqual([]);
    for (const value of [0, -1, 2 ** 20 + 1, 1.5]) {
      expect(batchSize(value)).toEqual(['spec.training.batch_size']);
    }
  });
});

/** path in camel case, path in the proto, accepted values, refused values, interval shown. */
const realFields: readonly (readonly [string, string, number[], number[], string])[] = [
  ['model.dropout', 'spec.model.dropout', [0, 0.999], [-0.1, 1, 1 - 1e-12], '[0, 1)'],
  ['model.inputDropout', 'spec.model.input_dropout', [0, 0.5], [-1e-9, 1], '[0, 1)'],
  [
    'training.optimizer.learningRate',
    'spec.training.optimizer.learning_rate',
    [1e-9, 10],
    [0, -1],
    'above 0',
  ],
  ['training.optimizer.beta1', 'spec.training.optimizer.beta1', [0, 0.99], [-1, 1], '[0, 1)'],
  ['training.optimizer.beta2', 'spec.training.optimizer.beta2', [0, 0.9999], [-1, 1.5], '[0, 1)'],
  [
    'training.optimizer.epsilon',
    'spec.training.optimizer.epsilon',
    [1e-12, 1],
    [0, -1e-8],
    'above 0',
  ],
  [
    'training.optimizer.weightDecay',
    'spec.training.optimizer.weight_decay',
    [0, 5e-4],
    [-1e-9],
    '0 or more',
  ],
];

describe('real fields', () => {
  it.each(realFields)('%s takes what lies in its interval', (path, _proto, accepted) => {
    for (const value of accepted)
      expect(fieldOf(resolved(withField(path, value)), path)).toBe(value);
  });

  it.each(realFields)(
    '%s refuses all else and says its interval',
    (path, proto, _ok, refused, shown) => {
      for (const value of [...refused, Number.NaN, Number.POSITIVE_INFINITY]) {
        expect(violations(withField(path, value))).toEqual([
          { path: proto, description: `${value}: expected a finite number ${shown}` },
        ]);
      }
    },
  );
});

describe('enum fields', () => {
  it.each([
    [
      'training.optimizer.weightDecayScope',
      'spec.training.optimizer.weight_decay_scope',
      ['ALL', 'FIRST_LAYER'],
    ],
    ['training.determinism', 'spec.training.determinism', ['STRICT', 'RELAXED', 'PORTABLE']],
    ['training.stalenessCompensation', 'spec.training.staleness_compensation', ['PREDICT', 'NONE']],
    ['placement.policy', 'spec.placement.policy', ['AUTO', 'PAPER', 'MINMAX']],
    ['placement.standby', 'spec.placement.standby', ['AUTO', 'OFF', 'ALWAYS']],
  ])('%s takes its names and no others', (path, proto, names) => {
    for (const name of names) expect(fieldOf(resolved(withField(path, name)), path)).toBe(name);
    for (const value of ['99', '', 'all']) {
      const [violation, ...others] = violations(withField(path, value));
      expect(others).toEqual([]);
      expect(violation?.path).toBe(proto);
      expect(violation?.description).toContain(`expected one of ${names.join(', ')}`);
    }
  });

  it('refuses a standardize that is none of its names', () => {
    expect(paths(withField('features.standardize', 'yes'))).toEqual(['spec.features.standardize']);
  });
});

describe('required fields', () => {
  it('are the dataset alone', () => {
    expect(violations({})).toEqual([
      { path: 'spec.dataset', description: 'required: the id of a READY dataset' },
    ]);
  });

  it.each(['Cora', 'datasets/cora', '../cora', '-a', 'a-', 'a'.repeat(64), '9a', 'ä'])(
    'the dataset %j is no id',
    (dataset) => expect(paths({ ...least, dataset })).toEqual(['spec.dataset']),
  );

  it.each(['a', 'a-b-9', 'a'.repeat(63)])('the dataset %j is an id', (dataset) =>
    expect(paths({ ...least, dataset })).toEqual([]),
  );
});

describe('the random seed', () => {
  it.each(['0', '42', '18446744073709551615'])('may be %s', (randomSeed) => {
    expect(resolved(withField('training.randomSeed', randomSeed)).training.randomSeed).toBe(
      randomSeed,
    );
  });

  it.each(['18446744073709551616', '-1', '1.5', '0x10', '', '9'.repeat(100_000)])(
    'may not be %.30s',
    (randomSeed) =>
      expect(paths(withField('training.randomSeed', randomSeed))).toEqual([
        'spec.training.random_seed',
      ]),
  );

  it('is written without leading zeros', () => {
    expect(resolved(withField('training.randomSeed', '007')).training.randomSeed).toBe('7');
  });
});

describe('resources', () => {
  it('name no unknown device and none twice', () => {
    const deviceNames = ['cpu:0', 'gpu:0', 'cpu:0'];
    expect(violations({ ...least, resources: { deviceNames } })).toEqual([
      {
        path: 'spec.resources.device_names[1]',
        description: '"gpu:0": unknown; this host has cpu:0, cpu:1, cpu:2, cpu:3',
      },
      { path: 'spec.resources.device_names[2]', description: '"cpu:0": named twice' },
    ]);
  });

  it('are a number or names; both only if they agree', () => {
    const spec = (devices: number) => ({
      ...least,
      resources: { devices, deviceNames: ['cpu:0', 'cpu:1'] },
    });
    expect(paths(spec(2))).toEqual([]);
    expect(paths(spec(3))).toEqual(['spec.resources.devices']);
  });

  it('cannot be had on a host without devices', () => {
    expect(violations(least, { ...context, deviceNames: [] })).toEqual([
      { path: 'spec.resources.devices', description: 'this host has no devices' },
    ]);
  });

  it('refuse a huge list of names with one violation', () => {
    const deviceNames = Array.from({ length: 100_000 }, () => 'x');
    expect(paths({ ...least, resources: { deviceNames } })).toEqual([
      'spec.resources.device_names',
    ]);
  });
});

describe('placement', () => {
  const fixed = (devices: number, samplers?: number) => ({
    ...least,
    resources: { devices },
    placement: { policy: 'FIXED' as const, samplers },
  });

  it('FIXED needs 1 to all devices to sample', () => {
    expect(resolved(fixed(4, 1)).placement.samplers).toBe(1);
    expect(resolved(fixed(4, 3)).placement.samplers).toBe(3);
    expect(resolved(fixed(4, 4)).placement.samplers).toBe(4);
    for (const samplers of [0, 5, undefined, 1.5]) {
      const [violation, ...others] = violations(fixed(4, samplers));
      expect(others).toEqual([]);
      expect(violation?.path).toBe('spec.placement.samplers');
      expect(violation?.description).toContain('an integer from 1 to 4');
    }
  });

  it('FIXED needs two devices', () => {
    expect(paths(fixed(1, 1))).toEqual(['spec.placement.policy']);
  });

  it('Samplers are given for FIXED only', () => {
    expect(paths(withField('placement.samplers', 1))).toEqual(['spec.placement.samplers']);
    expect(paths(withField('placement.samplers', 0))).toEqual([]);
  });
});

describe('the queue', () => {
  it('holds at least the batches of a step', () => {
    const spec = (capacity: number) => ({
      ...least,
      training: { epochs: 1, batchesPerStep: 4 },
      queue: { capacity },
    });
    expect(paths(spec(4))).toEqual([]);
    expect(violations(spec(3))[0]?.path).toBe('spec.queue.capacity');
    expect(violations(spec(3))[0]?.description).toContain('at least 4');
    expect(resolved(spec(0)).queue.capacity).toBe(0);
    expect(paths(spec(65_536))).toEqual([]);
    for (const capacity of [-1, 65_537, 4.5]) {
      expect(paths(spec(capacity))).toEqual(['spec.queue.capacity']);
    }
  });
});

describe('a spec with several mistakes', () => {
  it('is answered with all of them at once', () => {
    const input = {
      dataset: 'cora',
      model: { dropout: 1.5 },
      training: { epochs: 0, batchSize: -1, optimizer: { learningRate: Number.NaN } },
      resources: { devices: 9 },
      placement: { policy: 'FIXED' as const },
    };
    expect(paths(input)).toEqual([
      'spec.model.dropout',
      'spec.training.epochs',
      'spec.training.batch_size',
      'spec.training.optimizer.learning_rate',
      'spec.resources.devices',
    ]);
  });

  it('keeps its answer short where values are long', () => {
    const [violation] = violations({ ...least, dataset: 'x'.repeat(1_000_000) });
    expect(violation?.description.length).toBeLessThan(300);
  });
});

describe('a resolved spec', () => {
  it('resolves to itself', () => {
    forAll(300, (random) => {
      const spec = resolved(randomSpec(random, context.deviceNames));
      expect(resolved(spec)).toEqual(spec);
    });
  });

  it('survives being stored as JSON', () => {
    forAll(100, (random) => {
      const spec = resolved(randomSpec(random, context.deviceNames));
      expect(resolved(JSON.parse(JSON.stringify(spec)))).toEqual(spec);
    });
  });
});
