import type { ArrayCopyHandle, ArrayCopyOptions, CoreAddon } from '../native/contract.ts';
import { elementBytes, elementCount, type NpySource, type NpyType } from './npy.ts';

/**
 * Arrays that are stored as they came: native code copies, hashes and checks them in one pass, on
 * two threads and in a few MiB of memory.
 */

export type ArrayCopier = Pick<
  CoreAddon,
  'arrayCopyOpen' | 'arrayCopyStep' | 'arrayCopyFinish' | 'arrayCopyUnnamed'
>;

export interface CopyTask {
  readonly native: ArrayCopier;
  readonly source: NpySource & { readonly place: NonNullable<NpySource['place']> };
  /** Null: the file itself becomes part of the dataset, and is only read. */
  readonly target: { readonly fd: number; readonly at: number } | null;
  readonly rule: ArrayCopyOptions['rule'];
  readonly numNodes: number;
  readonly signal: AbortSignal;
  /** Elements that were copied since it was called last. */
  readonly onCopied: (elements: number) => void;
}

export interface CopiedArray {
  /** SHA-256 of the elements. */
  readonly sha256: string;
  readonly bytes: number;
  /** Every element meets the rule. */
  readonly isClean: boolean;
  readonly handle: ArrayCopyHandle;
}

/** Between two looks at the signal, and two signs of progress. */
const stepBytes = 1 << 26;

/** Whether the source is a file whose elements a dataset may hold as they are. */
export function isCopyable(source: NpySource, stored: NpyType): source is CopyTask['source'] {
  return source.place !== null && source.header.type === stored;
}

/** Rejects with the signal's reason, an error of the disk (ENOSPC), or one with a NativeCode. */
export async function copyArray(task: CopyTask): Promise<CopiedArray> {
  const { native, source, target, rule, numNodes, signal, onCopied } = task;
  const { type, shape } = source.header;
  const bytes = elementCount(shape) * elementBytes[type];
  const handle = native.arrayCopyOpen({
    ...{ source: source.place.file, sourceAt: source.place.dataAt, bytes, rule, numNodes },
    ...{ targetFd: target?.fd ?? -1, targetAt: target?.at ?? 0 },
  });
  for (let done = 0; done < bytes; done += stepBytes) {
    signal.throwIfAborted();
    await native.arrayCopyStep(handle, stepBytes).catch((error: unknown) => {
      throw asDiskError(error);
    });
    onCopied(Math.min(stepBytes, bytes - done) / elementBytes[type]);
  }
  const { sha256, clean } = native.arrayCopyFinish(handle);
  return { sha256, bytes, isClean: clean, handle };
}

/** A full disk is told by its code, whoever wrote. */
function asDiskError(error: unknown): unknown {
  const isFull = error instanceof Error && /No space left|quota exceeded/i.test(error.message);
  return isFull ? Object.assign(new Error(error.message), { code: 'ENOSPC' }) : error;
}
