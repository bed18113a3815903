import { describe, expect, test } from 'vitest';
import { memoryViolations, taskTopologyPlace } from '../../../src/plan/memory-plan.ts';
import type { MemoryFacts } from '../../../src/plan/plan-kind.ts';
import type { JobSpec } from '../../../src/spec/job-spec.ts';
import { workOf } from '../../../src/work/work.ts';
import { someSpec } from '../store/job-values.ts';

const mib = 2 ** 20;
const gib = 2 ** 30;

const counts = {
  numNodes: 1_000_000,
  numEdges: 100_000_000,
  numFeatures: 128,
  featureDtype: 'float16' as const,
  task: 'CLASSIFICATION' as const,
  numClasses: 3,
  train: 10_000,
  val: 10,
  test: 10,
};
const topologyBytes = 8 * 1_000_001 + 4 * 100_000_000;
const featuresBytes = 1_000_000 * 256;

/** Facts of a host. Native code is replaced by fixed sizes: only sizes matter. */
function facts(hostBytes: number, scratchBytes = 0): MemoryFacts {
  return {
    native: {
      modelManifest: () => ({ tensors: [], numFloats: 1000, widths: [] }),
      recordSlotBytes: () => 3 * mib,
      recordSlotBytesTyped: () => 2 * mib,
      topologyBytesTyped: ({ relations }) =>
        relations.reduce((sum, { numEdges }) => sum + 4 * numEdges, 0),
      segmentDefaultSlots: () => 4,
      evaluationSizes: () => ({ chunks: 1, scratchBytes, keptBytes: 0, workBytes: 5 * mib }),
      jobMemory: ({ batchSize, alias }) => ({
        topologyBytes: topologyBytes + (alias ? 8 * counts.numEdges : 0),
        ...{ samplerDeviceBytes: 0, historyRowBytes: 0, evaluationPartBytes: 0 },
        ...{ rowWorkBytes: 1000 * batchSize, rowDeviceBytes: 8 * mib, rowChunkBytes: 0 },
        // Four batches of 1,000 rows of five hops, 256 bytes each.
        rowStagedBytes: 4 * batchSize * 5 * 256,
      }),
      hostTierRows: (bytes, rowBytes, numNodes) =>
        Math.min(numNodes, Math.max(0, Math.floor((bytes - 4096) / rowBytes))),
    },
    counts,
    hostBytes,
    deviceBytes: 0,
  };
}

function spec(changes: {
  readonly resources?: Partial<JobSpec['resources']>;
  readonly cache?: Partial<JobSpec['cache']>;
  readonly sampling?: Partial<JobSpec['sampling']>;
  readonly training?: Partial<JobSpec['training']>;
}): JobSpec {
  const { resources, cache, sampling, training } = changes;
  return {
    ...someSpec,
    features: { standardize: 'OFF' },
    resources: {
      ...someSpec.resources,
      ...{ devices: 1, hostMemoryBytes: 0, deviceMemoryBytes: 0, topology: 'AUTO' },
      ...resources,
    },
    cache: { ...someSpec.cache, ratio: 0, standbyRatio: 0, ...cache },
    sampling: { ...someSpec.sampling, algorithm: 'KHOP_UNIFORM', fanouts: [10, 5], ...sampling },
    training: { ...someSpec.training, batchSize: 1000, precision: 'FLOAT32', ...training },
    queue: { ...someSpec.queue, capacity: 0, maxBytes: gib },
    evaluation: { ...someSpec.evaluation, method: 'EXACT', maxBytes: gib },
  };
}

const memoryPlanOf = (asked: JobSpec, given: MemoryFacts) => workOf(asked).memory(given);

const bytesOf = (asked: JobSpec, given: MemoryFacts, name: string) =>
  memoryPlanOf(asked, given).parts.find((part) => part.name === name)?.bytes ?? 0;

