import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readWritten } from '../../../src/datasets/adopt.ts';
import { detectFormat } from '../../../src/datasets/detect-format.ts';
import { requireOneType, requireReady } from '../../../src/datasets/ready-dataset.ts';
import { ended, request, trial } from './trial.ts';
import { type Files, importTypedFolder, library, pairs, typedFolder } from './typed-folder.ts';
import { float32, folderOf, int32, int64, linesOf, npy, pathGraph } from './workbench.ts';

const without = (files: Files, ...names: string[]): Files =>
  Object.fromEntries(Object.entries(files).filter(([name]) => !names.includes(name)));
const problems = (files: Files, choices = {}) =>
  linesOf('TYPED_NPY', typedFolder(files), null, choices);

const namesOf = ({ relations }: { readonly relations: readonly { readonly name: string }[] }) =>
  relations.map(({ name }) => name);

describe('a folder of several types', () => {
  test('is told by types.json, or by edges that are called after relations', async () => {
    const format = { kind: 'format', format: 'TYPED_NPY' };
    expect(await detectFormat(typedFolder(library), null)).toEqual(format);
    const bare = typedFolder(without(library, 'types.json'));
    expect(await detectFormat(bare, null)).toEqual(format);
    expect(await linesOf('TYPED_NPY', bare)).toEqual([
      expect.stringMatching(/^types\.json: cannot be read: /),
    ]);
  });

  test('becomes types and relations by name, with rows that ascend and no edge twice', async () => {
    const { manifest, numbers, notices, folder } = await importTypedFolder(typedFolder(library), {
      reverse: false,
    });
    expect(manifest.types).toEqual([
      { name: 'author', num_nodes: 2 },
      {
        ...{ name: 'paper', num_nodes: 3, features: { columns: 2, dtype: 'float32' } },
        labels: { task: 'CLASSIFICATION', num_classes: 2, split: { train: 1, val: 1, test: 1 } },
      },
    ]);
    expect(manifest.relations).toEqual([
      { source: 'author', name: 'writes', destination: 'paper', num_edges: 4 },
      { source: 'paper', name: 'cites', destination: 'paper', num_edges: 3 },
    ]);
    expect(numbers('edges/author__writes__paper/indptr.npy')).toEqual([0, 1, 2, 4]);
    expect(numbers('edges/author__writes__paper/indices.npy')).toEqual([0, 1, 0, 1]);
    // An edge from a node to itself is one that somebody put there.
    expect(numbers('edges/paper__cites__paper/indptr.npy')).toEqual([0, 2, 3, 3]);
    expect(numbers('edges/paper__cites__paper/indices.npy')).toEqual([1, 2, 1]);
    expect(numbers('nodes/paper/labels.npy')).toEqual([0, 1, 1]);
    expect(Object.keys(manifest.sha256)).toHaveLength(9);
    expect(readdirSync(folder).sort()).toEqual(['dataset.json', 'edges', 'import.json', 'nodes']);
    expect(notices).toEqual([
      'types.json: author_names is not used: it is no number of nodes',
      'author__writes__paper: 1 edge that is listed again and stored once',
    ]);
    expect(readWritten(folder)?.manifest).toEqual(manifest);
  });

  test('is the same dataset in any order and form of its edges', async () => {
    const { digest } = await importTypedFolder(typedFolder(library));
    const turned = npy('int64', [4, 2], BigInt64Array.of(1n, 2n, 1n, 1n, 0n, 2n, 0n, 0n));
    const rows = without(
      library,
      'edges/author__writes__paper.npy',
      'edges/paper__cites__paper.npy',
    );
    const other = {
      ...rows,
      'types.json': '{"author": 2, "paper": 3}',
      'edges/author__writes__paper/pairs.npy': turned,
      'edges/paper__cites__paper/indptr.npy': int32(0, 2, 3, 3),
      'edges/paper__cites__paper/indices.npy': int64(2, 1, 1),
    };
    expect((await importTypedFolder(typedFolder(other))).digest).toBe(digest);
    // As numpy saves pairs that were chosen by a mask: those of `turned`, side by side.
    const text = turned.toString('latin1');
    const masked = text.replace("False, 'shape': (4, 2)", "True,  'shape': (2, 4)");
    const fortran = {
      ...other,
      'edges/author__writes__paper/pairs.npy': Buffer.from(masked, 'latin1'),
    };
    expect((await importTypedFolder(typedFolder(fortran))).digest).toBe(digest);
  });

  test('takes two edges for sources, then destinations, in either order of elements', async () => {
    const relation = 'edges/author__writes__paper.npy';
    const two = npy('int32', [2, 2], Int32Array.of(0, 1, 2, 1));
    const indices = 'edges/author__writes__paper/indptr.npy';
    const given = await importTypedFolder(typedFolder({ ...library, [relation]: two }));
    expect(given.numbers(indices)).toEqual([0, 0, 1, 2]);
    const turned = npy('int32', [2, 2], Int32Array.of(0, 2, 1, 1)).toString('latin1');
    const fortran = Buffer.from(turned.replace("False, 'shape'", "True,  'shape'"), 'latin1');
    const other = await importTypedFolder(typedFolder({ ...library, [relation]: fortran }));
    expect(other.digest).toBe(given.digest);
  });

  test('has each relation in the other direction unless that is not wanted', async () => {
    const { manifest, numbers } = await importTypedFolder(typedFolder(library));
    expect(manifest.relations.map(({ name, reverse_of }) => [name, reverse_of])).toEqual([
      ['writes', undefined],
      ['cites', undefined],
      ['rev_cites', 'paper__cites__paper'],
      ['rev_writes', 'author__writes__paper'],
    ]);
    expect(numbers('edges/paper__rev_writes__author/indptr.npy')).toEqual([0, 2, 4]);
    expect(numbers('edges/paper__rev_writes__author/indices.npy')).toEqual([0, 2, 1, 2]);
    const plain = await importTypedFolder(typedFolder(library), { reverse: false });
    expect(namesOf(plain.manifest)).toEqual(['writes', 'cites']);
  });

  test('has no reverse of what is there both ways already', async () => {
    const given = {
      ...library,
      'edges/paper__rev_writes__author.npy': pairs([0, 0]),
      'edges/paper__cites__paper.npy': pairs([0, 1], [1, 0], [2, 2]),
    };
    const { manifest, folder } = await importTypedFolder(typedFolder(given), { reverse: true });
    expect(namesOf(manifest)).toEqual(['writes', 'cites', 'rev_writes']);
    expect(readdirSync(join(folder, 'edges'))).toHaveLength(3);
  });

  test('says all at once what its names and counts cannot be', async () => {
    const files = {
      'types.json': JSON.stringify({ paper: 3, author: 0, a__b: 1, venue: '4' }),
      'nodes/papers/labels.npy': int64(0),
      'nodes/notes.txt': 'x',
      'edges/author__writes__papers.npy': pairs([0, 0]),
      'edges/cites.npy': pairs([0, 0]),
      'edges/paper__cites__paper.npy': pairs([0, 3], [7, 1], [9, 0]),
      'edges/paper__cites__paper/pairs.npy': pairs([0, 0]),
      'edges/paper__in__venue/weights.npy': float32(1),
      'edges/paper__near__paper.npy': npy('float32', [2, 1], Float32Array.of(0, 1)),
      'edges/paper__over__paper.npy': npy('int32', [3, 1], Int32Array.of(0, 1, 2)),
      'edges/paper__under__paper.npy': pairs([-1, 0]),
    };
    expect(await problems(files)).toEqual([
      "types.json: has the type 'a__b': expected up to 64 of a-z, A-Z, 0-9, - and single _ " +
        'between them',
      'types.json: says author is 0, expected a number of nodes from 1 to 4,294,967,294',
      'types.json: says venue is "4", expected a number of nodes from 1 to 4,294,967,294',
      "nodes/papers: 'papers' is no type of types.json; did you mean paper?",
      "edges/author__writes__papers.npy: 'papers' is no type of types.json; did you mean paper?",
      'edges/cites.npy: is called after no relation: expected ' +
        'edges/SOURCE__RELATION__DESTINATION.npy; of names: expected up to 64 of a-z, A-Z, 0-9, ' +
        '- and single _ between them',
      'edges/paper__cites__paper.npy: is the same relation as ' +
        'edges/paper__cites__paper/pairs.npy, expected one of them',
      'edges/paper__in__venue/weights.npy: several types take edges alone so far; remove it to ' +
        'import them without',
      'edges/paper__in__venue: expected indptr.npy and indices.npy in it, or pairs.npy',
      'edges/paper__near__paper.npy: has dtype float32, expected ids of nodes: int8, int16, ' +
        'int32, int64, uint8, uint16, uint32, uint64',
      'edges/paper__over__paper.npy: has shape (3, 1), expected [2, edges] or [edges, 2]',
      'edges/paper__under__paper.npy: has -1, expected ids from 0 on',
    ]);
  });

  test('says which ends of edges are no nodes of their types', async () => {
    const files = {
      ...without(library, 'edges/paper__cites__paper.npy'),
      'edges/author__writes__paper.npy': pairs([0, 0], [2, 3], [5, 2]),
      'edges/paper__by__author/indptr.npy': int32(0, 2, 1),
      'edges/paper__by__author/indices.npy': int32(0, 1),
    };
    expect(await problems(files)).toEqual([
      'edges/author__writes__paper.npy: has the source 2 of edge 1 and 1 more, expected ids ' +
        'below the 2 nodes of author',
      'edges/author__writes__paper.npy: has the destination 3 of edge 1, expected ids below the ' +
        '3 nodes of paper',
      'edges/paper__by__author/indptr.npy: has 1 at index 2, expected from 2 to the 2 of ' +
        'indices.npy, at the end these',
    ]);
  });

  test('says what is wrong with the nodes of a type', async () => {
    const files = {
      ...without(library, 'nodes/paper/labels.npy'),
      'nodes/paper/features.npy': npy('float32', [2, 2], new Float32Array(4)),
      'nodes/author/labels.npy': int64(0, 1),
      'nodes/author/names.txt': 'ann\n',
    };
    expect(await problems(files)).toEqual([
      'nodes/author/train: the source has no split: name the nodes of train, val and test, or ' +
        'let chance split the labelled nodes: --random-split 0.2,0.2 (in Python random_split=(0.2, 0.2))',
      'nodes/author/names.txt: has 1 lines, expected one for each of the 2 nodes',
      'nodes/paper/labels.npy: is missing',
    ]);
    const short = {
      ...library,
      'nodes/paper/features.npy': npy('float16', [2, 1], new Uint16Array(2)),
    };
    expect(await problems(without(short, 'nodes/paper/labels.npy', ...splits))).toEqual([
      'nodes/paper/features.npy: has 2 rows, types.json says 3 nodes',
    ]);
    const asked = { madeFeatures: 'DEGREE', split: '0' } as const;
    expect(await problems(library, asked)).toEqual([
      'split: is not for graphs of several types',
      'made_features: is not for graphs of several types: a type may have none',
    ]);
  });

  test('splits by chance what has labels and no split', async () => {
    const source = typedFolder(without(library, ...splits));
    const randomSplit = { validation: 0.34, test: 0, randomSeed: 1 };
    const { manifest } = await importTypedFolder(source, { randomSplit });
    expect(manifest.types[1]?.labels?.split).toEqual({ train: 2, val: 1, test: 0 });
  });
});

