import { formatCount } from '../counted.ts';
import type { SpecDraft } from '../job-spec.ts';
import { walkPairsOf } from '../learnt.ts';
import { reads, whyUnread } from '../spec-parts.ts';
import type { Rule, RuleFacts } from './rule.ts';

/** Which links are learnt, from which pairs, and what else a job has that learns them. */
export const linksRule: Rule = (spec, facts) => {
  const { kind, task } = spec;
  if (!reads({ task }, 'links')) return;
  if (!reads({ kind, task }, 'links')) {
    const why = `not available for ${kind} in this build; expected NODES`;
    facts.check.violate('spec.task', `${task}: ${why}`);
    return;
  }
  // An inference has those of its model's job, whichever dataset it is of.
  if (!reads({ kind }, 'training')) return;
  resolveTargets(spec, facts);
  if (reads({ task }, 'links.labels')) resolveLabels(spec, facts);
  resolveExclusion(spec, facts);
  if (reads({ task }, 'links.negatives')) resolveNegatives(spec, facts);
  checkWalks(spec, facts);
  resolveWeights(spec, facts);
  checkSplit(spec, facts);
  checkOthers(spec, facts);
};

/** Decides whose links are learnt, where that is left open. */
function resolveTargets({ dataset, links, task }: SpecDraft, { check, context }: RuleFacts): void {
  const own = context.links ?? null;
  if (links.targets === 'AUTO') links.targets = own === null ? 'EDGES' : 'DATASET';
  if (links.targets !== 'DATASET') return;
  links.split = { validation: 0, test: 0, randomSeed: '0' };
  if (own === null) {
    const why = `DATASET: dataset ${dataset} has none of its own; expected EDGES`;
    if (context.links === null) check.violate('spec.links.targets', why);
    return;
  }
  const { val, test } = own.in_graph;
  // What is asked of an edge is not whether it is there.
  const isTold = reads({ task }, 'links.negatives');
  if (!isTold || val + test === 0 || links.allowOverlap) return;
  const many = `${formatCount(val)} links of validation and ${formatCount(test)} of the test`;
  const expected = 'expected true, which leaves them in, or a graph without them';
  check.violate(
    'spec.links.allow_overlap',
    `false: ${many} are edges of dataset ${dataset}, so that a model is told them; ${expected}`,
  );
}

/** What is known of links, where the dataset knows anything, and by which head it is learnt. */
function resolveLabels(spec: SpecDraft, { check, given, context }: RuleFacts): void {
  const { dataset, links } = spec;
  const known = context.links?.labels;
  if (given.links?.head === undefined) links.head = 'MLP';
  // A dataset that is not known is told elsewhere.
  if (context.links === undefined) return;
  if (known === undefined) {
    const how = 'import them with links/train_labels.npy and so on (docs/links.md)';
    const why = `dataset ${dataset} knows nothing of links of its own`;
    check.violate('spec.task', `${spec.task}: ${why}; ${how}`);
    return;
  }
  if (links.targets !== 'DATASET') {
    const why = "labels are of the dataset's own links";
    check.violate('spec.links.targets', `${links.targets}: ${why}; expected DATASET`);
    return;
  }
  for (const [key, path, found] of [
    ['labels', 'labels', known.task],
    ['labelCount', 'label_count', known.count],
  ] as const) {
    const asked = given.links?.[key];
    if (asked === undefined || asked === found || check.failed(`spec.links.${path}`)) continue;
    check.violate(`spec.links.${path}`, `${asked}: links of dataset ${dataset} have ${found}`);
  }
  links.labels = known.task;
  links.labelCount = known.count;
  if (links.head === 'MLP' || (known.task === 'REGRESSION' && known.count === 1)) return;
  const why = 'gives one number of a link';
  check.violate('spec.links.head', `${links.head}: ${why}; expected MLP`);
}

/** Rows were propagated once, along the links of training too: no draw leaves them out. */
function resolveExclusion({ links, model, task }: SpecDraft, { check, given }: RuleFacts): void {
  if (whyUnread(model.type, 'propagation') !== null) {
    const isAsked = given.links?.exclude !== undefined;
    if (reads({ task }, 'links.labels') && !isAsked) links.exclude = 'NONE';
    return;
  }
  const asked = given.links?.exclude;
  links.exclude = 'NONE';
  if (asked === undefined || asked === 'NONE') return;
  const why = `rows of a ${model.type} were propagated along all links of training`;
  check.violate('spec.links.exclude', `${asked}: ${why}; expected NONE`);
}

/** Which negatives there are, and how many. */
function resolveNegatives({ links }: SpecDraft, { check, given, context }: RuleFacts): void {
  const { negatives, evaluation } = links;
  const own = links.targets === 'DATASET' ? (context.links?.negatives.test ?? 0) : 0;
  const pool = links.targets === 'DATASET' ? (context.links?.pool?.test ?? 0) : 0;
  if (evaluation.negatives === 'AUTO') {
    evaluation.negatives = own > 0 ? 'DATASET' : pool > 0 ? 'POOL' : 'KEYED';
  }
  if (given.links?.negatives?.known === undefined) {
    const isOfBatch = negatives.method === 'JOINT' || negatives.method === 'IN_BATCH';
    negatives.known = isOfBatch ? 'MASK' : 'ALLOW';
  }
  const path = 'spec.links.evaluation.count';
  if (check.failed(path)) return;
  if (evaluation.negatives === 'ALL' || evaluation.negatives === 'POOL') {
    const asked = given.links?.evaluation?.count ?? 0;
    const all = evaluation.negatives === 'ALL' ? 'ALL, which has all nodes' : 'POOL, which has all';
    if (asked !== 0) check.violate(path, `${asked}: expected none for ${all}`);
    if (evaluation.negatives === 'POOL' && pool === 0) {
      const why = 'POOL: there are no pairs beside its links; expected KEYED or ALL';
      check.violate('spec.links.evaluation.negatives', why);
    }
    evaluation.count = 0;
  } else if (evaluation.negatives === 'DATASET') {
    const asked = given.links?.evaluation?.count ?? own;
    if (own === 0) {
      const why = 'DATASET: there are no negatives beside its links; expected KEYED or ALL';
      check.violate('spec.links.evaluation.negatives', why);
    } else if (asked !== own) check.violate(path, `${asked}: the dataset has ${own} of each link`);
    evaluation.count = own;
  } else if (evaluation.count === 0) {
    check.violate(path, `0: only for ALL and POOL; expected how many negatives each link has`);
  }
}

