import type { CoreAddon, DatasetCounts } from '../native/contract.ts';
import type { InferencePlan, MemoryPart } from '../records/memory-plan.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import { takesRows } from '../spec/model-kinds.ts';
import { inferencePlanOf, nodesOf } from './evaluation-plan.ts';
import type { JobLayout } from './job-layout.ts';
import { storedTokens, tokenBytes } from './row-sizes.ts';

/** What an inference takes of memory and of the disk, from sizes alone. */

interface Facts {
  readonly native: Pick<CoreAddon, 'evaluationSizes'>;
  readonly counts: DatasetCounts;
}

/** Memory of one Trainer: bits of reached nodes, ids of targets, and a chunk's rows. */
export function inferenceParts(
  spec: JobSpec,
  layout: JobLayout,
  { native, counts }: Facts,
): readonly MemoryPart[] {
  const facts = { spec, counts, nodes: nodesOf(spec, counts) };
  const isRows = takesRows(spec.model.type);
  const { workBytes } = isScript(spec) ? noSizes : inferencePlanOf(native, layout, facts);
  const rowsBytes = 2 * Uint32Array.BYTES_PER_ELEMENT * facts.nodes + layout.memory.rowChunkBytes;
  return [
    {
      name: 'the work of predictions',
      bytes: spec.resources.devices * (isRows ? rowsBytes : workBytes),
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
}

const noSizes = { chunks: 0, scratchBytes: 0, workBytes: 0 };

/** A script's widths are known once it was loaded. */
function isScript({ model }: JobSpec): boolean {
  return model.type === 'TORCHSCRIPT';
}

/** Chunks, and bytes on the disk, each at most. */
export function inferenceSizesOf(
  spec: JobSpec,
  layout: JobLayout,
  { native, counts }: Facts,
): InferencePlan {
  const { nodes: which, outputs, formats, classes } = spec.inference;
  const { propagation } = spec;
  const nodes = nodesOf(spec, counts);
  const facts = { spec, counts, nodes };
  const { chunks, scratchBytes } = isScript(spec)
    ? noSizes
    : inferencePlanOf(native, layout, facts);
  const isOfAll = which === 'ALL' || which === 'LISTED';
  const nodeBytes = storedTokens(propagation) * tokenBytes(propagation, counts.numFeatures);
  const rowOutput = 16 + outputs.length * classes * Float32Array.BYTES_PER_ELEMENT;
  const isPropagated = takesRows(spec.model.type) && isOfAll;
  return {
    nodes,
    chunks,
    outputBytes: formats.length * nodes * rowOutput,
    scratchBytes,
    propagationBytes: isPropagated ? counts.numNodes * nodeBytes : 0,
  };
}
