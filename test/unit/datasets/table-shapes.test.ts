import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { detectFormat } from '../../../src/datasets/detect-format.ts';
import { folderOf, linesOf, makeFolder, parquet, tryImport } from './workbench.ts';

/** Tables as people have them: separators, packings, parts, names of columns, splits. */

const nodes = 'id,label,split,age\na,0,train,31\nb,1,train,28\nc,0,val,45\nd,1,val,50\n';
const edges = 'source,target\na,b\nc,d\n';
const plain = () => tryImport('CSV', folderOf({ 'nodes.csv': nodes, 'edges.csv': edges }));
const withNodes = (table: string, choices = {}) =>
  tryImport('CSV', folderOf({ 'nodes.csv': table, 'edges.csv': edges }), choices);
const withEdges = (table: string, choices = {}) =>
  tryImport('CSV', folderOf({ 'nodes.csv': nodes, 'edges.csv': table }), choices);

describe('text', () => {
  test.each([
    ['semicolons', ';'],
    ['tabs', '\t'],
    ['bars', '|'],
  ])('may be separated by %s', async (_, separator) => {
    const [first, second] = [nodes, edges].map((table) => table.replaceAll(',', separator));
    const folder = folderOf({ 'nodes.csv': first ?? '', 'edges.csv': second ?? '' });
    expect((await tryImport('CSV', folder)).digest).toBe((await plain()).digest);
  });

  test('with semicolons may have decimal commas, in features, labels and weights', async () => {
    const folder = folderOf({
      'nodes.csv': 'id;label;split;x\na;0,5;train;1,25\nb;-2,5;val;,5e1\n',
      'edges.csv': 'source;target;weight\na;b;0,75\n',
    });
    const { numbers, manifest } = await tryImport('CSV', folder);
    expect(numbers('features.npy')).toEqual([1.25, 5]);
    expect(numbers('labels.npy')).toEqual([0.5, -2.5]);
    expect(numbers('edge_weights.npy')).toEqual([0.75, 0.75]);
    expect(manifest.task).toBe('REGRESSION');
  });

  test('keeps a separator within quotes, and one that texts have fewer of', async () => {
    const folder = folderOf({
      'nodes.tsv': '\ufeffid\tlabel\tx\tsplit\r\n"a\tb"\tred, blue\t1\ttrain\r\nc\tred\t2\tval\r\n',
      'edges.csv': 'source;target\r\n"a\tb";c\r\n',
    });
    const { manifest, numbers } = await tryImport('CSV', folder);
    expect(manifest).toMatchObject({ num_nodes: 2, class_names: ['red', 'red, blue'] });
    expect(numbers('indices.npy')).toEqual([1, 0]);
  });

  test('that is not what its name says is named for what it is', async () => {
    const lines = (name: string, content: string | Uint8Array) =>
      linesOf('CSV', folderOf({ 'nodes.csv': nodes, [name]: content }));
    expect(await lines('edges.csv.zst', 'not really zstd')).toEqual([
      'edges.csv.zst: is no zstd file, as its name says: it is something else, perhaps plain text',
    ]);
    expect(await lines('edges.csv.gz', zstd(edges))).toEqual([
      'edges.csv.gz: is no gzip file, as its name says: it is a zstd file',
    ]);
    expect(await lines('edges.csv', zstd(edges))).toEqual([
      'edges.csv: is a zstd file, call it edges.csv.zst',
    ]);
    expect(await lines('edges.csv', parquet({ source: ['a'], target: ['b'] }))).toEqual([
      'edges.csv: is a Parquet file, expected UTF-8 text: store it as that',
    ]);
    const wide = Buffer.from(edges, 'utf16le');
    const marked = Buffer.concat([Buffer.from([0xff, 0xfe]), wide]);
    for (const text of [wide, marked]) {
      expect(await lines('edges.csv', text)).toEqual([
        'edges.csv: is UTF-16 text, expected UTF-8 text: store it as that',
      ]);
    }
    expect(await lines('edges.csv.zst', zstd(edges).subarray(0, 20))).toEqual([
      expect.stringContaining('edges.csv.zst: is not a whole zstd file'),
    ]);
  });

  test('may be packed by zstd', async () => {
    const folder = folderOf({ 'nodes.csv.zst': zstd(nodes), 'edges.csv.zst': zstd(edges) });
    expect((await tryImport('CSV', folder)).digest).toBe((await plain()).digest);
  });
});

