import type { FieldViolation } from '../../base/errors.ts';
import { hasOwnMemory } from '../device-kinds.ts';
import type { JobSpec, JobSpecInput, SpecDraft } from '../job-spec.ts';
import { resolveFields } from '../resolve-fields.ts';
import { createSpecChecker, type SpecChecker, show } from '../spec-checker.ts';
import { reads } from '../spec-parts.ts';
import { areRareWords } from '../standardize.ts';
import type { Rule, RuleFacts } from './rule.ts';

/** Resolves what is propagated for a job whose model takes rows. */
export const propagationRule: Rule = (spec, { check, given, context }) => {
  const { model } = spec;
  if (!reads({ model }, 'propagation')) return;
  fillIn(spec.propagation, given.propagation ?? {}, !areRareWords(context));
  checkPropagation(spec.propagation, given.propagation ?? {}, check);
  if (model.type === 'SGC' && spec.propagation.operators.length > 1) {
    const description = `${spec.propagation.operators.length} given: SGC takes one`;
    check.violate('spec.propagation.operators', description);
  }
  const { precision } = spec.training;
  if (precision !== 'FLOAT32' && precision !== 'AUTO') {
    const description = `${precision}: ${model.type} computes in float32; expected FLOAT32`;
    check.violate('spec.training.precision', description);
  }
  if (given.evaluation?.method === 'SAMPLED') {
    check.violate('spec.evaluation.method', `SAMPLED: ${model.type} samples nothing`);
  }
};

/** Checks where rows are read and sets how many stay together: frozen, for it decides bits. */
export const rowsRule: Rule = (spec, { check, given, context }) => {
  if (!reads(spec, 'propagation')) return;
  const hasDevice = check.failed('spec.resources') || hasOwnMemory(spec.resources);
  if (spec.resources.rowsFrom === 'DEVICE' && !hasDevice) {
    const why = 'the devices of the job have no memory of their own';
    check.violate('spec.resources.rows_from', `DEVICE: ${why}; expected AUTO, HOST or DISK`);
  }
  const path = 'spec.training.row_chunk';
  if (reads({ task: spec.task }, 'links')) return checkPairs(spec, { check, given });
  if (given.training?.rowChunk !== undefined && !check.failed(path)) return;
  const isWhole = check.violations.length === 0;
  spec.training.rowChunk = (isWhole && context.bestRowChunk?.(spec)) || 1;
};

/** Pairs are permuted, whose rows lie anywhere. */
function checkPairs(
  { resources, training }: SpecDraft,
  { check, given }: Pick<RuleFacts, 'check' | 'given'>,
): void {
  const chunk = given.training?.rowChunk ?? 1;
  if (chunk !== 1 && !check.failed('spec.training.row_chunk')) {
    const why = 'rows of links lie anywhere, and none stay together';
    check.violate('spec.training.row_chunk', `${chunk}: ${why}; expected 1`);
  }
  training.rowChunk = 1;
  if (resources.rowsFrom !== 'DEVICE') return;
  const why = "rows of links are gathered in the host's memory";
  check.violate('spec.resources.rows_from', `DEVICE: ${why}; expected AUTO, HOST or DISK`);
}

export type PropagationInput = NonNullable<JobSpecInput['propagation']>;

/** With every default filled in, or everything that is wrong with it; paths from `propagation`. */
export function resolvePropagation(
  given: PropagationInput,
): { readonly ok: JobSpec['propagation'] } | { readonly violations: readonly FieldViolation[] } {
  const check = createSpecChecker();
  const { propagation } = resolveFields(check, {
    model: { type: 'SIGN' },
    propagation: given,
  });
  fillIn(propagation, given, true);
  checkPropagation(propagation, given, check);
  const prefix = 'spec.propagation';
  const violations = check.violations
    .filter(({ path }) => path.startsWith(prefix))
    .map(({ path, description }) => ({ path: path.slice('spec.'.length), description }));
  return violations.length === 0 ? { ok: propagation } : { violations };
}

/** A perceptron wants columns of one size (docs/decisions/0047*.md), but for rare words (0115). */
function fillIn(
  propagation: SpecDraft['propagation'],
  given: PropagationInput,
  standardize: boolean,
): void {
  if (given.standardize === undefined) propagation.standardize = standardize;
}

/** Fields that no operator reads become 0, so that what is the same says the same. */
function checkPropagation(
  propagation: SpecDraft['propagation'],
  given: PropagationInput,
  check: SpecChecker,
): void {
  const { operators } = propagation;
  operators.forEach((operator, index) => {
    if (operators.indexOf(operator) === index) return;
    check.violate(`spec.propagation.operators[${index}]`, `${operator}: is there already`);
  });
  const isSeries = operators.includes('PPR') || operators.includes('HEAT');
  const reads = { alpha: operators.includes('PPR'), heatTime: operators.includes('HEAT') };
  const fields = [
    { key: 'alpha', path: 'alpha', isRead: reads.alpha, readers: 'PPR', range: '(0, 1]' },
    {
      key: 'heatTime',
      path: 'heat_time',
      isRead: reads.heatTime,
      readers: 'HEAT',
      range: '(0, 100]',
    },
    { key: 'terms', path: 'terms', isRead: isSeries, readers: 'PPR or HEAT', range: '1 to 1000' },
  ] as const;
  for (const { key, path, isRead, readers, range } of fields) {
    const value = given[key];
    const field = `spec.propagation.${path}`;
    if (isRead) {
      if (value === 0) check.violate(field, `0: expected ${range} with ${readers}`);
      continue;
    }
    if (value !== undefined && value !== 0 && !check.failed(field)) {
      check.violate(field, `${show(value)}: only with ${readers} among the operators`);
    }
    propagation[key] = 0;
  }
}
