import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import { beforeAll, describe, expect, onTestFailed, test, vi } from 'vitest';
import {
  type Dataset,
  DatasetSchema,
  DatasetService,
  ImportFormat,
} from '../../src/api/gen/gnnd/v1/dataset_service_pb.ts';
import type { Operation } from '../../src/api/gen/gnnd/v1/types_pb.ts';
import { temporaryFolder } from '../support/at-end.ts';
import { repository, TestDaemon } from '../support/daemon.ts';
import { findPython, pythonScripts, runPython } from '../support/python.ts';
import { skipped } from '../support/skipped.ts';

/** Graphs as other libraries leave them, read by the daemon from their files. */

const seed = Number(process.env['GNND_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
const libraries = ['python-extras', 'pyg'].map((name) => join(repository, '.cache', name));
let daemon: TestDaemon;
const folder = temporaryFolder('gnnd-formats-');
let python: string | null;
let count = 0;

beforeAll(async () => {
  daemon = await TestDaemon.start();
  python = libraries.every(existsSync) ? await findPython('torch') : null;
  if (python === null) {
    skipped('formats of other libraries', 'no torch, .cache/pyg or .cache/python-extras');
    return;
  }
  const script = join(pythonScripts, 'write_formats.py');
  const env = { PYTHONPATH: libraries.join(':'), PYTHONDONTWRITEBYTECODE: '1' };
  await runPython(python, ['-W', 'ignore', script, folder, String(seed)], env);
});

async function tried(source: string, more = {}): Promise<Operation> {
  count += 1;
  const request = { datasetId: `g${count}`, source, ...more };
  const started = await daemon.call(DatasetService.method.importDataset, request);
  return await daemon.ended(started);
}

async function imported(source: string, more = {}): Promise<Dataset> {
  const { result } = await tried(source, more);
  if (result.case !== 'response') throw new Error(JSON.stringify(result.value));
  const made = anyUnpack(result.value, DatasetSchema);
  if (made === undefined) throw new Error('no dataset');
  return made;
}

/** What is wrong with a source, a line each. */
async function refused(source: string, more = {}): Promise<string> {
  const { result } = await tried(source, more);
  if (result.case !== 'error') throw new Error('the import succeeded');
  return result.value.problems.map((each) => `${each.path}: ${each.description}`).join('\n');
}

const place = (name: string) => join(folder, name);

describe('one graph has one digest, whichever library wrote it', () => {
  test.each([
    ['a graph of torch_geometric', 'wild-object.pt', 'wild'],
    ['the same before torch 1.6', 'wild-legacy.pt', 'wild'],
    ['a graph with slices', 'wild-slices.pt', 'wild'],
    ['its tensors by name', 'wild-tensors.pt', 'wild'],
    ['the folder of a dataset', 'wild-dataset', 'wild'],
    ['masks that are numbers, and sparse features', 'wild-bytes-sparse.pt', 'wild'],
    ['a transposed adjacency', 'wild-adj-t.pt', 'wild'],
    ['several types that are one each', 'wild-one-type.pt', 'wild'],
    ['a benchmark of citations', 'plain-citations.npz', 'plain'],
    ['a heterophilous benchmark', 'plain-heterophilous.npz', 'plain'],
    ['a folder of GraphSAINT', 'plain-graphsaint', 'plain'],
    ['a folder of GraphSAGE', 'plain-graphsage', 'plain'],
    ['a folder of Planetoid', 'planetoid', 'planetoid'],
    ['GML', 'plain.gml', 'plain'],
    ['GraphML', 'plain.graphml', 'plain'],
    ['GEXF', 'plain.gexf', 'plain'],
    ['JSON with links', 'plain-links.json', 'plain'],
    ['JSON with edges', 'plain-edges.json', 'plain'],
    ['GraphML by another name', 'plain-by-another-name.txt', 'plain'],
  ])('%s', async (_, file, reference) => {
    if (python === null) return;
    onTestFailed(() => void process.stderr.write(`GNND_SEED=${seed}\n`));
    const more = file === 'plain-heterophilous.npz' ? { split: '1' } : {};
    const made = await imported(place(file), more);
    const wanted = await imported(place(`reference-${reference}.npz`));
    expect(made.digest).toBe(wanted.digest);
  });

  // DGL itself (1.1.3) wrote these: five nodes, edges 0-1, 1-2, 2-3 twice, in three forms.
  test.each(['coo', 'csr-int32', 'csc'])('a graph of DGL as %s', async (form) => {
    const made = await imported(join(repository, 'test', 'fixtures', 'dgl', `${form}.bin`));
    expect(made).toMatchObject({ numNodes: 5n, numEdges: 4n, numFeatures: 5, numClasses: 2 });
    expect([made.numTrain, made.numVal, made.numTest]).toEqual([2n, 3n, 0n]);
    const first = await imported(join(repository, 'test', 'fixtures', 'dgl', 'coo.bin'));
    expect(made.digest).toBe(first.digest);
  });
});

describe('what a source has not', () => {
  test('a split is made by chance, the same each time, and named as such', async () => {
    if (python === null) return;
    const made = await imported(place('no-split.npz'));
    expect(made.message).toMatch(/no split, so chance made one: \d+ train, \d+ val, \d+ test/);
    const again = await imported(place('no-split.npz'), { randomSplit: usual });
    expect(again.digest).toBe(made.digest);
    const other = await imported(place('no-split.npz'), {
      randomSplit: { ...usual, randomSeed: 7 },
    });
    expect(other.digest).not.toBe(made.digest);
    const mixed = await refused(place('reference-wild.npz'), { randomSplit: usual });
    expect(mixed).toBe('random_split: the source has a split: leave this out, or the split');
  });

  test('labels and features may lack, too', async () => {
    if (python === null) return;
    const made = await imported(place('bare.gml'));
    expect(made).toMatchObject({ numNodes: 2n, numEdges: 2n, numFeatures: 2, numClasses: 0 });
  });

  const usual = { validation: 0.2, test: 0.2 };
});

describe('links of OGB', () => {
  test('are those of the same folder of arrays', async () => {
    if (python === null) return;
    const made = await imported(place('ogb-links'));
    expect(made.digest).toBe((await imported(place('reference-links'))).digest);
    expect(made.message).toMatch(/to test, beside 3 pairs that are none/);
    // Those of training are not used by anybody.
    expect(made.message).toMatch(/pairs that are no links are not used/);
  });

  test('that name their source have directions, and negatives each', async () => {
    if (python === null) return;
    const made = await imported(place('ogb-cited'));
    const plain = await imported(place('ogb-links'), { directed: true });
    expect(made.numEdges).toBe(plain.numEdges);
    expect(made.message).toMatch(/brings \d+ links to learn, .* these with 3 negatives each/);
  });

  test('of several relations are refused', async () => {
    if (python === null) return;
    expect(await refused(place('ogb-relations'))).toMatch(/train: has links of several relations/);
  });
});

describe('the program that reads them', () => {
  test('ends with its import, and with a daemon that is killed', async () => {
    if (python === null) return;
    // A stub of Python binds itself to its parent as the program does, and then hangs.
    const hang =
      'import os, pathlib, sys, time; from gnnd_formats.__main__ import end_with; ' +
      'end_with(int(sys.argv[6])); note = pathlib.Path(sys.argv[-2] + ".pid"); ' +
      'note.write_text(str(os.getpid())); time.sleep(600)';
    const stub = place('python');
    writeFileSync(stub, `#!/bin/sh\nexec '${python}' -c '${hang}' - "$@"\n`, { mode: 0o755 });
    const other = await TestDaemon.start({ env: { GNND_PYTHON: stub } });
    try {
      const begin = async (name: string): Promise<[Operation, number]> => {
        writeFileSync(place(name), '');
        const asked = { datasetId: 'hangs', source: place(name), format: ImportFormat.PYG };
        const started = await other.call(DatasetService.method.importDataset, asked);
        const pid = await vi.waitUntil(() => pidIn(place(`${name}.pid`)), 60_000);
        return [started, pid];
      };
      const [first, pid] = await begin('cancelled.pt');
      await other.call(DatasetService.method.cancelOperation, { name: first.name });
      await vi.waitUntil(() => !existsSync(`/proc/${pid}`), 60_000);
      const [, second] = await begin('killed.pt');
      await other.kill('SIGKILL');
      await vi.waitUntil(() => !existsSync(`/proc/${second}`), 60_000);
    } finally {
      await other.stop();
    }
  });
});

function pidIn(path: string): number | false {
  return existsSync(path) && Number(readFileSync(path, 'utf8'));
}

describe('what cannot be imported is named', () => {
  test.each([
    [
      'weights of one of several types',
      'several-types.pt',
      /^several-types\.pt: paper__cites__paper has edge_weight, and several types take edges alone/,
    ],
    [
      'labels of two kinds',
      'mixed-labels.graphml',
      /^mixed-labels\.graphml node n3: has y 'red', which is of another kind than most/,
    ],
    ['a graph without nodes', 'empty.gml', /^empty\.gml: has no node/],
    ['XML that is cut off', 'cut.graphml', /^cut\.graphml: networkx cannot read it as graphml/],
    ['several graphs', 'a-list.pt', /^a-list\.pt: holds a list, which is no graph/],
    ['code', 'code.pt', /^code\.pt: holds \S+, which is no data: load it in Python/],
    ['a file that is cut off', 'damaged.pt', /^damaged\.pt: is no whole file of torch\.save/],
  ])('%s', async (_, file, words) => {
    if (python === null) return;
    expect(await refused(place(file))).toMatch(words);
    expect(existsSync(place('code-ran'))).toBe(false);
  });

  test.each([
    ['two-graphs.bin', /holds 2 graphs: gnnd learns from one/],
    ['two-types.bin', /has 2 types of nodes \(a, b\).*dgl\.to_homogeneous/],
  ])('%s of DGL', async (file, words) => {
    expect(await refused(join(repository, 'test', 'fixtures', 'dgl', file))).toMatch(words);
  });
});
