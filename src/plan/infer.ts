import type {
  CoreAddon,
  DatasetCounts,
  OutputChoice,
  QuestionOptions,
  SegmentSpec,
} from '../native/contract.ts';
import type { InferencePlan } from '../records/memory-plan.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import type { EvaluationPlan } from './evaluation-plan.ts';
import {
  type Batches,
  type JobLayout,
  learntPairs,
  type MemoryFacts,
  noLinks,
  nothingJudged,
  type OwnMemory,
  type PlanKind,
  type SegmentRequest,
} from './plan-kind.ts';
import { executorRows, untrained } from './training-segment.ts';

/** Predicting with a trained model: every device takes chunks of nodes, and nothing is trained. */
export function infer(batches: Batches): PlanKind {
  return {
    batches,
    // Another dataset than that of the training may have other classes.
    outDim: ({ inference }) => inference.classes,
    items: (_, { train }) => train,
    links: () => noLinks,
    pairs: learntPairs,
    judged: () => nothingJudged,
    crew: ({ resources }) => ({ samplers: 0, trainers: resources.devices }),
    // Predictions are computed on the host, and there is nothing to say.
    pinned: () => ({ rows: 0, bytes: 0, reason: '' }),
    ownMemory: (...job) => ownMemory(batches, ...job),
  };
}

function ownMemory(
  batches: Batches,
  spec: JobSpec,
  layout: JobLayout,
  facts: MemoryFacts,
): OwnMemory {
  const nodes = rowsOf(spec, facts.counts);
  const parts = [
    {
      name: 'the work of predictions',
      bytes: spec.resources.devices * batches.predictionBytes(spec, layout, facts, nodes),
      isBound: true,
      field: 'resources.devices',
      remedy: 'fewer Trainers take less',
    },
    {
      name: 'parameters',
      bytes: 6 * Float32Array.BYTES_PER_ELEMENT * layout.manifest.numFloats,
      isBound: false,
      field: '',
      remedy: '',
    },
  ];
  return { parts, rows: null, inference: sizesOf(batches, spec, layout, facts) };
}

/** Chunks, and bytes on the disk, each at most. */
function sizesOf(
  batches: Batches,
  spec: JobSpec,
  layout: JobLayout,
  { native, counts }: MemoryFacts,
): InferencePlan {
  const { nodes: which, formats, k } = spec.inference;
  const nodes = rowsOf(spec, counts);
  const { chunks, scratchBytes } = predictionSizesOf(native, layout, { spec, counts, nodes });
  const isOfAll = which === 'ALL' || which === 'LISTED';
  const widths = outputsOf(spec).map((output) => widthOf(output, spec, layout));
  const nearest = k * (BigInt64Array.BYTES_PER_ELEMENT + Float32Array.BYTES_PER_ELEMENT);
  const rowOutput = 16 + nearest + widths.reduce((sum, width) => sum + width, 0);
  return {
    nodes,
    chunks,
    outputBytes: formats.length * nodes * rowOutput,
    scratchBytes,
    propagationBytes: isOfAll ? batches.propagationBytes(spec, counts) : 0,
  };
}

/** What is asked of the head of a model of links. */
export function questionOf({
  inference: { outputs, k, amongFile, withKnown },
}: Pick<JobSpec, 'inference'>): QuestionOptions {
  const asks = outputs.find((output) => output === 'SCORES' || output === 'NEAREST') ?? 'NOTHING';
  return { asks, k, among: amongFile !== '', withKnown };
}

