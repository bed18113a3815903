import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { detectFormat } from '../../../src/datasets/detect-format.ts';
import type { ImportFormat } from '../../../src/records/dataset-record.ts';
import { int32, int64, linesOf, makeFolder, npy, parquet, tryImport, zip } from './workbench.ts';

/** One graph in every format: path 0 - 1 - 2 - 3 - 4 and 0 - 4, two features, three classes. */

const edges = [
  [0, 1],
  [1, 2],
  [2, 3],
  [3, 4],
  [0, 4],
] as const;
const features = [
  [1, 0.5],
  [-2, 0.25],
  [3, 0.1],
  [0, 1e-3],
  [7.5, -0.125],
] as const;
/** NaN: not known. */
const unknown = Number.NaN;

/** What is learnt of the nodes: a row each, and how an array has them. */
interface Labels {
  readonly rows: readonly (readonly number[])[];
  readonly array: Uint8Array;
  /** Elements of labels.npy; NaN as null. */
  readonly stored: readonly (number | null)[];
}

const labels = [0, 1, -1, 2, 1] as const;
const classRows: Labels = {
  rows: labels.map((label) => [label === -1 ? unknown : label]),
  array: int32(...labels),
  stored: labels,
};
const severalRows = [
  [1, 0],
  [1, 1],
  [unknown, unknown],
  [0, unknown],
  [0, 0],
];
const several: Labels = {
  rows: severalRows,
  array: npy(
    'uint8',
    [5, 2],
    Uint8Array.from(severalRows.flat(), (label) => (Number.isNaN(label) ? 255 : label)),
  ),
  stored: severalRows.flat().map((label) => (Number.isNaN(label) ? 255 : label)),
};
const targetRows = [
  [1, -1],
  [0.5, 1e20],
  [unknown, unknown],
  [-3, unknown],
  [0, 0.1],
];
const targets: Labels = {
  rows: targetRows,
  array: npy('float64', [5, 2], Float64Array.from(targetRows.flat())),
  stored: targetRows.flat().map((value) => (Number.isNaN(value) ? null : Math.fround(value))),
};
const oneTarget: Labels = {
  rows: targetRows.map(([target = unknown]) => [target]),
  array: npy(
    'float32',
    [5],
    Float32Array.from(targetRows, ([target = unknown]) => target),
  ),
  stored: targetRows.map(([target = unknown]) => (Number.isNaN(target) ? null : target)),
};
const split = { train: [0, 3], val: [1], test: [4] } as const;
const splitOf = (node: number) =>
  Object.entries(split).find(([, nodes]) => (nodes as readonly number[]).includes(node))?.[0] ?? '';

type Files = Readonly<Record<string, string | Uint8Array>>;

/** A folder with these files, also in folders below. */
function treeOf(files: Files): string {
  const root = makeFolder();
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), content);
  }
  return root;
}

const namesIn = (folder: string) =>
  readFileSync(join(folder, 'names.txt'), 'utf8').split('\n').slice(0, -1);

const lines = (rows: readonly (readonly unknown[])[]) => `${rows.map(String).join('\n')}\n`;
const packed = (rows: readonly (readonly unknown[])[]) => gzipSync(lines(rows));
const featureArray = npy('float32', [5, 2], Float32Array.from(features.flat()));
/** Both directions, by target and then by source, as PyG's coalesce leaves them. */
const bothWays = [...edges, ...edges.map(([u, v]) => [v, u] as const)].toSorted(
  (a, b) => a[1] - b[1] || a[0] - b[0],
);
const ends = [...bothWays.map(([u]) => u), ...bothWays.map(([, v]) => v)];
const edgeIndex = npy('int64', [2, bothWays.length], BigInt64Array.from(ends, BigInt));
const splits = {
  'train.npy': int64(...split.train),
  'val.npy': int64(...split.val),
  'test.npy': int64(...split.test),
};
const nodeArraysOf = ({ array }: Labels) => ({
  ...{ 'features.npy': featureArray, 'labels.npy': array },
  ...splits,
});
const nodeArrays = nodeArraysOf(classRows);
const edgeTable = lines([['source', 'target'], ...edges]);
const text = (value: number, nothing = '') => (Number.isNaN(value) ? nothing : value);
const labelNames = ({ rows: [first = []] }: Labels) =>
  first.length === 1 ? ['label'] : first.map((_, at) => `label_${at}`);
