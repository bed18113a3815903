import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { folderOf, int64, linesOf, makeFolder, npy, pathGraph, tryImport } from './workbench.ts';

/** What labels are taken for, and which nodes masks mean. */

const floats = (shape: readonly number[], ...values: number[]) =>
  npy('float64', shape, Float64Array.from(values));
const bytes = (shape: readonly number[], ...values: number[]) =>
  npy('uint8', shape, Uint8Array.from(values));
const nan = Number.NaN;

const arraysWith = (labels: Uint8Array) => folderOf({ ...pathGraph, 'labels.npy': labels });
const edges = 'source,target\na,b\nb,c\n';
const tablesWith = (nodes: string) => folderOf({ 'nodes.csv': nodes, 'edges.csv': edges });

describe('labels of arrays', () => {
  test('are targets where one has a fraction, in a vector or in columns', async () => {
    const vector = await tryImport('NPY', arraysWith(floats([3], -5, 2.5, nan)));
    expect(vector.manifest).toMatchObject({ task: 'REGRESSION', num_classes: 1 });
    expect(vector.numbers('labels.npy')).toEqual([-5, 2.5, nan]);
    const column = await tryImport('NPY', arraysWith(floats([3, 1], -5, 2.5, nan)));
    expect(column.digest).toBe(vector.digest);
  });

  test('are classes where they are whole, also as floats, which is said', async () => {
    const { manifest, numbers, notices } = await tryImport(
      'NPY',
      arraysWith(floats([3], 4, 0, nan)),
    );
    expect(manifest).not.toHaveProperty('task');
    expect(manifest.num_classes).toBe(5);
    expect(numbers('labels.npy')).toEqual([4, 0, -1]);
    expect(notices).toContainEqual(
      'labels.npy has whole numbers, which are taken for classes; with task regression they are ' +
        'numbers to learn',
    );
  });

  test('whose classes have gaps, as those that count from 1, are told so', async () => {
    const noticesOf = async (labels: Uint8Array) =>
      (await tryImport('NPY', arraysWith(labels))).notices;
    const how = 'from 0 to the largest; number the classes anew if that is too many';
    expect(await noticesOf(int64(1, 2, -1))).toContainEqual(
      `labels.npy: class 0 has no node: a model learns all 3 ${how}`,
    );
    expect(await noticesOf(int64(2014, 2, 2016))).toContainEqual(
      `labels.npy: classes 0, 1, 3 and 2,011 more have no node: a model learns all 2,017 ${how}`,
    );
    expect((await noticesOf(int64(1, 0, 2))).join()).not.toMatch(/no node/);
  });

  test('are what was asked for', async () => {
    const source = arraysWith(int64(1, 0, -1));
    const numbers = await tryImport('NPY', source, { task: 'REGRESSION' });
    expect(numbers.manifest).toMatchObject({ task: 'REGRESSION', num_classes: 1 });
    expect(numbers.numbers('labels.npy')).toEqual([1, 0, -1]);
    const labels = await tryImport('NPY', source, { task: 'MULTI_LABEL' });
    expect(labels.manifest).toMatchObject({ task: 'MULTI_LABEL', num_classes: 1 });
    expect(labels.numbers('labels.npy')).toEqual([1, 0, 255]);
  });

  test('in several columns of 0 and 1 are several labels, of any type', async () => {
    const arrays = [
      bytes([3, 2], 0, 1, 1, 1, 255, 0),
      floats([3, 2], 0, 1, 1, 1, nan, 0),
      npy('int64', [3, 2], BigInt64Array.of(0n, 1n, 1n, 1n, -1n, 0n)),
      npy('int8', [3, 2], Int8Array.of(0, 1, 1, 1, -1, 0)),
    ];
    for (const array of arrays) {
      const { manifest, numbers } = await tryImport('NPY', arraysWith(array));
      expect(manifest).toMatchObject({ task: 'MULTI_LABEL', num_classes: 2 });
      expect(numbers('labels.npy')).toEqual([0, 1, 1, 1, 255, 0]);
    }
  });

  test('that look like classes in columns are several labels, which is said', async () => {
    const hot = arraysWith(bytes([3, 2], 0, 1, 1, 0, 255, 255));
    expect((await tryImport('NPY', hot)).notices.join()).toMatch(/exactly one of the labels/);
    const asked = await tryImport('NPY', hot, { task: 'MULTI_LABEL' });
    expect(asked.notices.join()).not.toMatch(/exactly one/);
    const none = arraysWith(bytes([3, 2], 0, 1, 0, 0, 1, 0));
    expect((await tryImport('NPY', none)).notices.join()).not.toMatch(/exactly one/);
  });

  test('that are not what was asked for are named by their place', async () => {
    const wrong = async (labels: Uint8Array, task: 'CLASSIFICATION' | 'MULTI_LABEL' | null) =>
      await linesOf('NPY', arraysWith(labels), null, { task });
    expect(await wrong(bytes([3, 2], 0, 1, 2, 3, 0, 0), null)).toEqual([
      'labels.npy: has 2 at row 1, column 0, expected labels 0 and 1: with task regression they ' +
        'are numbers to learn; of classes each node has one',
    ]);
    expect(await wrong(floats([3], 1, 0.5, 2), 'MULTI_LABEL')).toEqual([
      'labels.npy: has 0.5 at index 1, expected labels 0 and 1, or nothing',
    ]);
    expect(await wrong(floats([3], 1, 0.5, 2), 'CLASSIFICATION')).toEqual([
      'labels.npy: has 0.5 at index 1, expected a class number from 0 to 262,143 or nothing; ' +
        'with task regression they are numbers to learn',
    ]);
    expect(await wrong(int64(0, 1, 2016_000), null)).toEqual([
      'labels.npy: has 2016000 at index 2, expected a class number from 0 to 262,143 or nothing; ' +
        'with task regression they are numbers to learn',
    ]);
    expect(await wrong(floats([3], 1, -7, 2), null)).toEqual([
      'labels.npy: has -7 at index 1, expected a class number from 0 to 262,143 or nothing; ' +
        'with task regression they are numbers to learn',
    ]);
    expect(await wrong(bytes([3, 2], 0, 1, 1, 0, 0, 0), 'CLASSIFICATION')).toEqual([
      'labels.npy: has shape (3, 2), expected one class a node and not 2 columns: several are ' +
        'labels (task multi_label) or numbers to learn (task regression)',
    ]);
  });

  test('have the task that a meta.json beside them says', async () => {
    const meta = { 'labels.npy': int64(1, 0, 2), 'meta.json': '{"task": "REGRESSION"}' };
    const source = folderOf({ ...pathGraph, ...meta });
    expect((await tryImport('NPY', source)).manifest.task).toBe('REGRESSION');
    const asked = await tryImport('NPY', source, { task: 'CLASSIFICATION' });
    expect(asked.manifest.num_classes).toBe(3);
  });

  test('that pass by in several blocks keep their columns', async () => {
    const nodes = 150_001;
    const labels = new Uint8Array(7 * nodes);
    for (let at = 0; at < labels.length; at += 7) labels[at + ((at / 7) % 7)] = 1;
    const source = folderOf({
      ...pathGraph,
      'indptr.npy': npy('int64', [nodes + 1], new BigInt64Array(nodes + 1)),
      'indices.npy': npy('int32', [0], new Int32Array(0)),
      'features.npy': npy('float32', [nodes, 1], new Float32Array(nodes)),
      'labels.npy': npy('uint8', [nodes, 7], labels),
    });
    const { manifest, notices, numbers } = await tryImport('NPY', source);
    expect(manifest).toMatchObject({ task: 'MULTI_LABEL', num_classes: 7, num_nodes: nodes });
    expect(numbers('labels.npy').filter((label) => label === 1)).toHaveLength(nodes);
    expect(notices.join()).toMatch(/exactly one of the labels/);
  });
});

