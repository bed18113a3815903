import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { folderOf, linesOf, tryImport } from './workbench.ts';

const nodes = [
  'id,label,split,weight kg,height',
  'ann,0,train,1.5,-2',
  '"bob, jr.",1,val,.5,1e3',
  'cyd,,,0,+4',
  'dan,2,test,7,8',
].join('\n');
const edges = [
  'source,target,weight',
  'ann,cyd,0.5',
  '"bob, jr.",ann,2',
  'cyd,ann,0.5',
  'dan,dan,1',
  '',
].join('\n');

describe('tables of nodes and edges', () => {
  test('become a symmetric graph with node ids in the order of nodes.csv', async () => {
    const imported = await tryImport('CSV', folderOf({ 'nodes.csv': nodes, 'edges.csv': edges }));
    expect(imported.manifest).toMatchObject({
      num_nodes: 4,
      num_edges: 4,
      num_features: 2,
      num_classes: 3,
      split: { train: 1, val: 1, test: 1 },
    });
    expect(imported.numbers('indptr.npy')).toEqual([0, 2, 3, 4, 4]);
    expect(imported.numbers('indices.npy')).toEqual([1, 2, 0, 0]);
    expect(imported.numbers('edge_weights.npy')).toEqual([2, 0.5, 2, 0.5]);
    expect(imported.numbers('features.npy')).toEqual([1.5, -2, 0.5, 1000, 0, 4, 7, 8]);
    expect(imported.numbers('labels.npy')).toEqual([0, 1, -1, 2]);
    expect(imported.numbers('train.npy')).toEqual([0]);
    expect(imported.numbers('val.npy')).toEqual([1]);
    expect(imported.numbers('test.npy')).toEqual([3]);
    const names = readFileSync(join(imported.folder, 'names.txt'), 'utf8');
    expect(names).toBe('ann\nbob, jr.\ncyd\ndan\n');
  });

  test('may be gzipped, with columns in another order', async () => {
    const plain = await tryImport('CSV', folderOf({ 'nodes.csv': nodes, 'edges.csv': edges }));
    const turned = edges
      .split('\n')
      .map((line) => line.replace(/^("[^"]*"|[^,]*),("[^"]*"|[^,]*),(.*)$/, '$3,$2,$1'))
      .join('\n');
    expect(turned).toContain('weight,target,source');
    const packed = folderOf({
      'nodes.csv.gz': gzipSync(nodes),
      'edges.csv.gz': gzipSync(turned),
    });
    const imported = await tryImport('CSV', packed);
    expect(imported.manifest.sha256).toEqual(plain.manifest.sha256);
  });

  test('have no weights without a column of weights', async () => {
    const folder = folderOf({ 'nodes.csv': nodes, 'edges.csv': 'source,target\nann,dan\n' });
    const { manifest } = await tryImport('CSV', folder);
    expect(manifest.sha256).not.toHaveProperty(['edge_weights.npy']);
  });

  test.each([
    ['nan', 'expected a number of 0 or more'],
    ['', 'expected a number of 0 or more'],
    ['-1', 'expected a finite number of 0 or more'],
    ['1e39', 'beyond float32: divide all weights by one number, which changes no result'],
    ['1e-50', 'which float32 rounds to 0: multiply all weights by one number'],
  ])('name the line of a weight %j', async (weight, why) => {
    const text = `source,target,weight\nann,dan,1\nann,cyd,${weight}\n`;
    const lines = await linesOf('CSV', folderOf({ 'nodes.csv': nodes, 'edges.csv': text }));
    expect(lines).toEqual([
      expect.stringContaining(`edges.csv:3: has the weight '${weight}', ${why}`),
    ]);
  });

  test('without labels and split are a graph to be predicted', async () => {
    const bare = 'id,x,z\nann,1,2\nbob,3,4\ncyd,5,6\n';
    const source = { 'nodes.csv': bare, 'edges.csv': 'source,target\nann,cyd\n' };
    const imported = await tryImport('CSV', folderOf(source));
    expect(imported.manifest).toMatchObject({ num_nodes: 3, num_classes: 0, num_features: 2 });
    expect(imported.numbers('labels.npy')).toEqual([-1, -1, -1]);
    expect(imported.notices.join('\n')).toContain('there are no labels');
    expect(imported.story.feature_names).toEqual(['x', 'z']);
    // A split is of labelled nodes, and a name that may mean it is told.
    for (const columns of ['split', 'lable']) {
      const text = `id,x,${columns}\nann,1,\nbob,2,\ncyd,3,\n`;
      const lines = await linesOf('CSV', folderOf({ ...source, 'nodes.csv': text }));
      expect(lines[0]).toContain("nodes.csv:1: has no column 'label'");
    }
  });

  test('keep their direction where that is asked for', async () => {
    const folder = folderOf({ 'nodes.csv': nodes, 'edges.csv': edges });
    const imported = await tryImport('CSV', folder, { directed: true });
    // Rows are in-neighbours: ann learns from bob and cyd, cyd from ann.
    expect(imported.numbers('indptr.npy')).toEqual([0, 2, 2, 3, 3]);
    expect(imported.numbers('indices.npy')).toEqual([1, 2, 0]);
    expect(imported.story.undirected).toBe(false);
  });

  test('say what became features and what became of the edges', async () => {
    const folder = folderOf({ 'nodes.csv': nodes, 'edges.csv': edges });
    expect((await tryImport('CSV', folder)).notices).toEqual([
      'features are the columns weight kg, height',
      '4 edges listed, 4 entries stored: in both directions; --directed keeps theirs',
      'left out of the graph: 1 self-loops and 1 repeated edges',
    ]);
    expect((await tryImport('CSV', folder, { directed: true })).notices).toContain(
      '4 edges listed, 3 entries stored: one entry each, in the row of its target',
    );
    const alone = folderOf({ 'nodes.csv': nodes, 'edges.csv': 'source,target\n' });
    expect((await tryImport('CSV', alone)).notices).toContain(
      'the graph has no edge: a node is known by its own features alone',
    );
  });

  test('have classes named by texts, numbered in their order', async () => {
    const named = 'id,label,split,x\na,dog,train,1\nb,cat,val,2\nc,,,3\nd,dog,test,4\n';
    const folder = folderOf({ 'nodes.csv': named, 'edges.csv': 'source,target\na,b\n' });
    const { manifest, numbers } = await tryImport('CSV', folder);
    expect(numbers('labels.npy')).toEqual([1, 0, -1, 1]);
    expect(manifest).toMatchObject({ num_classes: 2, class_names: ['cat', 'dog'] });
  });
});

