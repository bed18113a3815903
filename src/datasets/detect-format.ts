import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../base/errors.ts';
import type { ImportFormat } from '../spec/dataset-record.ts';
import { importNpyFolder, importNpzFile } from './array-import.ts';
import { csvPath, importCsvFolder } from './csv-import.ts';
import type { Importer } from './import-context.ts';
import { importNpmDeps } from './npm-import.ts';

export const importers: Readonly<Record<ImportFormat, Importer>> = {
  NPY: importNpyFolder,
  NPZ: importNpzFile,
  CSV: importCsvFolder,
  NPM_DEPS: importNpmDeps,
};

const folderFormats: ReadonlySet<ImportFormat> = new Set(['NPY', 'CSV']);
const zipMagic = Buffer.from('PK');
const gzipMagic = Buffer.from([0x1f, 0x8b]);

/** The format of a source, or what is wrong with it. */
export type Detection =
  | { readonly kind: 'format'; readonly format: ImportFormat }
  | { readonly kind: 'problem'; readonly description: string };

/** Tells the format of the file or folder `source`, or checks that it can be `wanted`. */
export function detectFormat(source: string, wanted: ImportFormat | null): Detection {
  try {
    const isFolder = statSync(source).isDirectory();
    if (wanted !== null) {
      if (isFolder === folderFormats.has(wanted)) return { kind: 'format', format: wanted };
      const expected = isFolder ? 'a file, and this is a folder' : 'a folder, and this is a file';
      return { kind: 'problem', description: `the format ${wanted} is read from ${expected}` };
    }
    return isFolder ? folderFormat(source) : fileFormat(source);
  } catch (error) {
    return { kind: 'problem', description: `cannot be read: ${messageOf(error)}` };
  }
}

function folderFormat(folder: string): Detection {
  const isCsv = csvPath(folder, 'edges') !== null || csvPath(folder, 'nodes') !== null;
  if (isCsv) return { kind: 'format', format: 'CSV' };
  const isNpy = existsSync(join(folder, 'indptr.npy')) || existsSync(join(folder, 'meta.json'));
  if (isNpy) return { kind: 'format', format: 'NPY' };
  const expected = 'indptr.npy (format NPY) or nodes.csv and edges.csv (format CSV)';
  return { kind: 'problem', description: `the folder has no ${expected}` };
}

function fileFormat(file: string): Detection {
  const start = Buffer.alloc(2);
  const fd = openSync(file, 'r');
  try {
    readSync(fd, start, 0, start.length, 0);
  } finally {
    closeSync(fd);
  }
  if (start.equals(zipMagic)) return { kind: 'format', format: 'NPZ' };
  if (start.equals(gzipMagic)) return { kind: 'format', format: 'NPM_DEPS' };
  const expected = 'an .npz file (format NPZ) or the .tgz of an npm package (format NPM_DEPS)';
  return { kind: 'problem', description: `the file is not ${expected}` };
}
