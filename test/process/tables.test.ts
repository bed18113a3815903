import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { batchesBytesMin } from '../../src/datasets/text-batches.ts';
import { loadCore } from '../../src/native/load.ts';
import {
  folderOf,
  linesOf,
  makeFolder,
  trustingValidator,
  tryImport,
} from '../unit/datasets/workbench.ts';

/** Large tables of text, which native code reads: the same datasets and messages as by rows. */

const { datasetValidate } = trustingValidator();
const native = { ...loadCore(), datasetValidate };

/** A folder of files that may be in folders of it. */
function filesIn(files: Readonly<Record<string, string | Uint8Array>>): string {
  const folder = makeFolder();
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(join(folder, path, '..'), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
  return folder;
}

/** Tables of some MiB. */
const rowCount = 72_000;
const idOf = (row: number) => `n ${row}`;
const header = 'id,label,split,"x, y",z';
const rowsOf = (id: (row: number) => string) =>
  Array.from({ length: rowCount }, (_, row) => {
    const split = ['train', '', 'val'][row % 3];
    return `${id(row)},${row % 4},${split},${row / 8},-${row}.5e-1`;
  });
const edgesOf = (id: (row: number) => string) =>
  Array.from({ length: rowCount }, (_, row) => `${id(row)},${id((row * 7 + 1) % rowCount)}`);
const lines = (head: string, rows: readonly string[], end = '\n') => [head, ...rows].join(end);

const nodes = rowsOf(idOf);
const edges = edgesOf(idOf);
const ends = 'source,target';
const plain = { 'nodes.csv': lines(header, nodes), 'edges.csv': lines(ends, edges) };
const imported = (files: Readonly<Record<string, string | Uint8Array>>, choices = {}) =>
  tryImport('CSV', filesIn(files), { native, ...choices });
/** In parts that are each read by rows. */
function inParts(head: string, rows: readonly string[], table: string) {
  const size = 25_000;
  const parts = Array.from({ length: Math.ceil(rows.length / size) }, (_, part) => [
    `${table}.csv/part-${part}.csv`,
    lines(head, rows.slice(part * size, (part + 1) * size)),
  ]);
  return Object.fromEntries(parts) as Record<string, string>;
}

describe('a large table of text', () => {
  test('is the dataset that its rows are', async () => {
    expect(Math.min(...Object.values(plain).map(({ length }) => length))).toBeGreaterThan(
      batchesBytesMin,
    );
    const { manifest, numbers, digest, story } = await imported(plain);
    expect(manifest).toMatchObject({ num_nodes: rowCount, num_features: 2, num_classes: 4 });
    const features = numbers('features.npy');
    expect(features.length).toBe(2 * rowCount);
    const wrong = features.findIndex((value, at) => {
      const row = Math.floor(at / 2);
      return value !== Math.fround(at % 2 === 0 ? row / 8 : -`${row}.5e-1`);
    });
    expect(wrong).toBe(-1);
    expect(numbers('labels.npy').findIndex((label, row) => label !== row % 4)).toBe(-1);
    expect(story.feature_names).toEqual(['x, y', 'z']);
    expect(digest).toMatch(/^[0-9a-f]{64}$/);
  });

  test('has one digest, however it is written', async () => {
    const { digest } = await imported(plain);
    const quoted = (row: string) => row.replace(/^([^,]*),(.*),([^,]*)$/, '"$1",$2,"$3"');
    const tab = (row: string) => row.replaceAll(',', '\t');
    const others = [
      { ...plain, 'nodes.csv': `\ufeff${lines(header, nodes, '\r\n')}\r\n\r\n` },
      {
        ...plain,
        'edges.csv': lines(
          ends,
          edges.map((row) => row.replace(/[^,]+/g, '"$&"')),
        ),
      },
      { ...plain, 'nodes.csv': lines(header, nodes.map(quoted)) },
      {
        ...plain,
        'nodes.csv': lines(
          header.replace('"x, y",', '"x, y"\t').replaceAll(/,(?! )/g, '\t'),
          nodes.map(tab),
        ),
      },
      {
        'edges.csv.gz': gzipSync(plain['edges.csv']),
        'nodes.csv.gz': gzipSync(plain['nodes.csv']),
      },
      { ...inParts(header, nodes, 'nodes'), 'edges.csv': plain['edges.csv'] },
      {
        'nodes.csv': plain['nodes.csv'],
        'edges.csv': lines(
          'a,target,source',
          edges.map((row) => `?,${row.replace(/(.*),(.*)/, '$2,$1')}`),
        ),
      },
    ];
    for (const files of others) expect((await imported(files)).digest).toBe(digest);
  });

  test('may have rows, and a header, that are longer than what is read at once', async () => {
    const columns = 2 ** 17;
    const names = Array.from({ length: columns }, (_, at) => `column-${at}`).join(',');
    expect(names.length).toBeGreaterThan(2 ** 20);
    const rows = [0, 1, 2].map((id) => `${id},${id % 2},train${`,0.${id}00000`.repeat(columns)}`);
    const files = {
      'nodes.csv': lines(`id,label,split,${names}`, rows),
      'edges.csv': `${ends}\n0,1`,
    };
    const { manifest, numbers } = await imported(files);
    expect(manifest).toMatchObject({ num_nodes: 3, num_features: columns, num_classes: 2 });
    expect(numbers('labels.npy')).toEqual([0, 1, 0]);
    expect(numbers('train.npy')).toEqual([0, 1, 2]);
    expect(numbers('features.npy').at(-1)).toBe(Math.fround(0.2));
  });

  test('may have ids that are numbers, and weights', async () => {
    const id = (row: number) => String(row);
    const weighted = edgesOf(id).map((row, at) => `${row},${1 + (at % 5) / 4}`);
    const head = `${ends},weight`;
    const whole = {
      'nodes.csv': lines(header, rowsOf(id)),
      'edges.csv': lines(head, weighted),
    };
    const { digest, numbers } = await imported(whole, { directed: true });
    expect(numbers('edge_weights.npy').length).toBeGreaterThan(rowCount / 2);
    const parts = { ...whole, ...inParts(head, weighted, 'edges') };
    const { 'edges.csv': _, ...others } = parts;
    expect((await imported(others, { directed: true })).digest).toBe(digest);
  });

  test('takes what is not plain, row by row', async () => {
    const odd = nodes
      .with(5, '"n ""5""",1,,true,-0.25')
      .with(6, `${nodes[6]?.replace(/,[^,]*$/, ',1e-400')}`)
      .with(7, '"n,7",3,val,0.1000000000000000055511151231257827021181583404541015625,FALSE');
    const joined = edges.map((row) =>
      row.replaceAll(/\bn 5(?!\d)/g, '"n ""5"""').replaceAll(/\bn 7(?!\d)/g, '"n,7"'),
    );
    const { numbers } = await imported({
      'nodes.csv': lines(header, odd),
      'edges.csv': lines(ends, joined),
    });
    expect(numbers('features.npy').slice(10, 16)).toEqual([1, -0.25, 0.75, 0, Math.fround(0.1), 0]);
    expect(numbers('indices.npy')).toEqual((await imported(plain)).numbers('indices.npy'));
  });
});

/** Columns of nodes, of which native code makes something of its own each. */
const kinds: Readonly<
  Record<string, { head: string; id: (row: number) => string; rest: (row: number) => string }>
> = {
  'ids from 1, classes of texts': {
    head: 'label,split',
    id: (row) => String(row + 1),
    rest: (row) => `${['red', 'green', '"b, l"'][row % 3]},${row % 5 === 0 ? 'test' : 'train'}`,
  },
  'ids that end as texts, labels that lack': {
    head: 'label,split',
    id: (row) => (row > 60_000 ? `n${row}` : String(row)),
    rest: (row) => (row % 3 === 0 ? ',' : `${row % 7},${row % 2 === 0 ? 'val' : 'train'}`),
  },
  'masks, and a -1': {
    head: 'label,train_mask,val_mask',
    id: String,
    rest: (row) => `${row % 6 === 5 ? -1 : row % 6},${row % 2 === 0 ? '1,0' : '0,'}`,
  },
  'numbers to learn, of which the first are whole': {
    head: 'label,split',
    id: (row) => `p/${row}`,
    rest: (row) => `${row > 500 ? row / 16 : row},train`,
  },
  'several labels': {
    head: 'label_a,label_b,split',
    id: String,
    rest: (row) => `${row % 2},${row % 3 === 0 ? 1 : 0},train`,
  },
  'no labels': { head: 'x', id: String, rest: (row) => String(row % 9) },
};

describe('a large table, by its columns', () => {
  test.each(Object.keys(kinds))('with %s is as by rows', async (kind) => {
    const { head, id, rest } = kinds[kind] ?? { head: '', id: String, rest: String };
    const rows = Array.from({ length: rowCount }, (_, row) => {
      return `${id(row)},${rest(row)},${(row * 7) % 1000}.5,${row % 11}`;
    });
    const files = {
      'nodes.csv': lines(`id,${head},a,b`, rows),
      'edges.csv': lines(ends, edgesOf(id)),
    };
    const { digest, notices, story } = await imported(files);
    const byRows = await imported(files, { native: trustingValidator() });
    expect([digest, notices]).toEqual([byRows.digest, byRows.notices]);
    expect(story.columns).toEqual(byRows.story.columns);
    const inFolders = {
      ...inParts(`id,${head},a,b`, rows, 'nodes'),
      'edges.csv': files['edges.csv'],
    };
    expect((await imported(inFolders)).digest).toBe(digest);
  });
});

describe('what is wrong in a large table', () => {
  const told = (files: Readonly<Record<string, string>>) =>
    linesOf('CSV', folderOf({ ...plain, ...files }), null, { native });

  test('is told by its line', async () => {
    const bad = nodes
      .with(10, 'n 10,0,train')
      .with(800, '"n\n800",0,train,1,2')
      .with(50_000, 'n 50000,1,,heavy,1')
      .with(50_500, 'n 50500,1,,,1')
      .with(59_000, 'n 0,1,,1,1');
    expect(await told({ 'nodes.csv': lines(header, bad) })).toEqual([
      'nodes.csv:12: has 3 fields, expected the 5 of the header',
      "nodes.csv:802: has the id 'n\n800' with a line break",
      "nodes.csv:50003: has 'heavy' in column 'x, y', expected a float32 number",
      "nodes.csv:50503: has '' in column 'x, y', expected a float32 number",
      "nodes.csv:59003: has the id 'n 0' again, ids must be unique",
    ]);
    const far = edges.with(3, 'n 3,n 100000').with(rowCount - 1, 'n 1');
    expect(await told({ 'edges.csv': lines(ends, far) })).toEqual([
      "edges.csv:5: has the target 'n 100000', which is no id of the nodes",
      'edges.csv:72001: has 1 fields, expected the 2 of the header',
    ]);
  });

  test('may be a weight, and an edge that has two', async () => {
    const weighted = edges.map((row) => `${row},1`);
    const head = `${ends},weight`;
    const negative = weighted.with(40_000, `${edges[40_000]},-1`);
    expect(await told({ 'edges.csv': lines(head, negative) })).toEqual([
      "edges.csv:40002: has the weight '-1', expected a finite number of 0 or more",
    ]);
    const twice = [...weighted, `${edges[17]},2`];
    expect(await told({ 'edges.csv': lines(head, twice) })).toEqual([
      expect.stringContaining('edges.csv:72002: lists the edge of edges.csv:19 again'),
    ]);
  });

  test('may be its encoding, or a quote that stays open', async () => {
    const latin = Buffer.from(plain['nodes.csv'].replace('n 30000', 'n \xe4'), 'latin1');
    expect(
      await linesOf('CSV', folderOf({ ...plain, 'nodes.csv': latin }), null, { native }),
    ).toEqual(['nodes.csv:30002: is not UTF-8 text: store the file as UTF-8']);
    const open = nodes.with(59_990, `"${nodes[59_990]}`);
    expect(await told({ 'nodes.csv': lines(header, open) })).toEqual([
      'nodes.csv:59992: has a quote that is never closed',
    ]);
  });
});
