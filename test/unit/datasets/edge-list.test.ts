import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { detectFormat } from '../../../src/datasets/detect-format.ts';
import { folderOf, linesOf, tryImport } from './workbench.ts';

/** Lists of edges in the forms of the collections that people take them from. */

const randomSplit = { validation: 0.34, test: 0, randomSeed: 0 };
const namesOf = (folder: string) => readFileSync(join(folder, 'names.txt'), 'utf8').trim();

async function imported(
  files: Readonly<Record<string, string | Uint8Array>>,
  choices: { readonly directed?: boolean } = {},
) {
  const source = folderOf(files);
  expect(await detectFormat(source, null)).toEqual({ kind: 'format', format: 'EDGE_LIST' });
  return await tryImport('EDGE_LIST', source, { ...choices, randomSplit });
}

describe('a list of edges with a file of labels', () => {
  const labels = '0 1\n1 0\n2 1\n';

  test('may have comments, blanks, tabs, a header, or none', async () => {
    const texts = [
      '# FromNodeId\tToNodeId\n0\t1\n1\t2\n',
      '% sym unweighted\n0 1\n 1  2 \n',
      'node_1,node_2\n0,1\n1,2\n',
      '0, 1\r\n1, 2\r\n',
      'dst;src\n1;0\n2;1\n',
      'FromNodeId ToNodeId\n0 1\n1 2\n',
    ];
    const digests = new Set<string>();
    for (const text of texts) {
      const { digest, numbers, manifest } = await imported({
        'net-edges.txt': text,
        'net-labels.txt': labels,
      });
      expect(numbers('indptr.npy')).toEqual([0, 1, 3, 4]);
      expect(numbers('indices.npy')).toEqual([1, 0, 2, 1]);
      expect(numbers('labels.npy')).toEqual([1, 0, 1]);
      expect(manifest.num_features).toBe(manifest.num_nodes);
      digests.add(digest);
    }
    const packed = { 'net.txt.gz': gzipSync(texts[0] ?? ''), 'net-department-labels.txt': labels };
    digests.add((await imported(packed)).digest);
    expect(digests.size).toBe(1);
  });

  test('has nodes by numbers with gaps, ascending; those without a label have none', async () => {
    const { folder, numbers } = await imported({
      'a.edges': '70 5\n5 1000000000000\n',
      'a.labels': '70 cat\n5 dog\n12 cat\n',
    });
    expect(namesOf(folder)).toBe('5\n12\n70\n1000000000000');
    expect(numbers('labels.npy')).toEqual([1, 0, 0, -1]);
    expect(numbers('indptr.npy')).toEqual([0, 2, 2, 3, 4]);
  });

  test('calls nodes by texts, in the order in which they come', async () => {
    const { folder, numbers } = await imported({
      'friends_graph.tsv': 'bob\tann\nann\tcyd\n',
      'classes.tsv': 'node\tclass\nann\tx\nbob\ty\ncyd\tx\n',
    });
    expect(namesOf(folder)).toBe('bob\nann\ncyd');
    // "node class" are texts as the rows below are: a node without edges, were it one.
    expect(numbers('labels.npy').slice(0, 3)).toEqual([1, 0, 0]);
  });

  test('has weights where its header says so; else further columns are left out', async () => {
    const weighted = await imported({
      'w_edges.csv': 'source,target,weight\n0,1,0.5\n1,2,2\n',
      'w_labels.csv': 'id,label\n0,1\n1,0\n2,1\n',
    });
    expect(weighted.numbers('edge_weights.npy')).toEqual([0.5, 0.5, 2, 2]);
    const timed = await imported({ 't_edges.txt': '0 1 1234\n1 2 999\n', 't_labels.txt': labels });
    expect(timed.manifest.sha256).not.toHaveProperty(['edge_weights.npy']);
    expect(timed.notices).toContainEqual(
      't_edges.txt: 1 further columns are not read; a header that calls one of them weight makes ' +
        'that a weight',
    );
  });

  test('says what is wrong, by line', async () => {
    const lines = (edges: string, text = labels) =>
      linesOf('EDGE_LIST', folderOf({ 'x_edges.txt': edges, 'x_labels.txt': text }));
    expect(await lines('0 1\n1\n')).toEqual(['x_edges.txt:2: has 1 fields, expected 2']);
    expect(await lines('0 1\n', '0 1\n0 2\n')).toEqual(["x_labels.txt:2: has the node '0' again"]);
    expect(await lines('alone\n')).toEqual([
      "x_edges.txt:1: has 'alone' alone, expected two nodes a line, by blanks, tabs, commas or " +
        'semicolons',
    ]);
  });

  test('without one is a graph to be predicted', async () => {
    const folder = folderOf({ 'edges.txt': '# a b\n0\t1\n1\t2\n' });
    const path = join(folder, 'edges.txt');
    expect(await detectFormat(path, null)).toEqual({ kind: 'format', format: 'EDGE_LIST' });
    const { manifest, numbers, notices } = await tryImport('EDGE_LIST', path);
    expect(manifest).toMatchObject({ num_nodes: 3, num_edges: 4, num_classes: 0 });
    expect(numbers('indices.npy')).toEqual([1, 0, 2, 1]);
    expect(notices).toContainEqual(expect.stringContaining('there are no labels'));
    const prose = folderOf({ 'notes.txt': 'hello there, you\nall of you\n' });
    expect(await detectFormat(join(prose, 'notes.txt'), null)).toMatchObject({ kind: 'problem' });
  });
});

