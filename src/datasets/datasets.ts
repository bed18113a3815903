import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { type Clock, sleep } from '../base/clock.ts';
import { type ErrorReason, GnndError, messageOf } from '../base/errors.ts';
import { createLine } from '../base/line.ts';
import type { Log } from '../base/log.ts';
import type {
  DatasetRecord,
  ImportFormat,
  OperationFailure,
  OperationRecord,
} from '../records/dataset-record.ts';
import { idPattern } from '../spec/limits.ts';
import type {
  DatasetStore,
  OperationEnd,
  OperationStore,
  RequestKey,
  Store,
} from '../store/store.ts';
import { findDatasets } from './adopt.ts';
import type { DataTasks, TaskWatch } from './data-tasks.ts';
import {
  type DeleteDataset,
  type DeletionStore,
  deleteDataset,
  presenceChange,
  removeFiles,
  undoUnstored,
} from './delete-dataset.ts';
import { createDetector, type DetectFormat, detectBelow } from './detect-format.ts';
import { checkRequest, choicesOf, type ImportRequest, requestKeys } from './import-request.ts';
import { ImportFailure } from './problems.ts';
import { noCounts, readyChange } from './record-counts.ts';
import { prepareFolder, runImport } from './run-import.ts';

export type { ImportRequest } from './import-request.ts';

/** What the user trains on: imported once, immutable once READY. */
export interface Datasets {
  /**
   * Starts an import, after those that were asked for before; few run at a time. A FAILED dataset
   * may be imported again under its id. Rejects with SPEC_INVALID (all violations, paths
   * `dataset_id` and `source`), DATASET_EXISTS, REQUEST_ID_REUSED, DAEMON_STOPPING.
   */
  import(request: ImportRequest): Promise<OperationRecord>;
  /** Throws DATASET_NOT_FOUND. */
  get(id: string): DatasetRecord;
  /** By id. `nextId` is the `afterId` of the next page, null on the last one. */
  list(query: { readonly limit: number; readonly afterId: string | null }): DatasetPage;
  /** Starts a full check of every file. Throws DATASET_NOT_FOUND, DATASET_NOT_READY. */
  validate(id: string): OperationRecord;
  /**
   * Frees the id and answers how many bytes its files have, which go afterwards. Throws
   * DATASET_NOT_FOUND, DATASET_IN_USE, REQUEST_ID_REUSED.
   */
  delete(request: DeleteDataset): number;
  /** Starts other work on a READY dataset, which stays. Throws as `validate`, REQUEST_ID_REUSED. */
  start(work: DatasetWork): OperationRecord;
  /** Throws OPERATION_NOT_FOUND. */
  operation(id: string): OperationRecord;
  /** Where the operation is once it is done or `timeoutMs` passed. Throws OPERATION_NOT_FOUND. */
  waitOperation(id: string, timeoutMs: number, signal: AbortSignal): Promise<OperationRecord>;
  /**
   * Ends an operation, whatever it waits for: it fails with OPERATION_CANCELLED. One that is done
   * stays as it is. Throws OPERATION_NOT_FOUND.
   */
  cancel(id: string): Promise<OperationRecord>;
  /** Ends what runs or waits (they fail with DAEMON_STOPPING); idempotent. */
  close(): Promise<void>;
}

export interface DatasetWork extends Pick<OperationRecord, 'kind' | 'target' | 'resource'> {
  /** Key of the request, if it has an id. */
  readonly key: RequestKey | null;
  readonly run: (dataset: DatasetRecord, watch: TaskWatch) => Promise<void>;
}

export interface DatasetPage {
  readonly datasets: readonly DatasetRecord[];
  readonly nextId: string | null;
}

export interface DatasetsOptions {
  /** Where datasets live; made when missing. */
  readonly folder: string;
  /**
   * Whether no other daemon works in the folder: then what no record knows was left behind, or is
   * in the way. Else it may be another's.
   */
  readonly isAlone: boolean;
  readonly store: DatasetStore & OperationStore & DeletionStore & Pick<Store, 'atomically'>;
  /** Sources lie below it; empty: anywhere. */
  readonly sourcesDir: string;
  /** Tasks that read data in other processes: this one never does. */
  readonly tasks: DataTasks;
  readonly log: Log;
  readonly clock: Clock;
}