describe('a folder of parts', () => {
  const partsOf = (parts: Readonly<Record<string, string | Uint8Array>>) => {
    const folder = makeFolder();
    for (const [path, content] of Object.entries(parts)) {
      mkdirSync(join(folder, path, '..'), { recursive: true });
      writeFileSync(join(folder, path), content);
    }
    return folder;
  };
  const spark = {
    'nodes.csv/part-00000-x.csv': 'id,label,split,age\na,0,train,31\nb,1,train,28\n',
    'nodes.csv/part-00001-x.csv': 'id,label,split,age\nc,0,val,45\nd,1,val,50\n',
    'nodes.csv/_SUCCESS': '',
    'nodes.csv/.part-00000-x.csv.crc': 'crc',
    'edges.csv/part-00000-x.csv': edges,
    'edges.csv/_SUCCESS': '',
  };

  test('is one table, of text or of Parquet', async () => {
    const text = await tryImport('CSV', partsOf(spark));
    expect(text.digest).toBe((await plain()).digest);
    const rows = (ids: string[], label: number[], split: string, age: number[]) =>
      parquet({ id: ids, label, split: ids.map(() => split), age });
    const packed = partsOf({
      'nodes.parquet/part-00000.snappy.parquet': rows(['a', 'b'], [0, 1], 'train', [31, 28]),
      'nodes.parquet/part-00001.snappy.parquet': rows(['c', 'd'], [0, 1], 'val', [45, 50]),
      'nodes.parquet/_SUCCESS': '',
      'edges.parquet/part-0.parquet': parquet({ source: ['a', 'c'], target: ['b', 'd'] }),
    });
    expect((await tryImport('PARQUET', packed)).digest).toBe((await plain()).digest);
  });

  test('may say in names of folders what rows have in common, as Hive writes it', async () => {
    const text = (rows: string) => `id,age\n${rows}\n`;
    const hive = {
      'nodes/split=train/label=0/a.csv': text('a,31'),
      'nodes/split=train/label=1/a.csv.gz': gzipSync(text('b,28')),
      'nodes/split=val/label=0/a.csv': text('c,45'),
      'nodes/split=val/label=1/a.csv': text('d,50'),
      'edges.csv': edges,
    };
    const folder = partsOf(hive);
    expect(await detectFormat(folder, null)).toEqual({ kind: 'format', format: 'CSV' });
    const { digest } = await tryImport('CSV', folder);
    expect(digest).toBe((await plain()).digest);
    const packed = partsOf({
      'nodes/split=train/label=0/a.parquet': parquet({ id: ['a'], age: [31] }),
      'nodes/split=train/label=1/a.parquet': parquet({ id: ['b'], age: [28] }),
      'nodes/split=val/label=0/a.parquet': parquet({ id: ['c'], age: [45] }),
      'nodes/split=val/label=1/a.parquet': parquet({ id: ['d'], age: [50] }),
      'edges/part-0.parquet': parquet({ source: ['a'], target: ['b'] }),
      'edges/part-1.parquet': parquet({ source: ['c'], target: ['d'] }),
    });
    expect(await detectFormat(packed, null)).toEqual({ kind: 'format', format: 'PARQUET' });
    expect((await tryImport('PARQUET', packed)).digest).toBe(digest);
  });

  test('takes a number in the name of a folder for a feature', async () => {
    const folder = partsOf({
      'nodes/at%3A=7/split=__HIVE_DEFAULT_PARTITION__/b.csv': 'id,label\nb,1\n',
      'nodes/at%3A=2.5/split=train/a.csv': 'id,label\na,0\n',
      'edges.csv': 'source,target\na,b\n',
    });
    const { numbers, story } = await tryImport('CSV', folder);
    expect(story.feature_names).toEqual(['at:']);
    expect(numbers('features.npy')).toEqual([2.5, 7]);
    expect(numbers('train.npy')).toEqual([0]);
  });

  test('is refused where its folders name different columns, or one of a file', async () => {
    const part = 'id,label,split,x\na,0,train,1\n';
    const parts = { 'nodes/a=1/a.csv': part, 'edges.csv': edges };
    expect(await linesOf('CSV', partsOf({ ...parts, 'nodes/b=1/a.csv': part }))).toEqual([
      'nodes/b=1/a.csv: is in folders that name b, expected a, as those of nodes/a=1/a.csv',
    ]);
    expect(await linesOf('CSV', partsOf({ 'nodes/x=1/a.csv': part, 'edges.csv': edges }))).toEqual([
      "nodes/x=1/a.csv:1: has the column 'x' twice",
    ]);
  });

  test('has no columns but its own where it lies below such a folder', async () => {
    const columns = { id: ['a', 'b'], label: [0, 1], split: ['train', 'val'], x: [1, 2] };
    const folder = partsOf({
      'run=1/nodes.parquet': parquet(columns),
      'run=1/edges.parquet': parquet({ source: ['a'], target: ['b'] }),
    });
    const { story } = await tryImport('PARQUET', join(folder, 'run=1'));
    expect(story.feature_names).toEqual(['x']);
  });

  test('names the part and its line where something is wrong', async () => {
    const bad = {
      ...spark,
      'nodes.csv/part-00001-x.csv': 'id,label,split,age\nc,0,?,45\na,1,,5\n',
    };
    expect(await linesOf('CSV', partsOf(bad))).toEqual([
      "nodes.csv/part-00001-x.csv:2: has the split '?', expected train, val, test or nothing",
      "nodes.csv/part-00001-x.csv:3: has the id 'a' again, ids must be unique",
      "edges.csv/part-00000-x.csv:3: has the target 'd', which is no id of the nodes",
    ]);
    const short = { ...spark, 'nodes.csv/part-00001-x.csv': 'id,label,split,age\nc,0,val\n' };
    expect(await linesOf('CSV', partsOf(short))).toEqual([
      'nodes.csv/part-00001-x.csv:2: has 3 fields, expected the 4 of the header',
    ]);
    const other = { ...spark, 'nodes.csv/part-00001-x.csv': 'id,label,age\n' };
    expect(await linesOf('CSV', partsOf(other))).toEqual([
      'nodes.csv/part-00001-x.csv:1: has the columns id, label, age, expected those of ' +
        'nodes.csv/part-00000-x.csv: id, label, split, age',
    ]);
    const { 'edges.csv/part-00000-x.csv': _, ...empty } = spark;
    expect(await linesOf('CSV', partsOf(empty))).toEqual([
      'edges.csv: is a folder without parts, expected a file, or a folder of parts such as ' +
        'part-00000.csv',
    ]);
  });
});

