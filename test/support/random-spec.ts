import type { JobSpecInput } from '../../src/spec/job-spec.ts';
import type { Random } from './random.ts';

/** A valid spec with any of its fields. */
export function randomSpec(random: Random, deviceNames: readonly string[]): JobSpecInput {
  const maybe = <T>(make: () => T): T | undefined => (random.chance(0.5) ? make() : undefined);
  const fanouts = Array.from({ length: random.integer(1, 8) }, () =>
    random.chance(0.2) ? -1 : random.integer(1, 4096),
  );
  const devices = random.integer(1, 4);
  const isFixed = devices > 1 && random.chance(0.3);
  const batchesPerStep = random.integer(1, 64);
  return {
    dataset: 'cora',
    model: maybe(() => ({
      type: maybe(() => random.pick(['GRAPHSAGE', 'GCN'] as const)),
      layers: maybe(() => fanouts.length),
      hiddenDim: maybe(() => random.integer(1, 4096)),
      dropout: maybe(() => random.unit() * 0.99),
    })),
    sampling: {
      fanouts,
      expansion: maybe(() => random.pick(['ALL', 'NEW'] as const)),
    },
    features: maybe(() => ({
      standardize: maybe(() => random.pick(['AUTO', 'ON', 'OFF'] as const)),
    })),
    training: {
      epochs: random.integer(1, 1_000_000),
      batchSize: maybe(() => random.integer(1, 2 ** 20)),
      batchesPerStep,
      staleness: maybe(() => random.integer(0, 8)),
      stalenessCompensation: maybe(() => random.pick(['PREDICT', 'NONE'] as const)),
      randomSeed: maybe(() => String(random.integer(0, 2 ** 40))),
      optimizer: maybe(() => ({ learningRate: maybe(() => random.unit() + 1e-6) })),
      earlyStop: maybe(() => ({ patienceEpochs: random.integer(1, 100), minDelta: 0.1 })),
      determinism: maybe(() => random.pick(['STRICT', 'RELAXED'] as const)),
    },
    evaluation: maybe(() => ({
      everyEpochs: maybe(() => random.integer(1, 100)),
      method: maybe(() => random.pick(['AUTO', 'SAMPLED'] as const)),
      fanouts: random.chance(0.5) ? fanouts.map(() => random.integer(1, 4096)) : [],
      maxBytes: maybe(() => random.integer(1, 2 ** 42)),
    })),
    resources: random.chance(0.5) ? { devices } : { deviceNames: deviceNames.slice(0, devices) },
    placement: isFixed ? { policy: 'FIXED', samplers: random.integer(1, devices - 1) } : undefined,
    queue: maybe(() => ({ capacity: maybe(() => random.integer(batchesPerStep, 65_536)) })),
    timeouts: maybe(() => ({ runMs: maybe(() => random.integer(0, 1_000_000)) })),
    priority: maybe(() => random.integer(0, 1000)),
  };
}
