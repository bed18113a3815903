import type {
  CoreAddon,
  DatasetCounts,
  DatasetLocation,
  JobMemory,
  LinkOptions,
  ModelManifest,
  ModelOptions,
  SamplingOptions,
  TrainerOptions,
} from '../native/contract.ts';
import { mayCache } from '../spec/cache-spec.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import { kindOf } from '../spec/model-kinds.ts';
import { reads } from '../spec/spec-parts.ts';
import type {
  BatchSpec,
  JobLayout,
  LinkCounts,
  MemoryJob,
  PartSizes,
  PlanKind,
  SizesAddon,
} from './plan-kind.ts';
import { rowValueBytes } from './row-sizes.ts';

/** What a job's spec means in native terms: options and sizes. */

/** Of models over one type. */
export const noModelGraph: ModelOptions['graph'] = { types: [], relations: [] };

const unknownManifest: ModelManifest = { tensors: [], numFloats: 0, widths: [] };

/** Throws with native code SPEC_INVALID when a bound does not fit (docs/formats/record.md). */
export function layoutOf(
  kind: PlanKind,
  native: SizesAddon,
  spec: JobSpec,
  counts: DatasetCounts,
  links: LinkCounts = kind.links(spec, counts),
): JobLayout {
  const model = modelOptionsOf(kind, spec, counts);
  const sampling = samplingOf(kind, spec, linkOptionsOf(kind, spec, links));
  const isScript = spec.model.type === 'TORCHSCRIPT';
  const manifest = isScript ? unknownManifest : native.modelManifest(model);
  const slotBytes = kind.batches.slotBytes(native, counts, sampling);
  const sizes = { parameterFloats: manifest.numFloats, slotBytes };
  const items = kind.items(spec, counts, links);
  return {
    model,
    sampling,
    manifest,
    items,
    links,
    judged: kind.judged(spec, counts, links),
    evaluated: kind.batches.evaluated(spec),
    // A dataset that is only predicted may have no training nodes.
    batchesPerEpoch: Math.max(1, Math.ceil(items / spec.training.batchSize)),
    slotBytes,
    memory: kind.batches.memory(native, { spec, counts, model }, sizes),
  };
}

export function modelOptionsOf(
  { batches, outDim }: PlanKind,
  spec: BatchSpec,
  counts: DatasetCounts,
): ModelOptions {
  return {
    ...spec.model,
    outDim: outDim(spec, counts),
    head: reads(spec, 'links') ? spec.links.head : null,
    headOutputs: reads({ task: spec.task }, 'links.labels') ? spec.links.labelCount : 1,
    ...batches.input(spec, counts),
  };
}

export function jobMemoryOf(
  native: Pick<CoreAddon, 'jobMemory'>,
  { spec, counts, model }: MemoryJob,
  sizes: PartSizes,
): JobMemory {
  const isOfLinks = reads({ task: spec.task }, 'links');
  return native.jobMemory({
    // Rows of any nodes are computed to evaluate links.
    ...{ counts: isOfLinks ? { ...counts, val: counts.numNodes } : counts, model, ...sizes },
    precision: spec.training.precision,
    // Both ends of each link, and its negatives.
    batchSize: spec.training.batchSize * (isOfLinks ? 2 + spec.links.negatives.count : 1),
    rowValueBytes: rowValueBytes[spec.propagation.rowDtype],
    alias: spec.sampling.algorithm === 'KHOP_WEIGHTED',
  });
}

function samplingOf({ batches }: PlanKind, spec: JobSpec, links: LinkOptions): SamplingOptions {
  const { algorithm, fanouts, walk, plugin } = spec.sampling;
  const walkHops = Array<number>(spec.model.layers).fill(walk.neighbors);
  return {
    ...spec.sampling,
    fanouts: algorithm === 'RANDOM_WALK' ? walkHops : fanouts,
    batchSize: spec.training.batchSize,
    edgeWeights: plugin.weights ? 'GIVEN' : edgeWeightsOf(spec.sampling, spec.model.type),
    relationFanouts: batches.relationFanouts(spec),
    hotRanks: mayCache(spec),
    links,
  };
}

/** A count of 0 says that items are nodes. */
function linkOptionsOf(kind: PlanKind, spec: JobSpec, links: LinkCounts): LinkOptions {
  return { ...kind.pairs(spec), count: links.train, symmetric: links.symmetric };
}

/** Edge weights that records carry; a plug-in states its own. */
export function edgeWeightsOf(
  { algorithm, locality }: Pick<SamplingOptions, 'algorithm' | 'locality'>,
  model: ModelOptions['type'],
): SamplingOptions['edgeWeights'] {
  if (algorithm === 'RANDOM_WALK') return 'VISITS';
  if (algorithm === 'LABOR') return 'INVERSE';
  if (kindOf(model).normalizes) return 'GCN';
  return locality.maxScale > 1 ? 'SHARES' : 'NONE';
}

/** Schedules count epochs of the job, in a trial, too: its steps are thrown away. */
export function optimizerOf(spec: JobSpec, layout: JobLayout): TrainerOptions['optimizer'] {
  const { optimizer, lrSchedule, batchesPerStep, epochs } = spec.training;
  return {
    ...optimizer,
    schedule: {
      ...lrSchedule,
      stepsPerEpoch: Math.ceil(layout.batchesPerEpoch / batchesPerStep),
      epochs,
    },
  };
}

/** What Trainers compute of links; read where the model has a head. */
export function linkTrainingOf(
  { task, links }: JobSpec,
  testGraph: Pick<DatasetLocation, 'folder' | 'counts'> | null,
): TrainerOptions['links'] {
  const { loss, temperature, evaluation, labels, weights } = links;
  const { negatives, count } = evaluation;
  const labelled = reads({ task }, 'links.labels');
  return {
    ...{ loss, temperature, labelled, task: labels, weighted: weights === 'DATASET' },
    ...(labelled ? ({ negatives: 'KEYED', count: 1 } as const) : { negatives, count }),
    testFolder: testGraph?.folder ?? '',
    testEdges: testGraph?.counts.numEdges ?? 0,
  };
}