const nodeTableOf = (what: Labels) =>
  lines([
    ['id', ...labelNames(what), 'split', 'a', 'b'],
    ...features.map(([a, b], node) => {
      const fields = (what.rows[node] ?? []).map((value) => text(value));
      return [node, ...fields, splitOf(node), a, b];
    }),
  ]);
const nodeTable = nodeTableOf(classRows);

const orNull = (value = unknown) => (Number.isNaN(value) ? null : value);
const nodeColumnsOf = (what: Labels) => ({
  id: features.map((_, node) => BigInt(node)),
  ...Object.fromEntries(
    labelNames(what).map((name, at) => [name, what.rows.map((row) => orNull(row[at]))]),
  ),
  split: features.map((_, node) => splitOf(node)),
});
const nodeColumns = nodeColumnsOf(classRows);
/** Labels as a column of lists, where there are several. */
const listColumnsOf = (what: Labels) => {
  if (labelNames(what).length === 1) return nodeColumnsOf(what);
  const { id, split: splitColumn } = nodeColumnsOf(what);
  const label = what.rows.map((row) => (row.every(Number.isNaN) ? null : row.map(orNull)));
  return { id, label, split: splitColumn };
};
const edgeColumns = {
  source: edges.map(([u]) => BigInt(u)),
  target: edges.map(([, v]) => BigInt(v)),
};

const ogbSplits = {
  'split/time/train.csv.gz': packed(split.train.map((node) => [node])),
  'split/time/valid.csv.gz': packed(split.val.map((node) => [node])),
  'split/time/test.csv.gz': packed(split.test.map((node) => [node])),
};
const ogbOf = ({ rows }: Labels): Files => ({
  'raw/edge.csv.gz': packed(edges),
  'raw/num-node-list.csv.gz': packed([[5]]),
  'raw/num-edge-list.csv.gz': packed([[edges.length]]),
  'raw/node-feat.csv.gz': packed(features),
  'raw/node-label.csv.gz': packed(rows.map((row) => row.map((value) => text(value, 'nan')))),
  ...ogbSplits,
});
const ogb = ogbOf(classRows);
const listed = [...edges.map(([u]) => u), ...edges.map(([, v]) => v)];
const ogbBinaryOf = ({ rows }: Labels): Files => ({
  'raw/data.npz': zip({
    'edge_index.npy': npy('int64', [2, edges.length], BigInt64Array.from(listed, BigInt)),
    'node_feat.npy': featureArray,
    'num_nodes_list.npy': int64(5),
  }),
  'raw/node-label.npz': zip({
    'node_label.npy': npy('float32', [5, rows[0]?.length ?? 0], Float32Array.from(rows.flat())),
  }),
  ...ogbSplits,
});
const ogbBinary = ogbBinaryOf(classRows);

function setLabels(rows: readonly (readonly number[])[]): Uint8Array {
  const width = rows[0]?.length ?? 0;
  if (rows.flat().every(Number.isInteger) && width === 1) return int64(...rows.flat());
  return npy('float32', [rows.length, width], Float32Array.from(rows.flat()));
}

