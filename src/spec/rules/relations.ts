import { counted } from '../counted.ts';
import {
  relationFanoutsOf,
  relationText,
  rowSourcesOf,
  type SchemaNames,
  seedTypeOf,
  type Taken,
  takenOf,
  takenRelations,
  targetOf,
} from '../job-relations.ts';
import type { ModelType, SpecDraft } from '../job-spec.ts';
import { meantBy } from '../nearest.ts';
import { show } from '../spec-checker.ts';
import { leafAt, rangeOf } from '../spec-fields.ts';
import { reads } from '../spec-parts.ts';
import type { Rule, RuleFacts } from './rule.ts';

const targetPath = 'spec.relations.target';
const onlyPath = 'spec.relations.only';
const reversePath = 'spec.relations.reverse';
const fanoutsPath = 'spec.relations.fanouts';

/**
 * Models over relations and datasets of several types take each other and nothing else; what such a
 * job takes of its dataset, and what it does not do yet. Of jobs that lend, the model tells which
 * datasets they are for, and no more.
 */
export const relationsRule: Rule = (spec, facts) => {
  const { check, context } = facts;
  const { schema } = context;
  const { type } = spec.model;
  if (!reads({ model: spec.model }, 'relations')) {
    if (schema != null) refuseOneType(spec, schema, facts);
    return;
  }
  const lends = spec.kind === 'LOAD';
  if (!lends) refuseMissing(spec, facts);
  if (schema === null) {
    const has = 'the dataset has one type of nodes and one relation';
    check.violate('spec.model.type', `${type}: ${has}; expected ${modelsOf(false).join(', ')}`);
  } else if (schema !== undefined) (lends ? resolveLent : resolveRelations)(spec, schema, facts);
};

/** Models that take several types, or one. */
function modelsOf(several: boolean): readonly string[] {
  const isOne = (type: string) => reads({ model: { type: type as ModelType } }, 'relations');
  return leafAt('model.type').choices.filter((type) => isOne(type) === several);
}

function refuseOneType(
  { kind, dataset, model }: SpecDraft,
  { types, relations }: SchemaNames,
  { check }: RuleFacts,
): void {
  const ofNodes = `${counted(types.length, 'type')} of nodes`;
  const counts = `${ofNodes} and ${counted(relations.length, 'relation')}`;
  if (reads({ kind }, 'inference')) {
    const what = `has ${counts}, and the model is of one type`;
    check.violate('spec.dataset', `${show(dataset)}: ${what}`);
  } else {
    const expected = `expected one of ${modelsOf(true).join(', ')}`;
    check.violate('spec.model.type', `${model.type}: the dataset has ${counts}; ${expected}`);
  }
}

/** What several types do not do yet; what is left open becomes what they do. */
function refuseMissing(spec: SpecDraft, { check, given }: RuleFacts): void {
  const { task, cache, training, evaluation } = spec;
  const refuse = (path: string, value: unknown, expected: string) => {
    if (check.failed(`spec.${path}`)) return;
    check.violate(`spec.${path}`, `${value}: not with several types yet; expected ${expected}`);
  };
  if (!reads({ task }, 'labels')) refuse('task', task, 'NODES');
  if (given.cache?.ratio !== undefined && cache.ratio > 0) refuse('cache.ratio', cache.ratio, '0');
  const { standbyRatio } = cache;
  if (given.cache?.standbyRatio !== undefined && standbyRatio > 0) {
    refuse('cache.standby_ratio', standbyRatio, '0');
  }
  cache.ratio = 0;
  cache.standbyRatio = 0;
  const { precision } = training;
  if (precision !== 'AUTO' && precision !== 'FLOAT32') {
    refuse('training.precision', precision, 'FLOAT32');
  }
  if (evaluation.method === 'SAMPLED') refuse('evaluation.method', 'SAMPLED', 'EXACT');
  if (evaluation.method === 'AUTO') evaluation.method = 'EXACT';
}

function resolveRelations(spec: SpecDraft, schema: SchemaNames, facts: RuleFacts): void {
  const { relations } = spec;
  const { check } = facts;
  const found = targetOf(schema, relations.target);
  if ('problem' in found) check.violate(targetPath, found.problem);
  else relations.target = found.target;
  checkNames(spec, schema, facts);
  if (check.failed(targetPath) || check.failed(onlyPath)) return;
  if (checkWays(spec, schema, facts)) checkRows(spec, schema, facts);
  checkFanouts(spec, schema, facts);
}

