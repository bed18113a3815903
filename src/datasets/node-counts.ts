import type { Problem } from '../records/dataset-record.ts';
import { formatCount } from './problems.ts';

/** An array with a row for each node, or (indptr) one row more. */
export interface CountedArray {
  readonly path: string;
  readonly rows: number;
  readonly isIndptr: boolean;
}

/**
 * What arrays say of the number of nodes: that which most of them agree on is right, and each of
 * the others is one problem. Where no number has more arrays than any other, all of it is one.
 */
export function nodeCountProblems(arrays: readonly CountedArray[]): readonly Problem[] {
  const byCount = new Map<number, CountedArray[]>();
  for (const array of arrays) {
    const nodes = array.isIndptr ? array.rows - 1 : array.rows;
    byCount.set(nodes, [...(byCount.get(nodes) ?? []), array]);
  }
  const groups = [...byCount].sort(([, a], [, b]) => b.length - a.length);
  const [first, second, ...others] = groups;
  if (first === undefined || second === undefined) return [];
  const [nodes, agreeing] = first;
  if (second[1].length === agreeing.length) {
    const [one, ...rest] = groups.flatMap(([, group]) => group.slice(0, 1));
    const others = rest.map(({ path, rows }) => `${path} ${formatCount(rows)}`).join(', ');
    const description = `has ${formatCount(one?.rows ?? 0)} rows and ${others}: which is right?`;
    return [{ path: one?.path ?? '', description: `${description} Expected one a node` }];
  }
  const because = `as ${namesOf(agreeing)} ${agreeing.length === 1 ? 'has' : 'have'} it`;
  return [second, ...others].flatMap(([, group]) =>
    group.map(({ path, rows, isIndptr }) => {
      const wanted = formatCount(isIndptr ? nodes + 1 : nodes);
      const kind = isIndptr ? ' (one more than nodes)' : '';
      const description = `has ${formatCount(rows)} rows, expected ${wanted}${kind}, ${because}`;
      return { path, description };
    }),
  );
}

const namesShown = 3;

function namesOf(arrays: readonly CountedArray[]): string {
  const names = arrays.map(({ path }) => path);
  const shown = names.slice(0, namesShown);
  const others = names.length - shown.length;
  if (others > 0) return `${shown.join(', ')} and ${others} more`;
  return shown.length > 1 ? `${shown.slice(0, -1).join(', ')} and ${shown.at(-1)}` : shown.join('');
}