describe('columns', () => {
  test.each([
    ['src,dst'],
    ['From,To'],
    [':START_ID,:END_ID'],
    [':START_ID(Person),:END_ID(Person)'],
    ['~from,~to'],
    ['id_1,id_2'],
    ['node1,node2'],
    ['from,target'],
    ['SOURCE,Target'],
  ])('%s are the ends of edges, which a notice says', async (header) => {
    const { digest, notices } = await withEdges(edges.replace('source,target', header));
    expect(digest).toBe((await plain()).digest);
    const [source = '', target = ''] = header.split(',');
    const took = [
      `'${source}' for the source`,
      ...(target === 'target' ? [] : [`'${target}' for the target`]),
    ];
    expect(notices).toContainEqual(`edges.csv: took ${took.join(', ')}`);
  });

  test('of two pairs of ends are not chosen from, but source and target are', async () => {
    const table = 'src,dst,from,to\na,b,c,d\n';
    expect(await linesOf('CSV', folderOf({ 'nodes.csv': nodes, 'edges.csv': table }))).toEqual([
      "edges.csv:1: has the ends 'src' and 'dst', or 'from' and 'to': call two of them source " +
        'and target, or ignore the others (--ignore-columns)',
    ]);
    const ignoredColumns = ['from', 'to'];
    const chosen = await withEdges(table, { ignoredColumns });
    expect(chosen.numbers('indptr.npy')).toEqual([0, 1, 2, 2, 2]);
    const named = await withEdges('from,target,to,source\nx,b,x,a\n');
    expect(named.numbers('indptr.npy')).toEqual([0, 1, 2, 2, 2]);
  });

  test('of edges that are neither ends nor weight are left out with a notice', async () => {
    const { digest, notices } = await withEdges('source,target,time,~label\na,b,1,x\nc,d,2,y\n');
    expect(digest).toBe((await plain()).digest);
    expect(notices).toContainEqual(
      "edges.csv: left out 'time', '~label': edges have a source, a target and perhaps a weight",
    );
    const indexed = await withEdges(',source,target\n0,a,b\n1,c,d\n');
    expect(indexed.digest).toBe((await plain()).digest);
    expect(indexed.notices).toContainEqual("edges.csv: left out '', which numbers the rows");
  });

  test.each([
    ['ID,LABEL,SPLIT,age'],
    ['node_id,class,split,age'],
    ['~id,~label,split,age:Int'],
    [':ID(Person),:LABEL,split,age:double'],
    ['name,y,split,age'],
    ['personId:ID,target,split,age'],
  ])('%s are those of nodes', async (header) => {
    const { story, digest, notices } = await withNodes(nodes.replace(/^.*\n/, `${header}\n`));
    expect(digest).toBe((await plain()).digest);
    expect(story.feature_names).toEqual(['age']);
    expect(notices[0]).toMatch(/^nodes\.csv: took '.+' for the id, '.+' for the label/);
  });

  test('of two that may be the label are not chosen from', async () => {
    const table = nodes.replace('label', 'y').replace('age', 'class');
    expect(await linesOf('CSV', folderOf({ 'nodes.csv': table, 'edges.csv': edges }))).toEqual([
      "nodes.csv:1: has the columns 'y' and 'class', and one is to be the label: call one of " +
        "them 'label', or ignore the other (--ignore-columns)",
    ]);
    const { story } = await withNodes(nodes.replace('age', 'target'));
    expect(story.feature_names).toEqual(['target']);
  });

  test('that number the rows are no features', async () => {
    const numbered = (name: string) =>
      [`${name},id,label,split,age`, '0,a,0,train,31', '1,b,1,train,28', '2,c,0,val,45']
        .concat('3,d,1,val,50', '')
        .join('\n');
    for (const name of ['', 'Unnamed: 0', 'index', 'level_0']) {
      const { digest, notices } = await withNodes(numbered(name));
      expect(digest).toBe((await plain()).digest);
      expect(notices).toContainEqual(
        `nodes.csv: left out '${name}', which numbers the rows and is no feature`,
      );
    }
    const { digest, notices } = await withNodes(numbered('row'));
    expect(digest).toBe((await plain()).digest);
    expect(notices).toContainEqual(
      "nodes.csv: left out the column 'row', which counts the rows and is no feature; to keep it " +
        'as one, divide it by the number of rows',
    );
    // Few rows count by chance.
    expect((await withNodes(numbered('visits'))).manifest.num_features).toBe(2);
    const many = Array.from({ length: 20 }, (_, row) => `n${row},0,train,${row + 1},${row * row}`);
    const long = folderOf({
      'nodes.csv': ['id,label,split,visits,squares', ...many].join('\n'),
      'edges.csv': 'source,target\nn0,n1\n',
    });
    expect((await tryImport('CSV', long)).story.feature_names).toEqual(['squares']);
  });

  test('of texts by their header are left out; true and false are 1 and 0', async () => {
    const table = 'id:ID,name:string,paid,label:int,split\na,Ann,True,0,train\nb,Bob,false,1,val\n';
    const { story, numbers, notices } = await tryImport(
      'CSV',
      folderOf({ 'nodes.csv': table, 'edges.csv': 'source,target\na,b\n' }),
    );
    expect(story.feature_names).toEqual(['paid']);
    expect(numbers('features.npy')).toEqual([1, 0]);
    expect(notices).toContainEqual("nodes.csv: left out the columns of texts 'name:string'");
  });

  test('are ignored on request, and a wrong name is an error with the near one', async () => {
    const table = nodes.replace('age', 'age,town').replaceAll(/(\d\d)\n/g, '$1,Ulm\n');
    const { digest } = await withNodes(table, { ignoredColumns: ['town'] });
    expect(digest).toBe((await plain()).digest);
    await expect(withNodes(table, { ignoredColumns: ['twon'] })).rejects.toThrow(
      "ignored_columns: the tables have no column 'twon': did you mean 'town'?",
    );
  });
});