function graphBolt(format: 'numpy' | 'csv', { rows }: Labels = classRows): Files {
  const sets = { train: 'train_set', val: 'validation_set', test: 'test_set' } as const;
  const file = (name: string) => `format: numpy, path: set/${name}.npy`;
  const setText = Object.entries(sets).map(
    ([name, key]) => `    ${key}:
      - data:
          - {name: seeds, ${file(`${name}-seeds`)}}
          - {name: labels, ${file(`${name}-labels`)}}`,
  );
  const metadata = `dataset_name: five
graph:
  nodes: [{num: 5}]
  edges: [{format: ${format}, path: edges/edges.${format === 'csv' ? 'csv' : 'npy'}}]
feature_data:
  - {domain: node, name: feat, format: numpy, path: data/feat.npy, in_memory: false}
tasks:
  - name: node_classification
    num_classes: 3
${setText.join('\n')}
`;
  const arrays = Object.entries(split).flatMap(([name, nodes]) => [
    [`set/${name}-seeds.npy`, int64(...nodes)] as const,
    [`set/${name}-labels.npy`, setLabels(nodes.map((node) => rows[node] ?? []))] as const,
  ]);
  return {
    'metadata.yaml': metadata,
    'data/feat.npy': featureArray,
    ...(format === 'csv' ? { 'edges/edges.csv': lines(bothWays) } : {}),
    ...(format === 'numpy' ? { 'edges/edges.npy': edgeIndex } : {}),
    ...Object.fromEntries(arrays),
  };
}

const graphsOf = (what: Labels): Readonly<Record<string, readonly [ImportFormat, Files]>> => ({
  '.npy with edge_index': [
    'NPY',
    { ...nodeArraysOf(what), 'edge_index.npy': edgeIndex, 'meta.json': '{}' },
  ],
  'CSV tables': ['CSV', { 'nodes.csv': nodeTableOf(what), 'edges.csv': edgeTable }],
  'an edge list and arrays': [
    'CSV',
    { ...nodeArraysOf(what), 'edges.csv.gz': gzipSync(edgeTable) },
  ],
  'Parquet tables': [
    'PARQUET',
    {
      'nodes.parquet': parquet({
        ...nodeColumnsOf(what),
        a: features.map(([a]) => a),
        b: features.map(([, b]) => b),
      }),
      'edges.parquet': parquet(edgeColumns),
    },
  ],
  'Parquet tables packed with zstd': [
    'PARQUET',
    {
      'nodes.parquet': parquet(
        {
          ...nodeColumnsOf(what),
          a: features.map(([a]) => a),
          b: features.map(([, b]) => b),
        },
        'ZSTD',
      ),
      'edges.parquet': parquet(edgeColumns, 'ZSTD'),
    },
  ],
  'Parquet with a column of lists, edges as CSV': [
    'PARQUET',
    {
      'nodes.parquet': parquet({
        ...listColumnsOf(what),
        embedding: features.map((row) => [...row]),
      }),
      'edges.csv': edgeTable,
    },
  ],
  'an OGB folder': ['OGB', ogbOf(what)],
  'an OGB folder of archives': ['OGB', ogbBinaryOf(what)],
  'a GraphBolt folder': ['GRAPHBOLT', graphBolt('numpy', what)],
  'a GraphBolt folder with edges as CSV': ['GRAPHBOLT', graphBolt('csv', what)],
});

const cases = [
  ['classes', classRows, { task: undefined, num_classes: 3 }],
  ['several labels', several, { task: 'MULTI_LABEL', num_classes: 2 }],
  ['several targets', targets, { task: 'REGRESSION', num_classes: 2 }],
  ['a target', oneTarget, { task: 'REGRESSION', num_classes: 1 }],
] as const;

