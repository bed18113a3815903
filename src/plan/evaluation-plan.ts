import { mkdirSync } from 'node:fs';
import type {
  CoreAddon,
  DatasetCounts,
  EvaluationSizes,
  SamplingOptions,
} from '../native/contract.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import { edgeWeightsOf } from './job-layout.ts';
import type { JobLayout } from './plan-kind.ts';

/** How a job's evaluations are cut, and where their hidden rows lie: from spec and sizes alone. */

export interface EvaluationPlan extends EvaluationSizes {
  /** Empty: in memory. Else the folder of the file that holds the rows. */
  readonly scratchFolder: string;
}

export function evaluationPlanOf(
  native: CoreAddon,
  layout: JobLayout,
  {
    spec,
    dataset: { counts },
    cacheFolder,
  }: { spec: JobSpec; dataset: { counts: DatasetCounts }; cacheFolder: string },
): EvaluationPlan {
  const sizes = evaluationSizesOf(native, layout, spec, counts);
  const { scratchBytes, keptBytes, inMemory } = scratchOf(spec, sizes);
  return {
    ...sizes,
    scratchBytes: scratchBytes + keptBytes,
    scratchFolder: inMemory ? '' : cacheFolder,
  };
}

export function evaluationSizesOf(
  native: Pick<CoreAddon, 'evaluationSizes'>,
  { model, manifest: { widths }, judged: { val, test, rankedBytes }, evaluated }: JobLayout,
  { evaluation }: Pick<JobSpec, 'evaluation'>,
  counts: DatasetCounts,
): EvaluationSizes {
  const sampled = evaluation.method === 'SAMPLED';
  const ranked = rankedBytes > 0;
  const numNodes = evaluated?.nodes ?? counts.numNodes;
  const sizes = native.evaluationSizes({
    ...{ counts: { ...counts, numNodes, val, test }, model },
    ...{ sampled, ranked, asked: false, widths },
  });
  if (evaluated === null) return sizes;
  return { ...sizes, scratchBytes: evaluated.scratchBytes, keptBytes: 0 };
}

/** Scratch that all Trainers share, and whether it lies in memory. */
export function scratchOf(
  { evaluation: { everyEpochs, maxBytes }, training }: JobSpec,
  { scratchBytes, keptBytes }: Pick<EvaluationSizes, 'scratchBytes' | 'keptBytes'>,
) {
  const keeps = scratchBytes + keptBytes <= maxBytes && training.epochs > everyEpochs;
  return { scratchBytes, keptBytes: keeps ? keptBytes : 0, inMemory: scratchBytes <= maxBytes };
}

/** A descriptor for hidden rows, the caller's to close; null where there are none. */
export function createScratch(
  native: CoreAddon,
  { scratchBytes, scratchFolder }: EvaluationPlan,
): number | null {
  if (scratchBytes === 0) return null;
  if (scratchFolder !== '') mkdirSync(scratchFolder, { recursive: true });
  return native.evaluationScratch(scratchBytes, scratchFolder);
}

/** Memory of one device that evaluations take; all devices share a scratch in memory. */
export function evaluationBytesOf(plan: EvaluationPlan, deviceCount: number): number {
  const inMemory = plan.scratchFolder === '' ? plan.scratchBytes : 0;
  return plan.workBytes + Math.ceil(inMemory / deviceCount);
}

/**
 * How a sampled evaluation draws: as training, with fanouts of its own; where training draws as
 * LABOR or a plug-in does, uniformly, which estimates the same means.
 */
export function evaluationSampling(
  { evaluation }: JobSpec,
  { model, sampling }: JobLayout,
): SamplingOptions {
  const uniform = sampling.algorithm === 'LABOR' || sampling.algorithm === 'KHOP_PLUGIN';
  const algorithm = uniform ? 'KHOP_UNIFORM' : sampling.algorithm;
  return {
    ...sampling,
    fanouts: evaluation.fanouts.length === 0 ? sampling.fanouts : evaluation.fanouts,
    algorithm,
    edgeWeights: edgeWeightsOf({ algorithm, locality: sampling.locality }, model.type),
    hotRanks: false,
  };
}
