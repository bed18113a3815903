import { pluginFilesIn } from '../artifacts/plugin-files.ts';
import { type FieldViolation, GnndError, messageOf } from '../base/errors.ts';
import { jobDataOf } from '../datasets/ready-dataset.ts';
import type { CoreAddon, ModelOptions } from '../native/contract.ts';
import { loadCore } from '../native/load.ts';
import { memoryViolations } from '../plan/plan.ts';
import { type DatasetRecord, modelColumnsMax } from '../records/dataset-record.ts';
import type { JobChoices } from '../records/job-record.ts';
import type { MemoryPlan } from '../records/memory-plan.ts';
import { formatCount } from '../spec/counted.ts';
import { devicesOfKind } from '../spec/device-kinds.ts';
import type { JobSpec, SpecDraft } from '../spec/job-spec.ts';
import { itemsOf } from '../spec/learnt.ts';
import { precisionText } from '../spec/precision.ts';
import { resolveJobSpec } from '../spec/resolve-job-spec.ts';
import type { ResolveContext } from '../spec/rules/rule.ts';
import { scheduleText } from '../spec/schedule.ts';
import { show } from '../spec/spec-checker.ts';
import { standardizeText } from '../spec/standardize.ts';
import { rowPlanOfJob, workOf } from '../work/work.ts';
import { datasetFacts } from './dataset-facts.ts';
import type { SpecWithModel } from './inference-input.ts';
import type { Start } from './start-input.ts';

/** Judges a new job, on a thread of the pool: a spec takes a millisecond, a plug-in's file more. */

/** The host's part in that. */
export interface JobHost
  extends Pick<
    ResolveContext,
    'deviceNames' | 'deviceCores' | 'deviceBits' | 'hasBfloat16' | 'matrixLibrary'
  > {
  /** Bytes of devices that have memory of their own, by their names. */
  readonly deviceBudgets: ReadonlyMap<string, number>;
  /** Folder of files that jobs may load; empty: they load none. */
  readonly pluginsDir: string;
  /** Memory that this daemon and its children may use: the host's, or a limit. */
  readonly hostBytes: number;
}

export interface JobCheck {
  readonly given: SpecWithModel;
  /** Null where there is none; then `noDataset` says so. */
  readonly dataset: DatasetRecord | null;
  readonly noDataset: string;
  /** Parameters that the job begins with; null: fresh ones. */
  readonly start: Start | null;
  readonly host: JobHost;
}

/** A spec with nothing left open, and how what was left open came about. */
export interface ResolvedJob {
  readonly spec: JobSpec;
  readonly choices: JobChoices;
}

/**
 * The spec with every default filled in. Throws SPEC_INVALID with all violations. What follows from
 * the sizes of the dataset is left out where that is not READY.
 */
export function checkJob(check: JobCheck): ResolvedJob {
  const native = loadCore();
  const { dataset, start, host } = check;
  const resolved = resolveOrThrow(native, check);
  const { spec } = resolved;
  if (dataset?.state !== 'READY') return resolved;
  checkLayout(native, spec, dataset);
  if (start !== null) checkStart(native, start, spec, dataset);
  const facts = placementFacts(host, spec, dataset);
  checkMemory(workOf(spec, facts.schema).memory({ native, ...facts }));
  return resolved;
}

function resolveOrThrow(
  native: CoreAddon,
  { given, dataset, noDataset, host }: JobCheck,
): ResolvedJob {
  const { spec: input, violations: before, isComplete } = given;
  const ready = dataset?.state === 'READY' ? dataset : null;
  const context: ResolveContext = {
    ...host,
    pluginFile: pluginFilesIn(host.pluginsDir),
    ...datasetFacts(ready, input.relations?.target ?? ''),
    // Rules before have left nothing open that a plan of rows reads.
    bestRowChunk: (spec: SpecDraft) =>
      ready === null
        ? 1
        : rowPlanOfJob(spec as JobSpec, { native, ...placementFacts(host, spec, ready) }).chunk,
  };
  const resolution = resolveJobSpec(input, context);
  if ('ok' in resolution && before.length === 0) {
    const spec = resolution.ok;
    const choices = {
      standardize: standardizeText(input, spec, context),
      precision: precisionText(input, spec, context),
      schedule: scheduleText(input, spec, { ...context, items: itemsOf(spec, context) }),
    };
    return { spec, choices };
  }
  const found = 'ok' in resolution ? [] : resolution.violations;
  const isNew = ({ path }: FieldViolation) => !before.some((other) => other.path === path);
  const violations = [...before, ...(isComplete ? found : ownOf(found)).filter(isNew)];
  if (input.dataset !== undefined && dataset === null && violations.length > 0) {
    if (!violations.some(({ path }) => path === 'spec.dataset')) {
      violations.push({ path: 'spec.dataset', description: noDataset });
    }
  }
  const fields = violations.length === 1 ? 'a field' : `${violations.length} fields`;
  throw new GnndError('SPEC_INVALID', `the job spec has ${fields} that cannot be`, { violations });
}

