import { readdir, realpath, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { typed } from '../base/advice.ts';
import { sleep } from '../base/clock.ts';
import { fileProblem } from '../base/file-problem.ts';
import { kindOf, openRegular } from '../base/regular-file.ts';
import { isInside } from '../base/rooted.ts';
import { type ImportFormat, importFormats } from '../records/dataset-record.ts';
import { isMadeUndirected, type PlainFormat } from './converted-formats.ts';
import { edgeListFiles, isEdgeListFile } from './edge-list-files.ts';
import { importEdgeList } from './edge-list-import.ts';
import { importGraphBolt, isGraphBoltFolder } from './graphbolt-import.ts';
import type { Importer } from './import-context.ts';
import { fileLooksLike, folderLooksLike, type Looks, startBytes } from './looks-like.ts';
import { importNpyFolder, importNpzFile, importTableFolder } from './npy-import.ts';
import { importOgbFolder, isOgbFolder } from './ogb-import.ts';
import { csvNames, kindOfParts, parquetNames } from './table-files.ts';
import { convertedFile, convertedFolder } from './told-apart.ts';
import { relationOf } from './typed-schema.ts';

/** What reads a format of one type in a Preparer; others are converted before. */
export const importers: Readonly<Record<PlainFormat, Importer>> = {
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

/** A disk or server that takes longer does not answer. */
const answerMs = 5000;
/** Whoever waits for a file in vain holds one of the four threads that all files are read with. */
const silentMax = 2;

/** A detector that answers in bounded time, whatever the source is. */
export function createDetector(
  look: DetectFormat = detectFormat,
  pass: typeof sleep = sleep,
): DetectFormat {
  let silent = 0;
  return async (source, wanted) => {
    if (silent >= silentMax) {
      const description = `cannot be looked at: ${silent} other sources have not answered yet`;
      return { kind: 'problem', description };
    }
    const answered = new AbortController();
    const looking = look(source, wanted).finally(() => answered.abort());
    const late = async (): Promise<Detection> => {
      await pass(answerMs, answered.signal);
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
  const format = await formatOfFolder(folder, names);
  if (format !== null) return { kind: 'format', format };
  return unread(folder, (await meantBelow(folder, names)) ?? folderLooksLike([...names]));
}

/** A folder's only file or folder of a format, which may be what was meant. */
async function meantBelow(folder: string, names: ReadonlySet<string>): Promise<Looks | null> {
  const few = [...names].filter((name) => !name.startsWith('.')).slice(0, belowMax);
  const found: string[] = [];
  for (const path of few.map((name) => join(folder, name))) {
    const stats = await stat(path).catch(() => null);
    const isFormat = stats?.isFile() === true ? await isReadFile(path) : await isReadFolder(path);
    if (isFormat) found.push(path);
  }
  const [path, ...others] = found;
  if (path === undefined || others.length > 0) return null;
  const what = `is of no format itself, but ${path} in it is`;
  return { what, remedy: `gnnctl dataset import ${typed(path)} --id NAME` };
}

const belowMax = 20;

async function isReadFile(path: string): Promise<boolean> {
  const format = await formatOfFile(path, await readStart(path));
  // A table may be a list of edges that belongs to the others in the folder.
  return format !== null && format !== 'EDGE_LIST';
}

async function isReadFolder(path: string): Promise<boolean> {
  const names = await readdir(path).catch(() => []);
  return (await formatOfFolder(path, new Set(names))) !== null;
}

/** Refuses a source for what it is. */
function unread(source: string, { what, remedy }: Looks): Detection {
  const otherwise = `gnnd reads ${importFormats.join(', ')}`;
  const said = remedy === '' ? otherwise : remedy.replaceAll(/\bFILE\b/g, typed(source));
  return { kind: 'problem', description: `${what}: ${said} (docs/datasets.md)` };
}

/** The format of a folder with these names in it. */
async function formatOfFolder(
  folder: string,
  names: ReadonlySet<string>,
): Promise<ImportFormat | null> {
  if (names.has('types.json')) return 'TYPED_NPY';
  if (isGraphBoltFolder(names)) return 'GRAPHBOLT';
  if (isOgbFolder(names)) {
    return (await convertedFolder(folder, names)) === 'OGB_LINKS' ? 'OGB_LINKS' : 'OGB';
  }
  const tables = ['edges', 'nodes'];
  const small = new Set([...names].map((name) => name.toLowerCase()));
  const isCsv = tables.some((table) => csvNames(table).some((name) => small.has(name)));
  const isParquet = tables.some((table) => parquetNames(table).some((name) => small.has(name)));
  if (isCsv || isParquet) return isParquet ? 'PARQUET' : 'CSV';
  const bare = [...names].filter((name) => tables.includes(name.toLowerCase()));
  const ofParts = bare.map((name) => kindOfParts(join(folder, name)));
  const kind = ofParts.find((each) => each !== null);
  if (kind !== undefined) return kind;
  if (names.has('edges') && (await hasRelations(join(folder, 'edges')))) return 'TYPED_NPY';
  const arrays = ['indptr.npy', 'edge_index.npy', 'meta.json'];
  if (arrays.some((name) => names.has(name))) return 'NPY';
  const converted = await convertedFolder(folder, names);
  if (converted !== null) return converted;
  const lists = edgeListFiles([...names]);
  const isList =
    lists !== null && (lists.nodes !== null || (await isEdgeListFile(join(folder, lists.edges))));
  return isList ? 'EDGE_LIST' : null;
}

/** Whether a folder has what is called after relations. */
async function hasRelations(folder: string): Promise<boolean> {
  const names = await readdir(folder).catch(() => []);
  return names.some((name) => relationOf(name.replace(/\.npy$/, '')) !== null);
}

async function fileFormat(path: string): Promise<Detection> {
  const start = await readStart(path);
  const format = await formatOfFile(path, start);
  if (format !== null) return { kind: 'format', format };
  const { size: bytes } = await stat(path);
  return unread(path, fileLooksLike({ name: basename(path), bytes, start }));
}

async function formatOfFile(path: string, start: Buffer): Promise<ImportFormat | null> {
  if (start.length === 0) return null;
  const converted = convertedFile(path, start);
  if (converted !== null) return converted;
  if (start.subarray(0, zipMagic.length).equals(zipMagic)) return 'NPZ';
  return (await isEdgeListFile(path)) ? 'EDGE_LIST' : null;
}

async function readStart(path: string): Promise<Buffer> {
  const start = Buffer.alloc(startBytes);
  const file = await openRegular(path);
  try {
    const { bytesRead } = await file.read(start, 0, start.length, 0);
    return start.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}