test.each(cases)(
  'the same graph is the same dataset, whatever format it comes in: %s',
  async (_, what, facts) => {
    const digests = new Map<string, string>();
    const graphs = graphsOf(what);
    for (const [name, [format, files]] of Object.entries(graphs)) {
      const source = treeOf(files);
      expect(await detectFormat(source, null)).toEqual({ kind: 'format', format });
      const { digest, numbers, manifest } = await tryImport(format, source);
      expect(numbers('indptr.npy')).toEqual([0, 2, 4, 6, 8, 10]);
      expect(numbers('indices.npy')).toEqual([1, 4, 0, 2, 1, 3, 2, 4, 0, 3]);
      const stored = numbers('labels.npy').map((value) => (Number.isNaN(value) ? null : value));
      expect(stored, name).toEqual([...what.stored]);
      const { task, num_classes } = manifest;
      expect({ task, num_classes }, name).toEqual(facts);
      digests.set(name, digest);
    }
    const first = digests.values().next().value ?? '';
    expect(Object.fromEntries(digests)).toEqual(
      Object.fromEntries(Object.keys(graphs).map((name) => [name, first])),
    );
  },
);

describe('an OGB folder', () => {
  test('keeps directions where that is asked for', async () => {
    for (const files of [ogb, ogbBinary]) {
      const { numbers, story } = await tryImport('OGB', treeOf(files), { directed: true });
      expect(numbers('indptr.npy')).toEqual([0, 0, 1, 2, 3, 5]);
      expect(numbers('indices.npy')).toEqual([0, 1, 2, 0, 3]);
      expect(story.undirected).toBe(false);
    }
  });

  test('has names of nodes and classes where mapping has them', async () => {
    const mapping = {
      'mapping/labelidx2category.csv.gz': packed([['label idx', 'category'], ...classes]),
      'mapping/nodeidx2paper.csv.gz': packed([['node idx', 'paper id'], ...papers]),
    };
    const { manifest, folder } = await tryImport('OGB', treeOf({ ...ogb, ...mapping }));
    expect(manifest.class_names).toEqual(['a', 'b', 'c']);
    expect(namesIn(folder)).toEqual(['p0', 'p1', 'p2', 'p3', 'p4']);
  });

  test('says what is wrong by file and line', async () => {
    const bad = {
      ...ogb,
      'raw/edge.csv.gz': packed([[0, 1], [0, 5], [1], ['a', 2]]),
    };
    expect(await linesOf('OGB', treeOf(bad))).toEqual([
      "raw/edge.csv.gz:2: has '5', expected the number of a node below 5",
      'raw/edge.csv.gz:3: has 1 fields, expected source and target',
      "raw/edge.csv.gz:4: has 'a', expected the number of a node below 5",
    ]);
    const labelled = packed([[0, 1], [0], ['x', 1], [2, 'nan'], [0, '']]);
    expect(await linesOf('OGB', treeOf({ ...ogb, 'raw/node-label.csv.gz': labelled }))).toEqual([
      'raw/node-label.csv.gz:2: has 1 fields, the first line has 2',
      "raw/node-label.csv.gz:3: has 'x' in column 1, expected a float32 number or nan",
      'raw/node-label.csv.gz: has 2 at row 3, column 0, expected labels 0 and 1: with task ' +
        'regression they are numbers to learn; of classes each node has one',
    ]);
    const short = { ...ogb, 'raw/node-feat.csv.gz': packed(features.slice(1)) };
    expect(await linesOf('OGB', treeOf(short))).toContain(
      'raw/node-feat.csv.gz: has 4 rows, expected 5',
    );
    const masks = Object.entries(split).map(([name, nodes]): [string, Buffer] => {
      const marked = [0, 1, 2, 3, 4].map((node) => [Number(nodes.some((one) => one === node))]);
      return [`split/time/${name === 'val' ? 'valid' : name}.csv.gz`, packed(marked)];
    });
    const byMasks = await tryImport('OGB', treeOf({ ...ogb, ...Object.fromEntries(masks) }));
    expect(byMasks.digest).toBe((await tryImport('OGB', treeOf(ogb))).digest);
    const { 'raw/edge.csv.gz': _, 'raw/node-feat.csv.gz': __, ...less } = ogb;
    expect(await linesOf('OGB', treeOf(less))).toEqual([
      'raw/edge.csv.gz: is missing',
      'raw/node-feat.csv.gz: is missing',
    ]);
    expect(await linesOf('OGB', treeOf({ ...ogb, 'split/random/train.csv.gz': '' }))).toEqual([
      'split: has random and time: choose one with split',
    ]);
  });
});

