import {
  type CheckpointFile,
  type CheckpointPlace,
  parametersOf,
  parametersSha256,
  readCheckpoint,
  safetensorsOf,
} from '../files/checkpoint.ts';
import type { ModelOptions } from '../native/contract.ts';
import { loadCore } from '../native/load.ts';
import { foldMoments, type Moments } from '../prepare/prepare.ts';

/** The model that an export hands out, read and computed on threads of the pool. */

/** The file as it is. */
export async function checkpointFile({ folder, kind }: CheckpointPlace): Promise<CheckpointFile> {
  return await readCheckpoint(folder, kind);
}

export interface Fold extends CheckpointPlace {
  readonly model: ModelOptions;
  readonly moments: Moments;
}

/** The file with parameters for features as they were imported. */
export async function foldedCheckpoint({ model, moments, ...place }: Fold) {
  const file = await checkpointFile(place);
  const manifest = loadCore().modelManifest(model);
  const folded = foldMoments(model, manifest, parametersOf(manifest, file), moments);
  const bytes = Buffer.concat([...safetensorsOf(manifest, folded, { format: 'pt' })]);
  return { ...file, bytes, parametersSha256: await parametersSha256(manifest, folded) };
}