describe("the plan of a job's memory", () => {
  test('counts the memory that cached rows and embeddings share once', () => {
    const history = {
      ...{ staleSteps: 10, gradientShare: 0.9, startStep: 0, levels: [1, 2], maxBytes: 100 * mib },
    };
    const index = 2 * 4 * counts.numNodes;
    const parts = (asked: JobSpec) => {
      const sizes = new Map<string, { bytes: number; isBound: boolean }>();
      for (const { name, ...part } of memoryPlanOf(asked, facts(64 * gib)).parts) {
        const known = name.startsWith('embeddings') ? 'embeddings' : name;
        sizes.set(known, { bytes: part.bytes, isBound: part.isBound });
      }
      return [sizes.get('cached feature rows'), sizes.get('embeddings')];
    };
    const three = { devices: 3 };
    const asked = (
      determinism: 'STRICT' | 'RELAXED',
      ratio: number,
      kind: 'CPU' | 'SIM' = 'CPU',
    ) => {
      const base = spec({ resources: three, cache: { ratio }, training: { determinism } });
      return { ...base, history, resources: { ...base.resources, deviceKind: kind } };
    };
    // 256 bytes a row. All Trainers of a STRICT job share one.
    const quarter = 250_000 * 256;
    expect(parts(asked('STRICT', 0.25))).toEqual([
      { bytes: quarter, isBound: false },
      { bytes: 100 * mib - quarter + index, isBound: true },
    ]);
    expect(parts(asked('STRICT', 0.5))).toEqual([
      { bytes: 2 * quarter, isBound: false },
      { bytes: index, isBound: true },
    ]);
    const [cached, embeddings] = parts(asked('RELAXED', 0.25));
    const trainers = (cached?.bytes ?? 0) / quarter;
    expect(trainers).toBeGreaterThan(1);
    expect(embeddings?.bytes).toBe(trainers * (100 * mib - quarter + index));
    // Without a cache on cores there is nothing to share.
    expect(parts(asked('STRICT', 0))).toEqual([
      undefined,
      { bytes: 100 * mib + index, isBound: true },
    ]);
    expect(parts(asked('STRICT', 0.25, 'SIM'))[1]?.bytes).toBe(100 * mib + index);
  });

  test('knows where rows come from, by the bytes that the model reads', () => {
    const planOf = (
      type: 'SGC' | 'SIGN' | 'GRAPHSAGE',
      hostBytes: number,
      rowsFrom: 'AUTO' | 'HOST' | 'DISK' = 'AUTO',
    ) => {
      const propagation = {
        ...someSpec.propagation,
        ...{
          operators: ['SYMMETRIC' as const, 'ROW' as const],
          hops: 2,
          rowDtype: 'FLOAT16' as const,
        },
      };
      const { model, resources } = someSpec;
      const asked = { ...spec({}), model: { ...model, type }, propagation };
      return memoryPlanOf({ ...asked, resources: { ...resources, rowsFrom } }, facts(hostBytes));
    };
    const rowsOf: (...of: Parameters<typeof planOf>) => object | null = (...of) =>
      planOf(...of).rows;
    // 10,020 labelled rows of 256 bytes; hop 0 and two hops of two operators, or the last alone.
    expect(rowsOf('SIGN', 64 * gib)).toMatchObject({
      bytes: 5 * 10_020 * 256,
      tier: 'HOST',
      chunk: 1,
    });
    expect(rowsOf('SGC', 64 * gib)).toMatchObject({ bytes: 10_020 * 256 });
    // No divisor of a batch of 1,000 rows is as long as a chunk should be.
    expect(rowsOf('SIGN', 10 * mib)).toMatchObject({ tier: 'DISK', chunk: 1000 });
    expect(rowsOf('GRAPHSAGE', 64 * gib)).toBe(null);
    // The job gets what it asks for, whatever fits.
    expect(rowsOf('SIGN', 64 * gib, 'DISK')).toMatchObject({ tier: 'DISK', chunk: 1000 });
    expect(rowsOf('SIGN', 10 * mib, 'HOST')).toMatchObject({ tier: 'HOST', chunk: 1 });
    // A device has them where it has room; what it does not say is what the host has.
    const onDevice = (deviceBytes: number) => {
      const model = { ...someSpec.model, type: 'SIGN' as const };
      const free = { deviceMemoryBytes: 0, rowsFrom: 'AUTO' as const };
      const resources = { ...someSpec.resources, ...free };
      const asked = { ...spec({}), model, resources };
      return memoryPlanOf(asked, { ...facts(64 * gib), deviceBytes }).rows;
    };
    expect(onDevice(8 * gib)).toMatchObject({ tier: 'DEVICE', splits: 'ALL', chunk: 1 });
    expect(onDevice(8 * mib)).toMatchObject({ tier: 'HOST', chunk: 1 });
    // Four batches of 1,000 rows of five hops for each of two Trainers, from disk alone.
    const ahead = (from: 'HOST' | 'DISK') =>
      planOf('SIGN', 64 * gib, from).parts.find(({ name }) => name === 'rows read ahead from disk');
    expect(ahead('DISK')).toMatchObject({ bytes: 2 * 4 * 1000 * 5 * 256, isBound: true });
    expect(ahead('HOST')).toBe(undefined);
  });

  test('has a Trainer on every device and no Sampler where batches are rows', () => {
    const resources = { ...someSpec.resources, devices: 3 };
    const placement = { ...someSpec.placement, standby: 'OFF' as const };
    const model = { ...someSpec.model, type: 'SIGN' as const };
    const asked = { ...spec({}), model, placement, resources };
    expect(bytesOf(asked, facts(64 * gib), 'processes')).toBe(3 * 350 * mib);
    const one = { ...asked, resources: { ...resources, devices: 1 } };
    const workBytes = (of: JobSpec) =>
      bytesOf(of, facts(64 * gib), 'batches, and the work on them');
    expect(workBytes(asked)).toBe(3 * workBytes(one));
    expect(bytesOf(asked, facts(64 * gib), 'extracted batches')).toBe(0);
  });

  test('counts what is surely taken apart from what is taken at most', () => {
    const plan = memoryPlanOf(spec({}), facts(64 * gib, 100 * mib));
    // A Sampler's and a Trainer's process, and 4 + G * (S + 1) copies of the parameters.
    const processes = (70 + 350) * mib;
    const parameters = plan.parts.find(({ field }) => field === 'model.hidden_dim')?.bytes ?? 0;
    expect(plan.surelyBytes).toBe(topologyBytes + 100 * mib + processes + parameters);
    // 1000 * (1 + 10 + 50) rows of 128 floats, twice; four slots; an evaluation's work.
    const bounds = 2 * 61_000 * 128 * 4 + 4 * 3 * mib + 5 * mib;
    expect(plan.atMostBytes).toBe(plan.surelyBytes + bounds);
  });

  test('extracts no more rows than there are, and half as many bytes in bfloat16', () => {
    const huge = spec({ sampling: { fanouts: [100, 100] } });
    expect(bytesOf(huge, facts(gib), 'extracted batches')).toBe(2 * counts.numNodes * 128 * 4);
    const narrow = spec({ training: { precision: 'BFLOAT16' } });
    expect(bytesOf(narrow, facts(gib), 'extracted batches')).toBe(2 * 61_000 * 128 * 2);
  });

  test('copies the topology where it fits beside the rest, else leaves it in its files', () => {
    const placed = (asked: JobSpec, hostBytes: number, scratchBytes = 0) => {
      const plan = memoryPlanOf(asked, facts(hostBytes, scratchBytes));
      return [plan.topology, plan.parts[0]?.bytes];
    };
    expect(placed(spec({}), 2 * gib)).toEqual(['MEMORY', topologyBytes]);
    expect(placed(spec({}), 0.9 * gib)).toEqual(['FILE', 0]);
    // 1 GiB of hidden rows leave too little of 1.6 GiB.
    expect(placed(spec({}), 1.6 * gib)).toEqual(['MEMORY', topologyBytes]);
    expect(placed(spec({}), 1.6 * gib, gib)).toEqual(['FILE', 0]);
    expect(placed(spec({ resources: { topology: 'FILE' } }), 64 * gib)).toEqual(['FILE', 0]);
    expect(placed(spec({ resources: { topology: 'MEMORY' } }), gib)).toEqual([
      'MEMORY',
      topologyBytes,
    ]);
    // Alias tables are in memory, and three times as large.
    const weighted = spec({ sampling: { algorithm: 'KHOP_WEIGHTED' } });
    expect(placed(weighted, gib)).toEqual(['MEMORY', topologyBytes + 8 * counts.numEdges]);
  });

  test('reads features from disk where the page cache cannot hold them', () => {
    const read = (asked: JobSpec, hostBytes: number) => memoryPlanOf(asked, facts(hostBytes));
    expect(read(spec({}), 64 * gib)).toMatchObject({ features: 'PAGE_CACHE', readAheadBytes: 0 });
    const surely = read(spec({}), 64 * gib).surelyBytes;
    expect(read(spec({}), surely + featuresBytes).features).toBe('PAGE_CACHE');
    expect(read(spec({}), surely + featuresBytes - 1).features).toBe('DISK');
    // Rows of float16, twice, on their way from the disk.
    const copied = bytesOf(spec({}), facts(surely + featuresBytes - 1), 'rows read from disk');
    expect(copied).toBe(2 * 61_000 * 256);
    expect(read(spec({}), surely + 4 * 60 * mib).readAheadBytes).toBe(64 * mib);
    const given = (hostMemoryBytes: number) => spec({ resources: { hostMemoryBytes } });
    expect(read(given(featuresBytes), gib).features).toBe('PAGE_CACHE');
    expect(read(given(featuresBytes - 1), 64 * gib).features).toBe('DISK');
    // Standardised features are float32.
    const standardized = { ...given(featuresBytes), features: { standardize: 'ON' as const } };
    expect(read(standardized, gib).features).toBe('DISK');
  });
});