describe('labels of tables', () => {
  test('are texts of no more kinds than a model can tell apart', async () => {
    const rows = Array.from({ length: 2 ** 18 + 2 }, (_, node) => `${node},title ${node},train,1`);
    const source = folderOf({
      'nodes.csv': ['id,label,split,x', ...rows].join('\n'),
      'edges.csv': 'source,target\n0,1\n',
    });
    expect(await linesOf('CSV', source)).toEqual([
      "nodes.csv:262146: has the label 'title 262144' after 262,144 others, and a model learns " +
        'no more: are these labels?',
    ]);
  });

  test('are targets as soon as one has a fraction, whatever came before', async () => {
    const { manifest, numbers } = await tryImport(
      'CSV',
      tablesWith('id,label,split,x\na,-1,train,1\nb,-7,val,1\nc,1e-3,,1\nd,,,1\ne,NaN,,1\n'),
    );
    expect(manifest).toMatchObject({ task: 'REGRESSION', num_classes: 1 });
    expect(numbers('labels.npy')).toEqual([-1, -7, Math.fround(1e-3), nan, nan]);
  });

  test('are classes where all are whole, and none where one says so', async () => {
    const { manifest, numbers } = await tryImport(
      'CSV',
      tablesWith('id,label,split,x\na,nan,,1\nb,2.0,train,1\nc,0,val,1\nd,-1,,1\ne,,,1\n'),
    );
    expect(manifest).not.toHaveProperty('task');
    expect(numbers('labels.npy')).toEqual([-1, 2, 0, -1, -1]);
  });

  test('in columns are called as these are, and other columns are features', async () => {
    const { manifest, numbers } = await tryImport(
      'CSV',
      tablesWith('id,label_big,label_red,split,x\na,1,0,train,5\nb,,1,val,6\nc,,,,7\n'),
    );
    expect(manifest).toMatchObject({ task: 'MULTI_LABEL', num_classes: 2, num_features: 1 });
    expect(manifest.class_names).toEqual(['big', 'red']);
    expect(numbers('labels.npy')).toEqual([1, 0, 255, 1, 255, 255]);
  });

  test('are one column where there is a label, and label_x is a feature', async () => {
    const text = 'id,label,label_x,split\na,1,0.5,train\nb,0,1,val\n';
    const { manifest } = await tryImport('CSV', tablesWith(`${text}c,,0,\n`));
    expect(manifest).toMatchObject({ num_classes: 2, num_features: 1 });
  });

  test('that cannot be are named by their lines', async () => {
    const several = 'id,label_0,label_1,split,x\na,1,0,train,5\nb,3,x,val,6\nc,,,test,7\n';
    expect(await linesOf('CSV', tablesWith(several))).toEqual([
      "nodes.csv:3: has 'x' in column 'label_1', expected a number or nothing",
      "nodes.csv:4: is in split 'test' but has no label",
      'nodes.csv:3: has the label 3, expected labels 0 and 1: with task regression they are ' +
        'numbers to learn; of classes each node has one',
    ]);
    const asked = { task: 'CLASSIFICATION' } as const;
    expect(
      await linesOf('CSV', tablesWith(several.replace('x,val', '1,val')), null, asked),
    ).toEqual([
      "nodes.csv:4: is in split 'test' but has no label",
      expect.stringMatching(/^nodes.csv:1: has the columns label_0, label_1, expected one class/),
    ]);
    const fractions = 'id,label,split,x\na,1,train,5\nb,0.5,val,6\nc,,,7\n';
    expect(await linesOf('CSV', tablesWith(fractions), null, asked)).toEqual([
      "nodes.csv:3: has the label '0.5', expected a class number from 0 to 262,143 or " +
        'nothing; with task ' +
        'regression they are numbers to learn',
    ]);
    expect(await linesOf('CSV', tablesWith('id,split,x\na,train,1\n'))).toContainEqual(
      "nodes.csv:1: has no column 'label', its header is 'id', 'split', 'x'",
    );
  });
});

