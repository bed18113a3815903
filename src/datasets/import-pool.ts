import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Piscina } from 'piscina';
import { buffersOf, type ImportTasks } from './import-tasks.ts';

/** Where an import computes. */
export interface ImportPool extends ImportTasks {
  /** How many tasks are worth having under way. */
  readonly width: number;
  /** Ends the threads, whatever they do. Idempotent. */
  close(): Promise<void>;
}

/**
 * A pool of one thread per core. Threads start with the first task; the arrays of arguments and
 * results are moved, so a caller cannot use again what it passed.
 */
export function createImportPool(): ImportPool {
  const threads = availableParallelism();
  const piscina = new Piscina({
    filename: workerPath(import.meta.url),
    minThreads: 0,
    maxThreads: threads,
    idleTimeout: 10_000,
  });
  const run = async <R>(name: keyof ImportTasks, task: unknown): Promise<R> =>
    (await piscina.run(task, { name, transferList: buffersOf(task) })) as R;
  return {
    width: 2 * threads,
    parseDependents: (files) => run('parseDependents', files),
    buildNpmGraph: (parts) => run('buildNpmGraph', parts),
    npmFeatures: (rows) => run('npmFeatures', rows),
    storedGraph: (edges) => run('storedGraph', edges),
    inNeighbours: (edges) => run('inNeighbours', edges),
    close: () => piscina.destroy(),
  };
}

/**
 * Threads load plain JavaScript: Node 20 does not read TypeScript. Run from the sources (under the
 * test runner), the built worker is used.
 */
function workerPath(moduleUrl: string): string {
  const built = extname(fileURLToPath(moduleUrl)) === '.js';
  const relative = built ? './import-worker.js' : '../../dist/datasets/import-worker.js';
  const path = fileURLToPath(new URL(relative, moduleUrl));
  if (!existsSync(path)) throw new Error(`${path} is missing; run: npm run build`);
  return path;
}

/**
 * Runs `task` on every item with at most `width` under way, and yields the results in the order of
 * the items. The first failure ends it.
 */
export async function* mapOrdered<T, R>(
  items: AsyncIterable<T> | Iterable<T>,
  width: number,
  task: (item: T) => Promise<R>,
): AsyncGenerator<R> {
  const underWay: Promise<R>[] = [];
  for await (const item of items) {
    const result = task(item);
    // A failure is thrown when its turn comes; until then it must not count as unhandled.
    result.catch(() => undefined);
    underWay.push(result);
    if (underWay.length < width) continue;
    const head = underWay.shift();
    if (head !== undefined) yield await head;
  }
  for (const result of underWay) yield await result;
}