/** An operation that waits for its turn. */
interface Work {
  readonly operation: OperationRecord;
  /** Whether a failure of the operation is also that of the dataset. */
  readonly makesDataset: boolean;
  /** Does the work; the function that it returns is called within the final transaction. */
  readonly run: (watch: TaskWatch) => Promise<() => OperationEnd>;
}

/** An operation that waits or runs. */
interface UnderWay {
  readonly abort: AbortController;
  /** Resolves when it is done. */
  readonly end: Promise<void>;
}

/** One that is stuck does not keep the next one waiting; more would only share the disk. */
const operationsAtOnce = 2;
const cancelled = new GnndError('OPERATION_CANCELLED', 'it was cancelled');
const interrupted = new GnndError(
  'DAEMON_STOPPING',
  'the daemon stopped before it was done; start it again',
);
/** Opens the datasets of a daemon; what its predecessor left unfinished becomes FAILED. */
export function createDatasets(options: DatasetsOptions): Datasets {
  const service = new DatasetService(options);
  service.recover();
  return service;
}

class DatasetService implements Datasets {
  readonly #options: DatasetsOptions;
  readonly #underWay = new Map<string, UnderWay>();
  readonly #line = createLine(operationsAtOnce);
  readonly #detect: DetectFormat;
  #isStopping = false;
  /** Files of deleted datasets that are being removed. */
  #removals: Promise<void> = Promise.resolve();

  constructor(options: DatasetsOptions) {
    this.#options = options;
    this.#detect = createDetector(detectBelow(options.sourcesDir));
  }

  recover(): void {
    const { folder, store, log, isAlone } = this.#options;
    const swept = prepareFolder(folder, isAlone);
    const asides = isAlone ? undoUnstored(folder, store, log) : [];
    for (const aside of asides) this.#removeFiles(aside);
    for (const operation of store.unfinishedOperations()) {
      store.updateOperation(operation.id, {
        end: { error: failureOf(interrupted), validation: null },
      });
      log.warn('dataset.operation_interrupted', { id: operation.id, target: operation.target });
    }
    const pageSize = 500;
    let afterId: string | null = null;
    do {
      const { datasets, nextId }: DatasetPage = this.list({ limit: pageSize, afterId });
      for (const { id } of datasets.filter(({ state }) => state === 'IMPORTING')) {
        store.updateDataset(id, { state: 'FAILED', message: interrupted.message });
        if (isAlone) rmSync(join(folder, id), { recursive: true, force: true });
      }
      for (const dataset of datasets) this.#lookFor(dataset);
      afterId = nextId;
    } while (afterId !== null);
    if (swept.length > 0) log.warn('dataset.folders_swept', { folders: swept });
    this.#adopt();
  }