describe('a job that surely does not fit', () => {
  const paths = (asked: JobSpec, given: MemoryFacts) =>
    memoryViolations(memoryPlanOf(asked, given)).map(({ path }) => path);

  test('is refused by the field of its largest parts, with a remedy', () => {
    expect(paths(spec({}), facts(gib))).toEqual([]);
    const forced = spec({ resources: { topology: 'MEMORY' } });
    expect(paths(forced, facts(0.5 * gib))).toEqual(['spec.resources.topology']);
    const [violation] = memoryViolations(memoryPlanOf(forced, facts(0.5 * gib)));
    expect(violation?.description).toContain("of the host's 0.50 GiB");
    expect(violation?.description).toContain('FILE leaves it in its files');
    expect(paths(spec({}), facts(0.9 * gib, 0.8 * gib))).toEqual(['spec.evaluation.max_bytes']);
    const cached = spec({ cache: { ratio: 1 } });
    expect(paths(cached, facts(0.6 * gib))).toEqual(['spec.cache.ratio']);
    const many = spec({ resources: { devices: 8 } });
    expect(paths(many, facts(gib))).toEqual(['spec.resources.devices']);
    const weighted = spec({ sampling: { algorithm: 'KHOP_WEIGHTED' } });
    expect(paths(weighted, facts(gib))).toEqual(['spec.sampling.algorithm']);
  });

  test('names as many as must go, and never what is only a bound', () => {
    const both = spec({ resources: { topology: 'MEMORY' }, cache: { ratio: 1 } });
    expect(paths(both, facts(0.45 * gib))).toEqual(['spec.resources.topology', 'spec.cache.ratio']);
    const wide = spec({ training: { batchSize: 1_000_000 } });
    expect(paths(wide, facts(0.9 * gib))).toEqual([]);
  });
});

test('a task has the memory of the host to itself', () => {
  const native = { topologyBytes: ({ numEdges }: { numEdges: number }) => 4 * numEdges };
  expect(taskTopologyPlace(native, counts, false)).toBe('MEMORY');
  expect(taskTopologyPlace(native, { ...counts, numEdges: 1e14 }, false)).toBe('FILE');
  expect(taskTopologyPlace(native, { ...counts, numEdges: 1e14 }, true)).toBe('MEMORY');
});
