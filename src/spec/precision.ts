import { trainsInOwnMemory } from './device-kinds.ts';
import type { JobSpec, JobSpecInput, ModelType, SpecDraft } from './job-spec.ts';
import type { ResolveContext } from './rules/rule.ts';
import { reads } from './spec-parts.ts';

/**
 * In which numbers a job computes that leaves that open: in bfloat16 where the processors have
 * instructions for it, so that it saves time, and accuracy was measured to stay (decision 0116).
 */

/** Models whose accuracy in bfloat16 is known (bench/README.md, "Accuracy"). */
const measuredModels: ReadonlySet<ModelType> = new Set([
  ...(['GRAPHSAGE', 'GCN', 'GAT', 'GATV2', 'PINSAGE'] as const),
]);

type Facts = Pick<ResolveContext, 'hasBfloat16' | 'targets'>;
type Spec = Pick<
  SpecDraft,
  'kind' | 'task' | 'model' | 'history' | 'placement' | 'resources' | 'training'
>;

/** Why a job computes in float32; null: nothing speaks against bfloat16. */
export function whyFloat32(spec: Spec, { hasBfloat16, targets }: Facts): string | null {
  const { model, training } = spec;
  if (training.determinism === 'PORTABLE') return 'PORTABLE bits are those of float32';
  if (trainsInOwnMemory(spec)) return 'accuracy in bfloat16 was measured on CPU devices alone';
  if (hasBfloat16 !== true) return 'the processor has no instructions for bfloat16';
  if (training.matrixLibrary !== 'ONEDNN') return 'OPENBLAS multiplies bfloat16 as float32';
  if (!measuredModels.has(model.type)) {
    return `what bfloat16 costs a ${model.type} was not measured`;
  }
  if (targets?.task !== 'CLASSIFICATION' || !reads({ task: spec.task }, 'labels')) {
    return 'what bfloat16 costs was measured for classes alone';
  }
  return null;
}

/** How the precision of a job came about, for people; empty where nothing is trained. */
export function precisionText(given: JobSpecInput, spec: JobSpec, facts: Facts): string {
  if (!reads(spec, 'training')) return '';
  const { precision } = spec.training;
  if ((given.training?.precision ?? 'AUTO') !== 'AUTO') return `${precision}, as asked for`;
  const why =
    whyFloat32(spec, facts) ??
    'the processor has instructions for it, and it was measured to cost no accuracy';
  return `${precision}, chosen: ${why}`;
}
