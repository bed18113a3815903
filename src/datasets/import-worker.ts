import { move, transferableSymbol, valueSymbol } from 'piscina';
import { buffersOf, importTasks } from './import-tasks.ts';

/** Entry point of a thread of the import pool; piscina calls these by name. */

export const parseDependents = moving(importTasks.parseDependents);
export const buildNpmGraph = moving(importTasks.buildNpmGraph);
export const npmFeatures = moving(importTasks.npmFeatures);
export const storedGraph = moving(importTasks.storedGraph);
export const inNeighbours = moving(importTasks.inNeighbours);

/** `task` with a result whose arrays are moved to the caller's thread instead of copied. */
function moving<T, R extends object>(
  task: (argument: T) => Promise<R>,
): (argument: T) => Promise<unknown> {
  return async (argument) => {
    const result = await task(argument);
    return move({ [transferableSymbol]: buffersOf(result), [valueSymbol]: result });
  };
}
