import type { GraphSchema, ModelOptions } from '../native/contract.ts';
import { featureBytes } from '../records/dataset-record.ts';
import { fanoutsByRelation, rowSourcesOf, type Taken } from '../spec/job-relations.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import { blocks } from './blocks.ts';
import type { Batches, EvaluatedRows } from './plan-kind.ts';

/** Batches that are blocks of several types and relations, whose first type has the seeds. */
export function relationBlocks(schema: GraphSchema): Batches {
  const named = namesOf(schema);
  const widths = rowWidthsOf(schema);
  const graph = modelGraphOf(schema, widths);
  return {
    ...blocks,

    // Each type's rows are projected first.
    input: () => ({ inDim: 0, graph, numOperators: 0, numHops: 0 }),

    relationFanouts: ({ relations, sampling }) =>
      fanoutsByRelation(named.relations, relations.fanouts, sampling.fanouts),

    slotBytes: (native, _, sampling) => native.recordSlotBytesTyped(schema, sampling),

    memory: (native) => ({
      topologyBytes: native.topologyBytesTyped(schema),
      // Such jobs run on cores alone, and keep no history.
      ...{ samplerDeviceBytes: 0, historyRowBytes: 0, evaluationPartBytes: 0 },
      ...{ rowWorkBytes: 0, rowDeviceBytes: 0, rowStagedBytes: 0, rowChunkBytes: 0 },
    }),

    evaluated: ({ model }) => evaluatedOf(schema, model),

    featuresBytes: (spec) =>
      schema.types.reduce(
        (sum, type, at) => sum + type.numNodes * rowBytesOf(spec, type, widths[at] ?? 0),
        0,
      ),

    batchBytes(spec, { sampling }) {
      const rows = batchRowsOf(schema, sampling.batchSize, {
        hops: sampling.fanouts,
        ofRelations: sampling.relationFanouts,
      });
      const bytes = (of: (at: number) => number) =>
        rows.reduce((sum, count, at) => sum + count * of(at), 0);
      return {
        stored: bytes((at) => rowBytesOf(spec, schema.types[at], widths[at] ?? 0)),
        extracted: bytes((at) => Float32Array.BYTES_PER_ELEMENT * (widths[at] ?? 0)),
      };
    },
  };
}

type NativeType = GraphSchema['types'][number];

/** By names, as choices among them are made. */
export function namesOf({ types, relations }: GraphSchema): Taken<{
  types: readonly { name: string; features?: object }[];
  relations: readonly { source: string; name: string; destination: string }[];
}> {
  const nameOf = (type: number) => types[type]?.name ?? '';
  return {
    types: types.map(({ name, numFeatures }) => ({
      name,
      ...(numFeatures === 0 ? {} : { features: {} }),
    })),
    relations: relations.map(({ source, name, destination }) => ({
      ...{ source: nameOf(source), name, destination: nameOf(destination) },
    })),
  };
}

/** Columns of each type's input rows: its features, or those whose mean it has. */
export function rowWidthsOf(schema: GraphSchema): readonly number[] {
  const widths = schema.types.map(({ numFeatures }) => numFeatures);
  for (const { type, relation } of rowSourcesOf(namesOf(schema)).means) {
    widths[type] = widths[schema.relations[relation]?.source ?? type] ?? 0;
  }
  return widths;
}

/** Of types whose input rows have so many columns. */
export function modelGraphOf(
  { types, relations }: GraphSchema,
  widths: readonly number[],
): ModelOptions['graph'] {
  return {
    types: types.map(({ name }, at) => ({ name, inDim: widths[at] ?? 0 })),
    relations: relations.map(({ source, name, destination }) => ({ source, name, destination })),
  };
}

/** Bytes of an input row as it is read; means and standardised features are files of float32. */
function rowBytesOf({ features }: JobSpec, type: NativeType | undefined, width: number): number {
  const isOwn = type !== undefined && type.numFeatures > 0 && features.standardize === 'OFF';
  return width * featureBytes[isOwn ? type.featureDtype : 'float32'];
}

/** Nodes of a type are numbered from a multiple of this on (NodeNumbers of the native core). */
const numbersAligned = 64;
const pageBytes = 4096;

/** Rows of all types at two levels, each a whole number of pages (TypedScratchBytes). */
function evaluatedOf({ types }: GraphSchema, { hiddenDim }: JobSpec['model']): EvaluatedRows {
  const nodes = types.reduce(
    (sum, { numNodes }) => sum + Math.ceil(numNodes / numbersAligned) * numbersAligned,
    0,
  );
  const levelBytes = nodes * hiddenDim * Float32Array.BYTES_PER_ELEMENT;
  return { nodes, scratchBytes: 2 * Math.ceil(levelBytes / pageBytes) * pageBytes };
}

interface Fanouts {
  readonly hops: readonly number[];
  /** Of each relation; none: `hops` for all. */
  readonly ofRelations: readonly (readonly number[])[];
}

/** Rows of each type that one batch reads at most. */
export function batchRowsOf(
  { types, relations }: GraphSchema,
  batchSize: number,
  { hops, ofRelations }: Fanouts,
): readonly number[] {
  const most = (type: number) => types[type]?.numNodes ?? 0;
  const rows = types.map((_, type) => (type === 0 ? Math.min(batchSize, most(0)) : 0));
  for (const [hop, usual] of hops.entries()) {
    const before = [...rows];
    for (const [at, { source, destination }] of relations.entries()) {
      const fanout = ofRelations[at]?.[hop] ?? usual;
      const found = fanout < 0 ? most(source) : (before[destination] ?? 0) * fanout;
      rows[source] = Math.min(most(source), (rows[source] ?? 0) + found);
    }
  }
  return rows;
}