/** Seeds are of any type, and rows are the reader's. */
function resolveLent(spec: SpecDraft, schema: SchemaNames, facts: RuleFacts): void {
  const { relations, features, load } = spec;
  const { check } = facts;
  if (load.linksFile !== '') {
    const what = `${show(load.linksFile)}: not with several types yet; expected nodes_file`;
    check.violate('spec.load.links_file', what);
  }
  if (features.standardize === 'ON') {
    const what = 'ON: readers of several types have rows of their own; expected OFF';
    check.violate('spec.features.standardize', what);
  }
  features.standardize = 'OFF';
  const found = seedTypeOf(schema, relations.target);
  if ('problem' in found) check.violate(targetPath, found.problem);
  else relations.target = found.target;
  checkNames(spec, schema, facts);
  if (check.failed(targetPath) || check.failed(onlyPath)) return;
  checkWays(spec, schema, facts);
  checkFanouts(spec, schema, facts);
}

/** Names in `only` are relations of the dataset, each once. */
function checkNames({ relations }: SpecDraft, schema: SchemaNames, { check }: RuleFacts): void {
  const known = schema.relations.map(relationText);
  const { only, reverse } = relations;
  for (const [index, text] of only.entries()) {
    const path = `${onlyPath}[${index}]`;
    const relation = schema.relations.find((each) => relationText(each) === text);
    if (relation === undefined) {
      check.violate(path, `${show(text)} is no relation of the dataset${oneOf(text, known)}`);
    } else if (only.indexOf(text) !== index) check.violate(path, `${text}: is there already`);
    else if (!reverse && relation.reverse_of !== undefined) {
      const why = `it turns ${relation.reverse_of} around, and relations.reverse is false`;
      check.violate(path, `${text}: ${why}`);
    }
  }
}

/** The nearest, else all where they are few. */
function oneOf(text: string, known: readonly string[]): string {
  const meant = meantBy(text, known);
  return meant === '' && known.length <= 20 ? `; there are ${known.join(', ')}` : meant;
}

/** What left a relation out, or else what would leave out the types that cannot take part. */
function takingPath({ relations }: SpecDraft): string {
  return relations.only.length > 0 || relations.reverse ? onlyPath : reversePath;
}

/** Whether something leads to the target. */
function checkWays(spec: SpecDraft, schema: SchemaNames, { check }: RuleFacts): boolean {
  const { relations } = spec;
  const taken = takenOf(schema, relations);
  const leads = taken.relations.some(({ destination }) => destination === relations.target);
  if (!leads) {
    const all = takenRelations(schema, { reverse: true, only: [] });
    const leading = all.filter(({ destination }) => destination === relations.target);
    const expected =
      leading.length === 0
        ? 'the dataset has none; import it with reverses'
        : `expected one of ${leading.map(relationText).join(', ')}`;
    const what = `no relation that takes part leads to ${relations.target}`;
    check.violate(takingPath(spec), `${what}: ${expected}`);
  }
  return leads;
}

/** Rows lead to each type. */
function checkRows(spec: SpecDraft, schema: SchemaNames, { check }: RuleFacts): void {
  const taken = takenOf(schema, spec.relations);
  const all = takenOf(schema, { ...spec.relations, reverse: true, only: [] });
  for (const type of rowSourcesOf(taken).without) {
    const why = `${type} has no features, and no relation that takes part leads to it from rows`;
    const lacking = rowsWayOf(type, all);
    const remedy =
      lacking === null
        ? 'name in relations.only those without it, or import it with features'
        : `let ${lacking} take part, or name in relations.only those without ${type}`;
    check.violate(takingPath(spec), `${why}, whose mean it would have; ${remedy}`);
  }
}

/** The relation along which a type has the mean of rows where all take part; null: it has none. */
function rowsWayOf(type: string, all: Taken<SchemaNames>): string | null {
  const mean = rowSourcesOf(all).means.find(({ type: at }) => all.types[at]?.name === type);
  const relation = mean === undefined ? undefined : all.relations[mean.relation];
  return relation === undefined ? null : relationText(relation);
}

function checkFanouts(
  { relations, sampling }: SpecDraft,
  schema: SchemaNames,
  { check }: RuleFacts,
): void {
  const known = takenRelations(schema, relations).map(relationText);
  const hops = sampling.fanouts.length;
  const { min, max } = rangeOf('sampling.fanouts');
  const seen = new Set<string>();
  for (const [index, text] of relations.fanouts.entries()) {
    const path = `${fanoutsPath}[${index}]`;
    const found = relationFanoutsOf(text);
    if (found === null) {
      check.violate(path, `${show(text)}: expected SOURCE__RELATION__DESTINATION=10/5`);
      continue;
    }
    const { relation, fanouts } = found;
    if (!known.includes(relation)) {
      const what = `${show(relation)} is no relation that takes part`;
      check.violate(path, `${what}${oneOf(relation, known)}`);
    } else if (seen.has(relation)) check.violate(path, `${relation}: is there already`);
    else if (fanouts.length !== hops) {
      check.violate(path, `${text}: expected ${hops} numbers, as many as sampling.fanouts`);
    } else if (fanouts.some((fanout) => fanout > max || fanout < -min)) {
      check.violate(path, `${text}: expected numbers from 0 to ${max}, or -1 for all`);
    }
    seen.add(relation);
  }
}