/** Files of an inference in the order of columns, and the layers, from 0, that they are made of. */
export function outputsOf({
  inference: { outputs, layer },
  model,
}: Pick<JobSpec, 'inference' | 'model'>): readonly OutputChoice[] {
  const isAsked = outputs.some((output) => output === 'SCORES' || output === 'NEAREST');
  if (isAsked) return [];
  const logits = { layer: model.layers - 1 };
  const predicts = outputs.length === 0 || outputs.some((output) => output !== 'EMBEDDINGS');
  return [
    ...(predicts ? [{ kind: 'PREDICTIONS', ...logits } as const] : []),
    ...(['LOGITS', 'PROBABILITIES'] as const)
      .filter((kind) => outputs.includes(kind))
      .map((kind) => ({ kind, ...logits })),
    ...(outputs.includes('EMBEDDINGS') ? [{ kind: 'EMBEDDINGS', layer: layer - 1 } as const] : []),
  ];
}

/** Bytes of a node in a file, at most; of a TORCHSCRIPT model that was not probed yet a guess. */
function widthOf(
  { kind, layer }: OutputChoice,
  { inference: { classes }, model }: JobSpec,
  { manifest: { widths } }: JobLayout,
): number {
  if (kind === 'PREDICTIONS') return classes * Float32Array.BYTES_PER_ELEMENT;
  const hidden = widths[layer] ?? model.hiddenDim;
  const columns = layer + 1 === model.layers ? classes : hidden;
  return columns * Float32Array.BYTES_PER_ELEMENT;
}

/** Nodes to be predicted; 0 where they are pairs, which nobody has counted yet. */
function rowsOf(spec: JobSpec, counts: DatasetCounts): number {
  return questionOf(spec).asks === 'SCORES' ? 0 : nodesOf(spec, counts);
}

/** Nodes to be predicted; at most, where they are listed. */
export function nodesOf({ inference }: JobSpec, counts: DatasetCounts): number {
  switch (inference.nodes) {
    case 'TRAINING':
      return counts.train;
    case 'VALIDATION':
      return counts.val;
    case 'TEST':
      return counts.test;
    default:
      return counts.numNodes;
  }
}

const unknownSizes = { chunks: 0, scratchBytes: 0, workBytes: 0 };

/** Sizes of predicting so many nodes; a script's widths are known once it was loaded. */
export function predictionSizesOf(...of: Parameters<typeof inferencePlanOf>) {
  const [, , { spec }] = of;
  return spec.model.type === 'TORCHSCRIPT' ? unknownSizes : inferencePlanOf(...of);
}

/** One evaluation of so many nodes. Hidden rows lie in a file that outlives the attempt. */
export function inferencePlanOf(
  native: Pick<CoreAddon, 'evaluationSizes'>,
  { model, manifest: { widths }, evaluated }: JobLayout,
  { spec, counts, nodes }: { spec: JobSpec; counts: DatasetCounts; nodes: number },
): EvaluationPlan {
  const numNodes = evaluated?.nodes ?? counts.numNodes;
  const predicted = { ...counts, numNodes, val: nodes, test: 0 };
  const sampled = spec.evaluation.method === 'SAMPLED';
  const sizes = native.evaluationSizes({
    counts: predicted,
    model,
    sampled,
    ranked: false,
    asked: true,
    widths,
  });
  const scratchBytes = evaluated?.scratchBytes ?? sizes.scratchBytes;
  return { ...sizes, scratchBytes, keptBytes: 0, scratchFolder: '' };
}

/** A segment of one step that is taken already: `segmentBeginTrained` gives it its parameters. */
export function inferenceSegment(
  request: SegmentRequest,
  { chunks }: Pick<EvaluationPlan, 'chunks'>,
): SegmentSpec {
  return {
    ...untrained,
    bornReady: true,
    batchesPerEpoch: 1,
    batchSize: 1,
    trainNodes: 1,
    epochs: 1,
    firstEpoch: 0,
    numSlots: 1,
    slotBytes: 1,
    registeredBytes: 0,
    queueMaxBytes: 1,
    parameterFloats: request.layout.manifest.numFloats,
    optimizerFloats: 0,
    numDevices: request.deviceCount,
    maxExecutors: executorRows(request),
    evaluateEveryEpochs: 1,
    evaluationChunks: chunks,
  };
}