describe('a column that cannot be used', () => {
  const rowsOf = (label: string, x: (row: number) => string, rows = 300) =>
    ['id,label,split,x']
      .concat(Array.from({ length: rows }, (_, row) => `n${row},${label},,${x(row)}`))
      .join('\n');

  test('of texts is four problems, not one a row', async () => {
    const tables = { 'nodes.csv': rowsOf('0', () => 'Berlin'), 'edges.csv': 'source,target\n' };
    const lines = await linesOf('CSV', folderOf(tables));
    expect(lines).toEqual([
      ...[2, 3, 4].map(
        (line) => `nodes.csv:${line}: has 'Berlin' in column 'x', expected a float32 number`,
      ),
      "nodes.csv:301: is the last of 300 of 300 rows that have no number in column 'x': leave " +
        'the column out (--ignore-columns x), or turn its texts into numbers',
    ]);
  });
});

describe('a bad line', () => {
  test('of edges.csv is named by its number, and all of them at once', async () => {
    const bad = [
      'source,target,weight',
      'ann,cyd,1',
      'ann',
      'ann,eve,1',
      'zoe,cyd,1',
      'cyd,dan,heavy',
      'cyd,dan,-1',
      '"cyd,dan,1',
    ].join('\n');
    const lines = await linesOf('CSV', folderOf({ 'nodes.csv': nodes, 'edges.csv': bad }));
    expect(lines).toEqual([
      'edges.csv:3: has 1 fields, expected the 3 of the header',
      "edges.csv:4: has the target 'eve', which is no id of the nodes",
      "edges.csv:5: has the source 'zoe', which is no id of the nodes",
      "edges.csv:6: has the weight 'heavy', expected a number of 0 or more",
      "edges.csv:7: has the weight '-1', expected a finite number of 0 or more",
      'edges.csv:8: has a quote that is never closed',
    ]);
  });

  test('of nodes.csv is named by its number', async () => {
    const bad = [
      'id,label,split,x',
      'a,0,train,1',
      'a,0,train,1',
      'b,cat,train,1',
      'c,0,held-out,1',
      'd,0,test,0x10',
      'e,0,test,1e39',
      'f,,train,1',
      'g,-2,,1',
      'h,0,,',
    ].join('\n');
    const folder = folderOf({ 'nodes.csv': bad, 'edges.csv': 'source,target\na,h\n' });
    expect(await linesOf('CSV', folder)).toEqual([
      "nodes.csv:3: has the id 'a' again, ids must be unique",
      "nodes.csv:4: has the label 'cat', where the labels before are numbers: expected one or " +
        'the other',
      "nodes.csv:5: has the split 'held-out', expected train, val, test or nothing",
      "nodes.csv:6: has '0x10' in column 'x', expected a float32 number",
      "nodes.csv:7: has '1e39' in column 'x', expected a float32 number",
      "nodes.csv:8: is in split 'train' but has no label",
      "nodes.csv:10: has '' in column 'x', expected a float32 number",
      "nodes.csv:9: has the label '-2', expected a class number from 0 to 262,143 or " +
        'nothing; with task ' +
        'regression they are numbers to learn',
    ]);
  });

  test('that float16 has no room for is named, others are rounded', async () => {
    const edges = 'source,target\na,b\n';
    const good = 'id,label,split,x\na,0,train,0.1\nb,1,val,65504\n';
    const rounded = await tryImport('CSV', folderOf({ 'nodes.csv': good, 'edges.csv': edges }), {
      featureDtype: 'float16',
    });
    expect(rounded.numbers('features.npy')).toEqual([0x2e66, 0x7bff]);
    const bad = good.replace('0.1', '-65505');
    const folder = folderOf({ 'nodes.csv': bad, 'edges.csv': edges });
    expect(await linesOf('CSV', folder, 'float16')).toEqual([
      "nodes.csv:2: has '-65505' in column 'x', expected a float16 number",
    ]);
  });

  test('of many with one cause is listed thrice, and the others are counted', async () => {
    const bad = `source,target\nann,dan\n${'ann,nobody\n'.repeat(30)}`;
    const folder = folderOf({ 'nodes.csv': nodes, 'edges.csv': bad });
    expect(await linesOf('CSV', folder)).toEqual([
      ...[3, 4, 5].map(
        (line) => `edges.csv:${line}: has the target 'nobody', which is no id of the nodes`,
      ),
      'edges.csv:32: is the last of 30 rows with an end that is no id of the nodes',
    ]);
    const long = `source,target\n${'ann\n'.repeat(30)}`;
    expect(await linesOf('CSV', folderOf({ 'nodes.csv': nodes, 'edges.csv': long }))).toEqual([
      ...[2, 3, 4].map((line) => `edges.csv:${line}: has 1 fields, expected the 2 of the header`),
      'edges.csv:31: is the last of 30 rows that have another number of fields than the header',
    ]);
  });

  test('of edges whose ends are all unknown is one problem, with ids that nodes have', async () => {
    const folder = folderOf({ 'nodes.csv': nodes, 'edges.csv': 'source,target\n0,1\n1,2\n' });
    expect(await linesOf('CSV', folder)).toEqual([
      "edges.csv:2: has the source '0', and none of 4 ends is an id of the nodes: these are " +
        "'ann', 'bob, jr.', 'cyd' and so on",
    ]);
  });

  test('may repeat an edge, but not with another weight', async () => {
    const twice = 'source,target,weight\nann,dan,1\ndan,ann,1\ndan,ann,2\n';
    const folder = folderOf({ 'nodes.csv': nodes, 'edges.csv': twice });
    expect(await linesOf('CSV', folder)).toEqual([
      'edges.csv:4: lists the edge of edges.csv:2 again with another weight, and is stored in ' +
        'both directions; --directed (in Python directed=True) keeps two weights',
    ]);
    const each = 'source,target,weight\nann,dan,809\ndan,ann,813\n';
    const both = folderOf({ 'nodes.csv': nodes, 'edges.csv': each });
    const { numbers } = await tryImport('CSV', both, { directed: true });
    expect(numbers('edge_weights.npy')).toEqual([813, 809]);
  });
});