const classes = ['a', 'b', 'c'].map((name, label) => [label, name]);
const papers = features.map((_, node) => [node, `p${node}`]);

describe('a GraphBolt folder', () => {
  test('says everything that is wrong with its description', async () => {
    const metadata = `graph:
  nodes: [{num: none}]
  edges: [{format: csv, path: a}, {format: csv, path: b}]
feature_data: [{domain: node, name: feat, format: torch, path: data/feat.pt}]
tasks: [{train_set: [{data: [{name: seeds, format: numpy, path: ../../x.npy}]}]}]
`;
    const found = await linesOf('GRAPHBOLT', treeOf({ 'metadata.yaml': metadata }));
    expect(found).toEqual([
      'metadata.yaml: graph.edges: has 2 types of edges: gnnd learns from one',
      'metadata.yaml: graph.nodes[0].num: is "none", expected a count of nodes',
      expect.stringMatching(/^metadata.yaml: graph.edges\[0\]: names a, which cannot be read/),
      'metadata.yaml: feature_data: has format torch, expected numpy: ' +
        'numpy.save(path, torch.load(path).numpy())',
      expect.stringMatching(/^metadata.yaml: tasks\[0\].train_set: seeds: names ..\/..\/x.npy/),
      'metadata.yaml: tasks[0].train_set: labels: names no path',
      'metadata.yaml: tasks[0].validation_set: is missing, expected a list of one',
      'metadata.yaml: tasks[0].validation_set: seeds: names no path',
      'metadata.yaml: tasks[0].validation_set: labels: names no path',
    ]);
  });

  test('has labels for the nodes of each set, and no others', async () => {
    const files = { ...graphBolt('csv'), 'set/val-labels.npy': int64(1, 2) };
    expect(await linesOf('GRAPHBOLT', treeOf(files))).toEqual([
      'set/val-labels.npy: has 2 labels for 1 nodes of set/val-seeds.npy',
    ]);
    const wide = { ...graphBolt('csv', several), 'set/val-labels.npy': setLabels([[1, 0, 1]]) };
    expect(await linesOf('GRAPHBOLT', treeOf(wide))).toEqual([
      'set/val-labels.npy: has 3 labels a node, set/train-labels.npy has 2',
    ]);
    const three = npy('float32', [1, 1, 2], new Float32Array(2));
    const cube = { ...graphBolt('csv', several), 'set/val-labels.npy': three };
    expect(await linesOf('GRAPHBOLT', treeOf(cube))).toEqual([
      'set/val-labels.npy: has float32 (1, 1, 2), expected [nodes] or [nodes, labels]',
    ]);
    const outside = { ...graphBolt('csv'), 'set/val-seeds.npy': int64(5) };
    expect(await linesOf('GRAPHBOLT', treeOf(outside))).toEqual([
      'set/val-seeds.npy: has 5 at index 0, expected a number from 0 to below 5',
    ]);
    const mask = { ...graphBolt('csv'), 'set/val-seeds.npy': int64(0, 1, 0, 0, 0) };
    expect(await linesOf('GRAPHBOLT', treeOf(mask))).toEqual([
      'set/val-seeds.npy: has 5 values of 0 and 1, which are a mask: ' +
        'expected the numbers of its nodes, each once',
    ]);
  });

  test('may list the nodes of a set in any order, and call its task a regression', async () => {
    const files = graphBolt('csv', several);
    const { digest } = await tryImport('GRAPHBOLT', treeOf(files));
    const turned = {
      'set/train-seeds.npy': int64(...split.train.toReversed()),
      'set/train-labels.npy': setLabels(
        split.train.toReversed().map((node) => severalRows[node] ?? []),
      ),
    };
    expect((await tryImport('GRAPHBOLT', treeOf({ ...files, ...turned }))).digest).toBe(digest);
    const metadata = String(files['metadata.yaml']).replace('classification', 'regression');
    const named = await tryImport('GRAPHBOLT', treeOf({ ...files, 'metadata.yaml': metadata }));
    expect(named.manifest.task).toBe('REGRESSION');
  });
});