const splits = ['train', 'val', 'test'].map((side) => `nodes/paper/${side}.npy`);

describe('links of a relation', () => {
  const sides = {
    'train.npy': pairs([0, 0], [1, 2], [0, 2], [1, 1]),
    'val.npy': pairs([0, 1]),
    'test.npy': pairs([1, 0]),
  };
  const at = (place: string): Files =>
    Object.fromEntries(Object.entries(sides).map(([name, bytes]) => [`${place}/${name}`, bytes]));

  test('lie under its name, or are of the only relation that has them for edges', async () => {
    const named = await importTypedFolder(
      typedFolder({ ...library, ...at('links/author__writes__paper') }),
    );
    expect(named.manifest.relations[0]?.links).toMatchObject({ train: 4, val: 1, test: 1 });
    const place = 'edges/author__writes__paper/links_train.npy';
    expect(named.numbers(place)).toEqual([0, 0, 1, 2, 0, 2, 1, 1]);
    const bare = await importTypedFolder(typedFolder({ ...library, ...at('links') }));
    expect(bare.digest).toBe(named.digest);
    expect(bare.notices).toContain(
      'links/train.npy says no relation, and is of author__writes__paper, whose edges it has',
    );
  });

  test('are told of what they cannot be', async () => {
    const other = {
      ...library,
      'links/train.npy': pairs([0, 1]),
      'links/author__reads__paper/train.npy': pairs([1, 0]),
      'links/author__writes__paper/train.npy': pairs([1, 5]),
      'links/author__writes__paper/val.npy': pairs([2, 0]),
    };
    expect(await problems(other)).toEqual([
      'links/author__reads__paper: is called after no relation here; did you mean ' +
        'author__writes__paper?',
      'links/train.npy: says no relation, and no relation has its links for edges: expected it ' +
        'in links/SOURCE__RELATION__DESTINATION',
      'links/author__writes__paper/train.npy: has 5 at row 1, column 0: expected ids below the 3 ' +
        'nodes',
      'links/author__writes__paper/val.npy: has 2 at row 0, column 0: expected ids below the 2 nodes',
      'links/author__writes__paper/test.npy: is missing',
    ]);
    const both = { ...library, 'links/train.npy': pairs([1, 1]) };
    expect(await problems(both)).toEqual([
      'links/train.npy: says no relation, and each of author__writes__paper, paper__cites__paper ' +
        'has its links for edges: expected it in links/SOURCE__RELATION__DESTINATION',
    ]);
  });
});

