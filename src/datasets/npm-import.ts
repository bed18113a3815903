import { basename } from 'node:path';
import { createGunzip } from 'node:zlib';
import { messageOf } from '../base/errors.ts';
import { fileChunks, isZlibError, transformed } from './byte-streams.ts';
import { arrayNames, type DatasetFacts } from './dataset-writer.ts';
import { featuresAs } from './float16.ts';
import type { ImportContext } from './import-context.ts';
import { mapOrdered } from './import-pool.ts';
import type { NameRows } from './import-tasks.ts';
import type { DependentFiles, NamedPairs, NpmGraph } from './npm-graph.ts';
import { npmFeatureColumns } from './npm-names.ts';
import { npmDepsPackage, sha256OfFile } from './npm-package.ts';
import { badFile, formatCount } from './problems.ts';
import { readTar } from './tar.ts';

/**
 * Imports the npm dependency graph: names are nodes, "depends on" is an edge. The recipe is in
 * docs/datasets.md. Reading and writing happen here, computing in the pool.
 */

const stems = ['dependents', 'devDependents'] as const;
type Stem = (typeof stems)[number];

/** Big enough that handing a batch to a thread costs nothing, small enough for smooth progress. */
const batchBytesMin = 1 << 20;
const featureRowsPerTask = 8_192;
const gunzipChunkBytes = 1 << 18;

/** Where each step ends, of 1. */
const shares = { read: 0.5, graph: 0.65, features: 1 } as const;

export async function importNpmDeps(context: ImportContext): Promise<DatasetFacts> {
  const { source, problems, progress, pool, signal } = context;
  const isPublished = (await sha256OfFile(source, signal)) === npmDepsPackage.sha256;
  const parts = await readPairs(context, isPublished);
  problems.throwIfAny();
  const pairs = parts.reduce((sum, part) => sum + part.dependents.length, 0);
  progress(shares.read, `building the graph of ${formatCount(pairs)} dependencies`);
  const graph = await pool.buildNpmGraph(parts);
  signal.throwIfAborted();
  await writeGraph(context, graph);
  await writeFeatures(context, graph);
  if (isPublished) checkArrays(context);
  return {
    numClasses: graph.classNames.length,
    numFeatures: npmFeatureColumns,
    undirected: true,
    classNames: graph.classNames,
    source: isPublished ? `npm package ${npmDepsPackage.spec}` : `npm package ${basename(source)}`,
  };
}

async function readPairs(context: ImportContext, isPublished: boolean): Promise<NamedPairs[]> {
  const { source, problems, pool } = context;
  const found = new Set<string>();
  const parts: NamedPairs[] = [];
  const readers = new FileCounter(context, isPublished);
  const path = basename(source);
  try {
    for await (const entry of readTar(gunzip(fileChunks(source)), path)) {
      const stem = stems.find((name) => entry.name === `package/${name}.tgz`);
      if (stem === undefined) continue;
      found.add(stem);
      const files = readFiles(gunzip(entry.stream()), stem, `${path}/${stem}.tgz`, readers);
      for await (const part of mapOrdered(files, pool.width, pool.parseDependents)) {
        for (const problem of part.problems) problems.add(problem.path, problem.description);
        parts.push(part);
      }
    }
  } catch (error) {
    if (!isZlibError(error)) throw error;
    throw badFile(path, `is not a readable .tgz: ${messageOf(error)}`);
  }
  for (const stem of stems) {
    if (!found.has(stem)) problems.add(path, `has no member package/${stem}.tgz`);
  }
  return parts;
}

function gunzip(packed: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  return transformed(packed, createGunzip({ chunkSize: gunzipChunkBytes }));
}

/** Counts files for progress; how many there are is known of the published package only. */
class FileCounter {
  readonly #context: ImportContext;
  readonly #isPublished: boolean;
  #done = 0;

  constructor(context: ImportContext, isPublished: boolean) {
    this.#context = context;
    this.#isPublished = isPublished;
  }

