import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { readRegularSync } from '../base/regular-file.ts';
import {
  type DatasetManifest,
  type DatasetTask,
  datasetTasks,
  type FeatureDtype,
  featureDtypes,
  type ImportStory,
  type TypedManifest,
} from '../records/dataset-record.ts';
import { type DatasetWritten, digestOf } from './dataset-writer.ts';

/** A whole dataset folder that the store does not know. */
export interface FoundDataset {
  readonly id: string;
  readonly path: string;
  readonly written: DatasetWritten;
}

/**
 * The dataset folders in `folder` that are not `known`: written by another daemon, or by this one
 * before its state directory was replaced. A folder appears there whole (runImport), so a manifest
 * that can be read is enough.
 */
export function findDatasets(folder: string, known: (id: string) => boolean): FoundDataset[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (!entry.isDirectory() || entry.name.startsWith('.') || known(entry.name)) return [];
    const path = join(folder, entry.name);
    const written = readWritten(path);
    return written === null ? [] : [{ id: entry.name, path, written }];
  });
}

/** Null: no folder of a dataset. */
export function readWritten(path: string): DatasetWritten | null {
  try {
    const bytes = readRegularSync(join(path, 'dataset.json'));
    const manifest: DatasetManifest | TypedManifest = JSON.parse(bytes.toString('utf8'));
    if (manifest.format !== 'gnnd-dataset' || !isKnown(manifest)) return null;
    const total = bytesBelow(path);
    const notices = readStory(path)?.notices ?? [];
    return { manifest, notices, digest: digestOf(bytes), bytes: total };
  } catch {
    return null;
  }
}

function isKnown(manifest: DatasetManifest | TypedManifest): boolean {
  switch (manifest.version) {
    case 1:
      return isStored(manifest.feature_dtype, manifest.task);
    case 2:
      return manifest.types.every(({ features, labels }) =>
        isStored(features?.dtype ?? 'float32', labels?.task),
      );
    default:
      return false;
  }
}

function isStored(dtype: FeatureDtype, task: DatasetTask = 'CLASSIFICATION'): boolean {
  return featureDtypes.includes(dtype) && datasetTasks.includes(task);
}

/** Of all files in the folder and below. */
function bytesBelow(folder: string): number {
  const entries = readdirSync(folder, { withFileTypes: true });
  return entries.reduce((sum, entry) => {
    const path = join(folder, entry.name);
    return sum + (entry.isDirectory() ? bytesBelow(path) : statSync(path).size);
  }, 0);
}

/** Null where there is none, or it cannot be read: nothing but automatic choices depends on it. */
export function readStory<Story = ImportStory>(path: string): Story | null {
  try {
    return JSON.parse(readRegularSync(join(path, 'import.json')).toString('utf8'));
  } catch {
    return null;
  }
}
