import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { crc32, deflateRawSync, gzipSync } from 'node:zlib';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { afterEach } from 'vitest';
import type { DataTasks } from '../../../src/datasets/data-tasks.ts';
import { localTasks } from '../../../src/datasets/local-tasks.ts';
import { formatNpyHeader, type NpyType, type NpyValues } from '../../../src/datasets/npy.ts';
import { badFile, ImportFailure } from '../../../src/datasets/problems.ts';
import type { NativeReader } from '../../../src/datasets/read-source.ts';
import { prepareFolder, runImport } from '../../../src/datasets/run-import.ts';
import type { ArrayCopyOptions, DatasetCounts } from '../../../src/native/contract.ts';
import type {
  DatasetManifest,
  FeatureDtype,
  ImportChoices,
  ImportFormat,
  ImportStory,
  Problem,
} from '../../../src/records/dataset-record.ts';
import { noText, plainCopier } from './copier.ts';
import { plainIds, plainSorter } from './plain-graph.ts';

/** What the tests of importers share: folders that go away, archives, and an import to try. */

/** The choices of an import that asks for nothing. */
export const noChoices: ImportChoices = {
  featureDtype: null,
  directed: false,
  link: false,
  task: null,
  split: null,
  ignoredColumns: [],
  madeFeatures: null,
  randomSplit: null,
  reverse: null,
};

const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** An empty folder, removed after the test. */
export function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'gnnd-datasets-'));
  folders.push(folder);
  return folder;
}

/** A folder with these files. */
export function folderOf(files: Readonly<Record<string, string | Uint8Array>>): string {
  const folder = makeFolder();
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  return folder;
}

export const never = new AbortController().signal;

/** The bytes of a .npy file. */
export function npy(type: NpyType, shape: readonly number[], values: NpyValues): Buffer {
  const data = Buffer.from(values.buffer, values.byteOffset, values.byteLength);
  return Buffer.concat([formatNpyHeader({ type, shape }), data]);
}

export const int32 = (...values: number[]) =>
  npy('int32', [values.length], Int32Array.from(values));
export const int64 = (...values: number[]) =>
  npy('int64', [values.length], BigInt64Array.from(values, BigInt));
export const bool = (...values: boolean[]) =>
  npy('bool', [values.length], Uint8Array.from(values, Number));
export const float32 = (...values: number[]) =>
  npy('float32', [values.length], Float32Array.from(values));

/** The path 0 - 1 - 2, with two features and two classes. */
export const pathGraph = {
  'indptr.npy': int64(0, 1, 3, 4),
  'indices.npy': int32(1, 0, 2, 1),
  'features.npy': npy('float32', [3, 2], Float32Array.of(1, 2, 3, 4, 5, 6)),
  'labels.npy': int32(0, 1, -1),
  'train.npy': int64(0),
  'val.npy': int64(1),
  'test.npy': int64(),
} as const;

export interface ZipOptions {
  readonly stored?: boolean;
  /** Put the sizes into ZIP64 fields, as archives of more than 4 GiB do. */
  readonly zip64?: boolean;
}

