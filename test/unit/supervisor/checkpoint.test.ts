import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  parametersSha256,
  safetensorsOf,
  writeCheckpoint,
} from '../../../src/supervisor/checkpoint.ts';

const manifest = {
  tensors: [
    { name: 'a.weight', shape: [2, 3], offset: 0 },
    { name: 'a.bias', shape: [2], offset: 16 },
  ],
  numFloats: 32,
};
// Padding between tensors holds rubbish: it must not reach a file or a digest.
const parameters = Float32Array.from({ length: 32 }, (_, i) => i + 0.5);

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gnnd-checkpoint-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('a safetensors file has a padded header and the tensors in order, without padding', () => {
  const file = Buffer.concat([...safetensorsOf(manifest, parameters, { format: 'pt' })]);
  const length = Number(file.readBigUInt64LE(0));
  expect(length % 8).toBe(0);
  const header = JSON.parse(file.subarray(8, 8 + length).toString());
  expect(header).toEqual({
    __metadata__: { format: 'pt' },
    'a.weight': { dtype: 'F32', shape: [2, 3], data_offsets: [0, 24] },
    'a.bias': { dtype: 'F32', shape: [2], data_offsets: [24, 32] },
  });
  const data = Uint8Array.from(file.subarray(8 + length));
  expect([...new Float32Array(data.buffer)]).toEqual([0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 16.5, 17.5]);
});

test('tensors keep the shapes that PyTorch has, also scalars', () => {
  const attention = {
    tensors: [
      { name: 'convs.0.att_src', shape: [1, 4, 2], offset: 0 },
      { name: 'scale', shape: [], offset: 16 },
    ],
    numFloats: 16,
  };
  const file = Buffer.concat([...safetensorsOf(attention, parameters, {})]);
  const length = Number(file.readBigUInt64LE(0));
  const header = JSON.parse(file.subarray(8, 8 + length).toString());
  expect(header['convs.0.att_src'].shape).toEqual([1, 4, 2]);
  expect(header.scale).toEqual({ dtype: 'F32', shape: [], data_offsets: [32, 36] });
});

test('the digest of parameters is that of the tensors alone', () => {
  const tensors = Float32Array.from([0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 16.5, 17.5]);
  const expected = createHash('sha256').update(new Uint8Array(tensors.buffer)).digest('hex');
  expect(parametersSha256(manifest, parameters)).toBe(expected);
  const other = parameters.slice();
  other[7] = -1;
  expect(parametersSha256(manifest, other)).toBe(expected);
  other[17] = -1;
  expect(parametersSha256(manifest, other)).not.toBe(expected);
});

test('a checkpoint folder appears whole and replaces an older one', () => {
  const target = join(folder, 'checkpoint');
  for (const job of ['one', 'two']) {
    writeCheckpoint(target, manifest, { last: parameters, best: parameters, facts: { job } });
  }
  expect(readdirSync(target).sort()).toEqual([
    'MANIFEST.json',
    'best.safetensors',
    'model.safetensors',
  ]);
  const facts = JSON.parse(readFileSync(join(target, 'MANIFEST.json'), 'utf8'));
  expect(facts.job).toBe('two');
  const file = readFileSync(join(target, 'model.safetensors'));
  const sha256 = createHash('sha256').update(file).digest('hex');
  expect(facts.files['model.safetensors'].sha256).toBe(sha256);
  expect(readdirSync(folder)).toEqual(['checkpoint']);
});

test('a checkpoint that cannot be written leaves nothing behind', () => {
  const target = join(folder, 'not-a-folder', 'checkpoint');
  writeCheckpoint(join(folder, 'not-a-folder'), manifest, {
    last: parameters,
    best: parameters,
    facts: {},
  });
  // A file stands where a folder is needed.
  const blocked = join(folder, 'not-a-folder', 'MANIFEST.json', 'checkpoint');
  expect(() =>
    writeCheckpoint(blocked, manifest, { last: parameters, best: parameters, facts: {} }),
  ).toThrow(/ENOTDIR/);
  expect(existsSync(target)).toBe(false);
});
