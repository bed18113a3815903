import { describe, expect, it } from 'vitest';
import { itemsOf, negativesOf } from '../../../src/spec/learnt.ts';
import { nameOf } from '../../../src/spec/metrics.ts';
import { resolveJobSpec } from '../../../src/spec/resolve-job-spec.ts';
import type { ResolveContext } from '../../../src/spec/rules/rule.ts';
import { contextOf, okOf, violationsIn } from '../../support/spec-context.ts';

const context = contextOf({
  deviceNames: ['cpu:0', 'cpu:1', 'sim:0'],
  ...{ numNodes: 1000, numEdges: 10_000, trainNodes: 0, valNodes: 0 },
  targets: { task: 'CLASSIFICATION', count: 0 },
});

function resolve(fields: Record<string, unknown>, changes: Partial<ResolveContext> = {}) {
  const { training, ...rest } = fields;
  const spec = { dataset: 'shop', task: 'LINKS', ...rest };
  return resolveJobSpec({ ...spec, training: { epochs: 1, ...(training ?? {}) } } as never, {
    ...context,
    ...changes,
  });
}

/** Descriptions by their fields. */
function wrongOf(fields: Record<string, unknown>, changes: Partial<ResolveContext> = {}) {
  const found = violationsIn(resolve(fields, changes));
  return Object.fromEntries(found.map(({ path, description }) => [path, description]));
}