describe('splits', () => {
  test('may be spelt as others do', async () => {
    const table = nodes
      .replace('a,0,train', 'a,0,Training')
      .replace('c,0,val', 'c,0,valid')
      .replace('d,1,val', 'd,1,validation');
    expect((await withNodes(table)).digest).toBe((await plain()).digest);
    expect((await withNodes(table.replace('valid,', 'DEV,'))).digest).toBe((await plain()).digest);
  });

  const masks = [
    'id,label,age,train_mask,val_mask',
    'a,0,31,True,False',
    'b,1,28,1,0',
    'c,0,45,FALSE,true',
    'd,1,50,0.0,1.0',
    '',
  ].join('\n');

  test('may be masks', async () => {
    expect((await withNodes(masks)).digest).toBe((await plain()).digest);
    const other = masks.replace('val_mask', 'valid_mask');
    expect((await withNodes(other)).digest).toBe((await plain()).digest);
  });

  test('of a column and of masks must agree', async () => {
    const both = masks.replace('id,', 'id,split,').replace(/^(a|b),/gm, '$1,train,');
    const good = both.replace(/^(c|d),/gm, '$1,val,');
    expect((await withNodes(good)).digest).toBe((await plain()).digest);
    const bad = both.replace(/^(c|d),/gm, '$1,train,');
    expect(await linesOf('CSV', folderOf({ 'nodes.csv': bad, 'edges.csv': edges }))).toEqual(
      [4, 5].map(
        (line) =>
          `nodes.csv:${line}: has the split 'train', and its masks say 'val': leave one of them ` +
          'out (--ignore-columns)',
      ),
    );
    const twice = masks.replace('True,False', 'True,True').replace('1,0\n', '1,2\n');
    expect(await linesOf('CSV', folderOf({ 'nodes.csv': twice, 'edges.csv': edges }))).toEqual([
      "nodes.csv:2: is in the masks of 'train' and of 'val', expected one",
      "nodes.csv:3: has '2' in the mask of 'val', expected 0 and 1, or true and false",
    ]);
  });

  test('that are not there are left to chance, on request', async () => {
    const table = nodes.replace('split,', '').replaceAll(/(train|val),/g, '');
    const folder = folderOf({ 'nodes.csv': table, 'edges.csv': edges });
    expect(await linesOf('CSV', folder)).toEqual([
      expect.stringMatching(/^train: the source has no split: .*--random-split/),
    ]);
    const randomSplit = { validation: 0.25, test: 0.25, randomSeed: 1 };
    const { manifest } = await tryImport('CSV', folder, { randomSplit });
    expect(manifest.split).toEqual({ train: 2, val: 1, test: 1 });
  });

  test('and no feature at all is a graph that gets columns of degrees', async () => {
    const table = nodes.replace(',age', '').replaceAll(/,\d\d\n/g, '\n');
    const { notices } = await withNodes(table);
    expect(notices).toContainEqual(expect.stringContaining('the source has no features'));
  });
});

