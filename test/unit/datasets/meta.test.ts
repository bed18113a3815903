import { describe, expect, test } from 'vitest';
import { folderOf, int32, linesOf, pathGraph, tryImport } from './workbench.ts';

/** What a meta.json beside arrays says, and what of it cannot be. */

describe('a meta.json beside the arrays', () => {
  const meta = {
    num_nodes: 3,
    num_edges: 4,
    num_features: 2,
    num_classes: 3,
    undirected: true,
    split: { train: 1, val: 1, test: 0 },
    class_names: ['a', 'b', 'c'],
  };

  test('gives class names, the number of classes and symmetry', async () => {
    const { manifest, story } = await tryImport(
      'NPY',
      folderOf({ ...pathGraph, 'meta.json': JSON.stringify(meta) }),
    );
    expect(manifest).toMatchObject({ num_classes: 3, class_names: ['a', 'b', 'c'] });
    expect(story.undirected).toBe(true);
  });

  test('must agree with them', async () => {
    const wrong = {
      ...meta,
      num_nodes: 4,
      split: { train: 2, val: 1, test: 0 },
      sha256: { labels: '00', train: 'ff' },
    };
    const lines = await linesOf(
      'NPY',
      folderOf({ ...pathGraph, 'meta.json': JSON.stringify(wrong) }),
    );
    expect(lines).toEqual([
      'meta.json: says num_nodes is 4, but labels.npy has 3',
      'meta.json: says split.train is 2, but train.npy has 1',
      expect.stringContaining('labels.npy: was changed: meta.json has SHA-256 00'),
      expect.stringContaining('train.npy: was changed: meta.json has SHA-256 ff'),
    ]);
  });

  test('gives checksums of what is there, whatever it is stored as', async () => {
    const { manifest } = await tryImport('NPY', folderOf(pathGraph));
    const sha256 = { features: manifest.sha256['features.npy'] ?? '' };
    const source = (sums: object) =>
      folderOf({ ...pathGraph, 'meta.json': JSON.stringify({ ...meta, sha256: sums }) });
    const rounded = await tryImport('NPY', source(sha256), { featureDtype: 'float16' });
    expect(rounded.numbers('features.npy')).toEqual([
      0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600,
    ]);
    expect(rounded.manifest.sha256['features.npy']).not.toBe(sha256.features);
    expect(await linesOf('NPY', source({ features: '00' }), 'float16')).toEqual([
      expect.stringContaining(`the one of the array is ${sha256.features}`),
    ]);
  });

  test.each([
    [
      { task: 'CLASSIFIKATION' },
      'says task is "CLASSIFIKATION", expected one of CLASSIFICATION, MULTI_LABEL, REGRESSION',
    ],
    [{ task: 3 }, 'says task is 3, expected one of CLASSIFICATION, MULTI_LABEL, REGRESSION'],
    [{ class_names: ['a', 'b'] }, 'has 2 class_names, expected one for each of the 3 classes'],
    [
      { class_names: ['a', 'b', 'c', 'd'] },
      'has 4 class_names, expected one for each of the 3 classes; num_classes counts those without a node, too',
    ],
    [
      { num_classes: 4, class_names: ['a', 'b', 'c'] },
      'has 3 class_names, expected one for each of the 4 classes',
    ],
    [{ class_names: ['a', 'b', 'a'] }, 'class_names has "a" twice'],
    [
      { class_names: ['a', 1, 'c'] },
      'says class_names is ["a",1,"c"], expected a list of texts that are not empty',
    ],
    [
      { class_names: 'abc' },
      'says class_names is "abc", expected a list of texts that are not empty',
    ],
    [{ num_classes: 2 }, 'says num_classes is 2, but labels.npy has 3 classes'],
    [{ num_nodes: '3' }, 'says num_nodes is "3", expected a whole number of 0 or more'],
    [{ undirected: 'yes' }, 'says undirected is "yes", expected true or false'],
    [{ sha256: { labels: 1 } }, 'says sha256.labels is 1, expected a SHA-256 in hexadecimal'],
    [[1], 'says all of it is [1], expected an object'],
  ])('that says %j is refused by name', async (said, problem) => {
    const graph = { ...pathGraph, 'labels.npy': int32(0, 1, 2) };
    const folder = folderOf({ ...graph, 'meta.json': JSON.stringify(said) });
    expect(await linesOf('NPY', folder)).toEqual([`meta.json: ${problem}`]);
  });

  test('may count a class without a node, and says a key that it does not know', async () => {
    const said = { num_classes: 4, class_names: ['a', 'b', 'c', 'd'], class_name: 'e', more: 1 };
    const folder = folderOf({ ...pathGraph, 'meta.json': JSON.stringify(said) });
    const { manifest, story } = await tryImport('NPY', folder);
    expect(manifest).toMatchObject({ num_classes: 4, class_names: ['a', 'b', 'c', 'd'] });
    expect(story.notices).toContain('meta.json: class_name is not used; did you mean class_names?');
  });

  test('and a names.txt are not read where they are too long to be such', async () => {
    const long = 'x'.repeat(17 << 20);
    expect(await linesOf('NPY', folderOf({ ...pathGraph, 'meta.json': long }))).toEqual([
      'meta.json: has 17825792 bytes, at most 16 MiB are read of it',
    ]);
    expect(await linesOf('NPY', folderOf({ ...pathGraph, 'names.txt': `a\n${long}` }))).toEqual([
      'names.txt:2: has more than 1048576 bytes, expected the name of a node',
    ]);
    expect(await linesOf('GRAPHBOLT', folderOf({ 'metadata.yaml': long }))).toEqual([
      'metadata.yaml: has 17825792 bytes, at most 1 MiB are read of it',
    ]);
  });

  test('must be JSON', async () => {
    const lines = await linesOf('NPY', folderOf({ ...pathGraph, 'meta.json': '{' }));
    expect(lines).toEqual([expect.stringContaining('meta.json: is not JSON')]);
  });
});
