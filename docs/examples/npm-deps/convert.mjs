#!/usr/bin/env node
// node convert.mjs ARCHIVE FOLDER: makes a folder of .npy files, as `gnnctl dataset import` takes it,
// of the npm package dependent-packages 2.2.2 (docs/datasets.md has the recipe). An ARCHIVE that is
// not there is fetched with `npm pack`. An example: who has another source writes another converter.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { classNamesOf, featureColumns, featuresOf, labelsOf, splitOf } from './names.mjs';

const published = {
  spec: 'dependent-packages@2.2.2',
  fileName: 'dependent-packages-2.2.2.tgz',
  sha256: '31fcbe7a4b5f11eddb2aaca15406b375f01be1f8d1e55dc25de8e5b5b03c9970',
  // Of the elements of the arrays that it becomes: the import compares them.
  arrays: {
    indptr: 'b31b69241d9cb4dedb285d9df49bf0e79bdf9482a4ebf72771389378d306c93f',
    indices: '87caa9ed0ea0710fa2f22b7d485cc7abca462e2ccb1d8ff678a5adf2114cc06d',
    features: '36f2824c497fff657cc9b3dbfb45c22c735b524361ef2d56b030624407a684f0',
    labels: '76d263779c5395c92f3a3fe45368740c846de566a253c98e3238c0d8cfb3bf14',
    train: '6be4df37d05d29a637e7b328e2f3138843292ac7ae6ff8bb28a3409cb88999ef',
    val: '9b4c8513dd131462335a709660be614ce7ab3d1e3ba509c03339a0a52604081a',
    test: '5d50c44f2f568decff4632bd3cefef729ba4f886533e18e76c10c715f0a4a2fb',
  },
};

const sha256Of = (bytes) => createHash('sha256').update(bytes).digest('hex');