test('a table without labels is a graph to be predicted, unless a label is misspelt', async () => {
  const table = 'id,age\na,31\nb,28\nc,45\nd,50\n';
  const { manifest, notices, numbers } = await withNodes(table);
  expect(manifest).toMatchObject({ num_nodes: 4, num_features: 1, num_classes: 0 });
  expect(numbers('labels.npy')).toEqual([-1, -1, -1, -1]);
  expect(notices).toContainEqual(expect.stringContaining('there are no labels'));
  const misspelt = table.replace('age', 'lable');
  expect(await linesOf('CSV', folderOf({ 'nodes.csv': misspelt, 'edges.csv': edges }))).toEqual([
    "nodes.csv:1: has no column 'label', its header is 'id', 'lable'; is 'lable' what you mean",
  ]);
});

test('texts that say nothing are unknown labels, not classes, which a notice counts', async () => {
  const labels = ['cat', 'dog', 'nan', 'None', 'NA', '', 'NaN', 'None'];
  const rows = labels.map(
    (label, row) => `n${row},${label},${row < 2 ? 'train' : ''},${row * row}`,
  );
  const folder = folderOf({
    'nodes.csv': ['id,label,split,x', ...rows].join('\n'),
    'edges.csv': 'source,target\nn0,n1\n',
  });
  const { manifest, numbers, notices } = await tryImport('CSV', folder);
  expect(manifest.class_names).toEqual(['cat', 'dog']);
  expect(numbers('labels.npy')).toEqual([0, 1, -1, -1, -1, -1, -1, -1]);
  expect(notices).toContainEqual(
    "labels 1 'nan', 2 'None', 1 'NA', 1 'NaN' are taken for unknown, not for a class",
  );
});

