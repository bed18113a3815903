import type { FieldViolation } from '../base/errors.ts';
import { automaticKind } from './automatic-kind.ts';
import { devicesOfKind } from './device-kinds.ts';
import type { JobSpec, JobSpecInput } from './job-spec.ts';
import { resolveFields } from './resolve-fields.ts';
import { cacheRule } from './rules/cache.ts';
import { datasetRule } from './rules/dataset.ts';
import { evaluationRule } from './rules/evaluation.ts';
import { featuresRule } from './rules/features.ts';
import { historyRule } from './rules/history.ts';
import { inferenceRule } from './rules/inference.ts';
import { linksRule } from './rules/links.ts';
import { loadRule } from './rules/load.ts';
import { localityRule } from './rules/locality.ts';
import { modelRule } from './rules/model.ts';
import { pluginFilesRule } from './rules/plugin-files.ts';
import { propagationRule, rowsRule } from './rules/propagation.ts';
import { relationsRule } from './rules/relations.ts';
import {
  deviceSupportRule,
  devicesRule,
  precisionRule,
  queueRule,
  samplersRule,
  tf32Rule,
  topologyRule,
} from './rules/resources.ts';
import type { ResolveContext, Rule } from './rules/rule.ts';
import { samplingRule } from './rules/sampling.ts';
import {
  classWeightsRule,
  earlyStopRule,
  labelsRule,
  matrixLibraryRule,
  portableRule,
  scheduleRule,
  stepsRule,
  trainingRule,
} from './rules/training.ts';
import { createSpecChecker } from './spec-checker.ts';
import { specLeaves } from './spec-fields.ts';
import { reads } from './spec-parts.ts';

/** The spec with every default filled in, or everything that is wrong with it. */
export type Resolution =
  | { readonly ok: JobSpec }
  | { readonly violations: readonly FieldViolation[] };

/** The rules, in an order in which each finds the fields that it needs filled in. */
const rules: readonly Rule[] = [
  datasetRule,
  relationsRule,
  labelsRule,
  linksRule,
  inferenceRule,
  samplingRule,
  modelRule,
  propagationRule,
  featuresRule,
  pluginFilesRule,
  cacheRule,
  localityRule,
  trainingRule,
  scheduleRule,
  matrixLibraryRule,
  portableRule,
  classWeightsRule,
  historyRule,
  earlyStopRule,
  evaluationRule,
  devicesRule,
  deviceSupportRule,
  samplersRule,
  loadRule,
  precisionRule,
  tf32Rule,
  stepsRule,
  queueRule,
  topologyRule,
  rowsRule,
];

/**
 * Fills in every default and checks every field and every rule between fields. A resolved spec
 * resolves to itself. Violation paths are those of `proto/gnnd/v1/job_spec.proto`, from `spec`.
 */
export function resolveJobSpec(asked: JobSpecInput, context: ResolveContext): Resolution {
  const check = createSpecChecker();
  const input = withModel(asked, context);
  const spec = resolveFields(check, input, ceilingsOf(input, context));
  for (const rule of rules) rule(spec, { check, given: input, context });
  // The rules leave nothing open.
  return check.violations.length === 0
    ? { ok: spec as JobSpec }
    : { violations: inOrder(check.violations) };
}

/** With a model over relations where the dataset has several types and no model is asked for. */
function withModel(asked: JobSpecInput, { schema }: ResolveContext): JobSpecInput {
  const isOpen = asked.model?.type === undefined && reads({ kind: asked.kind }, 'training');
  if (schema == null || !isOpen) return asked;
  return { ...asked, model: { ...asked.model, type: 'RSAGE' } };
}

/** Upper bounds that this host and other fields set; where those are wrong there is none. */
function ceilingsOf(asked: JobSpecInput, context: ResolveContext) {
  const { resources, training } = asked;
  const { deviceNames } = context;
  const named = (resources?.deviceNames ?? []).length;
  const kind = resources?.deviceKind ?? 'AUTO';
  const chosen = kind === 'AUTO' ? automaticKind(asked, context) : kind;
  const ofKind = devicesOfKind(deviceNames, chosen).length;
  const devices = named > 0 ? named : (resources?.devices ?? ofKind);
  const ceilings = {
    'resources.devices': named > 0 ? 0 : ofKind,
    'placement.samplers': devices,
    'training.lr_schedule.warmup_epochs': training?.epochs ?? 0,
  };
  const isBound = (value: number) => Number.isInteger(value) && value > 0;
  return Object.fromEntries(Object.entries(ceilings).filter(([, value]) => isBound(value)));
}

/** Violations in the order of the fields, whichever rule found them. */
function inOrder(violations: readonly FieldViolation[]): readonly FieldViolation[] {
  const places = new Map(specLeaves.map(({ path }, place) => [`spec.${path}`, place]));
  const placeOf = ({ path }: FieldViolation) => places.get(path.replace(/\[\d+\]$/, '')) ?? -1;
  return [...violations].sort((left, right) => placeOf(left) - placeOf(right));
}
