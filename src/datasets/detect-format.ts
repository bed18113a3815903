import { readdir, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { sleep } from '../base/clock.ts';
import { fileProblem } from '../base/file-problem.ts';
import { kindOf, openRegular } from '../base/regular-file.ts';
import { isInside } from '../base/rooted.ts';
import type { ImportFormat } from '../records/dataset-record.ts';
import { isMadeUndirected, type ReadFormat } from './converted-formats.ts';
import { edgeListFiles, isEdgeListFile } from './edge-list-files.ts';
import { importEdgeList } from './edge-list-import.ts';
import { importGraphBolt, isGraphBoltFolder } from './graphbolt-import.ts';
import type { Importer } from './import-context.ts';
import { importNpyFolder, importNpzFile, importTableFolder } from './npy-import.ts';
import { importOgbFolder, isOgbFolder } from './ogb-import.ts';
import { csvNames, parquetNames } from './table-files.ts';
import { convertedFile, convertedFolder, magicBytes } from './told-apart.ts';

/** What reads a format in a Preparer; others are converted before. */
export const importers: Readonly<Record<ReadFormat, Importer>> = {
  NPY: importNpyFolder,
  NPZ: importNpzFile,
  CSV: importTableFolder,
  PARQUET: importTableFolder,
  OGB: importOgbFolder,
  GRAPHBOLT: importGraphBolt,
  EDGE_LIST: importEdgeList,
};

/** Whether its edges are a list, of which the user says what it means. */
export function listsEdges(format: ImportFormat): boolean {
  const listed: readonly ImportFormat[] = ['CSV', 'PARQUET', 'OGB', 'EDGE_LIST', 'NPZ'];
  return listed.includes(format) || isMadeUndirected(format);
}

/** Others are folders. */
const fileFormats: ReadonlySet<ImportFormat> = new Set(['NPZ', 'DGL', 'NETWORKX', 'BENCHMARK_NPZ']);
/** Files or folders. */
const eitherFormats: ReadonlySet<ImportFormat> = new Set(['PYG', 'EDGE_LIST']);
const zipMagic = Buffer.from('PK');

/** The format of a source, or what is wrong with it. */
export type Detection =
  | { readonly kind: 'format'; readonly format: ImportFormat }
  | { readonly kind: 'problem'; readonly description: string };

/** Tells the format of the file or folder `source`, or checks that it can be `wanted`. */
export type DetectFormat = (source: string, wanted: ImportFormat | null) => Promise<Detection>;

/** Of a folder that is no known format. */
const namesShown = 6;

/** A disk or server that takes longer does not answer. */
const answerMs = 5000;
/** Whoever waits for a file in vain holds one of the four threads that all files are read with. */
const silentMax = 2;

/** A detector that answers in bounded time, whatever the source is. */
export function createDetector(look: DetectFormat = detectFormat): DetectFormat {
  let silent = 0;
  return async (source, wanted) => {
    if (silent >= silentMax) {
      const description = `cannot be looked at: ${silent} other sources have not answered yet`;
      return { kind: 'problem', description };
    }
    const answered = new AbortController();
    const looking = look(source, wanted).finally(() => answered.abort());
    const late = async (): Promise<Detection> => {
      await sleep(answerMs, answered.signal);
      silent += 1;
      void looking.finally(() => {
        silent -= 1;
      });
      const description = `cannot be read: no answer within ${answerMs / 1000} s`;
      return { kind: 'problem', description };
    };
    return await Promise.race([looking, late().catch(() => looking)]);
  };
}

/** Looks at sources below `root` only; at any where that is empty. */
export function detectBelow(root: string): DetectFormat {
  if (root === '') return detectFormat;
  return async (source, wanted) => {
    try {
      if (isInside(await realpath(root), await realpath(source))) {
        return await detectFormat(source, wanted);
      }
      return { kind: 'problem', description: `is not in ${root}, the daemon's sources_dir` };
    } catch (error) {
      return { kind: 'problem', description: `cannot be read: ${fileProblem(error)}` };
    }
  };
}

/** The look itself, which may take as long as the disk does. Never rejects. */
export async function detectFormat(
  source: string,
  wanted: ImportFormat | null,
): Promise<Detection> {
  try {
    const stats = await stat(source);
    const isFolder = stats.isDirectory();
    if (!isFolder && !stats.isFile()) {
      const expected = 'expected a regular file or a folder';
      return { kind: 'problem', description: `is ${kindOf(stats)}, ${expected}` };
    }
    if (wanted !== null) {
      const fits = eitherFormats.has(wanted) || isFolder !== fileFormats.has(wanted);
      if (fits) return { kind: 'format', format: wanted };
      const expected = isFolder ? 'a file, and this is a folder' : 'a folder, and this is a file';
      return { kind: 'problem', description: `the format ${wanted} is read from ${expected}` };
    }
    return await (isFolder ? folderFormat(source) : fileFormat(source));
  } catch (error) {
    return { kind: 'problem', description: `cannot be read: ${fileProblem(error)}` };
  }
}

async function folderFormat(folder: string): Promise<Detection> {
  const names = new Set(await readdir(folder));
  if (isGraphBoltFolder(names)) return { kind: 'format', format: 'GRAPHBOLT' };
  if (isOgbFolder(names)) return { kind: 'format', format: 'OGB' };
  const tables = ['edges', 'nodes'];
  const isCsv = tables.some((table) => csvNames(table).some((name) => names.has(name)));
  const isParquet = tables.some((table) => parquetNames(table).some((name) => names.has(name)));
  if (isCsv || isParquet) return { kind: 'format', format: isParquet ? 'PARQUET' : 'CSV' };
  const isNpy = names.has('indptr.npy') || names.has('meta.json');
  if (isNpy) return { kind: 'format', format: 'NPY' };
  const converted = await convertedFolder(folder, names);
  if (converted !== null) return { kind: 'format', format: converted };
  const lists = edgeListFiles([...names]);
  const isList =
    lists !== null && (lists.nodes !== null || (await isEdgeListFile(join(folder, lists.edges))));
  if (isList) return { kind: 'format', format: 'EDGE_LIST' };
  const found = [...names].sort();
  const some = found.slice(0, namesShown).join(', ') + (found.length > namesShown ? ' …' : '');
  const expected =
    'indptr.npy (format NPY), nodes and edges (.csv: CSV, .parquet: PARQUET), raw and split ' +
    '(OGB), metadata.yaml (GRAPHBOLT) or a file of edges with one of labels (EDGE_LIST)';
  const has = found.length === 0 ? 'it is empty' : `it has ${some}`;
  return { kind: 'problem', description: `the folder has no ${expected}; ${has}` };
}

async function fileFormat(path: string): Promise<Detection> {
  const start = Buffer.alloc(magicBytes);
  const file = await openRegular(path);
  try {
    await file.read(start, 0, start.length, 0);
  } finally {
    await file.close();
  }
  const converted = convertedFile(path, start);
  if (converted !== null) return { kind: 'format', format: converted };
  if (start.subarray(0, zipMagic.length).equals(zipMagic)) return { kind: 'format', format: 'NPZ' };
  if (await isEdgeListFile(path)) return { kind: 'format', format: 'EDGE_LIST' };
  const expected =
    'an .npz file, a list of edges (.txt, .csv, .edgelist) or one that Python reads (.pt, .gml, ' +
    '.graphml, .json, .bin of DGL); other formats are folders (docs/datasets.md)';
  return { kind: 'problem', description: `the file is not ${expected}` };
}