/** Not installed: its install script would unpack 100,000 small files. */
function fetchArchive(path) {
  mkdirSync(dirname(path), { recursive: true });
  const temporary = mkdtempSync(join(dirname(path), '.fetch-'));
  try {
    execFileSync('npm', ['pack', published.spec, '--ignore-scripts'], {
      cwd: temporary,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const fetched = join(temporary, published.fileName);
    const found = existsSync(fetched) ? sha256Of(readFileSync(fetched)) : 'no such file';
    if (found !== published.sha256) {
      throw new Error(`npm pack delivered ${found}, expected SHA-256 ${published.sha256}`);
    }
    renameSync(fetched, path);
  } finally {
    rmSync(temporary, { recursive: true });
  }
}

/** The files of a gzipped ustar archive: [name, content]. */
function* filesIn(packed, path) {
  let bytes;
  try {
    bytes = gunzipSync(packed);
  } catch (error) {
    throw new Error(`${path} is not a readable .tgz: ${error.message}`);
  }
  const text = (at, length) => bytes.toString('latin1', at, at + length).split('\0', 1)[0];
  for (let at = 0; ; ) {
    if (at + 512 > bytes.length) throw new Error(`${path} is truncated: its tar has no end mark`);
    if (bytes[at] === 0) return;
    const size = Number.parseInt(text(at + 124, 12), 8);
    if (!(at + 512 + size <= bytes.length)) throw new Error(`${path} is truncated or damaged`);
    const prefix = text(at + 345, 155);
    const name = prefix === '' ? text(at, 100) : `${prefix}/${text(at, 100)}`;
    const isFile = ['', '0'].includes(text(at + 156, 1));
    if (isFile) yield [name, bytes.subarray(at + 512, at + 512 + size)];
    at += 512 + 512 * Math.ceil(size / 512);
  }
}

/** [dependent, dependency] for each pair of names in the package. */
function* pairsIn(path) {
  const members = new Map(filesIn(readFileSync(path), path));
  for (const stem of ['dependents', 'devDependents']) {
    const inner = members.get(`package/${stem}.tgz`);
    if (inner === undefined) throw new Error(`${path} has no member package/${stem}.tgz`);
    for (const [name, content] of filesIn(inner, `${path}/${stem}.tgz`)) {
      const [, key] = /^[^/]+\/(.*)\.json$/.exec(name) ?? [];
      if (key === undefined) throw new Error(`${stem}.tgz has the member ${name}, expected *.json`);
      for (const dependent of namesIn(content, `${stem}/${key}.json`)) yield [dependent, key];
    }
  }
}

function namesIn(content, path) {
  const names = JSON.parse(content.toString('utf8'));
  // Printable ASCII sorts alike as text and as bytes, and fits on a line of names.txt.
  const isName = (name) => typeof name === 'string' && /^[\x20-\x7e]*$/.test(name);
  if (Array.isArray(names) && names.every(isName)) return names;
  throw new Error(`${path} is no list of names in printable ASCII`);
}

/** Nodes by name, in byte order; row v of indices holds the neighbours of node v, ascending. */
function graphOf(pairs) {
  const seen = new Map();
  const idOf = (name) => {
    if (!seen.has(name)) seen.set(name, seen.size);
    return seen.get(name);
  };
  const ends = [];
  for (const [a, b] of pairs) ends.push(idOf(a), idOf(b));
  const names = [...seen.keys()].sort();
  const nodes = new Uint32Array(names.length);
  for (const [node, name] of names.entries()) nodes[seen.get(name)] = node;
  // Each edge from both of its ends, as one number that sorts by row, then by column.
  const entries = new Float64Array(ends.length);
  for (let at = 0; at < ends.length; at += 2) {
    const [a, b] = [nodes[ends[at]], nodes[ends[at + 1]]];
    entries[at] = a * names.length + b;
    entries[at + 1] = b * names.length + a;
  }
  entries.sort();
  const indptr = new BigInt64Array(names.length + 1);
  const indices = new Int32Array(entries.length);
  let stored = 0;
  let row = 0;
  for (const [at, entry] of entries.entries()) {
    const [v, u] = [Math.floor(entry / names.length), entry % names.length];
    if (entry === entries[at - 1] || u === v) continue;
    while (row < v) indptr[++row] = BigInt(stored);
    indices[stored++] = u;
  }
  indptr.fill(BigInt(stored), row + 1);
  return { names, indptr, indices: indices.slice(0, stored) };
}

/** .npy version 1: magic, length of the header, header, little-endian elements. */
function npyOf(array, shape) {
  const types = { BigInt64Array: '<i8', Int32Array: '<i4', Float32Array: '<f4' };
  const descr = types[array.constructor.name];
  const shown = `(${shape.join(', ')}${shape.length === 1 ? ',' : ''})`;
  const dict = `{'descr': '${descr}', 'fortran_order': False, 'shape': ${shown}, }`;
  const header = Buffer.from(`${dict.padEnd(64 * Math.ceil((dict.length + 11) / 64) - 11)}\n`);
  const start = Buffer.from('\x93NUMPY\x01\x00\x00\x00', 'latin1');
  start.writeUInt16LE(header.length, 8);
  return Buffer.concat([start, header, Buffer.from(array.buffer)]);
}

function convert(archive, folder) {
  const isPublished = sha256Of(readFileSync(archive)) === published.sha256;
  const { names, indptr, indices } = graphOf(pairsIn(archive));
  const classNames = classNamesOf(names);
  const labels = labelsOf(names, classNames);
  const splits = { train: [], val: [], test: [] };
  for (const [node, name] of names.entries()) {
    if (labels[node] !== -1) splits[splitOf(name)].push(BigInt(node));
  }
  const arrays = { indptr, indices, features: featuresOf(names, classNames), labels };
  for (const [split, nodes] of Object.entries(splits)) arrays[split] = BigInt64Array.from(nodes);
  mkdirSync(folder, { recursive: true });
  for (const [name, array] of Object.entries(arrays)) {
    const shape = name === 'features' ? [names.length, featureColumns] : [array.length];
    writeFileSync(join(folder, `${name}.npy`), npyOf(array, shape));
  }
  writeFileSync(join(folder, 'names.txt'), names.map((name) => `${name}\n`).join(''));
  const sha256 = isPublished ? published.arrays : {};
  const meta = { undirected: true, class_names: classNames, sha256 };
  writeFileSync(join(folder, 'meta.json'), `${JSON.stringify(meta, null, 2)}\n`);
  process.stdout.write(`${names.length} nodes, ${arrays.indices.length / 2} edges\n`);
}

const [archive, folder, ...rest] = process.argv.slice(2);
if (folder === undefined || rest.length > 0) {
  process.stderr.write('usage: node convert.mjs ARCHIVE FOLDER\n');
  process.exit(64);
}
try {
  if (!existsSync(archive)) fetchArchive(resolve(archive));
  convert(archive, folder);
} catch (error) {
  process.stderr.write(`convert.mjs: ${error.message}\n`);
  process.exit(1);
}
