import { outputFd, topologyFd } from '../executor/protocol.ts';
import type { PredictOptions } from '../native/contract.ts';
import { streamTask, type TaskOptions } from './task.ts';

/** Predictions of a model, computed by a process of low priority while they are read. */

export type PredictionPart =
  | { readonly kind: 'progress'; readonly share: number }
  /** A file begins; `bytes` is its size, and data of so many follow. */
  | { readonly kind: 'file'; readonly name: string; readonly bytes: number }
  | { readonly kind: 'data'; readonly bytes: Uint8Array };

/** nodes.npy unless all are asked for, logits.npy, predictions.npy. Throws a TaskError. */
export function predict(
  options: Omit<PredictOptions, 'topologyFd' | 'outputFd'>,
  task: TaskOptions,
): AsyncGenerator<PredictionPart, void, void> {
  const start = { role: 'PREDICT', options: { ...options, topologyFd, outputFd } } as const;
  return partsOf(streamTask(start, task));
}

/** native/train/work/prediction_stream.h */
const frameKinds = { progress: 1, file: 2, data: 3 } as const;
const headBytes = 8;

/** Frames in chunks that are cut anywhere. */
export async function* partsOf(
  chunks: AsyncIterable<Buffer>,
): AsyncGenerator<PredictionPart, void, void> {
  let rest: Buffer = Buffer.alloc(0);
  let dataLeft = 0;
  for await (const chunk of chunks) {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    for (;;) {
      if (dataLeft > 0) {
        const bytes = rest.subarray(0, dataLeft);
        if (bytes.length === 0) break;
        dataLeft -= bytes.length;
        rest = rest.subarray(bytes.length);
        yield { kind: 'data', bytes };
        continue;
      }
      if (rest.length < headBytes) break;
      const kind = rest.readUInt32LE(0);
      const length = rest.readUInt32LE(4);
      if (kind === frameKinds.data) {
        dataLeft = length;
        rest = rest.subarray(headBytes);
        continue;
      }
      if (rest.length < headBytes + length) break;
      const payload = rest.subarray(headBytes, headBytes + length);
      rest = rest.subarray(headBytes + length);
      yield partOf(kind, payload);
    }
  }
  if (rest.length > 0 || dataLeft > 0) throw new Error('a stream of predictions was cut off');
}

function partOf(kind: number, payload: Buffer): PredictionPart {
  switch (kind) {
    case frameKinds.progress:
      return { kind: 'progress', share: payload.readDoubleLE(0) };
    case frameKinds.file: {
      const bytes = Number(payload.readBigUInt64LE(0));
      return { kind: 'file', name: payload.toString('utf8', 8), bytes };
    }
    default:
      throw new Error(`a stream of predictions holds a frame of kind ${kind}`);
  }
}
