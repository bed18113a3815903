import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { detectFormat } from '../../../src/datasets/detect-format.ts';
import { folderOf, int64, linesOf, npy, pathGraph, tar, zip } from './workbench.ts';

/** What a source of no format is refused for, and what is said to do with it. */

const latin = (text: string) => Buffer.from(text, 'latin1');
const length64 = Buffer.alloc(8);
length64.writeBigUInt64LE(40n);

async function saidOf(path: string): Promise<string> {
  const detection = await detectFormat(path, null);
  return detection.kind === 'problem' ? detection.description : `format ${detection.format}`;
}

describe('a file', () => {
  test.each<readonly [string, string, string | Uint8Array, string]>([
    ['empty', 'a.npz', '', 'is empty'],
    ['zeros', 'a.npz', Buffer.alloc(5000), 'nothing but zeros'],
    ['PNG', 'a.png', latin('\x89PNG\r\n\x1a\n\0\0'), 'a picture (PNG)'],
    ['JPEG', 'a.npz', latin('\xff\xd8\xff\xe0\0\x10JFIF'), 'a picture (JPEG)'],
    ['WebP', 'a', latin('RIFF\x10\0\0\0WEBPVP8 '), 'a picture (WebP)'],
    ['PDF', 'paper.csv', '%PDF-1.7\n', 'a PDF document'],
    ['xls', 'a.xls', latin('\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0'), 'old Office'],
    ['HDF5', 'a.h5', latin('\x89HDF\r\n\x1a\n\0'), 'an HDF5 file'],
    ['MATLAB', 'a.mat', 'MATLAB 5.0 MAT-file, Platform', 'a MATLAB file'],
    ['SQLite', 'a.db', 'SQLite format 3\0\x10', 'an SQLite database'],
    ['Parquet', 'part-0.parquet', latin('PAR1\x15\x04'), 'one Parquet file'],
    ['Feather', 'a.feather', latin('ARROW1\0\0'), 'an Arrow file'],
    ['one array', 'x.npy', int64(1, 2), 'one array (.npy)'],
    ['pickle 4', 'a.pkl', latin('\x80\x04\x95\x10\0'), 'a pickle'],
    ['pickle 0', 'a.pickle', "ccopy_reg\n_reconstructor\np0\n(cx\n'a'", 'a pickle'],
    ['safetensors', 'm.safetensors', Buffer.concat([length64, latin('{"w":{}}')]), 'safetensors'],
    ['program', 'a.out', latin('\x7fELF\x02\x01'), 'a program'],
    ['tar', 'a.tar', tar([['nodes.csv', 'id\n']]), 'an archive (tar)'],
    ['tar.gz', 'ogb.tar.gz', gzipSync('x'), 'an archive (tar.gz)'],
    ['gzip', 'a.gz', gzipSync('x'), 'packed (gzip)'],
    ['xz', 'a.csv.xz', latin('\xfd7zXZ\0\0'), 'packed (xz)'],
    ['7z', 'a.7z', latin("7z\xbc\xaf'\x1c\0"), 'an archive (7z)'],
    ['LFS', 'cora.npz', 'version https://git-lfs.github.com/spec/v1\noid', 'Git LFS'],
    ['HTML', 'cora.npz', '<!DOCTYPE html>\n<html>', 'a web page'],
    ['XML', 'a.xml', '<?xml version="1.0"?>\n<people>', 'is XML'],
    ['DOT', 'a.dot', 'digraph G {\n a -> b\n}', 'a graph in DOT'],
    ['Pajek', 'a.net', '*Vertices 4\n1 "a"', 'a Pajek graph'],
    ['Matrix Market', 'a.mtx', '%%MatrixMarket matrix coordinate', 'Matrix Market'],
    ['SQL', 'a.sql', 'CREATE TABLE nodes (id int);', 'is SQL'],
    ['JSON lines', 'a.jsonl', '{"a": 1}\n{"a": 2}\n', 'lines of JSON'],
    ['JSON', 'a.json', '[1, 2]', 'is JSON'],
    ['notebook', 'a.ipynb', '{\n "cells": []', 'a notebook'],
    ['a job', 'job.yaml', 'dataset: cora\nmodel: {type: GCN}\n', 'gnnctl job create -f'],
    ['a table', 'users.csv', 'id,age,city\n1,2,x\n', 'one table (its first line: id, age, city)'],
    ['Latin-1 table', 'a.csv', latin('id;Stra\xdfe;x\n1;2;3\n'), 'one table'],
    ['UTF-16 table', 'a.csv', Buffer.from('\ufeffid,age,b\n', 'utf16le'), 'one table'],
    ['a text', 'notes.txt', 'hello\n', 'is a text'],
    ['prose', 'README', 'One, two\nand more.\nIt, so, goes on\n', 'is a text'],
    ['bytes', 'a.dat', latin('\x01\0\xffabc'), 'a kind that gnnd does not know (.dat)'],
  ])('is named for what it is: %s', async (_, name, content, what) => {
    const path = join(folderOf({ [name]: content }), name);
    expect(await saidOf(path)).toContain(what);
  });

  test('is told with what to do, its own name in it, and what is read', async () => {
    const path = join(folderOf({ 'my table.xz': latin('\xfd7zXZ\0\0') }), 'my table.xz');
    const said = await saidOf(path);
    expect(said).toContain(`unpack it (unxz '${path}'), then: gnnctl dataset import FOLDER`);
    expect(said).toMatch(/ \(docs\/datasets\.md\)$/);
    const other = await saidOf(folderOf({ 'notes.md': 'x' }));
    expect(other).toMatch(/: gnnd reads NPY, NPZ, CSV, .* \(docs\/datasets\.md\)$/);
  });
});

