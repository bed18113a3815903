import { sleep } from '../base/clock.ts';
import type { LivingSeat, Seat } from '../devices/seat.ts';
import type { SegmentSnapshot } from '../native/contract.ts';
import { crewOf } from './attempt-crew.ts';
import type { AttemptContext } from './attempt-types.ts';
import type { Crew, CrewParts } from './crew.ts';

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
      await sleep(lookEveryMs);
    }
  } finally {
    onUnkillable(await crew.stop(graceMs));
    crew.close();
  }
}

export interface MeasureOptions extends Omit<TrialOptions, 'graceMs'> {
  /** Called with the crew, so that a stop can reach it, and then with null. */
  readonly onCrew: (crew: Crew | null) => void;
}

/** What a trial crew's segment says at its end; null when the attempt was stopped before. */
export async function measure(
  context: AttemptContext,
  parts: CrewParts,
  seats: readonly Seat[],
  { onCrew, ...options }: MeasureOptions,
): Promise<SegmentSnapshot | null> {
  const crew = crewOf(context, parts, (seat) => options.onUnkillable([seat]));
  onCrew(crew);
  const trainers = seats.filter(({ role }) => role === 'TRAINER').length;
  const anybody = { samplerBatchNs: 0, trainerBatchNs: 0, standbyBatchNs: 0, trainers };
  try {
    context.native.segmentStandby(crew.segment, 'ALWAYS', true, anybody);
    const graceMs = context.input.spec.timeouts.cancelGraceMs;
    return await runTrial(crew, seats, { ...options, graceMs });
  } finally {
    crew.close();
    onCrew(null);
  }
}