describe('masks', () => {
  const mask = (columns: number, ...values: number[]) =>
    npy('bool', [3, columns], Uint8Array.from(values));
  const { 'train.npy': _train, 'val.npy': _val, 'test.npy': _test, ...graph } = pathGraph;
  const labels = { 'labels.npy': int64(0, 1, 0) };

  test('may have a column for each of several splits, of which one is chosen', async () => {
    const source = folderOf({
      ...{ ...graph, ...labels },
      'train_mask.npy': mask(2, 1, 0, 0, 1, 0, 0),
      'val_mask.npy': mask(2, 0, 1, 1, 0, 0, 0),
      // The same test nodes in all splits, as WikiCS has them.
      'test_mask.npy': bytes([3], 0, 0, 1),
    });
    const second = await tryImport('NPY', source, { split: '1' });
    expect(second.numbers('train.npy')).toEqual([1]);
    expect(second.numbers('val.npy')).toEqual([0]);
    expect(second.numbers('test.npy')).toEqual([2]);
    expect(await linesOf('NPY', source)).toEqual([
      'train_mask.npy: has shape (3, 2), 2 splits: choose one with split, 0 to 1',
      'val_mask.npy: has shape (3, 2), 2 splits: choose one with split, 0 to 1',
    ]);
    expect(await linesOf('NPY', source, null, { split: '2' })).toContainEqual(
      "val_mask.npy: has shape (3, 2), 2 splits, and none is '2': choose one with split, 0 to 1",
    );
  });

  test('are 0 and 1 whatever their type, and one for each node', async () => {
    const wrong = {
      ...{ ...graph, ...labels, 'val.npy': int64(1) },
      'train_mask.npy': bytes([3], 0, 2, 1),
    };
    expect(await linesOf('NPY', folderOf(wrong))).toEqual([
      'train_mask.npy: has 2 at row 1, expected a mask of 0 and 1',
    ]);
    const short = { ...wrong, 'train_mask.npy': bytes([2], 0, 1) };
    expect(await linesOf('NPY', folderOf(short))).toEqual([
      'train_mask.npy: has 2 rows, expected 3, as indptr.npy, features.npy and labels.npy have it',
    ]);
  });

  test('are so also where nothing but their 0 and 1 says it', async () => {
    const source = folderOf({
      ...{ ...graph, ...labels },
      'train.npy': bytes([3], 1, 0, 0),
      'val.npy': int64(0, 1, 0),
      'test.npy': npy('int32', [3, 2], Int32Array.of(0, 0, 0, 0, 0, 1)),
    });
    const { numbers } = await tryImport('NPY', source, { split: '1' });
    expect(['train', 'val', 'test'].map((name) => numbers(`${name}.npy`))).toEqual([[0], [1], [2]]);
    const ids = { ...pathGraph, 'val.npy': int64(1, 0), 'test.npy': int64(2, 0, 1) };
    const ofIds = await tryImport('NPY', folderOf(ids));
    expect(ofIds.numbers('val.npy')).toEqual([0, 1]);
    expect(ofIds.numbers('test.npy')).toEqual([0, 1, 2]);
    const other = { ...pathGraph, 'train.npy': int64(1, 0, 1, 0), 'val.npy': int64(1, 1) };
    expect(await linesOf('NPY', folderOf(other))).toEqual([
      'train.npy: has 4 values of 0 and 1, which are a mask: expected 3, one for each node',
      'val.npy: has 2 values of 0 and 1, which are a mask: expected 3, one for each node',
    ]);
  });

  test('or folders decide, and nothing else has several splits', async () => {
    const split = { split: '0' };
    expect(await linesOf('NPY', folderOf(pathGraph), null, split)).toEqual([
      "split: '0' is to choose one of several, but no mask has columns",
    ]);
    const nodes = 'id,label,split,x\na,1,train,5\nb,0,val,6\nc,,,7\n';
    expect(await linesOf('CSV', tablesWith(nodes), null, split)).toEqual([
      "split: '0' is to choose one of several, and tables have one",
    ]);
    const two = npy('int64', [1, 2], BigInt64Array.of(0n, 1n));
    expect(await linesOf('NPY', folderOf({ ...pathGraph, 'train.npy': two }))).toEqual([
      'train.npy: has int64 (1, 2), expected node ids in one axis, or masks in columns, ' +
        'a row for each node',
    ]);
  });

  test('of an OGB folder are chosen by the name of their folder', async () => {
    const root = makeFolder();
    const files = {
      'raw/edge.csv.gz': '0,1\n',
      'raw/num-node-list.csv.gz': '2\n',
      'raw/node-feat.csv.gz': '1\n2\n',
      'raw/node-label.csv.gz': '0\n1\n',
      ...Object.fromEntries(
        ['random', 'time'].flatMap((name, at) => [
          [`split/${name}/train.csv.gz`, `${at}\n`],
          [`split/${name}/valid.csv.gz`, `${1 - at}\n`],
          [`split/${name}/test.csv.gz`, ''],
        ]),
      ),
    };
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(dirname(join(root, name)), { recursive: true });
      writeFileSync(join(root, name), gzipSync(content));
    }
    expect((await tryImport('OGB', root, { split: 'time' })).numbers('train.npy')).toEqual([1]);
    expect(await linesOf('OGB', root, null, { split: 'date' })).toEqual([
      "split: has random and time, and no 'date': choose one with split",
    ]);
  });
});
