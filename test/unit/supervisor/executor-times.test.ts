import { expect, test } from 'vitest';
import {
  counters,
  type ExecutorSnapshot,
  type SegmentSnapshot,
  stages,
  waitSides,
} from '../../../src/native/contract.ts';
import { ExecutorTimer } from '../../../src/supervisor/executor-times.ts';
import type { Look } from '../../../src/supervisor/look.ts';

type Totals = Partial<
  Record<(typeof stages)[number] | `WAIT_${(typeof waitSides)[number]}`, number>
>;

function executor(incarnation: number, totals: Totals, more: Partial<ExecutorSnapshot> = {}) {
  const times = (totalNs = 0) => ({ totalNs, count: 0, buckets: [], medianNs: 0 });
  return {
    incarnation,
    role: 'TRAINER',
    device: 1,
    phase: 'RUNNING',
    registeredNs: 0,
    counters: [] as readonly number[],
    stages: stages.map((name) => times(totals[name])),
    waits: waitSides.map((name) => times(totals[`WAIT_${name}`])),
    ...more,
  };
}

function look(atMs: number, ...executors: ReturnType<typeof executor>[]): Look {
  return { atMs, snapshot: { executors } as unknown as SegmentSnapshot };
}

const devices = ['cpu:0', 'cpu:1'];

test('a lap has what was added since the one before, and its wall time', () => {
  const timer = new ExecutorTimer(devices);
  timer.start(look(1000, executor(1, { EXTRACT: 5, TRAIN: 100 })));
  const now = executor(1, { EXTRACT: 25, TRAIN: 400, WAIT_EXTRACT: 7, WAIT_DUE: 9 });
  const [times, ...others] = timer.lap(look(3000, now));
  expect(others).toEqual([]);
  expect(times).toMatchObject({
    role: 'TRAINER',
    device: 'cpu:1',
    durationNs: 2_000_000_000,
    extractNs: 20,
    trainNs: 300,
    waitExtractNs: 7,
    waitDueNs: 9,
    sampleNs: 0,
  });
  expect(timer.lap(look(3500, now))[0]).toMatchObject({ durationNs: 500_000_000, trainNs: 0 });
});

test('a lap has the rows that were read, spared and found since', () => {
  const of = (values: Partial<Record<keyof typeof counters, number>>) => {
    const all = Array<number>(Object.keys(counters).length).fill(0);
    for (const [name, value] of Object.entries(values)) {
      all[counters[name as keyof typeof counters]] = value;
    }
    return { counters: all };
  };
  const timer = new ExecutorTimer(devices);
  const cache = { cacheRows: 100, cacheGivenUpRows: 10 };
  const earlier = { deviceRows: 5, peerRows: 2, hostRows: 10, diskRows: 1, prunedRows: 7 };
  const before = of({ ...cache, ...earlier });
  timer.start(look(1000, executor(1, {}, before)));
  const now = of({
    ...{ deviceRows: 25, peerRows: 5, hostRows: 30, diskRows: 2, prunedRows: 107 },
    ...{ historyLookUps: 50, historyHits: 20, historyUpdateNs: 9 },
    ...{ historyCompared: 4, historySimilar: 3, historyCosine: 3_500_000, historyLag: 80 },
    ...{ cacheRows: 100, cacheGivenUpRows: 30 },
  });
  expect(timer.lap(look(2000, executor(1, { PRUNE: 4 }, now)))[0]).toMatchObject({
    ...{ cachedRows: 20, peerRows: 3, readRows: 21, prunedRows: 100 },
    ...{ historyLookups: 50, historyHits: 20 },
    ...{ pruneNs: 4, historyNs: 9, cacheBorder: 70, cacheGivenUpRows: 30 },
    ...{ historyCompared: 4, historySimilar: 3, historyCosine: 3.5, historyLag: 80 },
  });
});

test('epochs that end together share no time: the first one has all', () => {
  const timer = new ExecutorTimer(devices);
  timer.start(look(0, executor(1, {})));
  const now = look(100, executor(1, { TRAIN: 5 }));
  expect(timer.lap(now)).toHaveLength(1);
  expect(timer.lap(now)).toEqual([]);
});

test('one that died has its last lap, its successor one since its start', () => {
  const timer = new ExecutorTimer(devices);
  timer.start(look(1000, executor(1, {})));
  const dead = executor(1, { TRAIN: 40 }, { phase: 'REAPED' });
  const successor = executor(2, { TRAIN: 60 }, { registeredNs: 1.5e9 });
  const lap = timer.lap(look(2000, dead, successor));
  expect(lap.map(({ trainNs, durationNs }) => [trainNs, durationNs])).toEqual([
    [40, 1e9],
    [60, 5e8],
  ]);
  expect(timer.lap(look(3000, dead, successor))).toHaveLength(1);
});
