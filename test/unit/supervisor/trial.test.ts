import { expect, test } from 'vitest';
import type { LivingSeat, Seat } from '../../../src/devices/seat.ts';
import type { SegmentSnapshot } from '../../../src/native/contract.ts';
import { runTrial } from '../../../src/supervisor/trial.ts';

const seats: readonly Seat[] = [
  { executor: 'trial-sampler@cpu:0#1', role: 'SAMPLER', device: 'cpu:0' },
  { executor: 'trial-trainer@cpu:1#1', role: 'TRAINER', device: 'cpu:1' },
];

/** A crew that notes what is done with it; `spawn` of the seat named here fails. */
function crewOf(failing: string | null, looks: readonly boolean[]) {
  const alive = new Set<string>();
  const done: string[] = [];
  let looked = 0;
  const crew = {
    spawn: async ({ executor }: Seat) => {
      if (executor === failing) throw new Error('no process could be started');
      alive.add(executor);
    },
    look: () => ({ complete: looks[looked++] ?? false }) as SegmentSnapshot,
    watch: () => {},
    stop: async () => {
      await Promise.resolve();
      alive.clear();
      done.push('stopped');
      return [];
    },
    close: () => void done.push(`closed with ${alive.size} alive`),
  };
  return { crew, alive, done };
}

const options = {
  lookEveryMs: 0,
  graceMs: 0,
  isStopped: () => false,
  onUnkillable: () => {},
};

test('when the second executor cannot be spawned, the first is reaped', async () => {
  const { crew, alive, done } = crewOf('trial-trainer@cpu:1#1', []);
  await expect(runTrial(crew, seats, options)).rejects.toThrow('no process could be started');
  expect(alive.size).toBe(0);
  expect(done).toEqual(['stopped', 'closed with 0 alive']);
});

test('a trial ends when all its batches are committed, and leaves nobody', async () => {
  const { crew, done } = crewOf(null, [false, false, true]);
  expect(await runTrial(crew, seats, options)).toEqual({ complete: true });
  expect(done).toEqual(['stopped', 'closed with 0 alive']);
});

test('a trial that is stopped has no result, and who cannot be killed is told', async () => {
  const { crew } = crewOf(null, []);
  const left: LivingSeat[] = [];
  const stopped = {
    ...options,
    isStopped: () => true,
    onUnkillable: (found: readonly LivingSeat[]) => void left.push(...found),
  };
  const living = seats.map((seat) => ({ ...seat, pid: 7 }));
  const unkillable = { ...crew, stop: async () => living };
  expect(await runTrial(unkillable, seats, stopped)).toBeNull();
  expect(left).toEqual(living);
});
