import { readFile } from 'node:fs/promises';
import type { ModelManifest, ModelOptions } from '../native/contract.ts';
import { kindOf } from '../spec/model-kinds.ts';

/**
 * Moments that features were standardised by, and the same model for imported features: with
 * x' = (x - mean) / deviation, W x' + b = (W / deviation) x + (b - (W / deviation) mean).
 */

export interface Moments {
  /** Mean of each column. */
  readonly mean: Float64Array;
  /** Deviation that each column was divided by. */
  readonly deviation: Float64Array;
}

/** Moments of another dataset: the one that a model was trained on. */
export interface MomentsFile {
  readonly path: string;
  /** Digest of the file; names what is derived by it. */
  readonly digest: string;
}

/** Path of moments beside the features at `featuresPath` (native/core/graph/features.h). */
export function momentsPath(featuresPath: string): string {
  return `${featuresPath}.moments`;
}

/** Throws the system's error, and one of ours where the file is not that of `columns` columns. */
export async function readMoments(featuresPath: string, columns: number): Promise<Moments> {
  const path = momentsPath(featuresPath);
  const bytes = await readFile(path);
  const expected = 2 * columns * Float64Array.BYTES_PER_ELEMENT;
  if (bytes.length !== expected) {
    throw new Error(`${path} has ${bytes.length} bytes, expected ${expected}`);
  }
  const values = new Float64Array(
    bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + expected),
  );
  return { mean: values.subarray(0, columns), deviation: values.subarray(columns) };
}

/** What a model's layer 0 lacks to take features as they are; null where it can. */
export function foldProblem(model: ModelOptions): string | null {
  const { unfoldable, attends } = kindOf(model.type);
  if (unfoldable !== '') return unfoldable;
  const width = model.layers === 1 ? model.outDim : model.hiddenDim;
  // Models that attend add no features as they are: they project residuals.
  const adds = model.residual && !attends && model.inDim === width;
  return adds ? 'its residual connection adds the features themselves to layer 0' : null;
}

/**
 * The parameter vector for features as they were imported, in double precision but for its result.
 * GRAPHSAGE: exact for nodes with an in-neighbour; the mean of none is 0, of raw rows, too.
 * REQUIRES: foldProblem(model) === null.
 */
export function foldMoments(
  model: ModelOptions,
  manifest: ModelManifest,
  parameters: Float32Array,
  { mean, deviation }: Moments,
): Float32Array {
  const folded = parameters.slice();
  const tensors = new Map(manifest.tensors.map((tensor) => [tensor.name, tensor]));
  const biases = new Map<string, Float64Array>();
  const offsetOf = (name: string) => {
    const tensor = tensors.get(`convs.0.${name}`);
    if (tensor === undefined) throw new Error(`the model has no tensor convs.0.${name}`);
    return tensor.offset;
  };
  for (const { weight, bias } of kindOf(model.type).products) {
    const tensor = tensors.get(`convs.0.${weight}`);
    if (tensor === undefined) continue;
    const [rows = 0, columns = 0] = tensor.shape;
    const biasAt = offsetOf(bias);
    const sums = biases.get(bias) ?? Float64Array.from(parameters.subarray(biasAt, biasAt + rows));
    biases.set(bias, sums);
    for (let row = 0; row < rows; row += 1) {
      for (let column = 0; column < columns; column += 1) {
        const at = tensor.offset + row * columns + column;
        const scaled = (parameters[at] ?? 0) / (deviation[column] ?? 1);
        folded[at] = scaled;
        sums[row] = (sums[row] ?? 0) - scaled * (mean[column] ?? 0);
      }
    }
  }
  for (const [bias, sums] of biases) folded.set(sums, offsetOf(bias));
  return folded;
}