/** A text as one zstd frame of stored bytes. */
function zstd(text: string): Uint8Array {
  const bytes = Buffer.from(text);
  const head = Buffer.alloc(12);
  head.set([0x28, 0xb5, 0x2f, 0xfd, 0xa0]);
  head.writeUInt32LE(bytes.length, 5);
  head.writeUIntLE(bytes.length * 8 + 1, 9, 3);
  return Buffer.concat([head, bytes]);
}

test('tables may have capital letters in their names', async () => {
  const files = { 'Nodes.CSV': 'id,label,split,a\nx,0,train,1\ny,1,val,2\n' };
  const source = folderOf({ ...files, 'Edges.csv': 'source,target\nx,y\n' });
  expect(await detectFormat(source, null)).toEqual({ kind: 'format', format: 'CSV' });
  const { manifest } = await tryImport('CSV', source);
  expect(manifest).toMatchObject({ num_nodes: 2, num_features: 1, split: { train: 1, val: 1 } });
});

test('labels that are all different are told to be names', async () => {
  const names = ['Ann', 'Bob', 'Cyd', 'Dan', 'Eve'];
  const rows = names.map((name, at) => `${at},${name},${at === 0 ? 'val' : 'train'},${at}.5\n`);
  const source = folderOf({
    'nodes.csv': `id,label,split,a\n${rows.join('')}`,
    'edges.csv': 'source,target\n0,1\n',
  });
  const { notices } = await tryImport('CSV', source);
  expect(notices).toContainEqual(
    expect.stringMatching(/are they names\?.*--ignore-columns 'label'/),
  );
});
