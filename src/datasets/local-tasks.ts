import type { DataTasks } from './data-tasks.ts';
import type { ImportPool } from './import-pool.ts';
import { type NativeValidator, readSource } from './read-source.ts';
import { validateDataset } from './validate-dataset.ts';

export interface LocalTasks {
  readonly native: NativeValidator;
  /** Where imports compute; one pool an import. */
  readonly createPool: () => ImportPool;
}

/** The tasks in this process: what the child runs. */
export function localTasks({ native, createPool }: LocalTasks): DataTasks {
  return {
    async importSource(source, watch) {
      const pool = createPool();
      try {
        return await readSource({ ...source, ...watch, pool, native });
      } finally {
        await pool.close();
      }
    },
    check: (dataset, watch) => validateDataset({ dataset, native, ...watch }),
  };
}
