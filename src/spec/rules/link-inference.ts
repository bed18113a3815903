import { formatCount } from '../counted.ts';
import type { SpecDraft } from '../job-spec.ts';
import { isAbsolute, show } from '../spec-checker.ts';
import { reads } from '../spec-parts.ts';
import type { RuleFacts } from './rule.ts';

/** What an inference asks of a model that has learnt links, and what others are not asked. */

type Output = SpecDraft['inference']['outputs'][number];

const ofLinks: readonly Output[] = ['EMBEDDINGS', 'SCORES', 'NEAREST'];
const ofHeads: readonly Output[] = ['SCORES', 'NEAREST'];

/** Checks outputs, pairs and what is nearest, and fills in how many are. */
export function checkAsked(spec: SpecDraft, facts: RuleFacts): void {
  checkOutputs(spec, facts);
  checkPairs(spec, facts);
  checkNearest(spec, facts);
}

function checkOutputs({ task, inference, evaluation }: SpecDraft, { check }: RuleFacts): void {
  const { outputs, parametersSha256 } = inference;
  // A model that is not known is told elsewhere.
  if (parametersSha256 === '') return;
  if (!reads({ task }, 'links')) {
    for (const [index, output] of outputs.entries()) {
      if (!ofHeads.includes(output)) continue;
      const why = 'the model has learnt nodes, so that no head scores pairs of them';
      const description = `${output}: ${why}; expected a job of task LINKS`;
      check.violate(`spec.inference.outputs[${index}]`, description);
    }
    return;
  }
  const [output] = outputs;
  if (output === undefined || outputs.length > 1 || !ofLinks.includes(output)) {
    const found = outputs.length === 0 ? 'none' : outputs.join(', ');
    const why = 'of a model that has learnt links, which predicts no node';
    const description = `${found}: expected one of ${ofLinks.join(', ')}, ${why}`;
    check.violate('spec.inference.outputs', description);
  }
  if (output === 'NEAREST' && reads({ task }, 'links.labels')) {
    const why = 'the model has learnt what is known of links, and not who belongs together';
    check.violate('spec.inference.outputs[0]', `NEAREST: ${why}; expected SCORES or EMBEDDINGS`);
  }
  if (evaluation.method === 'SAMPLED') {
    const why = 'links are scored by exact embeddings; expected EXACT';
    check.violate('spec.evaluation.method', `SAMPLED: ${why}`);
  }
  const ofNodes = !outputs.includes('SCORES');
  if (ofNodes && inference.nodes !== 'ALL' && inference.nodes !== 'LISTED') {
    const why = 'sides of a job that learns links are of pairs; expected ALL or LISTED';
    check.violate('spec.inference.nodes', `${inference.nodes}: ${why}`);
  }
}

function checkPairs({ inference, links }: SpecDraft, { check }: RuleFacts): void {
  const { pairsFile: file, nodes, outputs } = inference;
  const path = 'spec.inference.pairs_file';
  if (!outputs.includes('SCORES')) {
    if (file !== '') check.violate(path, `${show(file)}: only for outputs SCORES`);
    return;
  }
  if (file === '') check.violate(path, 'required for outputs SCORES: the pairs');
  else if (!isAbsolute(file)) check.violate(path, `${show(file)}: expected an absolute path`);
  const tables = inference.formats.filter((format) => format !== 'NPY');
  if (links.labelCount > 1 && tables.length > 0) {
    const why = `of ${links.labelCount} outputs a pair there is no table; expected NPY`;
    check.violate('spec.inference.formats', `${tables.join(', ')}: ${why}`);
  }
  if (nodes !== 'ALL') {
    const why = 'SCORES are of the pairs in pairs_file; expected ALL';
    check.violate('spec.inference.nodes', `${nodes}: ${why}`);
  }
}

function checkNearest({ inference }: SpecDraft, { check, given, context }: RuleFacts): void {
  const { k, amongFile: file, withKnown, outputs } = inference;
  const path = (field: string) => `spec.inference.${field}`;
  if (!outputs.includes('NEAREST')) {
    const only = 'only for outputs NEAREST';
    if (k > 0) check.violate(path('k'), `${k}: ${only}`);
    if (file !== '') check.violate(path('among_file'), `${show(file)}: ${only}`);
    if (withKnown) check.violate(path('with_known'), `true: ${only}`);
    return;
  }
  if (file !== '' && !isAbsolute(file)) {
    check.violate(path('among_file'), `${show(file)}: expected an absolute path`);
  }
  const { numNodes } = context;
  if (given.inference?.k === 0) check.violate(path('k'), '0: expected 1 or more');
  else if (!check.failed(path('k'))) {
    inference.k = given.inference?.k ?? Math.max(1, Math.min(usualK, (numNodes ?? usualK) - 1));
  }
  if (numNodes !== null && inference.k >= numNodes) {
    const expected = `expected fewer than the ${formatCount(numNodes)} nodes`;
    check.violate(path('k'), `${inference.k}: ${expected}`);
  }
}

const usualK = 10;