/** The violations that an inference has whatever its model, where that is not known. */
function ownOf(violations: readonly FieldViolation[]): readonly FieldViolation[] {
  const groups = ['inference', 'resources', 'restart', 'timeouts', 'priority'];
  return violations.filter(({ path }) => groups.includes(path.split('.')[1] ?? ''));
}

/** Sizes that do not fit are refused now, not after loading. */
function checkLayout(native: CoreAddon, spec: JobSpec, dataset: DatasetRecord): void {
  const { numFeatures, numClasses } = dataset;
  const most = `a model takes at most ${formatCount(modelColumnsMax)}`;
  const violations = Object.entries({ features: numFeatures, classes: numClasses })
    .filter(([, count]) => count > modelColumnsMax)
    .map(([what, count]) => ({
      path: 'spec.dataset',
      description: `${dataset.id} has ${formatCount(count)} ${what}, ${most}`,
    }));
  if (violations.length > 0) {
    throw new GnndError('SPEC_INVALID', 'the dataset is too wide for a model', { violations });
  }
  try {
    const { counts, schema } = jobDataOf(dataset, spec);
    workOf(spec, schema).layout(native, counts);
  } catch (error) {
    throw new GnndError('SPEC_INVALID', 'the job does not fit its limits', {
      violations: [{ path: 'spec.sampling.fanouts', description: messageOf(error) }],
    });
  }
}

/** Parameters that the model cannot take over are refused now, too. */
function checkStart(native: CoreAddon, start: Start, spec: JobSpec, dataset: DatasetRecord): void {
  const { counts, schema } = jobDataOf(dataset, spec);
  const { model } = workOf(spec, schema).layout(native, counts);
  const violations = startViolations(native, start, model);
  if (violations.length === 0) return;
  const message = `the model does not have the shapes of job ${start.jobId}`;
  throw new GnndError('SPEC_INVALID', message, { violations });
}

/** Why a model cannot take the parameters over, by the fields that make its shapes others. */
function startViolations(
  native: CoreAddon,
  { tensors, jobId, model: trained }: Start,
  model: ModelOptions,
): readonly FieldViolation[] {
  const shapes = (options: ModelOptions) =>
    native.modelManifest(options).tensors.map(({ name, shape }) => ({ name, shape }));
  if (model.type === 'TORCHSCRIPT') {
    return [
      {
        path: 'spec.training.start_from',
        description: 'a TORCHSCRIPT begins with the parameters in its file',
      },
    ];
  }
  const given = JSON.stringify(tensors);
  const own = JSON.stringify(shapes(model));
  if (given === own) return [];
  const before: Readonly<Record<string, unknown>> = trained;
  const now: Readonly<Record<string, unknown>> = { ...model };
  const decides = (key: string) => {
    try {
      return JSON.stringify(shapes({ ...model, [key]: before[key] })) !== own;
    } catch {
      return true;
    }
  };
  const others = Object.keys(before).filter(
    (key) => JSON.stringify(before[key]) !== JSON.stringify(now[key]) && decides(key),
  );
  const violations = others.map((key) => ({
    path: `spec.model.${key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`,
    description: `${show(now[key])}: job ${jobId}, from which it begins, has ${show(before[key])}`,
  }));
  if (violations.length > 0) return violations;
  const why = 'its rows or classes are others than those of the dataset';
  return [{ path: 'spec.dataset', description: `${why} of job ${jobId}, from which it begins` }];
}

/** A job that surely takes more memory than there is would be killed for it. */
function checkMemory(plan: MemoryPlan): void {
  const violations = memoryViolations(plan);
  if (violations.length === 0) return;
  throw new GnndError('SPEC_INVALID', 'the job does not fit the memory of this host', {
    violations,
  });
}

/** Facts of the dataset and the host that decide a job's memory. */
export function placementFacts(
  host: JobHost,
  spec: Pick<JobSpec, 'resources' | 'relations'>,
  dataset: DatasetRecord,
) {
  const { counts, schema } = jobDataOf(dataset, spec);
  const deviceBytes = smallestBudgetOf(host, spec);
  return { counts, schema, hostBytes: host.hostBytes, deviceBytes };
}

/** Bytes of the smallest device that the job may get and that has its own memory; 0: none has. */
function smallestBudgetOf(host: JobHost, { resources }: Pick<JobSpec, 'resources'>): number {
  const { deviceNames, deviceKind } = resources;
  const names = deviceNames.length > 0 ? deviceNames : devicesOfKind(host.deviceNames, deviceKind);
  const budgets = names.flatMap((name) => host.deviceBudgets.get(name) ?? []);
  return budgets.length === 0 ? 0 : Math.min(...budgets);
}