/** A ZIP archive. */
export function zip(files: Readonly<Record<string, Uint8Array>>, options: ZipOptions = {}): Buffer {
  const method = options.stored === true ? 0 : 8;
  const locals: Buffer[] = [];
  const entries: Buffer[] = [];
  let at = 0;
  for (const [name, content] of Object.entries(files)) {
    const packed = method === 0 ? content : deflateRawSync(content);
    const sum = crc32(content);
    const local = Buffer.alloc(30);
    local.writeUInt32LE(0x04034b50, 0);
    local.writeUInt16LE(method, 8);
    local.writeUInt16LE(name.length, 26);
    const entry = Buffer.alloc(46);
    entry.writeUInt32LE(0x02014b50, 0);
    entry.writeUInt16LE(method, 10);
    entry.writeUInt32LE(sum, 16);
    entry.writeUInt32LE(options.zip64 === true ? 0xffffffff : packed.length, 20);
    entry.writeUInt32LE(options.zip64 === true ? 0xffffffff : content.length, 24);
    entry.writeUInt16LE(name.length, 28);
    entry.writeUInt32LE(options.zip64 === true ? 0xffffffff : at, 42);
    const extra = Buffer.alloc(options.zip64 === true ? 28 : 0);
    if (options.zip64 === true) {
      extra.writeUInt16LE(1, 0);
      extra.writeUInt16LE(24, 2);
      extra.writeBigUInt64LE(BigInt(content.length), 4);
      extra.writeBigUInt64LE(BigInt(packed.length), 12);
      extra.writeBigUInt64LE(BigInt(at), 20);
    }
    entry.writeUInt16LE(extra.length, 30);
    const body = Buffer.concat([local, Buffer.from(name), packed]);
    locals.push(body);
    entries.push(Buffer.concat([entry, Buffer.from(name), extra]));
    at += body.length;
  }
  const directory = Buffer.concat(entries);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(entries.length, 8);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(directory.length, 12);
  end.writeUInt32LE(at, 16);
  return Buffer.concat([...locals, directory, end]);
}

/** A tar archive in the ustar format; a name that ends with / is a folder. */
export function tar(files: readonly (readonly [string, string | Uint8Array])[]): Buffer {
  const blocks = files.flatMap(([name, content]) => {
    const body = Buffer.from(content);
    const header = Buffer.alloc(512);
    header.write(name, 0, 'latin1');
    header.write('0000644\0', 100);
    header.write(`${body.length.toString(8).padStart(11, '0')}\0`, 124);
    header.write(' '.repeat(8), 148);
    header.write(name.endsWith('/') ? '5' : '0', 156);
    header.write('ustar\x0000', 257);
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
    return [header, body, Buffer.alloc((512 - (body.length % 512)) % 512)];
  });
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}

export type Dependents = Readonly<Record<string, unknown>>;

/**
 * An archive like the npm package dependent-packages: names by the package they depend on. A file
 * of undefined is broken JSON.
 */
export function npmArchive(dependents: Dependents, devDependents: Dependents): Buffer {
  const inner = (stem: string, files: Dependents) =>
    gzipSync(
      tar([
        [`${stem}/`, ''],
        ...Object.entries(files).map(
          ([key, names]) => [`${stem}/${key}.json`, JSON.stringify(names) ?? '[oops'] as const,
        ),
      ]),
    );
  return gzipSync(
    tar([
      ['package/package.json', '{}'],
      ['package/dependents.tgz', inner('dependents', dependents)],
      ['package/devDependents.tgz', inner('devDependents', devDependents)],
    ]),
  );
}

/** A native reader that copies plainly, finds nothing wrong, and remembers what it was asked. */
export function trustingValidator(): NativeReader & {
  readonly opened: ArrayCopyOptions[];
  readonly asked: DatasetCounts[];
  readonly checked: string[];
} {
  const asked: DatasetCounts[] = [];
  const checked: string[] = [];
  return {
    ...plainCopier(),
    ...noText,
    ...plainSorter(),
    ...plainIds(),
    checked,
    asked,
    datasetValidate: async (_folder, counts, names) => {
      asked.push(counts);
      checked.push(...names);
      return { problems: [], problemCount: 0 };
    },
    datasetValidateTyped: async () => ({ problems: [], problemCount: 0 }),
  };
}

export interface Imported {
  readonly folder: string;
  readonly manifest: DatasetManifest;
  readonly notices: readonly string[];
  readonly story: ImportStory;
  readonly digest: string;
  readonly bytes: number;
  /** Elements of an array; those of float16 are its bits. */
  numbers(name: string): number[];
}

interface Asked extends Partial<ImportChoices> {
  /** The daemon's sources_dir. */
  readonly root?: string;
  readonly native?: NativeReader;
}

/** All tasks in this process; what Python converts is a problem that says so. */
export const tasksWith = (native: NativeReader): DataTasks => ({
  ...localTasks(native),
  convert: async ({ source, format }) => {
    throw badFile(basename(source), `is for Python to convert: ${format}`);
  },
});

