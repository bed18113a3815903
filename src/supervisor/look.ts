import type { ExecutorSnapshot, SegmentSnapshot } from '../native/contract.ts';

/** One look at a segment, and when it was taken on the monotonic clock. */
export interface Look {
  readonly atMs: number;
  readonly snapshot: SegmentSnapshot;
}

export function isAlive(executor: ExecutorSnapshot): boolean {
  return executor.phase !== 'REAPED';
}
