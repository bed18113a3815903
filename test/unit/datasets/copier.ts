import { createHash } from 'node:crypto';
import { readFileSync, writeSync } from 'node:fs';
import type { ArrayCopier } from '../../../src/datasets/copy-array.ts';
import type { TextReader } from '../../../src/datasets/text-batches.ts';
import type {
  ArrayCopied,
  ArrayCopyHandle,
  ArrayCopyOptions,
  TextRowsHandle,
} from '../../../src/native/contract.ts';
import { brokenBatch } from './plain-graph.ts';

/** Native code for which nothing in a large text is plain, so that it is read by rows. */
export const noText: TextReader = {
  textRowsOpen: () => ({}) as TextRowsHandle,
  textRowsRead: async () => brokenBatch,
};

/** What native code does with an array, in the plainest way: native tests hold that to the same. */
export function plainCopier(): ArrayCopier & { readonly opened: ArrayCopyOptions[] } {
  const opened: ArrayCopyOptions[] = [];
  const under = new Map<ArrayCopyHandle, { options: ArrayCopyOptions; copied: ArrayCopied }>();
  const named = new Map<ArrayCopyHandle, Set<number>>();
  return {
    opened,
    arrayCopyOpen(options) {
      opened.push(options);
      const { source, sourceAt, bytes, targetFd, targetAt, rule, numNodes } = options;
      const elements = readFileSync(source).subarray(sourceAt, sourceAt + bytes);
      if (targetFd >= 0) writeSync(targetFd, elements, 0, bytes, targetAt);
      const buffer = Uint8Array.from(elements).buffer;
      const clean = {
        ANY: () => true,
        NODES: () => new Uint32Array(buffer).every((node) => node < numNodes),
        FINITE_FLOAT32: () => new Float32Array(buffer).every(Number.isFinite),
        FINITE_FLOAT16: () => new Uint16Array(buffer).every((half) => (half & 0x7c00) !== 0x7c00),
      }[rule]();
      const handle = {} as ArrayCopyHandle;
      const sha256 = createHash('sha256').update(elements).digest('hex');
      under.set(handle, { options, copied: { sha256, clean } });
      if (rule === 'NODES') named.set(handle, new Set(new Uint32Array(buffer)));
      return handle;
    },
    arrayCopyStep: async () => false,
    arrayCopyFinish(handle) {
      const found = under.get(handle);
      if (found === undefined) throw new Error('no such copy');
      return found.copied;
    },
    arrayCopyUnnamed: (handle, nodes) =>
      nodes.filter((node) => named.get(handle)?.has(node) !== true).length,
  };
}