/** Whether links count as the dataset weighs them, where that is left open. */
function resolveWeights({ dataset, links, task }: SpecDraft, { check, context }: RuleFacts): void {
  if (!reads({ task }, 'links.negatives')) return;
  const isWalked = links.positives === 'WALKS';
  const has = context.links?.weighted === true;
  const areOwn = links.targets === 'DATASET' && !isWalked;
  if (links.weights === 'AUTO') links.weights = areOwn && has ? 'DATASET' : 'NONE';
  // A dataset that is not known is told elsewhere.
  if (links.weights !== 'DATASET' || context.links === undefined) return;
  const why = isWalked
    ? 'pairs that walks visit have none'
    : links.targets !== 'DATASET'
      ? "weights are of the dataset's own links, and edges are learnt"
      : `dataset ${dataset} has none beside its links (links/train_weights.npy)`;
  if (areOwn && has) return;
  check.violate('spec.links.weights', `DATASET: ${why}; expected NONE`);
}

/** That walks are as long as their windows, and come to no more pairs than can be numbered. */
function checkWalks({ links, dataset }: SpecDraft, { check, context }: RuleFacts): void {
  const { positives, walks } = links;
  const path = 'spec.links.walks';
  const names = ['length', 'window', 'per_node'];
  if (positives !== 'WALKS' || names.some((name) => check.failed(`${path}.${name}`))) return;
  if (walks.window > walks.length) {
    const why = `a walk of links.walks.length ${walks.length} has no such pairs`;
    check.violate(`${path}.window`, `${walks.window}: ${why}; expected at most ${walks.length}`);
    return;
  }
  const nodes = context.numNodes ?? 0;
  const pairs = nodes * walkPairsOf(walks);
  if (pairs < 2 ** 32) return;
  const most = Math.floor((2 ** 32 - 1) / (pairs / walks.perNode));
  const expected = most > 0 ? `at most ${most}` : 'shorter walks, or a smaller window';
  const many = `${formatCount(pairs)} pairs of the ${formatCount(nodes)} nodes of ${dataset}`;
  const why = `may come to ${many}, which are numbered in 32 bits`;
  check.violate(`${path}.per_node`, `${walks.perNode}: ${why}; expected ${expected}`);
}

function checkSplit({ links }: SpecDraft, { check, context }: RuleFacts): void {
  if (links.targets === 'DATASET') return;
  const { validation, test } = links.split;
  const path = 'spec.links.split';
  if (check.failed(`${path}.validation`) || check.failed(`${path}.test`)) return;
  if (validation + test >= 1) {
    const why = `validation ${validation} and test ${test} leave nothing to learn from`;
    check.violate(`${path}.validation`, `${why}; expected less than 1 together`);
    return;
  }
  const { numEdges } = context;
  if (numEdges === null) return;
  for (const part of ['validation', 'test'] as const) {
    if (Math.floor(links.split[part] * numEdges) >= 1) continue;
    const edges = `${formatCount(numEdges)} edges`;
    check.violate(
      `${path}.${part}`,
      `${links.split[part]}: of ${edges} this is none; expected more`,
    );
  }
}

/** What a job has beside its links that is not computed for them. */
function checkOthers(spec: SpecDraft, { check, context }: RuleFacts): void {
  const { links, model, sampling, history, evaluation } = spec;
  // Layers that are a script's own give no row for a head.
  const isOnRows = whyUnread(model.type, 'propagation') === null;
  const whyNot = isOnRows ? null : whyUnread(model.type, 'model.normalization');
  if (isOnRows && links.messagesAtTest !== 'TRAIN') {
    const why = `rows of a ${model.type} are propagated along those of training`;
    check.violate('spec.links.messages_at_test', `${links.messagesAtTest}: ${why}; expected TRAIN`);
  }
  if (whyNot !== null) check.violate('spec.model.type', `${model.type}: ${whyNot}`);
  if (links.exclude === 'BATCH_AFTER' && sampling.locality.maxScale > 1) {
    const why = 'weights of draws with locality are those of whole rows; expected BATCH or NONE';
    check.violate('spec.links.exclude', `BATCH_AFTER: ${why}`);
  }
  if (history.staleSteps > 0) {
    const why = 'embeddings of earlier steps saw the links of this batch; expected 0';
    check.violate('spec.history.stale_steps', `${history.staleSteps}: ${why}`);
  }
  if (evaluation.method === 'SAMPLED') {
    const why = 'links are scored by exact embeddings; expected EXACT';
    check.violate('spec.evaluation.method', `SAMPLED: ${why}`);
  }
  if (links.negatives.method === 'IN_BATCH' && links.head === 'MLP') {
    const why = 'a perceptron of each pair of a batch is too many; expected another head';
    check.violate('spec.links.head', `MLP: beside negatives IN_BATCH: ${why}`);
  }
  if (context.numEdges === 0) {
    check.violate('spec.dataset', `${spec.dataset}: has no edges, so that there are no links`);
  }
}
