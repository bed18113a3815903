import { describe, expect, test } from 'vitest';
import type { CoreAddon, GraphSchema, SamplingOptions } from '../../../src/native/contract.ts';
import { layoutOf } from '../../../src/plan/job-layout.ts';
import type { MemoryFacts } from '../../../src/plan/plan-kind.ts';
import { batchRowsOf, rowWidthsOf } from '../../../src/plan/relation-blocks.ts';
import { trainRelations } from '../../../src/plan/train-relations.ts';
import type { JobSpec } from '../../../src/spec/job-spec.ts';
import { workOf } from '../../../src/work/work.ts';
import { someSpec } from '../store/job-values.ts';

const mib = 2 ** 20;
const none = {
  labelled: false,
  task: 'CLASSIFICATION',
  numClasses: 0,
  train: 0,
  val: 0,
  test: 0,
} as const;

/** Papers, whose classes are learnt, authors and places without features, and venues. */
const schema: GraphSchema = {
  types: [
    {
      ...{ name: 'paper', numNodes: 1000, numFeatures: 128, featureDtype: 'float16' },
      ...{ ...none, labelled: true, numClasses: 3, train: 600, val: 100, test: 100 },
    },
    { ...none, name: 'author', numNodes: 5000, numFeatures: 0, featureDtype: 'float32' },
    { ...none, name: 'place', numNodes: 10, numFeatures: 0, featureDtype: 'float32' },
    { ...none, name: 'venue', numNodes: 100, numFeatures: 8, featureDtype: 'float32' },
  ],
  relations: [
    { source: 1, name: 'writes', destination: 0, numEdges: 9000 },
    { source: 0, name: 'cites', destination: 0, numEdges: 4000 },
    { source: 0, name: 'rev_writes', destination: 1, numEdges: 9000 },
    { source: 1, name: 'lives', destination: 2, numEdges: 5000 },
    { source: 3, name: 'shows', destination: 0, numEdges: 1000 },
  ],
};
const { name: _, labelled: __, ...target } = schema.types[0] ?? (null as never);
const counts = { ...target, numEdges: 0 };

const native = {
  modelManifest: () => ({ tensors: [], numFloats: 1000, widths: [] }),
  recordSlotBytesTyped: ({ types }: GraphSchema, { relationFanouts }: SamplingOptions) =>
    mib * types.length + relationFanouts.length,
  topologyBytesTyped: ({ relations }: GraphSchema) =>
    relations.reduce((sum, { numEdges }) => sum + 4 * numEdges, 0),
  segmentDefaultSlots: () => 4,
  evaluationSizes: ({ counts: { numNodes, val } }) => ({
    ...{ chunks: numNodes + val, scratchBytes: 1, keptBytes: 7, workBytes: 5 },
  }),
} as Partial<CoreAddon> as MemoryFacts['native'];

const spec: JobSpec = {
  ...someSpec,
  model: { ...someSpec.model, type: 'RSAGE', layers: 2, hiddenDim: 32 },
  relations: { target: 'paper', reverse: true, only: [], fanouts: ['paper__cites__paper=0/-1'] },
  features: { standardize: 'OFF' },
  cache: { ...someSpec.cache, ratio: 0, standbyRatio: 0 },
  sampling: { ...someSpec.sampling, algorithm: 'KHOP_UNIFORM', fanouts: [10, 5] },
  training: { ...someSpec.training, batchSize: 20, precision: 'FLOAT32' },
  resources: { ...someSpec.resources, devices: 1, hostMemoryBytes: 0, topology: 'AUTO' },
  queue: { ...someSpec.queue, capacity: 0 },
  evaluation: { ...someSpec.evaluation, method: 'EXACT', maxBytes: 2 ** 30 },
};

describe('a job over several types', () => {
  const layout = layoutOf(trainRelations(schema), native, spec, counts);

  test('has rows of each type as wide as its features, or as those whose mean they are', () => {
    expect(rowWidthsOf(schema)).toEqual([128, 128, 128, 8]);
    expect(layout.model).toMatchObject({ type: 'RSAGE', inDim: 0, outDim: 3 });
    expect(layout.model.graph.types[3]).toEqual({ name: 'venue', inDim: 8 });
    expect(layout.model.graph.relations[2]).toEqual({
      source: 0,
      name: 'rev_writes',
      destination: 1,
    });
  });

  test('draws along each relation what the spec says of it', () => {
    const usual = [10, 5];
    expect(layout.sampling.relationFanouts).toEqual([usual, [0, -1], usual, usual, usual]);
    expect(layout.sampling.hotRanks).toBe(false);
    expect(layout.slotBytes).toBe(4 * mib + 5);
    const plain = { ...spec, relations: { ...spec.relations, fanouts: [] } };
    const { sampling } = layoutOf(trainRelations(schema), native, plain, counts);
    expect(sampling.relationFanouts).toEqual([]);
  });

  test('reads at most what its fanouts reach, and no more than there is', () => {
    const rows = (hops: readonly number[], ofRelations: readonly (readonly number[])[] = []) =>
      batchRowsOf(schema, 20, { hops, ofRelations });
    // 20 seeds; 3 authors, papers and venues each.
    expect(rows([3])).toEqual([80, 60, 0, 60]);
    expect(rows([3], [[1], [0], [1], [1], [0]])).toEqual([20, 20, 0, 0]);
    expect(rows([-1])).toEqual([1000, 5000, 0, 100]);
    expect(rows([100, 100])).toEqual([1000, 5000, 0, 100]);
  });

  test('takes memory for all types and relations', () => {
    const facts = { native, counts, hostBytes: 64 * 2 ** 30, deviceBytes: 0 };
    const plan = workOf(spec, schema).memory(facts);
    expect(plan.topologyBytes).toBe(4 * 28_000);
    // Features of papers are float16, those of others float32.
    const standardized = { ...spec, features: { standardize: 'ON' } } as const;
    const featuresBytes = 1000 * 128 * 2 + 5000 * 128 * 4 + 10 * 128 * 4 + 100 * 8 * 4;
    expect(plan.featuresBytes).toBe(featuresBytes);
    expect(workOf(standardized, schema).memory(facts).featuresBytes).toBe(
      featuresBytes + 1000 * 128 * 2,
    );
    const part = (name: string) => plan.parts.find((each) => each.name === name)?.bytes;
    // Nodes of each type from a multiple of 64 on, two levels of 32 columns, whole pages.
    const nodes = 1024 + 5056 + 64 + 128;
    expect(layout.evaluated).toEqual({ nodes, scratchBytes: 2 * 4096 * ((nodes * 32 * 4) / 4096) });
    expect(part("an evaluation's hidden rows")).toBe(2 * nodes * 32 * 4);
    expect(part('sums of features kept for evaluations')).toBeUndefined();
    expect(part('cached feature rows')).toBeUndefined();
  });
});
