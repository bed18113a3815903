import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { markUsed } from '../base/files.ts';
import type { CoreAddon } from '../native/contract.ts';

/** Features as a job reads them: the imported ones, or a preparation kept under its inputs. */

export interface FeaturesRequest {
  readonly standardize: boolean;
  readonly datasetFolder: string;
  readonly datasetDigest: string;
  /** Receives the derived file. */
  readonly folder: string;
}

/** Path of the standardised features, made when they are not there yet; '' for the imported. */
export async function prepareFeatures(
  native: Pick<CoreAddon, 'datasetStandardize'>,
  { standardize, datasetFolder, datasetDigest, folder }: FeaturesRequest,
): Promise<string> {
  if (!standardize) return '';
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${datasetDigest.slice(0, 32)}-standardized.npy`);
  // Two at once write the same bytes, each to a temporary file of its own.
  if (existsSync(path)) markUsed(path);
  else {
    await native.datasetStandardize(join(datasetFolder, 'features.npy'), path);
  }
  return path;
}