describe('links', () => {
  it('are learnt without labels, ranked among 1,000 negatives, and judged by MRR', () => {
    const spec = okOf(resolve({}));
    expect(spec.links).toEqual({
      targets: 'EDGES',
      split: { validation: 0.05, test: 0.1, randomSeed: '0' },
      allowOverlap: false,
      exclude: 'BATCH',
      messagesAtTest: 'TRAIN',
      negatives: { method: 'UNIFORM', count: 1, known: 'ALLOW' },
      head: 'DOT',
      loss: 'BCE',
      temperature: 1,
      evaluation: { negatives: 'KEYED', count: 1000 },
      ...{ labels: 'CLASSIFICATION', labelCount: 0 },
      positives: 'LINKS',
      walks: { length: 0, window: 0, perNode: 0, randomSeed: '0' },
      weights: 'NONE',
    });
    expect(spec.evaluation).toMatchObject({ method: 'EXACT', metric: 'MRR' });
    expect(spec.training.batchSize).toBe(1024);
    // A resolved spec resolves to itself.
    expect(okOf(resolveJobSpec(spec, context))).toEqual(spec);
  });

  it('are nothing to jobs that learn nodes', () => {
    const nodes = { task: 'NODES', links: { head: 'DOT', negatives: { count: 2 } } };
    const labels = { targets: { task: 'CLASSIFICATION', count: 3 }, trainNodes: 9 } as const;
    expect(wrongOf(nodes, labels)).toEqual({
      'spec.links.negatives.count': '2: only for task LINKS or LINK_LABELS',
    });
    const { links } = okOf(resolve({ task: 'NODES' }, labels));
    expect(links).toMatchObject({ split: { validation: 0 }, negatives: { count: 0 } });
    expect(wrongOf({ task: 'NODES' })['spec.dataset']).toMatch(/task LINKS, docs\/links\.md/);
  });

  it('have a batch of at most as many as the graph has edges', () => {
    const spec = okOf(resolve({}, { numEdges: 100 }));
    expect(spec.training.batchSize).toBe(85);
  });

  it('are split so that every side has some', () => {
    const split = { validation: 0.5, test: 0.5 };
    expect(wrongOf({ links: { split } })).toEqual({
      'spec.links.split.validation':
        'validation 0.5 and test 0.5 leave nothing to learn from; expected less than 1 together',
    });
    expect(wrongOf({}, { numEdges: 12 })).toEqual({
      'spec.links.split.validation': '0.05: of 12 edges this is none; expected more',
    });
    expect(wrongOf({ links: { split: { validation: 0, test: 1 } } })).toEqual({
      'spec.links.split.validation': '0: expected a finite number in (0, 1)',
      'spec.links.split.test': '1: expected a finite number in (0, 1)',
    });
    expect(Object.keys(wrongOf({}, { numEdges: 0 }))).toContain('spec.dataset');
  });

  it('are not learnt where walks are, which come to some pairs of each node', () => {
    const walked = (walks: object = {}) => ({ links: { positives: 'WALKS', walks } });
    const spec = okOf(resolve(walked()));
    expect(spec.links).toMatchObject({
      ...{ positives: 'WALKS', targets: 'EDGES', split: { validation: 0.05, test: 0.1 } },
      walks: { length: 5, window: 2, perNode: 2, randomSeed: '0' },
    });
    expect(okOf(resolveJobSpec(spec, context))).toEqual(spec);
    expect(itemsOf(spec, context)).toBe(1000 * 2 * (5 + 4));
    expect(itemsOf(spec, { ...context, numNodes: null })).toBe(null);
    expect(wrongOf({ links: { walks: { length: 3 } } })).toEqual({
      'spec.links.walks.length': '3: only for links.positives WALKS',
    });
    expect(wrongOf(walked({ length: 3, window: 4 }))).toEqual({
      'spec.links.walks.window':
        '4: a walk of links.walks.length 3 has no such pairs; expected at most 3',
    });
    expect(Object.keys(wrongOf(walked({ length: 0, window: 0, perNode: 0 })))).toEqual([
      'spec.links.walks.length',
      'spec.links.walks.window',
      'spec.links.walks.per_node',
    ]);
    const long = { length: 100, window: 10, perNode: 100 };
    const perNode = 100 * (1000 - 45);
    expect(itemsOf(okOf(resolve(walked(long))), context)).toBe(1000 * perNode);
    const large = { numNodes: 50_000 };
    expect(wrongOf(walked(long), large)).toEqual({
      'spec.links.walks.per_node':
        '100: may come to 4,775,000,000 pairs of the 50,000 nodes of shop, which are numbered in ' +
        '32 bits; expected at most 89',
    });
    okOf(resolve(walked({ ...long, perNode: 89 }), large));
    const { 'spec.links.walks.per_node': why } = wrongOf(walked(long), { numNodes: 9_000_000 });
    expect(why).toMatch(/expected shorter walks, or a smaller window$/);
    const labelled = { task: 'LINK_LABELS', ...walked() };
    expect(wrongOf(labelled)['spec.links.positives']).toBe('"WALKS": only for task LINKS');
  });

  it('are ranked among some nodes, or all', () => {
    const all = okOf(resolve({ links: { evaluation: { negatives: 'ALL' } } }));
    expect(all.links.evaluation).toEqual({ negatives: 'ALL', count: 0 });
    expect(okOf(resolveJobSpec(all, context))).toEqual(all);
    expect(wrongOf({ links: { evaluation: { negatives: 'ALL', count: 5 } } })).toEqual({
      'spec.links.evaluation.count': '5: expected none for ALL, which has all nodes',
    });
    expect(wrongOf({ links: { evaluation: { count: 0 } } })).toEqual({
      'spec.links.evaluation.count':
        '0: only for ALL and POOL; expected how many negatives each link has',
    });
  });

  it('refuse what is not computed for them, all at once', () => {
    const wrong = wrongOf({
      links: { negatives: { count: 0 } },
      model: { type: 'SIGN' },
      history: { staleSteps: 3 },
      evaluation: { method: 'SAMPLED', metric: 'ACCURACY' },
      training: { balanceClasses: true },
    });
    expect(Object.keys(wrong)).toEqual(
      expect.arrayContaining([
        'spec.links.negatives.count',
        'spec.history.stale_steps',
        'spec.evaluation.method',
      ]),
    );
    const { 'spec.evaluation.metric': metric } = wrongOf({ evaluation: { metric: 'ACCURACY' } });
    expect(metric).toMatch(/^ACCURACY: expected one of MRR, HITS_1, .*: the task is LINKS$/);
    const weights = wrongOf({ training: { classWeights: [1, 2] } });
    expect(weights['spec.training.class_weights']).toMatch(/links are of no class/);
  });

  it.each(['LOAD'])('are learnt by no job of kind %s', (kind) => {
    expect(wrongOf({ kind })['spec.task']).toBe(
      `LINKS: not available for ${kind} in this build; expected NODES`,
    );
  });

  it("are the dataset's own where it has some", () => {
    const links = {
      ...{ train: 700, val: 20, test: 30 },
      negatives: { val: 50, test: 50 },
      in_graph: { val: 0, test: 0 },
    };
    const spec = okOf(resolve({}, { links }));
    expect(spec.links).toMatchObject({
      targets: 'DATASET',
      split: { validation: 0, test: 0 },
      evaluation: { negatives: 'DATASET', count: 50 },
    });
    expect(spec.training.batchSize).toBe(700);
    expect(okOf(resolveJobSpec(spec, { ...context, links }))).toEqual(spec);
    const edges = okOf(resolve({ links: { targets: 'EDGES' } }, { links }));
    expect(edges.links).toMatchObject({ split: { test: 0.1 }, evaluation: { count: 1000 } });
    const own = { targets: 'DATASET', evaluation: { negatives: 'DATASET', count: 7 } };
    expect(wrongOf({ links: own }, { links })).toEqual({
      'spec.links.evaluation.count': '7: the dataset has 50 of each link',
    });
    expect(wrongOf({ links: own }, { links: null })).toMatchObject({
      'spec.links.targets': 'DATASET: dataset shop has none of its own; expected EDGES',
    });
  });

  it('count as their dataset weighs them, unless they are not to', () => {
    const found = {
      ...{ train: 700, val: 20, test: 30, negatives: { val: 0, test: 0 } },
      in_graph: { val: 0, test: 0 },
      weighted: true,
    } as const;
    const weighsOf = (links: object, own: typeof found | null = found) =>
      okOf(resolve({ links }, { links: own })).links.weights;
    expect(weighsOf({})).toBe('DATASET');
    expect(weighsOf({ weights: 'NONE' })).toBe('NONE');
    expect(weighsOf({ targets: 'EDGES' })).toBe('NONE');
    expect(weighsOf({ positives: 'WALKS' })).toBe('NONE');
    expect(weighsOf({}, null)).toBe('NONE');
    const spec = okOf(resolve({}, { links: found }));
    expect(okOf(resolveJobSpec(spec, { ...context, links: found }))).toEqual(spec);
    const { weighted: _, ...alike } = found;
    for (const [links, own, why] of [
      [{ targets: 'EDGES' }, found, /^DATASET: weights are of the dataset's own links/],
      [{ positives: 'WALKS' }, found, /^DATASET: pairs that walks visit have none/],
      [{}, alike, /^DATASET: dataset shop has none beside its links/],
    ] as const) {
      const wrong = wrongOf({ links: { ...links, weights: 'DATASET' } }, { links: own });
      expect(Object.keys(wrong)).toEqual(['spec.links.weights']);
      expect(wrong['spec.links.weights']).toMatch(why);
    }
    const labels = { ...found, labels: { task: 'CLASSIFICATION', count: 4 } } as const;
    const labelled = { task: 'LINK_LABELS', links: { weights: 'DATASET' } } as const;
    expect(okOf(resolve({ task: 'LINK_LABELS' }, { links: labels })).links.weights).toBe('NONE');
    expect(wrongOf(labelled, { links: labels })).toEqual({
      'spec.links.weights': '"DATASET": only for task LINKS',
    });
  });

  it('that a graph tells are refused, unless that is meant', () => {
    const found = { train: 9, val: 2, test: 3, negatives: { val: 0, test: 0 } };
    const links = { ...found, in_graph: { val: 0, test: 2 } };
    expect(wrongOf({}, { links })['spec.links.allow_overlap']).toMatch(
      /^false: 0 links of validation and 2 of the test are edges of dataset shop/,
    );
    expect(okOf(resolve({ links: { allowOverlap: true } }, { links })).links.targets).toBe(
      'DATASET',
    );
  });

  it('are computed in float32 unless bfloat16 is asked for', () => {
    const host = { hasBfloat16: true, targets: { task: 'CLASSIFICATION', count: 3 } } as const;
    const precisionOf = (fields: object) =>
      okOf(resolve({ resources: { devices: 1 }, ...fields }, { ...host, trainNodes: 9 })).training
        .precision;
    expect(precisionOf({})).toBe('FLOAT32');
    expect(precisionOf({ task: 'NODES' })).toBe('BFLOAT16');
  });

  it('take their rows from nodes with locality, unless links are left out afterwards', () => {
    const spec = {
      sampling: { locality: { maxScale: 2 } },
      cache: { ratio: 0.1 },
      resources: { devices: 1 },
    };
    expect(okOf(resolve(spec)).sampling.locality.maxScale).toBe(2);
    expect(wrongOf({ ...spec, links: { exclude: 'BATCH_AFTER' } })).toEqual({
      'spec.links.exclude': expect.stringMatching(/^BATCH_AFTER: .*; expected BATCH or NONE$/),
    });
  });

  it('have what the dataset knows of them, for whoever learns that', () => {
    const found = { train: 700, val: 20, test: 30, negatives: { val: 0, test: 0 } };
    const labels = { task: 'CLASSIFICATION', count: 4 } as const;
    const links = { ...found, in_graph: { val: 2, test: 3 }, labels };
    const task = 'LINK_LABELS';
    const spec = okOf(resolve({ task }, { links }));
    expect(spec.links).toMatchObject({
      ...{ targets: 'DATASET', labels: 'CLASSIFICATION', labelCount: 4 },
      ...{ head: 'MLP', exclude: 'NONE', negatives: { count: 0 } },
    });
    expect(okOf(resolveJobSpec(spec, { ...context, links }))).toEqual(spec);
    const drawn = { task, links: { exclude: 'BATCH' } } as const;
    expect(okOf(resolve(drawn, { links })).links.exclude).toBe('BATCH');
    expect(wrongOf({ task, links: { head: 'DOT' } }, { links })).toEqual({
      'spec.links.head': 'DOT: gives one number of a link; expected MLP',
    });
    expect(wrongOf({ task }, { links: null })['spec.task']).toMatch(/knows nothing of links/);
    const one = { ...links, labels: { task: 'REGRESSION', count: 1 } } as const;
    expect(okOf(resolve({ task, links: { head: 'DOT' } }, { links: one })).links.head).toBe('DOT');
  });

  it('of rows that were propagated once leave nothing out', () => {
    const rows = { model: { type: 'SIGN' } } as const;
    const spec = okOf(resolve({ ...rows, resources: { devices: 1 } }));
    expect(spec.links.exclude).toBe('NONE');
    expect(spec.training.rowChunk).toBe(1);
    expect(okOf(resolveJobSpec(spec, context))).toEqual(spec);
    expect(wrongOf({ ...rows, links: { exclude: 'BATCH_AFTER' } })).toEqual({
      'spec.links.exclude':
        'BATCH_AFTER: rows of a SIGN were propagated along all links of training; expected NONE',
    });
    const chunks = { ...rows, training: { rowChunk: 8 }, resources: { devices: 1 } };
    expect(wrongOf(chunks)).toEqual({
      'spec.training.row_chunk': expect.stringMatching(/^8: rows of links lie anywhere/),
    });
  });

  it('are found in a pool where the dataset has one', () => {
    const own = {
      ...{ train: 700, val: 20, test: 30, pool: { val: 90, test: 100 } },
      ...{ negatives: { val: 0, test: 0 }, in_graph: { val: 0, test: 0 } },
    };
    const spec = okOf(resolve({}, { links: own }));
    expect(spec.links.evaluation).toEqual({ negatives: 'POOL', count: 0 });
    expect(spec.evaluation.metric).toBe('HITS_50');
    expect(negativesOf(spec)).toBe('pool');
    expect(nameOf('HITS_50', 'pool')).toBe('hits@50@pool');
    const asked = { links: { evaluation: { count: 5 } }, evaluation: { metric: 'MRR' } } as const;
    expect(wrongOf(asked, { links: own })).toEqual({
      'spec.links.evaluation.count': '5: expected none for POOL, which has all',
      'spec.evaluation.metric': expect.stringMatching(
        /^MRR: expected one of HITS_1, .*: links share a pool of negatives$/,
      ),
    });
    const { pool: _, ...without } = own;
    const pooled = { links: { evaluation: { negatives: 'POOL' } } } as const;
    for (const links of [null, without]) {
      const { 'spec.links.evaluation.negatives': why } = wrongOf(pooled, { links });
      expect(why).toMatch(/^POOL: there are no pairs beside its links/);
    }
  });

  it('of the test are told along those of validation, where that is asked for', () => {
    const links = { messagesAtTest: 'TRAIN_VAL' } as const;
    expect(okOf(resolve({ links })).links.messagesAtTest).toBe('TRAIN_VAL');
  });
});