  report(stem: Stem, files: number): void {
    const { signal, progress } = this.#context;
    signal.throwIfAborted();
    const { files: counts } = npmDepsPackage;
    const all = counts.dependents + counts.devDependents;
    const before = stem === 'dependents' ? 0 : counts.dependents;
    this.#done = Math.max(this.#done, (before + files) / all);
    const ofAll = this.#isPublished ? ` of ${formatCount(counts[stem])}` : '';
    progress(
      shares.read * Math.min(this.#done, 1),
      `reading ${stem}: ${formatCount(files)}${ofAll} files`,
    );
  }
}

/** Cuts the files of an archive into batches for the pool. */
async function* readFiles(
  archive: AsyncIterable<Uint8Array>,
  stem: Stem,
  path: string,
  counter: FileCounter,
): AsyncGenerator<DependentFiles> {
  let batch = new FileBatch(path);
  let files = 0;
  for await (const entry of readTar(archive, path)) {
    if (entry.kind === 'folder') continue;
    const isFile = entry.kind === 'file' && entry.name.startsWith(`${stem}/`);
    if (!isFile || !entry.name.endsWith('.json')) {
      throw badFile(path, `has the member ${JSON.stringify(entry.name)}, expected ${stem}/*.json`);
    }
    batch.add(entry.name.slice(stem.length + 1, -'.json'.length), await entry.read());
    files += 1;
    if (batch.bytes < batchBytesMin) continue;
    counter.report(stem, files);
    yield batch.files();
    batch = new FileBatch(path);
  }
  counter.report(stem, files);
  yield batch.files();
}

class FileBatch {
  bytes = 0;
  readonly #path: string;
  readonly #keys: string[] = [];
  readonly #contents: Uint8Array[] = [];
  readonly #ends: number[] = [];

  constructor(path: string) {
    this.#path = path;
  }

  add(key: string, content: Uint8Array): void {
    this.bytes += content.length;
    this.#keys.push(key);
    this.#contents.push(content);
    this.#ends.push(this.bytes);
  }

  files(): DependentFiles {
    // Not Buffer.concat: its memory may be shared with others, and this is moved to a thread.
    const content = new Uint8Array(this.bytes);
    for (const [file, bytes] of this.#contents.entries()) {
      content.set(bytes, file === 0 ? 0 : this.#ends[file - 1]);
    }
    return {
      path: this.#path,
      keys: this.#keys,
      content,
      ends: Uint32Array.from(this.#ends),
    };
  }
}

async function writeGraph(context: ImportContext, graph: NpmGraph): Promise<void> {
  const { writer } = context;
  await writer.write('indptr', graph.indptr);
  await writer.write('indices', graph.indices);
  await writer.write('labels', graph.labels);
  await writer.write('train', graph.splits.train);
  await writer.write('val', graph.splits.val);
  await writer.write('test', graph.splits.test);
  await writer.writeNames([graph.names, Buffer.from('\n')]);
}

async function writeFeatures(context: ImportContext, graph: NpmGraph): Promise<void> {
  const { writer, progress, pool, signal } = context;
  const nodes = graph.labels.length;
  const dtype = context.featureDtype ?? 'float32';
  const features = await writer.beginFeatures(npmFeatureColumns, dtype);
  let done = 0;
  for await (const rows of mapOrdered(nameRows(graph), pool.width, pool.npmFeatures)) {
    signal.throwIfAborted();
    await features.append(featuresAs(rows, dtype));
    done += rows.length / npmFeatureColumns;
    progress(
      shares.graph + ((shares.features - shares.graph) * done) / nodes,
      `hashing features: ${formatCount(done)} of ${formatCount(nodes)} names`,
    );
  }
  await writer.end('features');
}

function* nameRows(graph: NpmGraph): Generator<NameRows> {
  const nodes = graph.labels.length;
  for (let from = 0; from < nodes; from += featureRowsPerTask) {
    const to = Math.min(from + featureRowsPerTask, nodes);
    const start = graph.nameStarts[from] ?? 0;
    const end = (graph.nameStarts[to] ?? 0) - 1;
    // A copy of the slice: posting a view copies the whole buffer behind it.
    const names = graph.names.slice(start, end);
    yield { names, numNames: to - from, classNames: graph.classNames };
  }
}

/** The published package has one right outcome, which has features in float32. */
function checkArrays(context: ImportContext): void {
  for (const name of arrayNames) {
    if (name === 'features' && context.featureDtype === 'float16') continue;
    const expected = npmDepsPackage.arrays[name];
    const found = context.writer.written(name)?.sha256;
    if (found === expected) continue;
    context.problems.add(`${name}.npy`, `came out with SHA-256 ${found}, expected ${expected}`);
  }
}
