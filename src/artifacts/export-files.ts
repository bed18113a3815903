import { createHash, type Hash } from 'node:crypto';
import type { ModelOptions } from '../native/contract.ts';
import type { Moments } from '../prepare/prepare.ts';
import type { JobRecord } from '../records/job-record.ts';
import type { Metric } from '../spec/metrics.ts';
import type { PredictionPart } from '../supervisor/supervisor.ts';
import type { CheckpointRecord } from './checkpoint-record.ts';

/** The files of an export as they stream: parts, their digests, and export.json at last. */

export type ExportPart =
  | { readonly kind: 'checkpoint'; readonly checkpoint: CheckpointRecord }
  | { readonly kind: 'progress'; readonly share: number; readonly message: string }
  | Exclude<PredictionPart, { readonly kind: 'progress' }>;

interface LedgerEntry {
  readonly bytes: number;
  readonly sha256: string;
}

/** Size and digest of every file that passes by. */
export function createLedger() {
  const sizes = new Map<string, { readonly bytes: number; readonly hash: Hash }>();
  let current: Hash | null = null;
  return {
    async *noting(parts: Iterable<ExportPart> | AsyncIterable<ExportPart>) {
      for await (const part of parts) {
        if (part.kind === 'file') {
          current = createHash('sha256');
          sizes.set(part.name, { bytes: part.bytes, hash: current });
        } else if (part.kind === 'data') {
          current?.update(part.bytes);
        }
        yield part;
      }
    },
    files(): Readonly<Record<string, LedgerEntry>> {
      const entries = [...sizes].map(
        ([name, { bytes, hash }]) => [name, { bytes, sha256: hash.digest('hex') }] as const,
      );
      return Object.fromEntries(entries);
    },
  };
}

export interface Exported {
  readonly record: CheckpointRecord;
  readonly model: ModelOptions;
  readonly job: JobRecord;
  /** Null: nothing was predicted. */
  readonly prediction: { readonly nodes: string; readonly classNames: unknown } | null;
  /** SHA-256 of the parameters as they are exported. */
  readonly parametersSha256: string;
  readonly rows: ExportedRows | null;
  readonly standardization: {
    readonly isFolded: boolean;
    /** Of several types by their names. */
    readonly moments: Moments | MomentsOfTypes | null;
  };
}

/** By type, of a model over several. */
export type MomentsOfTypes = ReadonlyMap<string, Moments>;

/** What rows a model over propagated features takes. */
export interface ExportedRows {
  readonly operators: readonly string[];
  readonly hops: number;
  readonly self_loops: boolean;
  /** Names of the files of rows, in the order in which the model takes them. */
  readonly tokens: readonly string[];
  readonly standardized: boolean;
  /** [tokens][columns]; null where nothing was standardised, and where nobody can tell. */
  readonly mean: readonly (readonly number[])[] | null;
  readonly deviation: readonly (readonly number[])[] | null;
}

function factsOf(metrics: readonly Metric[]): Readonly<Record<string, number>> {
  return Object.fromEntries(metrics.map(({ name, value }) => [name, value]));
}

/** export.json (docs/formats/checkpoint.md): the same bytes whenever the same is exported. */
export function* summaryParts(
  { record, model, job, prediction, parametersSha256, standardization, rows }: Exported,
  files: Readonly<Record<string, LedgerEntry>>,
): Generator<ExportPart, void, void> {
  const summary = {
    format: 1,
    job: job.id,
    checkpoint: record.kind.toLowerCase(),
    epoch: record.epoch,
    val_accuracy: record.valAccuracy,
    test_accuracy: record.testAccuracy,
    val_metrics: factsOf(record.valMetrics),
    test_metrics: factsOf(record.testMetrics),
    task: record.file.task,
    dataset: { id: job.effectiveSpec.dataset, digest: job.datasetDigest },
    feature_names: record.file.featureNames,
    spec: job.effectiveSpec,
    model: {
      type: model.type,
      layers: model.layers,
      in_dim: model.inDim,
      hidden_dim: model.hiddenDim,
      out_dim: model.outDim,
      heads: model.heads,
      activation: model.activation,
      normalization: model.normalization,
      residual: model.residual,
      ...graphFacts(model),
    },
    ...standardizationFacts(job, standardization),
    rows,
    parameters_sha256: parametersSha256,
    tensors: record.file.tensors,
    predictions:
      prediction === null
        ? null
        : {
            nodes: prediction.nodes.toLowerCase(),
            class_names: prediction.classNames,
          },
    files,
  };
  const bytes = Buffer.from(`${JSON.stringify(summary, null, 2)}\n`);
  yield { kind: 'file', name: 'export.json', bytes: bytes.length };
  yield { kind: 'data', bytes };
}

/** What a model over several types has beside: the learnt type is the first. */
function graphFacts({ graph: { types, relations }, bases }: ModelOptions) {
  if (types.length === 0) return {};
  const nameOf = (type: number) => types[type]?.name;
  return {
    bases,
    graph: {
      types: types.map(({ name, inDim }) => ({ name, in_dim: inDim })),
      relations: relations.map(({ source, name, destination }) => ({
        source: nameOf(source),
        name,
        destination: nameOf(destination),
      })),
    },
  };
}

/** What the model wants done to features; nothing once that is folded into its parameters. */
function standardizationFacts(
  { effectiveSpec: { features } }: JobRecord,
  { isFolded, moments }: Exported['standardization'],
) {
  const isWanted = features.standardize === 'ON' && !isFolded;
  const said = isWanted ? moments : null;
  return {
    standardized_features: isWanted,
    feature_mean: valuesOf(said, ({ mean }) => mean),
    feature_deviation: valuesOf(said, ({ deviation }) => deviation),
    folded_standardization: isFolded,
  };
}

/** A list of numbers; of several types one for each, by its name. */
function valuesOf(
  moments: Exported['standardization']['moments'],
  of: (moments: Moments) => Float64Array,
) {
  if (moments === null) return null;
  if (!(moments instanceof Map)) return [...of(moments as Moments)];
  const ofTypes: MomentsOfTypes = moments;
  return Object.fromEntries([...ofTypes].map(([type, own]) => [type, [...of(own)]]));
}