describe('a ZIP archive', () => {
  const nothing = new Uint8Array(1);
  test.each([
    ['a workbook', ['[Content_Types].xml', 'xl/workbook.xml'], 'an Excel workbook (.xlsx)'],
    ['a document', ['[Content_Types].xml', 'word/document.xml'], 'a Word document'],
    ['LibreOffice', ['mimetype', 'content.xml'], 'an OpenDocument file'],
    ['TorchScript', ['m/data.pkl', 'm/code/x.py', 'm/constants.pkl'], 'a TorchScript file'],
    ['tables', ['graph/nodes.csv', 'graph/edges.csv'], 'unpack it (unzip'],
    ['a dataset', ['products/raw/edge.csv.gz', 'products/split/a'], 'unpack it (unzip'],
    ['pictures', ['a.png', 'b.png'], 'without a .npy array (a.png, b.png)'],
  ])('is named for what is in it: %s', async (_, names, what) => {
    const bytes = zip(Object.fromEntries(names.map((name) => [name, nothing])));
    const path = join(folderOf({ 'a.npz': bytes }), 'a.npz');
    expect((await linesOf('NPZ', path)).join('\n')).toContain(what);
  });
});

describe('a folder', () => {
  test.each([
    ['nothing', {}, 'is an empty folder'],
    ['pictures', { 'a.png': '', 'b.jpg': '' }, 'is a folder of pictures'],
    ['a model', { 'model.safetensors': '', 'export.json': '' }, 'holds a trained model'],
    ['arrays', { 'x.npy': '', 'y.npy': '' }, 'has arrays (x.npy, y.npy), but none of edges'],
    [
      'other tables',
      { 'vertices.csv': '', 'links.csv.gz': '' },
      'name vertices.csv as nodes.csv, links.csv.gz as edges.csv.gz',
    ],
    ['texts', { 'README.md': '', LICENSE: '' }, 'of no format that is known (LICENSE, README.md)'],
  ])('is named for what is in it: %s', async (_, files, what) => {
    expect(await saidOf(folderOf(files))).toContain(what);
  });

  test('leads to the one thing in it that is read', async () => {
    const folder = folderOf({
      'cora.npz': zip({ 'x.npy': npy('float32', [0], new Float32Array()) }),
    });
    expect(await saidOf(folder)).toContain(`gnnctl dataset import ${folder}/cora.npz --id NAME`);
  });

  test('of arrays with an edge_index is one of arrays', async () => {
    const { 'indptr.npy': _, 'indices.npy': __, ...others } = pathGraph;
    const edges = npy('int64', [2, 4], BigInt64Array.of(0n, 1n, 1n, 2n, 1n, 0n, 2n, 1n));
    expect(await saidOf(folderOf({ ...others, 'edge_index.npy': edges }))).toBe('format NPY');
  });
});
