import { describe, expect, it } from 'vitest';
import { outputsOf, questionOf } from '../../../src/plan/plan.ts';
import { completeInference, type TrainedFacts } from '../../../src/spec/inference-input.ts';
import type { JobSpecInput } from '../../../src/spec/job-spec.ts';
import { resolveJobSpec } from '../../../src/spec/resolve-job-spec.ts';
import { decodeSpec, encodeSpec } from '../../../src/spec/spec-codec.ts';
import { contextOf, okOf } from '../../support/spec-context.ts';

/** What is asked of models that have learnt links, and refused of others. */

const known = { numNodes: 100, numEdges: 5000, trainNodes: 10, valNodes: 5, hasEdgeWeights: false };
const context = contextOf({ ...known, links: null });

const links = okOf(
  resolveJobSpec(
    {
      dataset: 'shop',
      task: 'LINKS',
      links: { split: { validation: 0.1, test: 0.2, randomSeed: '7' }, head: 'COSINE' },
      model: { type: 'GRAPHSAGE', hiddenDim: 32, layers: 2 },
      sampling: { fanouts: [5, 5] },
      training: { epochs: 3 },
    },
    context,
  ),
);
const nodes = okOf(
  resolveJobSpec(
    { dataset: 'shop', model: { type: 'GRAPHSAGE' }, sampling: { fanouts: [5, 5, 5] } },
    context,
  ),
);

function trainedWith(spec: TrainedFacts['spec']): TrainedFacts {
  return {
    spec,
    parametersSha256: 'ab'.repeat(32),
    ...{ inDim: 8, outDim: 32, task: 'CLASSIFICATION', featureNames: null },
    ...{ datasetDigest: 'cd'.repeat(32), folder: '/state/jobs/uid/checkpoint' },
  };
}

type Asked = NonNullable<JobSpecInput['inference']>;

function completed(inference: Asked, more: JobSpecInput = {}, trained = links) {
  const given = { kind: 'INFERENCE', inference: { job: 'shop-links', ...inference }, ...more };
  return completeInference(given as JobSpecInput, trainedWith(trained));
}

function resolved(inference: Asked) {
  const { spec, violations } = completed(inference);
  expect(violations).toEqual([]);
  return okOf(resolveJobSpec(spec, context));
}

/** What is wrong, by path. */
function refusals(inference: Asked, more: JobSpecInput = {}, trained = links) {
  const { spec, violations } = completed(inference, more, trained);
  const resolution = resolveJobSpec(spec, context);
  const all = [...violations, ...('ok' in resolution ? [] : resolution.violations)];
  return Object.fromEntries(all.map(({ path, description }) => [path, description]));
}

