import type { SegmentSnapshot } from '../native/contract.ts';
import type { Crew } from './crew.ts';
import type { LivingSeat, Seat } from './seat.ts';

/** A crew that measures a few batches and is then thrown away. */

export interface TrialOptions {
  readonly lookEveryMs: number;
  readonly graceMs: number;
  /** True once the attempt was told to stop. */
  readonly isStopped: () => boolean;
  readonly onUnkillable: (seats: readonly LivingSeat[]) => void;
}

/**
 * The segment at the end of a trial; null when the attempt was stopped before. However it ends,
 * nobody of the crew is left: its devices are granted again right after.
 */
export async function runTrial(
  crew: Pick<Crew, 'spawn' | 'look' | 'watch' | 'stop' | 'close'>,
  seats: readonly Seat[],
  { lookEveryMs, graceMs, isStopped, onUnkillable }: TrialOptions,
): Promise<SegmentSnapshot | null> {
  try {
    for (const seat of seats) await crew.spawn(seat);
    for (;;) {
      if (isStopped()) return null;
      const snapshot = crew.look();
      crew.watch(snapshot);
      if (snapshot.complete) return snapshot;
      await new Promise((resolve) => setTimeout(resolve, lookEveryMs));
    }
  } finally {
    onUnkillable(await crew.stop(graceMs));
    crew.close();
  }
}
