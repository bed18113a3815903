import type { AttemptContext, AttemptPart } from './attempt-types.ts';

/** Runs `work` and emits an event of how long it took, also where it failed. */
export async function timed<T>(
  { clock, emit }: Pick<AttemptContext, 'clock' | 'emit'>,
  part: AttemptPart,
  work: () => Promise<T>,
): Promise<T> {
  const startMs = clock.monotonicMs();
  try {
    return await work();
  } finally {
    emit({ kind: 'partEnded', part, ms: clock.monotonicMs() - startMs });
  }
}