/** Imports `source` and keeps the result until the end of the test. */
export async function tryImport(
  format: ImportFormat,
  source: string,
  { native = trustingValidator(), ...choices }: Asked = {},
): Promise<Imported> {
  const folder = makeFolder();
  prepareFolder(folder, true);
  const result = await runImport({
    id: 'trial',
    source,
    format,
    choices: { ...noChoices, ...choices },
    root: '',
    folder,
    validateOnly: false,
    tasks: tasksWith(native),
    progress: () => undefined,
    signal: never,
  });
  const place = join(folder, 'trial');
  const story: ImportStory = JSON.parse(readFileSync(join(place, 'import.json'), 'utf8'));
  // Formats of several types have tests of their own.
  const manifest = result.manifest as DatasetManifest;
  const numbers = (name: string) => numbersOf(join(place, name));
  return { ...result, manifest, story, folder: place, numbers };
}

/** The problems of an import that must fail, and that it left nothing behind. */
export async function problemsOf(
  format: ImportFormat,
  source: string,
  featureDtype: FeatureDtype | null = null,
  { root = '', native = trustingValidator(), ...choices }: Asked = {},
): Promise<readonly Problem[]> {
  const folder = makeFolder();
  const signal = never;
  const tasks = tasksWith(native);
  const progress = () => undefined;
  try {
    await runImport({
      ...{ id: 'trial', source, format, folder, tasks, progress, signal, validateOnly: false },
      root,
      choices: { ...noChoices, featureDtype, ...choices },
    });
  } catch (error) {
    const left = readdirSync(folder);
    if (left.length > 0) throw new Error(`the import left ${left.join(', ')}`);
    if (error instanceof ImportFailure) return error.problems;
    throw error;
  }
  throw new Error('the import succeeded');
}

/** One line for each problem. */
export async function linesOf(
  format: ImportFormat,
  source: string,
  featureDtype: FeatureDtype | null = null,
  asked: Asked = {},
): Promise<string[]> {
  const problems = await problemsOf(format, source, featureDtype, asked);
  return problems.map((found) => `${found.path}: ${found.description}`);
}

/** Elements of a file that one of our writers wrote. */
export function numbersOf(path: string): number[] {
  const bytes = readFileSync(path);
  const start = 10 + bytes.readUInt16LE(8);
  const type = /'descr': '(...)'/.exec(bytes.toString('latin1', 10, start))?.[1];
  const data = bytes.buffer.slice(bytes.byteOffset + start, bytes.byteOffset + bytes.length);
  if (type === '<i4') return [...new Int32Array(data)];
  if (type === '|u1') return [...new Uint8Array(data)];
  if (type === '<u4') return [...new Uint32Array(data)];
  if (type === '<f4') return [...new Float32Array(data)];
  if (type === '<f2') return [...new Uint16Array(data)];
  return [...new BigInt64Array(data)].map(Number);
}

/** A Parquet file of two rows a group. */
export function parquet(
  columns: Readonly<Record<string, readonly unknown[]>>,
  codec: 'SNAPPY' | 'ZSTD' = 'SNAPPY',
): Uint8Array {
  const columnData = Object.entries(columns).map(([name, data]) => ({ name, data: [...data] }));
  const packed = codec === 'SNAPPY' ? {} : { codec, compressors: packers };
  return new Uint8Array(parquetWriteBuffer({ columnData, rowGroupSize: 2, ...packed }));
}

/** What nothing here can write, with one block of bytes as they are. */
const packers = {
  ZSTD: (bytes: Uint8Array) => {
    const head = Buffer.alloc(12);
    head.set([0x28, 0xb5, 0x2f, 0xfd, 0xa0]);
    head.writeUInt32LE(bytes.length, 5);
    head.writeUIntLE(bytes.length * 8 + 1, 9, 3);
    return Buffer.concat([head, bytes]);
  },
};
