import { createHash } from 'node:crypto';
import { existsSync, readFileSync, renameSync, statSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { makeFolder, writeFileAtomic } from '../base/atomic-file.ts';
import type { Clock } from '../base/clock.ts';
import { GnndError } from '../base/errors.ts';
import { filesBelow, markUsed, type SizedFile } from '../base/files.ts';
import { canonicalJson, canonicalSha256 } from '../base/ids.ts';
import { createLine, type Line } from '../base/line.ts';
import { FileWitness } from '../files/file-witness.ts';
import type {
  CoreAddon,
  DatasetCounts,
  DeviceOptions,
  PropagateReport,
  PropagationPlan,
} from '../native/contract.ts';
import { devicePluginPath } from '../native/load.ts';
import type {
  PropagationManifest,
  PropagationRecord,
  PropagationSource,
  PropagationSpec,
} from '../records/propagation-record.ts';
import { runTask, TaskError } from '../supervisor/supervisor.ts';
import type { DataWitness } from './data-witness.ts';
import { loadFeatures } from './load-dataset.ts';
import type {
  PropagationDevice,
  PropagationEnd,
  PropagationMaker,
  PropagationRequest,
  PropagationTask,
  PropagationWatch,
} from './propagation-types.ts';
import { type Moments, readMoments } from './standardization.ts';

/**
 * Propagated features as folders of files, one for each (dataset, operators, hops, type, ...):
 * jobs and calls that mean the same share one. A Propagator, which is an executor of its own, makes
 * the files; `propagation.json` comes last, and without it nobody reads them.
 */
export interface PropagationsOptions {
  /** A folder for each propagation; nobody else writes there. */
  readonly folder: string;
  readonly native: CoreAddon;
  readonly clock: Clock;
  readonly witness: DataWitness;
  /** Called when a Propagator ended. */
  readonly ended: (end: PropagationEnd) => void;
}

const idLength = 32;
const idPattern = /^[0-9a-f]{32}$/;
const manifestName = 'propagation.json';
/** File that says what is being made, and for whom; it is written first. */
const sourceName = 'source.json';
/** Suffix that sweepTemporary removes at the next start if a daemon dies during a deletion. */
const asideSuffix = '.tmp-deleted';

export class Propagations implements PropagationMaker {
  readonly #options: PropagationsOptions;
  /** One run at a time makes a propagation; whoever wants the same waits for it. */
  readonly #lines = new Map<string, Line>();
  readonly #users = new Map<string, number>();
  readonly #witness = new FileWitness();
  /** Folders that were moved aside so far, in their names. */
  #asides = 0;
  /** Shares done of those that run, by id. */
  readonly #running = new Map<string, number>();

  constructor(options: PropagationsOptions) {
    this.#options = options;
    makeFolder(options.folder);
  }

  plan(request: PropagationRequest): PropagationRecord {
    const id = idOf(request.source);
    const path = join(this.#options.folder, id);
    const { memoryBytes, dataset, source } = request;
    const sizes = this.#sizes(dataset.counts, source, memoryBytes);
    return { ...recordOf(id, path, source, sizes), ...completed(path) };
  }

  #sizes(counts: DatasetCounts, source: PropagationSource, memoryBytes: number) {
    try {
      return this.#options.native.propagationSizes(counts, planOf(source), memoryBytes);
    } catch (error) {
      const description = error instanceof Error ? error.message : String(error);
      const violations = [{ path: 'memory_bytes', description }];
      throw new GnndError('SPEC_INVALID', `memory_bytes: ${description}`, { violations });
    }
  }

  async make(
    request: PropagationRequest,
    task: PropagationTask,
    watch: PropagationWatch,
  ): Promise<PropagationRecord> {
    const planned = this.plan(request);
    const { id, path } = planned;
    const release = this.hold(id);
    const line = this.#lines.get(id) ?? createLine();
    this.#lines.set(id, line);
    try {
      const leave = await line.enter(task.signal);
      try {
        if (completed(path) === null) await this.#measured(request, path, task, watch);
      } finally {
        leave();
      }
      return { ...planned, ...completed(path) };
    } catch (error) {
      task.signal.throwIfAborted();
      throw failureOf(error);
    } finally {
      release();
    }
  }

  /** Share done of each that is being made. */
  shares(): readonly number[] {
    return [...this.#running.values()];
  }

  async #measured(
    request: PropagationRequest,
    path: string,
    task: PropagationTask,
    watch: PropagationWatch,
  ): Promise<void> {
    const { clock, ended } = this.#options;
    const beginMs = clock.monotonicMs();
    const seconds = () => (clock.monotonicMs() - beginMs) / 1000;
    this.#running.set(path, 0);
    const watched: PropagationWatch = (share, message) => {
      this.#running.set(path, share);
      watch(share, message);
    };
    try {
      const report = await this.#run(request, path, task, watched);
      const bytes = report.files.reduce((sum, file) => sum + file.bytes, 0);
      const hops = this.#hopsOf(request, report.edgeColumns);
      const deviceHops = this.#hopsOf(request, report.deviceEdgeColumns);
      ended({ outcome: 'COMPLETE', seconds: seconds(), hops, deviceHops, bytes });
    } catch (error) {
      ended({ outcome: 'FAILED', seconds: seconds(), hops: 0, deviceHops: 0, bytes: 0 });
      throw error;
    } finally {
      this.#running.delete(path);
    }
  }

  /** `edgeColumns` as products of an operator and all columns. */
  #hopsOf({ source, dataset, memoryBytes }: PropagationRequest, edgeColumns: number): number {
    const { counts } = dataset;
    const { steps, blocks } = this.#sizes(counts, source, memoryBytes);
    const ofStep = counts.numEdges * counts.numFeatures;
    const stepsPerHop =
      steps / blocks / (source.propagation.hops * source.propagation.operators.length);
    return edgeColumns / Math.max(1, ofStep * stepsPerHop);
  }

  async #run(
    { source, dataset, graph, memoryBytes, derivedFolder, given }: PropagationRequest,
    path: string,
    task: PropagationTask,
    watch: PropagationWatch,
  ): Promise<PropagateReport> {
    makeFolder(path);
    const standardizedFolder = source.standardize ? derivedFolder : null;
    const { datasetDigest } = source;
    const moments = given?.features ?? null;
    const features = { dataset, datasetDigest, standardizedFolder, moments };
    const own = await loadFeatures(this.#options.witness, features, task);
    const location = { ...(graph ?? own), featuresPath: own.featuresPath };
    // Native code removes what it does not know.
    const folder = join(path, 'rows');
    makeFolder(folder);
    await writeFileAtomic(join(path, sourceName), [canonicalJson(source)]);
    const { device } = task;
    const answer = await runTask(
      {
        role: 'PROPAGATE',
        options: {
          ...{ dataset: location, plan: planOf(source) },
          ...{ folder, momentsFrom: given?.rowsFolder ?? '' },
          ...{ memoryBytes, threads: task.threads, device: nativeDevice(device) },
        },
      },
      {
        ...task,
        accelerator: device?.accelerator,
        topologyFd: null,
        onProgress: ({ share, message }) => watch(share, message),
      },
    );
    if (answer.role !== 'PROPAGATE') throw new Error(`a Propagator answered ${answer.role}`);
    const { counts } = dataset;
    const manifest: PropagationManifest = {
      ...{ format: 'gnnd-propagation', version: 1, source, rows: answer.value.rows },
      split: { train: counts.train, val: counts.val, test: counts.test },
      ...{ num_features: counts.numFeatures, num_classes: counts.numClasses },
      files: answer.value.files,
    };
    await writeFileAtomic(join(path, manifestName), [`${JSON.stringify(manifest, null, 2)}\n`]);
    await this.#witness.remember(folder, manifest.files);
    return answer.value;
  }

  async open(id: string, datasetDigest: string, task: PropagationTask): Promise<string> {
    const path = join(this.#options.folder, id);
    const { files } = openPropagation(path, datasetDigest);
    markUsed(join(path, manifestName));
    const folder = join(path, 'rows');
    const digest = async (_: string, names: readonly string[]) => {
      const options = { folder, names, elements: false };
      const answer = await runTask({ role: 'DIGEST', options }, { ...task, topologyFd: null });
      if (answer.role !== 'DIGEST') throw new Error(`a digest answered ${answer.role}`);
      return answer.value;
    };
    const wrong = await this.#witness.wrongOnes(folder, files, digest);
    if (wrong.length === 0) return folder;
    const names = wrong.map(({ path: file, expected, found }) => {
      return `${file} has SHA-256 ${found.slice(0, 12)}…, not ${expected.slice(0, 12)}… as written`;
    });
    const remedy = `remove it with gnnctl dataset delete-propagation ${id}; jobs make it again`;
    throw new GnndError('DATASET_CORRUPT', `${names.join('; ')}: ${remedy}`);
  }

  /**
   * Moments that each token's columns were standardised by, in token order; null where they were
   * not, and where the propagation is not there (any more).
   */
  async moments(source: PropagationSource, columns: number): Promise<readonly RowMoments[] | null> {
    const path = join(this.#options.folder, idOf(source));
    if (!source.propagation.standardize || completed(path) === null) return null;
    const read = async (token: string) => ({
      token,
      moments: await readMoments(join(path, 'rows', `${token}.npy`), columns),
    });
    return await Promise.all(tokensOf(source.propagation).map(read)).catch(() => null);
  }

  /** Lists all propagations by id. */
  async list(): Promise<readonly PropagationRecord[]> {
    const names = await readdir(this.#options.folder);
    return names
      .filter((name) => idPattern.test(name))
      .sort()
      .flatMap((id) => {
        const path = join(this.#options.folder, id);
        const source = readJson<PropagationSource>(join(path, sourceName));
        const unknown = { rows: 0, fileBytes: 0, peakBytes: 0, memoryBytes: 0, blockColumns: 0 };
        return source === null
          ? []
          : [{ ...recordOf(id, path, source, unknown), ...completed(path) }];
      });
  }

  /** Sizes of all propagation folders, complete or not, and when each was last used or written. */
  async sized(): Promise<readonly SizedFile[]> {
    const { folder } = this.#options;
    const ids = (await readdir(folder)).filter((name) => idPattern.test(name));
    const sizes = ids.map(async (id): Promise<SizedFile> => {
      const path = join(folder, id);
      const files = await filesBelow(path);
      const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
      return { path, bytes, atMs: Math.max(0, ...files.map(({ atMs }) => atMs)) };
    });
    return await Promise.all(sizes);
  }

  isIdle(path: string): boolean {
    const id = basename(path);
    return dirname(path) === this.#options.folder && idPattern.test(id) && !this.#users.has(id);
  }

  async removeIdle(path: string): Promise<boolean> {
    if (!this.isIdle(path) || !existsSync(path)) return false;
    this.#asides += 1;
    const aside = `${path}.${this.#asides}${asideSuffix}`;
    renameSync(path, aside);
    await rm(aside, { recursive: true, force: true });
    return true;
  }

  /**
   * Answers its bytes; null where there is none. Throws PROPAGATION_IN_USE.
   */
  async delete(id: string): Promise<number | null> {
    const path = join(this.#options.folder, id);
    if (!idPattern.test(id) || !existsSync(path)) return null;
    if (this.#users.has(id)) {
      const message = `propagation '${id}' is being made or read: wait for that or cancel it`;
      throw new GnndError('PROPAGATION_IN_USE', message, { resource: `propagations/${id}` });
    }
    const bytes = completed(path)?.bytes ?? 0;
    await this.removeIdle(path);
    return bytes;
  }

  hold(id: string): () => void {
    this.#users.set(id, (this.#users.get(id) ?? 0) + 1);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      const others = (this.#users.get(id) ?? 1) - 1;
      if (others > 0) {
        this.#users.set(id, others);
        return;
      }
      this.#users.delete(id);
      this.#lines.delete(id);
    };
  }
}

export interface RowMoments {
  /** Name of the file of rows, without its extension. */
  readonly token: string;
  readonly moments: Moments;
}

/** Files of rows, without extensions, in the order in which models take them. */
export function tokensOf({ operators, hops }: PropagationSpec): readonly string[] {
  const ofOperator = (index: number) =>
    Array.from({ length: hops }, (_, hop) => `op${index}-hop${hop + 1}`);
  return ['hop0', ...operators.flatMap((_, index) => ofOperator(index))];
}

/** The id of what `source` makes. */
export function idOf(source: PropagationSource): string {
  const { datasetDigest, propagation, standardize, allNodes, graph, moments } = source;
  const decisive = {
    ...{ version: 1, datasetDigest, standardize },
    ...(allNodes === true ? { allNodes } : {}),
    ...(graph === undefined ? {} : { graph }),
    ...(moments === undefined ? {} : { moments }),
    propagation,
  };
  return canonicalSha256(decisive).slice(0, idLength);
}

/** The folder of its rows. Throws DATASET_CHANGED where it is not that of this dataset. */
export function openPropagation(path: string, datasetDigest: string): PropagationManifest {
  const manifest = readJson<PropagationManifest>(join(path, manifestName));
  if (manifest === null || !isWhole(path, manifest)) {
    throw new GnndError('DATASET_CORRUPT', `${path} is no complete propagation: make it again`);
  }
  if (manifest.source.datasetDigest !== datasetDigest) {
    const of = manifest.source.datasetDigest.slice(0, 12);
    throw new GnndError(
      'DATASET_CHANGED',
      `${path} was propagated from a dataset with digest ${of}…, and this one has ` +
        `${datasetDigest.slice(0, 12)}…: propagate again`,
    );
  }
  return manifest;
}

/** The propagation's spec in the terms of native code. */
export function planOf({
  propagation: spec,
  allNodes = false,
}: Pick<PropagationSource, 'propagation' | 'allNodes'>): PropagationPlan {
  const { selfLoops, alpha, heatTime, terms, standardize, permute } = spec;
  return {
    operators: spec.operators.map((kind) => ({ kind, selfLoops, alpha, time: heatTime, terms })),
    hops: spec.hops,
    rowDtype: spec.rowDtype,
    randomSeed: BigInt(spec.randomSeed),
    permuted: permute,
    standardize,
    allNodes,
  };
}

interface Sizes {
  readonly rows: number;
  readonly fileBytes: number;
  readonly peakBytes: number;
  readonly memoryBytes: number;
  readonly blockColumns: number;
}

function recordOf(
  id: string,
  path: string,
  source: PropagationSource,
  { rows, fileBytes: bytes, peakBytes, memoryBytes, blockColumns }: Sizes,
): PropagationRecord {
  const sizes = { rows, bytes, peakBytes, memoryBytes, blockColumns };
  return { id, source, complete: false, ...sizes, path, digest: '' };
}

function nativeDevice(device: PropagationDevice | undefined): DeviceOptions {
  if (device === undefined) return { plugin: '', budgetBytes: 0 };
  const { accelerator, budgetBytes } = device;
  return { plugin: devicePluginPath(accelerator.kind), budgetBytes };
}

/** Manifest and digest of a complete propagation; null for all others. */
function completed(path: string) {
  const manifest = readJson<PropagationManifest>(join(path, manifestName));
  if (manifest === null || !isWhole(path, manifest)) return null;
  const digest = createHash('sha256')
    .update(readFileSync(join(path, manifestName)))
    .digest('hex');
  const bytes = manifest.files.reduce((sum, file) => sum + file.bytes, 0);
  return { complete: true, rows: manifest.rows, bytes, digest };
}

/** Whether every file has its size; digests tell whether the contents are right. */
function isWhole(path: string, { files }: PropagationManifest): boolean {
  return files.every(({ name, bytes }) => {
    const found = statSync(join(path, 'rows', name), { throwIfNoEntry: false });
    return found?.size === bytes;
  });
}

function readJson<T>(path: string): T | null {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as T;
  } catch {
    return null;
  }
}

function failureOf(error: unknown): unknown {
  if (!(error instanceof TaskError)) return error;
  if (error.code === 'DISK_FULL') {
    const message = `${error.message}; what is complete stays: make room and start it again`;
    return new GnndError('STATE_DISK_FULL', message);
  }
  if (error.code === 'DATASET_CORRUPT') return new GnndError('DATASET_CORRUPT', error.message);
  return error;
}
