import type { AttemptContext } from './attempt-types.ts';
import { Crew, type CrewOptions, type CrewParts } from './crew.ts';

/** The crew of an attempt, whose executors share `parts`. */
export function crewOf(
  { input, native, log, clock, emit }: AttemptContext,
  parts: CrewParts,
  onUnkillable: CrewOptions['onUnkillable'],
): Crew {
  const isTrial = parts.evaluation === null;
  return new Crew({
    ...parts,
    ...{ native, log, clock, onUnkillable },
    spec: input.spec,
    devices: input.devices,
    logFolder: input.logFolder,
    onSpawned: (role) => emit({ kind: 'executorSpawned', role }),
    onReady: (executor) => {
      if (!isTrial) emit({ kind: 'executorReady', executor });
    },
    onExited: (executor, outcome, exit) => {
      // A trial's orderly ends are told by `calibrated`.
      if (isTrial && outcome.kind === 'DONE') return;
      emit({ kind: 'executorExited', executor, outcome, exit });
    },
  });
}
