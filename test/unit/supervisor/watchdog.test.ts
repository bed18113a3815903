import { expect, test } from 'vitest';
import { processDump, processState } from '../../../src/supervisor/process-state.ts';
import { settlesWithin } from '../../../src/supervisor/settles-within.ts';
import { unwatched, Watchdog } from '../../../src/supervisor/watchdog.ts';

/** Who is silent: one that hangs, one that has much to do, one that nobody let run. */

const limits = { stallMs: 1000, startupMs: 60_000 };
const lookMs = 100;

/** Looks every 100 ms from `fromMs` on; when it is killed, in ms, and why. */
function watch(
  row: { readonly phase: 'LOADING' | 'RUNNING'; readonly lastSignMs: (nowMs: number) => number },
  {
    cpuMs = () => 0,
    isStopped = () => false,
    frozen = [],
  }: {
    readonly cpuMs?: (nowMs: number) => number;
    readonly isStopped?: (nowMs: number) => boolean;
    /** Times in which the daemon does not run. */
    readonly frozen?: readonly (readonly [number, number])[];
  } = {},
) {
  let nowMs = 0;
  const watchdog = new Watchdog(limits, () => ({
    cpuMs: cpuMs(nowMs),
    isStopped: isStopped(nowMs),
  }));
  const watched = unwatched();
  for (nowMs = 5000; nowMs < 200_000; nowMs += lookMs) {
    if (frozen.some(([from, to]) => nowMs >= from && nowMs < to)) continue;
    watchdog.begin(nowMs);
    const signNs = row.lastSignMs(nowMs) * 1e6;
    const { phase } = row;
    const look = { phase, heartbeatNs: signNs, registeredNs: signNs, stage: 'TRAIN' } as const;
    const stall = watchdog.look(look, 1, watched, nowMs);
    if (stall !== null) return { atMs: nowMs, why: stall.why };
  }
  return null;
}

const running = (lastSignMs: (nowMs: number) => number) =>
  ({ phase: 'RUNNING', lastSignMs }) as const;
const silentFrom = (fromMs: number) => running((nowMs) => Math.min(nowMs, fromMs));

test('who gives signs of life is left alone, whatever it computes', () => {
  expect(watch(running((nowMs) => nowMs - 900))).toBeNull();
});

test('who sleeps in silence is stalled', () => {
  const killed = watch(silentFrom(8000));
  expect(killed?.atMs).toBe(9100);
  expect(killed?.why).toBe('gave no sign of life for 1.1 s');
});

test('a long batch is no stall while it computes, up to ten stall times', () => {
  const killed = watch(silentFrom(8000), { cpuMs: (nowMs) => nowMs });
  expect(killed).toEqual({ atMs: 18_100, why: 'was busy with one TRAIN for 10.1 s' });
  // Half a core in a hundred is what a sleeping process takes for itself.
  expect(watch(silentFrom(8000), { cpuMs: (nowMs) => nowMs / 200 })?.atMs).toBe(9100);
});

test('who computed and then hangs is stalled as soon as that shows', () => {
  const killed = watch(silentFrom(8000), { cpuMs: (nowMs) => Math.min(nowMs, 12_000) });
  expect(killed?.atMs).toBeGreaterThan(12_000);
  expect(killed?.atMs).toBeLessThan(12_500);
});

test('who is stopped computes nothing', () => {
  const stopped = { cpuMs: (nowMs: number) => nowMs, isStopped: () => true };
  expect(watch(silentFrom(8000), stopped)?.atMs).toBe(9100);
});

test('loading has as long as the start, unless it is stopped', () => {
  const loading = { phase: 'LOADING', lastSignMs: () => 5000 } as const;
  expect(watch(loading)?.atMs).toBe(65_100);
  expect(watch(loading, { isStopped: (nowMs) => nowMs >= 7000 })?.atMs).toBe(8100);
  const paused = { isStopped: (nowMs: number) => nowMs >= 7000 && nowMs < 7500 };
  expect(watch(loading, paused)?.atMs).toBe(65_100);
});

test('a daemon that was frozen kills nobody for it', () => {
  // All were frozen together, and go on a little later.
  const frozen = [[10_000, 70_000]] as const;
  const others = running((nowMs) => (nowMs < 10_000 ? nowMs : nowMs < 70_800 ? 10_000 : nowMs));
  expect(watch(others, { frozen })).toBeNull();
  // An executor that does not go on is found all the same.
  expect(watch(silentFrom(10_000), { frozen })?.atMs).toBe(71_100);
});

test('a wait counts the time in which this process runs', async () => {
  expect(await settlesWithin(Promise.resolve(), 0)).toBe(true);
  expect(await settlesWithin(new Promise(() => {}), 20)).toBe(false);
});

test('the kernel says where every thread is', () => {
  expect(processState(process.pid)).toMatchObject({ isStopped: false });
  expect(processState(process.pid)?.cpuMs).toBeGreaterThan(0);
  expect(processState(2 ** 30)).toBeNull();
  const dump = processDump(process.pid);
  expect(dump).toMatch(/^thread \d+.*: \S+.*, [RS], in \S+, call \S+/m);
  expect(dump.length).toBeLessThanOrEqual(2048);
  expect(processDump(2 ** 30)).toBe('');
});