  /** Takes up folders of an earlier state directory: importing them again would find them there. */
  #adopt(): void {
    const { folder, store, log } = this.#options;
    for (const { id, path, written } of findDatasets(
      folder,
      (id) => store.getDataset(id) !== null,
    )) {
      if (!idPattern.test(id)) continue;
      store.insertDataset({ id, path, ...noCounts, ...readyChange(written) });
      log.info('dataset.adopted', { id, path });
    }
  }

  #lookFor(dataset: DatasetRecord): void {
    const change = presenceChange(dataset);
    if (change === null) return;
    this.#options.store.updateDataset(dataset.id, change);
    this.#options.log.warn('dataset.presence_changed', { id: dataset.id, ...change });
  }

  #removeFiles(aside: string): void {
    const removal = removeFiles(aside, this.#options.log);
    this.#removals = Promise.all([this.#removals, removal]).then(() => {});
  }

  delete(request: DeleteDataset): number {
    const deleted = deleteDataset(this.#options.store, request);
    if (deleted === null) return 0;
    const { dataset, aside } = deleted;
    if (aside !== null) this.#removeFiles(aside);
    this.#options.log.info('dataset.deleted', { id: dataset.id, path: dataset.path });
    return aside === null ? 0 : dataset.bytes;
  }

  async import(request: ImportRequest): Promise<OperationRecord> {
    const { store } = this.#options;
    const [key] = requestKeys(request);
    const earlier = this.#replayOf(key);
    if (earlier !== null) return earlier;
    this.#refuseWhenStopping();
    const format = await checkRequest(request, this.#detect);
    // Others may have come while the source was looked at.
    const repeated = this.#replayOf(key);
    if (repeated !== null) return repeated;
    this.#refuseWhenStopping();
    const { id, validateOnly } = request;
    const existing = store.getDataset(id);
    if (existing !== null && existing.state !== 'FAILED') {
      const resource = `datasets/${id}`;
      throw new GnndError(
        'DATASET_EXISTS',
        `there is a dataset ${id} already; name another, or delete that one: gnnctl dataset delete ${id}`,
        { resource },
      );
    }
    const operation = store.atomically(() => {
      if (!validateOnly) this.#insertImporting(id, existing !== null);
      return store.insertOperation({ id: randomUUID(), kind: 'ImportDataset', target: id }, key);
    });
    this.#enqueue({
      operation,
      makesDataset: !validateOnly,
      run: (watch) => this.#import(request, format, watch),
    });
    return operation;
  }

  get(id: string): DatasetRecord {
    const dataset = this.#options.store.getDataset(id);
    if (dataset !== null) return dataset;
    const resource = `datasets/${id}`;
    throw new GnndError('DATASET_NOT_FOUND', `there is no dataset ${id}`, { resource });
  }

  list(query: { readonly limit: number; readonly afterId: string | null }): DatasetPage {
    const { limit, afterId } = query;
    const found = this.#options.store.listDatasets({ limit: limit + 1, afterId });
    const datasets = found.slice(0, limit);
    return { datasets, nextId: found.length > limit ? (datasets.at(-1)?.id ?? null) : null };
  }

  start({ kind, target, resource, key, run }: DatasetWork): OperationRecord {
    const earlier = this.#replayOf(key ?? undefined);
    if (earlier !== null) return earlier;
    const dataset = this.#ready(target);
    const asked = { id: randomUUID(), kind, target, resource };
    const operation = this.#options.store.insertOperation(asked, key ?? undefined);
    const work = async (watch: TaskWatch) => {
      await run(dataset, watch);
      return () => ({ error: null, validation: null });
    };
    this.#enqueue({ operation, makesDataset: false, run: work });
    return operation;
  }

  #ready(id: string): DatasetRecord {
    this.#refuseWhenStopping();
    const dataset = this.get(id);
    if (dataset.state === 'READY') return dataset;
    const message = `dataset '${id}' is ${dataset.state}, expected READY`;
    throw new GnndError('DATASET_NOT_READY', message, { resource: `datasets/${id}` });
  }

  validate(id: string): OperationRecord {
    const { store, tasks } = this.#options;
    const dataset = this.#ready(id);
    const kind = 'ValidateDataset';
    const operation = store.insertOperation({ id: randomUUID(), kind, target: id });
    const { path, digest } = dataset;
    const run = async (watch: TaskWatch) => {
      const validation = await tasks.check({ path, digest }, watch);
      return () => ({ error: null, validation });
    };
    this.#enqueue({ operation, makesDataset: false, run });
    return operation;
  }

  operation(id: string): OperationRecord {
    const operation = this.#options.store.getOperation(id);
    if (operation !== null) return operation;
    const resource = `operations/${id}`;
    throw new GnndError('OPERATION_NOT_FOUND', `there is no operation '${id}'`, { resource });
  }

  async waitOperation(
    id: string,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<OperationRecord> {
    const end = this.#underWay.get(id)?.end;
    if (this.operation(id).done || end === undefined) return this.operation(id);
    const isOver = new AbortController();
    const timeout = sleep(timeoutMs, AbortSignal.any([signal, isOver.signal]));
    try {
      await Promise.race([end, timeout]);
    } finally {
      isOver.abort();
      timeout.catch(() => undefined);
    }
    return this.operation(id);
  }

  async cancel(id: string): Promise<OperationRecord> {
    if (this.operation(id).done) return this.operation(id);
    const underWay = this.#underWay.get(id);
    underWay?.abort.abort(cancelled);
    await underWay?.end;
    return this.operation(id);
  }

  async close(): Promise<void> {
    this.#isStopping = true;
    const underWay = [...this.#underWay.values()];
    for (const { abort } of underWay) abort.abort(interrupted);
    await Promise.all(underWay.map(({ end }) => end));
    await this.#removals;
  }

  #refuseWhenStopping(): void {
    if (!this.#isStopping) return;
    throw new GnndError('DAEMON_STOPPING', 'the daemon is stopping and takes no new work');
  }

  #replayOf(key: RequestKey | undefined): OperationRecord | null {
    const first = key === undefined ? null : this.#options.store.replayOf(key);
    return first === null ? null : this.operation(first.resource.replace(/^operations\//, ''));
  }

  #insertImporting(id: string, replace: boolean): void {
    const { store, folder } = this.#options;
    const fresh = { state: 'IMPORTING', message: '', path: join(folder, id), ...noCounts } as const;
    if (replace) store.updateDataset(id, fresh);
    else store.insertDataset({ id, ...fresh });
  }

  #enqueue(work: Work): void {
    const { id } = work.operation;
    const abort = new AbortController();
    const end = this.#run(work, abort.signal).finally(() => this.#underWay.delete(id));
    this.#underWay.set(id, { abort, end });
  }

  async #run(work: Work, signal: AbortSignal): Promise<void> {
    const { store, log, clock } = this.#options;
    const { id, kind, target } = work.operation;
    const startMs = clock.monotonicMs();
    const fields = { id, kind, target };
    const seconds = () => (clock.monotonicMs() - startMs) / 1000;
    let leave = () => {};
    try {
      leave = await this.#line.enter(signal);
      log.info('dataset.operation_started', fields);
      const progress = (share: number, message: string) =>
        void store.updateOperation(id, { progress: share, message });
      const end = await work.run({ progress, signal });
      store.atomically(() => store.updateOperation(id, { end: end() }));
      log.info('dataset.operation_done', { ...fields, seconds: seconds() });
    } catch (error) {
      const failure = failureOf(signal.aborted ? signal.reason : error);
      const level = isOurs(error, failure) ? 'error' : 'warn';
      log[level]('dataset.operation_failed', { ...fields, seconds: seconds(), ...failure });
      this.#fail(work, failure);
    } finally {
      leave();
    }
  }

  async #import(
    request: ImportRequest,
    format: ImportFormat,
    watch: TaskWatch,
  ): Promise<() => OperationEnd> {
    const { folder, tasks, store, sourcesDir: root } = this.#options;
    const { id, source, validateOnly } = request;
    const asked = { id, source, format, root, choices: choicesOf(request), validateOnly };
    const written = await runImport({ ...asked, folder, ...watch, tasks });
    return () => {
      if (!validateOnly) store.updateDataset(id, readyChange(written));
      return { error: null, validation: null };
    };
  }

  /** Must not throw: nobody awaits it. What cannot be stored now is repaired at the next start. */
  #fail(work: Work, failure: OperationFailure): void {
    const { store, log } = this.#options;
    const { id, target } = work.operation;
    try {
      store.atomically(() => {
        if (work.makesDataset) {
          store.updateDataset(target, { state: 'FAILED', message: failure.message });
        }
        store.updateOperation(id, { end: { error: failure, validation: null } });
      });
    } catch (error) {
      log.error('dataset.failure_not_stored', { id, target, error: messageOf(error) });
    }
  }
}

/** A bug, a full disk or damaged files of ours; a source that is no good is its owner's. */
function isOurs(error: unknown, { reason }: OperationFailure): boolean {
  if (error instanceof ImportFailure) return false;
  return ['INTERNAL', 'STATE_DISK_FULL', 'STORE_UNAVAILABLE', 'DATASET_CORRUPT'].includes(reason);
}

function failureOf(error: unknown): OperationFailure {
  const message = messageOf(error);
  if (error instanceof ImportFailure) {
    return { reason: 'DATASET_CORRUPT', message, problems: error.problems };
  }
  const problems = [] as const;
  if (error instanceof GnndError) return { reason: error.reason, message, problems };
  const code = error instanceof Error && 'code' in error ? error.code : null;
  const reason: ErrorReason =
    code === 'ENOSPC' || code === 'EDQUOT' ? 'STATE_DISK_FULL' : 'INTERNAL';
  return { reason, message, problems };
}