describe('a bad table', () => {
  test('lacks a column, and the columns are said, with one that is near', async () => {
    const folder = folderOf({
      'nodes.csv': 'ident,group\na,0\n',
      'edges.csv': 'sauce,target,colour\na,a,1\n',
    });
    expect(await linesOf('CSV', folder)).toEqual([
      "nodes.csv:1: has no column 'id', its header is 'ident', 'group'",
      "edges.csv:1: has no column 'source', its header is 'sauce', 'target', 'colour'; is " +
        "'sauce' what you mean",
    ]);
    const headless = folderOf({ 'nodes.csv': nodes, 'edges.csv': '0,1\n1,2\n' });
    expect(await linesOf('CSV', headless)).toEqual([
      "edges.csv:1: begins with '0,1', which is no header: put source and target in front, or " +
        'import the file alone as an EDGE_LIST',
    ]);
  });

  test('without ids or labels is not blamed once more for each of its rows', async () => {
    const lines = (header: string) =>
      linesOf('CSV', folderOf({ 'nodes.csv': `${header}\na,0,train,1\n`, 'edges.csv': edges }));
    expect(await lines('who,label,split,x')).toEqual([
      "nodes.csv:1: has no column 'id', its header is 'who', 'label', 'split', 'x'",
    ]);
    expect(await lines('id,group,split,x')).toEqual([
      "nodes.csv:1: has no column 'label', its header is 'id', 'group', 'split', 'x'",
    ]);
  });

  test('is missing, empty, or names a column twice', async () => {
    const lines = (table: string) =>
      linesOf('CSV', folderOf({ 'nodes.csv': table, 'edges.csv': edges }));
    expect(await lines('')).toEqual(['nodes.csv: is empty, expected a header line']);
    expect(await lines('id,label,split,id\n')).toEqual(["nodes.csv:1: has the column 'id' twice"]);
    expect(await lines('id,label,split,x\n')).toContain('nodes.csv: has no node');
    const alone = await linesOf('CSV', folderOf({ 'nodes.csv': nodes }));
    expect(alone).toEqual([expect.stringContaining('edges.csv: is missing')]);
  });
});

