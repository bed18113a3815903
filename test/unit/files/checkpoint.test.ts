import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  createCheckpointLook,
  parametersOf,
  parametersSha256,
  readCheckpoint,
  safetensorsOf,
  writeCheckpoint,
} from '../../../src/files/checkpoint.ts';
import { modelOptions } from '../../support/model-options.ts';

const manifest = {
  tensors: [
    { name: 'a.weight', shape: [2, 3], offset: 0 },
    { name: 'a.bias', shape: [2], offset: 16 },
  ],
  widths: [],
  numFloats: 32,
};
const model = modelOptions({ layers: 1, inDim: 3, hiddenDim: 4, outDim: 2 });
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
    widths: [],
    numFloats: 16,
  };
  const file = Buffer.concat([...safetensorsOf(attention, parameters, {})]);
  const length = Number(file.readBigUInt64LE(0));
  const header = JSON.parse(file.subarray(8, 8 + length).toString());
  expect(header['convs.0.att_src'].shape).toEqual([1, 4, 2]);
  expect(header.scale).toEqual({ dtype: 'F32', shape: [], data_offsets: [32, 36] });
});

test('the digest of parameters is that of the tensors alone', async () => {
  const tensors = Float32Array.from([0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 16.5, 17.5]);
  const expected = createHash('sha256').update(new Uint8Array(tensors.buffer)).digest('hex');
  expect(await parametersSha256(manifest, parameters)).toBe(expected);
  const other = parameters.slice();
  other[7] = -1;
  expect(await parametersSha256(manifest, other)).toBe(expected);
  other[17] = -1;
  expect(await parametersSha256(manifest, other)).not.toBe(expected);
});

test('a checkpoint folder appears whole and replaces an older one', async () => {
  const target = join(folder, 'checkpoint');
  for (const job of ['one', 'two']) {
    await writeCheckpoint(target, manifest, {
      last: parameters,
      best: parameters,
      model,
      facts: { job },
    });
  }
  expect(readdirSync(target).sort()).toEqual([
    'MANIFEST.json',
    'best.safetensors',
    'last.safetensors',
  ]);
  const facts = JSON.parse(readFileSync(join(target, 'MANIFEST.json'), 'utf8'));
  expect(facts.job).toBe('two');
  const file = readFileSync(join(target, 'last.safetensors'));
  const sha256 = createHash('sha256').update(file).digest('hex');
  expect(facts.files['last.safetensors'].sha256).toBe(sha256);
  expect(readdirSync(folder)).toEqual(['checkpoint']);
});

test('a checkpoint that cannot be written leaves nothing behind', async () => {
  const target = join(folder, 'not-a-folder', 'checkpoint');
  await writeCheckpoint(join(folder, 'not-a-folder'), manifest, {
    last: parameters,
    best: parameters,
    model,
    facts: {},
  });
  // A file stands where a folder is needed.
  const blocked = join(folder, 'not-a-folder', 'MANIFEST.json', 'checkpoint');
  const files = { last: parameters, best: parameters, model, facts: {} };
  await expect(writeCheckpoint(blocked, manifest, files)).rejects.toThrow(/ENOTDIR/);
  expect(existsSync(target)).toBe(false);
});

test('a checkpoint of another format is refused by name', async () => {
  await writeCheckpoint(folder, manifest, { last: parameters, best: parameters, model, facts: {} });
  const path = join(folder, 'MANIFEST.json');
  const facts = JSON.parse(readFileSync(path, 'utf8'));
  writeFileSync(path, JSON.stringify({ ...facts, format: 2 }));
  await expect(readCheckpoint(folder, 'BEST')).rejects.toThrow(
    'made by another version of gnnd (format 2; this one reads 1): train it again',
  );
});

test('a checkpoint is read as it was written, and its parameters without the padding', async () => {
  const last = parameters.map((value) => -value);
  await writeCheckpoint(folder, manifest, { last, best: parameters, model, facts: {} });
  for (const [kind, written] of [
    ['BEST', parameters],
    ['LAST', last],
  ] as const) {
    const file = await readCheckpoint(folder, kind);
    expect(file.bytes).toEqual(readFileSync(file.path));
    expect(file.parametersSha256).toBe(await parametersSha256(manifest, written));
    expect(file.model).toEqual(model);
    expect(file.tensors).toEqual([
      { name: 'a.weight', shape: [2, 3] },
      { name: 'a.bias', shape: [2] },
    ]);
    const read = parametersOf(manifest, file);
    const tensors = (vector: Float32Array) => [...vector.slice(0, 6), ...vector.slice(16, 18)];
    expect(tensors(read)).toEqual(tensors(written));
    expect([...read.slice(6, 16), ...read.slice(18)].every((value) => value === 0)).toBe(true);
  }
});

test('a checkpoint that is missing, damaged or of another model is refused by name', async () => {
  await expect(readCheckpoint(folder, 'BEST')).rejects.toThrow(/best.safetensors.*ENOENT/);
  await writeCheckpoint(folder, manifest, { last: parameters, best: parameters, model, facts: {} });
  const other = { ...manifest, tensors: manifest.tensors.slice(0, 1) };
  const file = await readCheckpoint(folder, 'LAST');
  expect(() => parametersOf(other, file)).toThrow(/last.safetensors does not hold the tensors/);
  const bytes = readFileSync(file.path);
  bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
  writeFileSync(file.path, bytes);
  await expect(readCheckpoint(folder, 'LAST')).rejects.toThrow(/last.safetensors.*SHA-256/);
});

test('a look reads a file once, until it or its manifest changes, and one at a time', async () => {
  await writeCheckpoint(folder, manifest, { last: parameters, best: parameters, model, facts: {} });
  const reads: string[] = [];
  let atOnce = 0;
  const look = createCheckpointLook(async (place, kind) => {
    atOnce += 1;
    expect(atOnce).toBe(1);
    reads.push(kind);
    const file = await readCheckpoint(place, kind);
    atOnce -= 1;
    return file;
  });
  const [best] = await Promise.all([look(folder, 'BEST'), look(folder, 'LAST')]);
  expect(await look(folder, 'BEST')).toEqual(best);
  await Promise.all(Array.from({ length: 5 }, () => look(folder, 'LAST')));
  expect(reads).toEqual(['BEST', 'LAST']);
  // The same bytes in another file.
  const path = join(folder, 'best.safetensors');
  const bytes = readFileSync(path);
  rmSync(path);
  writeFileSync(path, bytes);
  expect(await look(folder, 'BEST')).toEqual(best);
  expect(reads).toEqual(['BEST', 'LAST', 'BEST']);
  writeFileSync(path, bytes.subarray(1));
  await expect(look(folder, 'BEST')).rejects.toThrow(/is not the one in MANIFEST.json/);
});
