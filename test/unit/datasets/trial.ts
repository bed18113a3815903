import { join } from 'node:path';
import { systemClock } from '../../../src/base/clock.ts';
import { GnndError } from '../../../src/base/errors.ts';
import type { DataTasks } from '../../../src/datasets/data-tasks.ts';
import {
  createDatasets,
  type Datasets,
  type ImportRequest,
} from '../../../src/datasets/datasets.ts';
import type { NativeValidator } from '../../../src/datasets/read-source.ts';
import type { OperationRecord } from '../../../src/records/dataset-record.ts';
import { createMemoryLog } from '../../support/api-fakes.ts';
import { MemoryStore } from './memory-store.ts';
import { makeFolder, never, noChoices, tasksWith, trustingValidator } from './workbench.ts';

/** A dataset service on a temporary folder, and what its tests do with it. */

export interface Trial {
  /** Lines that were logged. */
  readonly lines: ReturnType<typeof createMemoryLog>['lines'];
  readonly datasets: Datasets;
  readonly store: MemoryStore;
  readonly folder: string;
}

interface TrialOptions {
  readonly store?: MemoryStore;
  readonly folder?: string;
  readonly native?: Partial<NativeValidator>;
  readonly sourcesDir?: string;
  readonly isAlone?: boolean;
}

export function trial(options: TrialOptions = {}): Trial {
  const store = options.store ?? new MemoryStore();
  const folder = options.folder ?? join(makeFolder(), 'datasets');
  const { log, lines } = createMemoryLog();
  const datasets = createDatasets({
    folder,
    isAlone: options.isAlone ?? true,
    sourcesDir: options.sourcesDir ?? '',
    store: store.face,
    tasks: killable(tasksWith({ ...trustingValidator(), ...options.native })),
    log,
    clock: systemClock,
  });
  return { datasets, store, folder, lines };
}

/** Tasks that end when they are told to, whatever they wait for, as a killed process does. */
function killable(tasks: DataTasks): DataTasks {
  const aborted = (signal: AbortSignal) =>
    new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason));
    });
  return {
    importSource: (source, watch) =>
      Promise.race([tasks.importSource(source, watch), aborted(watch.signal)]),
    convert: tasks.convert,
    check: tasks.check,
  };
}

export function request(
  id: string,
  source: string,
  more: Partial<ImportRequest> = {},
): ImportRequest {
  const asked = {
    ...{ ...noChoices, format: null },
    ...{ validateOnly: false, requestId: null },
  };
  return { id, source, ...asked, ...more };
}

export const ended = (datasets: Datasets, operation: OperationRecord) =>
  datasets.waitOperation(operation.id, 60_000, never);

export function errorOf(call: () => unknown): GnndError {
  try {
    call();
  } catch (error) {
    if (error instanceof GnndError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

export function errorOfCall(call: Promise<unknown>): Promise<GnndError> {
  return call.then(
    () => {
      throw new Error('nothing was thrown');
    },
    (error: unknown) => {
      if (error instanceof GnndError) return error;
      throw error;
    },
  );
}

/** A validator that waits until it is told to go on. */
export function gatedValidator() {
  const { promise: gate, open } = gateOf();
  const { promise: reached, open: reach } = gateOf();
  const native = {
    datasetValidate: async () => {
      reach();
      await gate;
      return { problems: [], problemCount: 0 };
    },
  };
  return { native, reached, open };
}

/** The check of graphs of one type. */
type PlainValidator = Pick<NativeValidator, 'datasetValidate'>;

/** A validator that asks `stuck` about the dataset `id` only. */
export function stuckOnly(stuck: PlainValidator, id: string): PlainValidator {
  return {
    datasetValidate: (folder, counts, checked) =>
      folder.includes(`.tmp-${id}-`)
        ? stuck.datasetValidate(folder, counts, checked)
        : trustingValidator().datasetValidate(folder, counts, checked),
  };
}

export const settled = () => new Promise((resolve) => setImmediate(resolve));

function gateOf(): { readonly promise: Promise<void>; readonly open: () => void } {
  let open: () => void = () => undefined;
  const promise = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { promise, open: () => open() };
}
