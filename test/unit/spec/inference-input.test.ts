import { describe, expect, it } from 'vitest';
import { outputsOf } from '../../../src/plan/plan.ts';
import { completeInference, type TrainedFacts } from '../../../src/spec/inference-input.ts';
import type { JobSpecInput } from '../../../src/spec/job-spec.ts';
import { resolveJobSpec } from '../../../src/spec/resolve-job-spec.ts';
import { decodeSpec, encodeSpec } from '../../../src/spec/spec-codec.ts';
import { contextOf, okOf } from '../../support/spec-context.ts';

const context = contextOf({
  deviceNames: ['cpu:0', 'cpu:1'],
  numNodes: 1000,
  trainNodes: 140,
  valNodes: 0,
  hasEdgeWeights: false,
});

function resolve(input: JobSpecInput) {
  return okOf(resolveJobSpec(input, context));
}

const trainedSpec = resolve({
  dataset: 'cora',
  model: { type: 'GCN', hiddenDim: 32, dropout: 0.3 },
  sampling: { fanouts: [-1, -1] },
  features: { standardize: 'ON' },
  training: { epochs: 40, batchSize: 64 },
  evaluation: { method: 'SAMPLED', fanouts: [9, 9], everyEpochs: 5 },
});

const trained: TrainedFacts = {
  spec: trainedSpec,
  parametersSha256: 'ab'.repeat(32),
  inDim: 1433,
  outDim: 7,
  task: 'CLASSIFICATION',
  featureNames: null,
  datasetDigest: 'cd'.repeat(32),
  folder: '/state/jobs/uid/checkpoint',
};

const minimal: JobSpecInput = { kind: 'INFERENCE', inference: { job: 'gcn' } };

function violationsOf(given: JobSpecInput) {
  const { spec, violations } = completeInference({ ...minimal, ...given }, trained);
  const resolution = resolveJobSpec(spec, context);
  return [...violations, ...('ok' in resolution ? [] : resolution.violations)];
}

