import { expect, test, vi } from 'vitest';
import { firstOf, firstRepeated } from '../../../src/datasets/feature-names.ts';
import { folderOf, linesOf, tryImport } from './workbench.ts';

/** Tables of very many columns: what is done for each column does not look at all the others. */

const edges = 'source,target\na,b\n';
const header = (columns: number) => Array.from({ length: columns }, (_, at) => `x${at}`).join(',');
const nodesOf = (columns: number, rows = ['a,0,train', 'b,1,val']) =>
  [`id,label,split,${header(columns)}`, ...rows.map((row) => row + ',0'.repeat(columns)), ''].join(
    '\n',
  );

/** Elements that searches in lists read at most while `act` runs. */
async function searched(act: () => Promise<unknown>): Promise<number> {
  let elements = 0;
  const names = ['indexOf', 'includes', 'findIndex', 'lastIndexOf'] as const;
  const spies = names.map((name) => {
    const search = Array.prototype[name] as (...args: unknown[]) => unknown;
    return vi.spyOn(Array.prototype, name).mockImplementation(function (
      this: unknown[],
      ...args: unknown[]
    ) {
      elements += this.length;
      return search.apply(this, args) as never;
    });
  });
  try {
    await act();
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
  return elements;
}

test('an import searches no list of columns once a column', async () => {
  const columns = 4096;
  const folder = folderOf({ 'nodes.csv': nodesOf(columns), 'edges.csv': edges });
  const once = async () => {
    const { manifest } = await tryImport('CSV', folder, { ignoredColumns: ['x1', 'x2'] });
    expect(manifest.num_features).toBe(columns - 2);
  };
  // Some lists of a few names are looked through for every column.
  expect(await searched(once)).toBeLessThan(64 * columns);
  const pairs = async () =>
    header(columns)
      .split(',')
      .filter((name, _, all) => all.includes(name));
  expect(await searched(pairs)).toBeGreaterThan(64 * columns);
});

test('the first of two equal names is found in one pass', () => {
  let reads = 0;
  const names = new Proxy(header(2000).split(','), {
    get(target, key, receiver) {
      reads += typeof key === 'string' && /^\d+$/.test(key) ? 1 : 0;
      return Reflect.get(target, key, receiver);
    },
  });
  expect(firstRepeated(names)).toBeUndefined();
  expect(reads).toBe(2000);
  expect(firstRepeated(['a', 'b', 'c', 'b', 'a'])).toBe('b');
});

test('a message names some columns, and how many more there are', async () => {
  const nodes = nodesOf(5000).replace('id,', 'number,');
  const [line = ''] = await linesOf('CSV', folderOf({ 'nodes.csv': nodes, 'edges.csv': edges }));
  expect(line).toMatch(/its header is 'number', 'label', .*'x16' and 4,983 more/);
  expect(firstOf(['a', 'b', 'c'], 2)).toBe('a, b and 1 more');
  expect(firstOf(['a', 'b'], 2)).toBe('a, b');
});