describe('an inference with a model of links', () => {
  it('has the task and the links of its model, and completes to itself', () => {
    const spec = resolved({ outputs: ['EMBEDDINGS'] });
    expect(spec).toMatchObject({ kind: 'INFERENCE', task: 'LINKS', links: links.links });
    const again = completeInference(spec, trainedWith(links));
    expect(again.violations).toEqual([]);
    expect(okOf(resolveJobSpec(again.spec, context))).toEqual(spec);
    expect(decodeSpec(encodeSpec(spec), 'a test')).toEqual(spec);
  });

  it('gives the rows that the head reads, or those of a hidden layer', () => {
    const files = (inference: Asked) => outputsOf(resolved(inference));
    expect(files({ outputs: ['EMBEDDINGS'] })).toEqual([{ kind: 'EMBEDDINGS', layer: 1 }]);
    expect(files({ outputs: ['EMBEDDINGS'], layer: 1 })).toEqual([
      { kind: 'EMBEDDINGS', layer: 0 },
    ]);
    expect(refusals({ outputs: ['EMBEDDINGS'], layer: 3 })).toEqual({
      'spec.inference.layer': '3: the model has 2, of which the last gives what the head reads',
    });
  });

  it('scores pairs of a file', () => {
    const spec = resolved({ outputs: ['SCORES'], pairsFile: '/srv/pairs.npy' });
    expect(outputsOf(spec)).toEqual([]);
    expect(questionOf(spec)).toEqual({ asks: 'SCORES', k: 0, among: false, withKnown: false });
  });

  it('finds the nearest, ten unless more are asked for', () => {
    expect(questionOf(resolved({ outputs: ['NEAREST'] }))).toMatchObject({
      asks: 'NEAREST',
      k: 10,
    });
    const asked = { k: 99, amongFile: '/srv/items.npy', withKnown: true } as const;
    expect(questionOf(resolved({ outputs: ['NEAREST'], ...asked }))).toEqual({
      ...{ asks: 'NEAREST', k: 99, among: true, withKnown: true },
    });
  });

  it('is told everything that cannot be at once', () => {
    expect(refusals({})).toEqual({
      'spec.inference.outputs':
        'none: expected one of EMBEDDINGS, SCORES, NEAREST, of a model that has learnt links, ' +
        'which predicts no node',
    });
    expect(
      refusals(
        { outputs: ['SCORES', 'LOGITS'], nodes: 'TEST', k: 5, withKnown: true, amongFile: 'a' },
        { evaluation: { method: 'SAMPLED' }, links: { head: 'DOT' } },
      ),
    ).toEqual({
      'spec.links.head': '"DOT": expected none: it is that of the job whose model predicts',
      'spec.inference.outputs':
        'SCORES, LOGITS: expected one of EMBEDDINGS, SCORES, NEAREST, of a model that has learnt ' +
        'links, which predicts no node',
      'spec.inference.pairs_file': 'required for outputs SCORES: the pairs',
      'spec.inference.nodes': 'TEST: SCORES are of the pairs in pairs_file; expected ALL',
      'spec.inference.k': '5: only for outputs NEAREST',
      'spec.inference.among_file': '"a": only for outputs NEAREST',
      'spec.inference.with_known': 'true: only for outputs NEAREST',
      'spec.evaluation.method': 'SAMPLED: links are scored by exact embeddings; expected EXACT',
    });
    expect(refusals({ outputs: ['NEAREST'], k: 0, pairsFile: '/p', amongFile: 'items' })).toEqual({
      'spec.inference.k': '0: expected 1 or more',
      'spec.inference.pairs_file': '"/p": only for outputs SCORES',
      'spec.inference.among_file': '"items": expected an absolute path',
    });
    expect(refusals({ outputs: ['NEAREST'], k: 100 })).toEqual({
      'spec.inference.k': '100: expected fewer than the 100 nodes',
    });
    expect(refusals({ outputs: ['NEAREST'], k: 10_001 })['spec.inference.k']).toMatch(/10,?000/);
    expect(refusals({ outputs: ['SCORES'], pairsFile: 'pairs.npy' })).toEqual({
      'spec.inference.pairs_file': '"pairs.npy": expected an absolute path',
    });
  });

  it('has no nodes of a side', () => {
    expect(refusals({ outputs: ['NEAREST'], nodes: 'VALIDATION' })).toEqual({
      'spec.inference.nodes':
        'VALIDATION: sides of a job that learns links are of pairs; expected ALL or LISTED',
    });
  });
});

describe('an inference with a model of nodes', () => {
  it('scores no pairs and finds nothing near', () => {
    const wrong = refusals({ outputs: ['SCORES', 'NEAREST'], pairsFile: '/p' }, {}, nodes);
    const why = 'the model has learnt nodes, so that no head scores pairs of them';
    expect(wrong).toEqual({
      'spec.inference.outputs[0]': `SCORES: ${why}; expected a job of task LINKS`,
      'spec.inference.outputs[1]': `NEAREST: ${why}; expected a job of task LINKS`,
    });
  });

  it('is not made one of links by saying so', () => {
    expect(refusals({}, { task: 'LINKS' }, nodes)).toEqual({
      'spec.task': '"LINKS": expected none: it is that of the job whose model predicts',
    });
  });
});
