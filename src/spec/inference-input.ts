import type { FieldViolation } from '../base/errors.ts';
import type { DatasetTask, JobSpecInput } from './job-spec.ts';
import { show } from './spec-checker.ts';
import { type SpecLeaf, type SpecScalar, specLeaves } from './spec-fields.ts';
import { reads } from './spec-parts.ts';

/** The spec of an inference, completed by that of the job whose model predicts. */

/** Facts of the trained model. */
export interface TrainedFacts {
  /** Resolved spec of the job that trained the model. */
  readonly spec: JobSpecInput;
  readonly parametersSha256: string;
  readonly inDim: number;
  readonly outDim: number;
  readonly datasetDigest: string;
  /** Names of the columns of features; null: not known. */
  readonly featureNames: readonly string[] | null;
  readonly task: DatasetTask;
  /** Folder of the model's checkpoint or export. */
  readonly folder: string;
}

export interface Completed {
  readonly spec: JobSpecInput;
  /** Fields that must not be given, or that differ from the checkpoint. */
  readonly violations: readonly FieldViolation[];
}

/** Groups that the model's own job has decided. */
const inherited = [
  ...(['task', 'links', 'model', 'relations', 'sampling'] as const),
  ...(['features', 'propagation', 'training'] as const),
];
/** Groups that an inference has no use for. */
const useless = ['cache', 'placement', 'queue'] as const;
const uselessLeaves: ReadonlySet<string> = new Set([
  'evaluation.every_epochs',
  'evaluation.metric',
]);

/**
 * `given` with the model, sampling, features, propagation and training of the trained job; what the
 * user must not say is violated. The result is then resolved as any other spec. A completed spec
 * completes to itself.
 */
export function completeInference(given: JobSpecInput, trained: TrainedFacts): Completed {
  const frozen = {
    parametersSha256: trained.parametersSha256,
    classes: trained.outDim,
    trainedOn: trained.datasetDigest,
    task: trained.task,
  };
  const spec = {
    ...given,
    ...decidedBefore(given, trained.spec),
    inference: { ...given.inference, path: trained.folder, ...frozen },
  };
  const violations = [...unwanted(given, spec), ...others(given.inference ?? {}, frozen)];
  return { spec, violations };
}

function decidedBefore(given: JobSpecInput, spec: JobSpecInput): JobSpecInput {
  const { task, links, model, relations, sampling, features, evaluation } = spec;
  const method = given.evaluation?.method ?? evaluation?.method;
  const type = model?.type;
  const ownFanouts = given.evaluation?.fanouts ?? [];
  const isSame = method === evaluation?.method && ownFanouts.length === 0;
  return {
    dataset: given.dataset === undefined || given.dataset === '' ? spec.dataset : given.dataset,
    // What a checkpoint's spec says of links that it has not learnt says nothing.
    ...(reads({ task }, 'links') ? { task, links } : { task }),
    ...(type !== undefined && reads({ model: { type } }, 'relations') ? { relations } : {}),
    ...{ model, sampling, features, propagation: asGiven(spec.propagation ?? {}) },
    // There is no batch, and nothing is stopped early that has no epochs.
    cache: { ratio: 0, standbyRatio: 0 },
    training: { ...spec.training, earlyStop: { patienceEpochs: 0, minDelta: 0 } },
    evaluation: {
      everyEpochs: evaluation?.everyEpochs,
      method,
      fanouts: isSame ? (evaluation?.fanouts ?? []) : ownFanouts,
      maxBytes: given.evaluation?.maxBytes ?? evaluation?.maxBytes,
      metric: evaluation?.metric,
    },
  };
}

/** Leaves out zeros of fields that no operator reads, which must not be given. */
function asGiven(propagation: NonNullable<JobSpecInput['propagation']>) {
  const { alpha, heatTime, terms, ...others } = propagation;
  return {
    ...others,
    ...(alpha === 0 ? {} : { alpha }),
    ...(heatTime === 0 ? {} : { heatTime }),
    ...(terms === 0 ? {} : { terms }),
  };
}

function* unwanted(given: JobSpecInput, completed: JobSpecInput): Generator<FieldViolation> {
  for (const leaf of specLeaves) {
    const [group = ''] = leaf.path.split('.');
    const isInherited = inherited.some((each) => each === group);
    const isUseless = useless.some((each) => each === group);
    if (!isInherited && !isUseless && !uselessLeaves.has(leaf.path)) continue;
    const value = valueAt(given, leaf);
    const wanted = valueAt(completed, leaf);
    if (value === undefined || isSame(value, wanted ?? leaf.neutral)) continue;
    // A value equal to the default says nothing.
    if (isUseless && (leaf.fallback === undefined || isSame(value, leaf.fallback))) continue;
    const why = isInherited
      ? 'expected none: it is that of the job whose model predicts'
      : 'expected none: an inference does not train';
    yield { path: `spec.${leaf.path}`, description: `${show(value)}: ${why}` };
  }
}

type Frozen = Required<
  Pick<
    NonNullable<JobSpecInput['inference']>,
    'parametersSha256' | 'classes' | 'trainedOn' | 'task'
  >
>;

/** Given fields that the checkpoint states, too, with another value. */
function* others(given: NonNullable<JobSpecInput['inference']>, found: Frozen) {
  const fields = [
    ['parametersSha256', 'parameters_sha256'],
    ['classes', 'classes'],
    ['trainedOn', 'trained_on'],
    ['task', 'task'],
  ] as const;
  for (const [key, name] of fields) {
    const value = given[key];
    if (value === undefined || value === '' || value === 0 || value === found[key]) continue;
    const description = `${show(value)}: the checkpoint has ${found[key]}`;
    yield { path: `spec.inference.${name}`, description };
  }
}

function valueAt(spec: JobSpecInput, { keys, isList }: SpecLeaf) {
  let at: unknown = spec;
  for (const key of keys) at = (at as Readonly<Record<string, unknown>> | undefined)?.[key];
  // Messages cannot tell an empty list from none.
  if (isList && Array.isArray(at) && at.length === 0) return undefined;
  return at as SpecScalar | readonly SpecScalar[] | undefined;
}

function isSame(left: unknown, right: unknown): boolean {
  return JSON.stringify(left) === JSON.stringify(right);
}