describe('a LINQS folder', () => {
  const content = '31336\t0\t1\tNeural_Networks\n1061127\t1\t0\tTheory\nbook\t1\t1\tTheory\n';

  test('has features and labels in .content, and citations in .cites', async () => {
    const files = {
      README: 'about',
      'cora.content': content,
      'cora.cites': '31336\t1061127\n31336\tbook\n999\tbook\n',
    };
    const { folder, numbers, manifest, notices, story } = await imported(files);
    expect(manifest.class_names).toEqual(['Neural_Networks', 'Theory']);
    expect(numbers('features.npy')).toEqual([0, 1, 1, 0, 1, 1]);
    expect(numbers('labels.npy')).toEqual([0, 1, 1]);
    expect(numbers('indices.npy')).toEqual([1, 2, 0, 0]);
    expect(namesOf(folder)).toBe('31336\n1061127\nbook');
    expect(story.feature_names).toEqual(['word 0', 'word 1']);
    expect(notices).toContainEqual(
      'cora.cites: left out 1 edges with an end that cora.content does not have',
    );
    // A line is "cited, citing": the cited one learns of none.
    const directed = await imported(files, { directed: true });
    expect(directed.numbers('indptr.npy')).toEqual([0, 2, 2, 2]);
  });

  test('is refused by the line of a paper that has too few words', async () => {
    const files = { 'a.content': content.replace('1\t0\tTheory', '1\tTheory'), 'a.cites': '' };
    expect(await linesOf('EDGE_LIST', folderOf({ ...files, 'a.cites': '31336 book\n' }))).toEqual([
      'a.content:2: has 3 fields, expected 4',
    ]);
  });
});

describe('a geom-gcn folder', () => {
  const edges = 'node_id\tnode_id\n0\t1\n2\t1\n';
  const folder = (nodes: string) => ({
    'out1_graph_edges.txt': edges,
    'out1_node_feature_label.txt': `node_id\tfeature\tlabel\n${nodes}`,
  });

  test('has features by commas, or the positions of ones', async () => {
    const dense = await imported(folder('0\t1,0,1\t3\n2\t0,0,1\t1\n1\t1,1,0\t0\n'));
    expect(dense.numbers('features.npy')).toEqual([1, 0, 1, 0, 0, 1, 1, 1, 0]);
    expect(dense.numbers('labels.npy')).toEqual([3, 1, 0]);
    expect(dense.numbers('indptr.npy')).toEqual([0, 1, 2, 4]);
    expect(dense.story.feature_names).toEqual(['feature[0]', 'feature[1]', 'feature[2]']);
    const sparse = await imported(folder('0\t4,1\t3\n1\t0\t1\n2\t2,3,4\t0\n'));
    expect(sparse.numbers('features.npy')).toEqual([0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1]);
  });
});

describe('a MUSAE folder', () => {
  test('has a table of targets and features by id in JSON', async () => {
    const { numbers, manifest, notices } = await imported({
      'tiny_edges.csv': 'id_1,id_2\n0,1\n1,2\n',
      'tiny_target.csv': 'id,page_name,page_type\n0,"a, b",tvshow\n1,c,company\n2,d,tvshow\n',
      'tiny.json': '{"0":[1,2],"2":[0]}',
    });
    expect(numbers('features.npy')).toEqual([0, 1, 1, 0, 0, 0, 1, 0, 0]);
    expect(numbers('labels.npy')).toEqual([1, 0, 1]);
    expect(manifest.class_names).toEqual(['company', 'tvshow']);
    expect(notices).toContainEqual(
      "tiny_target.csv: took 'id' for the id, 'page_type' for the label",
    );
  });

  test('of Twitch calls nodes by the second id; targets may be numbers to learn', async () => {
    const twitch = await imported({
      'PT_edges.csv': 'from,to\n0,1\n',
      'PT_target.csv': 'id,days,mature,new_id\n733,1,True,0\n981,5,False,1\n2,5,True,2\n',
      'PT_features.json': '{"0":[0],"1":[1],"2":[]}',
    });
    expect(twitch.manifest.class_names).toEqual(['False', 'True']);
    expect(twitch.numbers('indices.npy')).toEqual([1, 0]);
    const wiki = await imported({
      'wiki_edges.csv': 'id1,id2\n0,1\n1,2\n',
      'wiki_target.csv': 'id,target\n0,1.5\n1,2\n2,3\n',
      'wiki_features.json': '{"0":[0.25],"1":[1],"2":[2]}',
    });
    expect(wiki.manifest.task).toBe('REGRESSION');
    expect(wiki.numbers('features.npy')).toEqual([0.25, 1, 2]);
  });
});

test('a file with more than labels is no file of labels', async () => {
  const nodes = 'id,label,split,age\na,0,train,31\nb,1,val,28\n';
  const source = folderOf({ 'nodes.txt': nodes, 'edges.txt': 'source,target\na,b\n' });
  expect(await linesOf('EDGE_LIST', source)).toEqual([
    expect.stringMatching(/^nodes\.txt: has 4 columns, .* two.*is called nodes\.csv/),
  ]);
});