describe('a file that is no table', () => {
  test('is no text, and the line is said', async () => {
    const latin = Buffer.from('id,label,split,x\nb,0,,1\ncaf\u00e9,0,train,1\nc,0,,1\n', 'latin1');
    expect(await linesOf('CSV', folderOf({ 'nodes.csv': latin, 'edges.csv': edges }))).toEqual([
      'nodes.csv:3: is not UTF-8 text: store the file as UTF-8',
    ]);
    // Deep in a file, where each piece that is read begins within a character.
    const row = `${'\u00e9'.repeat(70)},0,,1\n`;
    const long = Buffer.concat([
      Buffer.from(`id,label,split,x\n${row.repeat(9000)}"a\nb`),
      Buffer.from([0xff, 0x0a]),
    ]);
    expect(await linesOf('CSV', folderOf({ 'nodes.csv': long, 'edges.csv': edges }))).toEqual([
      'nodes.csv:9003: is not UTF-8 text: store the file as UTF-8',
    ]);
  });

  test('is a gzip file that was cut', async () => {
    const cut = gzipSync(nodes).subarray(0, 60);
    expect(await linesOf('CSV', folderOf({ 'nodes.csv.gz': cut, 'edges.csv': edges }))).toEqual([
      expect.stringContaining('nodes.csv.gz: is not a whole gzip file'),
    ]);
  });
});