describe('the spec of an inference', () => {
  it('takes model, sampling, features and evaluation from the job that trained', () => {
    const { spec, violations } = completeInference(minimal, trained);
    expect(violations).toEqual([]);
    const resolved = resolve(spec);
    const { model, sampling, features, propagation } = trainedSpec;
    expect(resolved).toMatchObject({ dataset: 'cora', model, sampling, features, propagation });
    expect(resolved.evaluation).toEqual(trainedSpec.evaluation);
    expect(resolved.inference).toEqual({
      ...{
        job: 'gcn',
        path: trained.folder,
        parameters: 'BEST',
        nodes: 'ALL',
        nodesFile: '',
        nodeIds: [],
      },
      ...{ outputs: [], formats: ['NPY'], parametersSha256: trained.parametersSha256 },
      ...{ classes: 7, trainedOn: trained.datasetDigest, task: 'CLASSIFICATION', layer: 0 },
      ...{ pairsFile: '', k: 0, amongFile: '', withKnown: false },
    });
    // No Sampler marks rows for a cache that nobody has.
    expect(resolved.cache).toMatchObject({ ratio: 0, standbyRatio: 0 });
  });

  it('completes and resolves to itself, also from the store', () => {
    const resolved = resolve(completeInference(minimal, trained).spec);
    const again = completeInference(resolved, trained);
    expect(again.violations).toEqual([]);
    expect(resolve(again.spec)).toEqual(resolved);
    expect(decodeSpec(encodeSpec(resolved), 'a test')).toEqual(resolved);
  });

  it('takes what was propagated, too', () => {
    const sgc = resolve({
      dataset: 'cora',
      model: { type: 'SGC' },
      propagation: { operators: ['PPR'], hops: 2 },
      training: { epochs: 1 },
    });
    const { spec, violations } = completeInference(minimal, { ...trained, spec: sgc });
    expect(violations).toEqual([]);
    const resolved = resolve(spec);
    expect(resolved.propagation).toEqual(sgc.propagation);
    expect(completeInference(resolved, { ...trained, spec: sgc }).violations).toEqual([]);
  });

  it('is evaluated in another way where that is said', () => {
    const exact = completeInference({ ...minimal, evaluation: { method: 'EXACT' } }, trained);
    expect(resolve(exact.spec).evaluation).toMatchObject({ method: 'EXACT', fanouts: [] });
    const other = completeInference({ ...minimal, evaluation: { fanouts: [3, 3] } }, trained);
    expect(resolve(other.spec).evaluation).toMatchObject({ method: 'SAMPLED', fanouts: [3, 3] });
  });

  describe('the layer of embeddings', () => {
    const hidden = (model: JobSpecInput['model'], given: object = {}) => {
      const own = model?.type === 'GCN' ? { sampling: { fanouts: [-1, -1, -1] } } : {};
      const spec = resolve({ dataset: 'cora', model, training: { epochs: 1 }, ...own });
      const inference = { job: 'gcn', outputs: ['EMBEDDINGS'], ...given } as const;
      const completed = completeInference({ ...minimal, inference }, { ...trained, spec });
      return resolveJobSpec(completed.spec, context);
    };
    const layerOf = (...of: Parameters<typeof hidden>) => okOf(hidden(...of)).inference.layer;
    const refusal = (...of: Parameters<typeof hidden>) => {
      const found = hidden(...of);
      return 'ok' in found ? [] : found.violations;
    };

    it('is the last hidden one, where there is one that gives nodes a row', () => {
      expect(layerOf({ type: 'GCN' })).toBe(2);
      expect(layerOf({ type: 'GCN' }, { layer: 3 })).toBe(3);
      expect(layerOf({ type: 'SIGN' })).toBe(2);
      expect(layerOf({ type: 'SGC' })).toBe(1);
      expect(layerOf({ type: 'HOGA', layers: 2 })).toBe(2);
    });

    it('is one of the model, of embeddings', () => {
      const path = 'spec.inference.layer';
      expect(refusal({ type: 'GCN' }, { layer: 4 })).toEqual([
        { path, description: '4: the model has 3, of which the last gives the logits' },
      ]);
      expect(refusal({ type: 'GCN' }, { layer: 1, outputs: ['LOGITS'] })).toEqual([
        { path, description: '1: only for outputs EMBEDDINGS' },
      ]);
      expect(refusal({ type: 'HOGA', layers: 2 }, { layer: 1 })).toEqual([
        {
          path,
          description:
            '1: layers of HOGA give a row for each hop of a node, and none for the node; ' +
            'expected 2, whose rows are the logits',
        },
      ]);
    });

    it('decides which files there are', () => {
      const kinds = (given: object) =>
        outputsOf(okOf(hidden({ type: 'GCN' }, given))).map(({ kind, layer }) => [kind, layer]);
      expect(kinds({})).toEqual([['EMBEDDINGS', 1]]);
      expect(kinds({ outputs: [] })).toEqual([['PREDICTIONS', 2]]);
      expect(kinds({ outputs: ['EMBEDDINGS', 'LOGITS'], layer: 1 })).toEqual([
        ['PREDICTIONS', 2],
        ['LOGITS', 2],
        ['EMBEDDINGS', 0],
      ]);
    });
  });

  it('is told all that is wrong, each with its path', () => {
    const wrong = violationsOf({
      model: { type: 'GAT', hiddenDim: 32 },
      training: { epochs: 2 },
      cache: { ratio: 0.5 },
      evaluation: { everyEpochs: 1 },
      resources: { devices: 9 },
      inference: {
        ...{ job: 'gcn', nodes: 'TEST', nodesFile: 'ids.txt' },
        ...{ outputs: ['LOGITS', 'LOGITS'], formats: ['NPY', 'PARQUET', 'NPY'] },
        ...{ parametersSha256: 'ef', classes: 8 },
      } as unknown as NonNullable<JobSpecInput['inference']>,
    });
    expect(wrong.map(({ path }) => path)).toEqual([
      'spec.model.type',
      'spec.cache.ratio',
      'spec.training.epochs',
      'spec.evaluation.every_epochs',
      'spec.inference.parameters_sha256',
      'spec.inference.classes',
      'spec.inference.nodes_file',
      'spec.inference.outputs[1]',
      'spec.inference.formats[2]',
      'spec.resources.devices',
    ]);
    // A value that equals the model's own is not wrong.
    expect(violationsOf({ model: { hiddenDim: 32 } })).toEqual([]);
  });

  it('names a file of nodes where they are listed, and only there', () => {
    const nodesFile = (inference: object) =>
      violationsOf({ inference: { job: 'gcn', ...inference } }).map(
        ({ description }) => description,
      );
    expect(nodesFile({ nodes: 'LISTED' })).toEqual(['required for nodes LISTED, or node_ids']);
    expect(nodesFile({ nodes: 'LISTED', nodesFile: 'ids.txt' })).toEqual([
      '"ids.txt": expected an absolute path',
    ]);
    expect(nodesFile({ nodes: 'LISTED', nodesFile: '/srv/ids.txt' })).toEqual([]);
    expect(nodesFile({ nodes: 'LISTED', nodeIds: ['a', '7'] })).toEqual([]);
    expect(nodesFile({ nodes: 'LISTED', nodeIds: ['a'], nodesFile: '/srv/ids.txt' })).toEqual([
      '1 given: expected none beside nodes_file',
    ]);
    expect(nodesFile({ nodes: 'TEST', nodeIds: ['a', 'b'] })).toEqual([
      '2 given: only for nodes LISTED',
    ]);
    expect(nodesFile({ nodes: 'LISTED', nodeIds: Array(1001).fill('a') })).toEqual([
      '1001 given: expected at most 1000',
    ]);
  });

  it('is nothing that a job which trains has', () => {
    const resolution = resolveJobSpec(
      { dataset: 'cora', training: { epochs: 1 }, inference: { job: 'gcn', nodes: 'TEST' } },
      context,
    );
    expect('ok' in resolution ? [] : resolution.violations.map(({ path }) => path)).toEqual([
      'spec.inference.job',
      'spec.inference.nodes',
    ]);
  });
});
