import { join } from 'node:path';
import { elementBytes, formatNpyHeader, openNpyFile } from '../datasets/npy.ts';

/** What a dataset knows of the nodes of a split, beside what a model predicts of them. */

export interface SplitOfDataset {
  readonly folder: string;
  readonly split: 'val' | 'test';
}

/** The rows of labels.npy of the nodes of a split, by ascending nodes: a .npy, on a thread. */
export async function labelsOfSplit({ folder, split }: SplitOfDataset): Promise<Uint8Array> {
  const { signal } = new AbortController();
  const nodes: number[] = [];
  const listed = await openNpyFile(join(folder, `${split}.npy`), signal);
  for await (const block of listed.blocks()) for (const node of block) nodes.push(Number(node));
  nodes.sort((a, b) => a - b);

  const source = await openNpyFile(join(folder, 'labels.npy'), signal);
  const { type, shape } = source.header;
  const [, ...columns] = shape;
  const rowBytes = columns.reduce((product, axis) => product * axis, elementBytes[type]);
  const head = formatNpyHeader({ type, shape: [nodes.length, ...columns] });
  const file = new Uint8Array(head.length + nodes.length * rowBytes);
  file.set(head);
  // Byte of labels.npy's elements at which a block begins; a row may go on in the next block.
  let begin = 0;
  let next = 0;
  for await (const block of source.blocks()) {
    const bytes = new Uint8Array(block.buffer, block.byteOffset, block.byteLength);
    const end = begin + bytes.length;
    for (let at = next; at < nodes.length; at += 1) {
      const from = (nodes[at] ?? 0) * rowBytes;
      if (from >= end) break;
      const part = bytes.subarray(Math.max(from - begin, 0), from + rowBytes - begin);
      file.set(part, head.length + at * rowBytes + Math.max(begin - from, 0));
      if (from + rowBytes <= end) next = at + 1;
    }
    begin = end;
  }
  return file;
}