describe('Parquet tables', () => {
  test('name the row of a problem', async () => {
    const files = {
      'nodes.parquet': parquet({
        ...nodeColumns,
        embedding: features.map((row, node) => (node === 3 ? [1] : [...row])),
      }),
      'edges.parquet': parquet({ source: [0n, 9n], target: [1n, 0n] }),
    };
    expect(await linesOf('PARQUET', treeOf(files))).toEqual([
      "nodes.parquet row 4: has 1 numbers in column 'embedding', the first row has 2",
      "edges.parquet row 2: has the source '9', which is no id of the nodes",
    ]);
  });

  test('have texts for ids, which are kept', async () => {
    const id = features.map((_, node) => `n${node}`);
    const files = {
      'nodes.parquet': parquet({ ...nodeColumns, id, x: features.map(([a]) => a) }),
      'edges.parquet': parquet({ source: ['n0', 'n1'], target: ['n1', 'n4'] }),
    };
    const { folder, numbers } = await tryImport('PARQUET', treeOf(files));
    expect(namesIn(folder)).toEqual(id);
    expect(numbers('indices.npy')).toEqual([1, 0, 4, 1]);
  });

  test('have ids of 64 bits, and nothing where a number is none', async () => {
    const id = features.map((_, node) => 2n ** 62n + BigInt(node));
    const label = labels.map((value) => (value === -1 ? Number.NaN : value));
    const files = {
      'nodes.parquet': parquet({ ...nodeColumns, id, label, x: features.map(([a]) => a) }),
      'edges.parquet': parquet({ source: id.slice(0, 4), target: id.slice(1) }),
    };
    const { folder, numbers } = await tryImport('PARQUET', treeOf(files));
    expect(namesIn(folder)).toEqual(id.map(String));
    expect(numbers('indices.npy')).toEqual([1, 0, 2, 1, 3, 2, 4, 3]);
    expect(numbers('labels.npy')).toEqual([...labels]);
  });

  test('that are none, or were cut, say so', async () => {
    const whole = parquet(edgeColumns);
    for (const bytes of ['no Parquet', whole.subarray(20)]) {
      const files = { 'nodes.csv': nodeTable, 'edges.parquet': bytes };
      expect(await linesOf('PARQUET', treeOf(files))).toEqual([
        expect.stringMatching(/^edges.parquet: (is not a whole Parquet file|cannot be read)/),
      ]);
    }
  });
});

describe('an edge list and arrays', () => {
  test('may call nodes by names.txt', async () => {
    const names = 'ann\nbob\ncyd\ndan\neve\n';
    const text = 'source,target\nann,bob\nbob,cyd\ncyd,dan\ndan,eve\nann,eve\n';
    const files = { ...nodeArrays, 'names.txt': names, 'edges.csv': text };
    const { numbers, folder } = await tryImport('CSV', treeOf(files));
    expect(numbers('indices.npy')).toEqual([1, 4, 0, 2, 1, 3, 2, 4, 0, 3]);
    expect(namesIn(folder)).toEqual(['ann', 'bob', 'cyd', 'dan', 'eve']);
    const short = { ...files, 'names.txt': 'ann\nann\n' };
    expect(await linesOf('CSV', treeOf(short))).toEqual([
      "names.txt:2: has the id 'ann' again, ids must be unique",
      'names.txt: has 2 lines, expected one for each of the 5 nodes',
    ]);
  });
});