test('a dataset of several types is READY with its schema, adopted, deleted', async () => {
  const { datasets, folder, store } = trial();
  const operation = await datasets.import(request('typed', typedFolder(library)));
  expect((await ended(datasets, operation)).error).toBeNull();
  const dataset = datasets.get('typed');
  expect(dataset).toMatchObject({
    ...{ state: 'READY', numNodes: 5, numEdges: 14, numFeatures: 0, numClasses: 0 },
    ...{ numTrain: 1, numVal: 1, numTest: 1 },
  });
  expect(dataset.schema?.types.map(({ name }) => name)).toEqual(['author', 'paper']);
  const records = { getDataset: () => dataset, listDatasets: () => [dataset] };
  expect(requireReady(records, 'typed')).toBe(dataset);
  expect(() => requireOneType(records, 'typed')).toThrow(
    'typed has 2 types of nodes and 4 relations; expected a dataset of one type and one relation',
  );
  store.datasets.clear();
  const adopted = trial({ folder, store }).datasets.get('typed');
  expect({ ...adopted, createAtMs: 0 }).toEqual({ ...dataset, createAtMs: 0 });
  expect(datasets.delete({ id: 'typed', allowMissing: false, requestId: null })).toBe(
    dataset.bytes,
  );
});

test('reverses are for graphs of several types', async () => {
  const { datasets } = trial();
  const asked = datasets.import(request('path', folderOf(pathGraph), { reverse: true }));
  await expect(asked).rejects.toMatchObject({
    reason: 'SPEC_INVALID',
    violations: [
      { path: 'reverse', description: 'is for graphs of several types, and this is NPY' },
    ],
  });
  expect(await linesOf('NPY', folderOf(pathGraph), null, { reverse: true })).toEqual([
    'reverse: is for graphs of several types, and this one has one',
  ]);
});
