import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { GnndError } from '../../../src/base/errors.ts';
import { openPropagation } from '../../../src/prepare/propagations.ts';
import { temporaryFolder } from '../../support/at-end.ts';

const root = temporaryFolder('gnnd-propagations-');

/** A propagation of one file of 5 bytes, of a dataset with digest `d1`. */
function folderOf(name: string, bytes = 'bytes'): string {
  const path = join(root, name);
  mkdirSync(join(path, 'rows'), { recursive: true });
  writeFileSync(join(path, 'rows', 'hop0.npy'), bytes);
  const files = [{ name: 'hop0.npy', bytes: 5, sha256: '' }];
  const manifest = {
    format: 'gnnd-propagation',
    version: 1,
    source: { datasetDigest: 'd1' },
    files,
  };
  writeFileSync(join(path, 'propagation.json'), JSON.stringify(manifest));
  return path;
}

function reasonOf(open: () => unknown): string {
  try {
    open();
  } catch (error) {
    return error instanceof GnndError ? error.reason : String(error);
  }
  return 'none';
}

describe('a propagation that is opened', () => {
  it('is that of its dataset', () => {
    expect(openPropagation(folderOf('right'), 'd1').files).toHaveLength(1);
  });

  it('is refused where the dataset has changed since', () => {
    expect(reasonOf(() => openPropagation(folderOf('old'), 'd2'))).toBe('DATASET_CHANGED');
  });

  it('is refused where a file is shorter than it was, or the manifest is missing', () => {
    expect(reasonOf(() => openPropagation(folderOf('cut', 'byte'), 'd1'))).toBe('DATASET_CORRUPT');
    const bare = folderOf('bare');
    rmSync(join(bare, 'propagation.json'));
    expect(reasonOf(() => openPropagation(bare, 'd1'))).toBe('DATASET_CORRUPT');
  });
});
