import type { DataTasks } from './data-tasks.ts';
import { type NativeReader, readSource } from './read-source.ts';
import { validateDataset } from './validate-dataset.ts';

/** The tasks in this process, which they hold up: what the child runs. */
export function localTasks(native: NativeReader): Omit<DataTasks, 'convert'> {
  return {
    importSource: (source, watch) => readSource({ ...source, ...watch, native }),
    check: (dataset, watch) => validateDataset({ dataset, native, ...watch }),
  };
}
