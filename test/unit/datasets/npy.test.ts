import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  formatNpyHeader,
  type NpySource,
  NpyWriter,
  openNpyFile,
  openNpyStream,
} from '../../../src/datasets/npy.ts';
import { forAll } from '../../support/random.ts';
import { folderOf, int32, makeFolder, never, npy } from './workbench.ts';

/** A header as NumPy 2 writes it: 128 bytes, the text padded with spaces. */
function numpyHeader(text: string): Buffer {
  return Buffer.from(`\x93NUMPY\x01\x00\x76\x00${text.padEnd(117, ' ')}\n`, 'latin1');
}

async function valuesOf(source: NpySource): Promise<number[]> {
  const values: number[] = [];
  for await (const block of source.blocks()) values.push(...Array.from(block, Number));
  return values;
}

async function refusalOf(content: Uint8Array): Promise<string> {
  const path = join(folderOf({ 'labels.npy': content }), 'labels.npy');
  try {
    const source = await openNpyFile(path, never);
    await valuesOf(source);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  throw new Error('the file was accepted');
}

describe('formatNpyHeader', () => {
  test('gives the bytes that NumPy writes', () => {
    const vector = "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }";
    expect(formatNpyHeader({ type: 'int32', shape: [3] })).toEqual(numpyHeader(vector));
    const empty = "{'descr': '<i8', 'fortran_order': False, 'shape': (0,), }";
    expect(formatNpyHeader({ type: 'int64', shape: [0] })).toEqual(numpyHeader(empty));
    const matrix = "{'descr': '<f4', 'fortran_order': False, 'shape': (2708, 1433), }";
    expect(formatNpyHeader({ type: 'float32', shape: [2708, 1433] })).toEqual(numpyHeader(matrix));
  });

  test('keeps its length whatever the rows, a multiple of 64', () => {
    forAll(50, (random) => {
      const columns = random.integer(1, 1e9);
      const rows = Math.floor(2 ** (random.unit() * 53));
      const header = formatNpyHeader({ type: 'float32', shape: [rows, columns] });
      expect(header.length % 64).toBe(0);
      expect(header.length).toBe(formatNpyHeader({ type: 'float32', shape: [0, columns] }).length);
    });
  });
});

describe('NpyWriter', () => {
  test('writes what can be read again, with the checksum of the elements alone', async () => {
    const path = join(makeFolder(), 'features.npy');
    const writer = await NpyWriter.create(path, 'float32', 2);
    await writer.append(Float32Array.of(1, 2));
    await writer.append(Float32Array.of(3, 4, 5, 6));
    const written = await writer.finish();
    const elements = Buffer.from(Float32Array.of(1, 2, 3, 4, 5, 6).buffer);
    expect(written).toEqual({
      rows: 3,
      bytes: 128 + elements.length,
      sha256: createHash('sha256').update(elements).digest('hex'),
    });
    expect(readFileSync(path)).toEqual(npy('float32', [3, 2], Float32Array.of(1, 2, 3, 4, 5, 6)));
    expect(statSync(path).mode & 0o222).toBe(0);
    const source = await openNpyFile(path, never);
    expect(source.header).toEqual({ type: 'float32', shape: [3, 2] });
    expect(await valuesOf(source)).toEqual([1, 2, 3, 4, 5, 6]);
  });

  test('does not overwrite a file', async () => {
    const folder = folderOf({ 'labels.npy': 'mine' });
    await expect(NpyWriter.create(join(folder, 'labels.npy'), 'int32', null)).rejects.toThrow(
      'EEXIST',
    );
  });
});

describe('reading', () => {
  test('gives the same elements however the stream is cut', async () => {
    const values = Int32Array.from({ length: 300_000 }, (_, i) => i * 7 - 5);
    const bytes = npy('int32', [values.length], values);
    for (const cut of [1_000, 4_096, 65_537, bytes.length]) {
      async function* chunks() {
        for (let at = 0; at < bytes.length; at += cut) yield bytes.subarray(at, at + cut);
      }
      const source = await openNpyStream('labels.npy', bytes.length, chunks(), never);
      const read = Int32Array.from(await valuesOfLarge(source));
      expect(Buffer.from(read.buffer).equals(Buffer.from(values.buffer))).toBe(true);
    }
  });

  test('accepts headers of version 2', async () => {
    const first = int32(4, 5);
    const text = first.subarray(10, 128);
    const start = Buffer.from('\x93NUMPY\x02\x00\0\0\0\0', 'latin1');
    start.writeUInt32LE(text.length, 8);
    const path = join(
      folderOf({ 'a.npy': Buffer.concat([start, text, first.subarray(128)]) }),
      'a.npy',
    );
    expect(await valuesOf(await openNpyFile(path, never))).toEqual([4, 5]);
  });

  test('says what is wrong with a file, by its name', async () => {
    const good = int32(1, 2, 3);
    const header = (text: string) => Buffer.concat([numpyHeader(text), Buffer.alloc(12)]);
    const cases: readonly (readonly [Uint8Array, string])[] = [
      [Buffer.alloc(0), 'labels.npy: is empty, expected a .npy array'],
      [Buffer.from('id,label\n'), 'labels.npy: is not a .npy array: it does not start with'],
      [Buffer.from('PK'), 'labels.npy: is not a .npy array'],
      [good.subarray(0, 50), 'labels.npy: is truncated within its .npy header'],
      [good.subarray(0, 139), 'labels.npy: is truncated: its header promises shape (3) of int32'],
      [Buffer.concat([good, good]), 'labels.npy: is too long: its header promises shape (3)'],
      [
        header("{'descr': '>i4', 'fortran_order': False, 'shape': (3,), }"),
        'labels.npy: has dtype >i4: big-endian (array.astype(array.dtype.newbyteorder("="))), ',
      ],
      [
        header("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }"),
        'labels.npy: has dtype |O: Python objects (array.astype("float32")), expected one of bool',
      ],
      [
        header("{'descr': '<U21', 'fortran_order': False, 'shape': (3,), }"),
        'labels.npy: has dtype <U21: texts (numpy.unique(texts, return_inverse=True)), expected',
      ],
      [
        header("{'descr': '<c8', 'fortran_order': False, 'shape': (3,), }"),
        'labels.npy: has dtype <c8: complex numbers',
      ],
      [
        header("{'descr': '<f4', 'fortran_order': True, 'shape': (3, 1), }"),
        'labels.npy: is stored in Fortran order, shape (3, 1), expected C order',
      ],
      [
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (-3,), }"),
        'labels.npy: is damaged: its .npy header has the shape (-3,)',
      ],
      [header("{'descr': '<f4'}"), 'labels.npy: is damaged: its .npy header does not name order'],
      [
        header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,), }"),
        'labels.npy: has dtype of records: save a field of the records each, expected one of',
      ],
      [Buffer.from('\x93NUMPY\x09\x00\x01\x00aaaaaa', 'latin1'), 'has .npy version 9, expected 1'],
      [Buffer.from('\x93NUMPY\x02\x00\xff\xff\xff\xffaa', 'latin1'), 'claims 4,294,967,295 bytes'],
    ];
    for (const [content, message] of cases) expect(await refusalOf(content)).toContain(message);
  });

  test('names a file that is missing', async () => {
    await expect(openNpyFile('/nowhere/val.npy', never)).rejects.toThrow('val.npy: cannot be read');
  });

  test('ends with the reason of an abort', async () => {
    const path = join(folderOf({ 'labels.npy': int32(1) }), 'labels.npy');
    const reason = new Error('enough');
    await expect(openNpyFile(path, AbortSignal.abort(reason))).rejects.toBe(reason);
  });
});

async function valuesOfLarge(source: NpySource): Promise<number[]> {
  const values: number[] = [];
  for await (const block of source.blocks()) for (const value of block) values.push(Number(value));
  return values;
}
