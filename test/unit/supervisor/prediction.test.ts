import { expect, test } from 'vitest';
import { type PredictionPart, partsOf } from '../../../src/supervisor/prediction.ts';

function frame(kind: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt32LE(kind, 0);
  head.writeUInt32LE(payload.length, 4);
  return Buffer.concat([head, payload]);
}

function progress(share: number): Buffer {
  const payload = Buffer.alloc(8);
  payload.writeDoubleLE(share);
  return frame(1, payload);
}

function file(name: string, bytes: bigint): Buffer {
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(bytes);
  return frame(2, Buffer.concat([size, Buffer.from(name)]));
}

const stream = Buffer.concat([
  file('logits.npy', 5n),
  frame(3, Buffer.from('ab')),
  progress(0.5),
  frame(3, Buffer.from('cde')),
  file('empty.npy', 0n),
  progress(1),
]);

async function collect(chunks: readonly Buffer[]) {
  const parts: PredictionPart[] = [];
  async function* given() {
    yield* chunks;
  }
  for await (const part of partsOf(given())) parts.push(part);
  return parts;
}

/** What was said, with neighbouring data joined. */
function told(parts: readonly PredictionPart[]): readonly string[] {
  const lines: string[] = [];
  for (const part of parts) {
    const isMore = lines.at(-1)?.startsWith('data ') === true;
    if (part.kind === 'progress') lines.push(`${part.share}`);
    else if (part.kind === 'file') lines.push(`${part.name} ${part.bytes}`);
    else if (isMore) lines.push(`${lines.pop()}${Buffer.from(part.bytes)}`);
    else lines.push(`data ${Buffer.from(part.bytes)}`);
  }
  return lines;
}

const all = ['logits.npy 5', 'data ab', '0.5', 'data cde', 'empty.npy 0', '1'];

test('frames are read wherever the stream is cut into chunks', async () => {
  expect(told(await collect([stream]))).toEqual(all);
  for (let at = 1; at < stream.length; at += 1) {
    const parts = await collect([stream.subarray(0, at), stream.subarray(at)]);
    expect(told(parts), `cut at ${at}`).toEqual(all);
  }
  expect(told(await collect([...stream].map((byte) => Buffer.of(byte))))).toEqual(all);
});

test('a stream that ends within a frame, and a frame of no known kind, are errors', async () => {
  for (const at of [3, 20, stream.length - 1, 27]) {
    await expect(collect([stream.subarray(0, at)])).rejects.toThrow('cut off');
  }
  await expect(collect([frame(9, Buffer.alloc(0))])).rejects.toThrow('kind 9');
});
