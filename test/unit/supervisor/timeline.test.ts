import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { type SegmentSnapshot, stages, waitSides } from '../../../src/native/contract.ts';
import type { Look } from '../../../src/supervisor/look.ts';
import {
  readTimeline,
  stretchesMax,
  Timeline,
  timelineText,
} from '../../../src/supervisor/timeline.ts';

type Totals = Partial<
  Record<(typeof stages)[number] | `WAIT_${(typeof waitSides)[number]}`, number>
>;

/** Totals in milliseconds since the start of the executor. */
function executor(totals: Totals, more: { readonly incarnation?: number; phase?: string } = {}) {
  const times = (ms = 0) => ({ totalNs: ms * 1e6, count: 0, buckets: [], medianNs: 0 });
  return {
    ...{ incarnation: 1, role: 'TRAINER', device: 0, phase: 'RUNNING', registeredNs: 0 },
    counters: [],
    stages: stages.map((name) => times(totals[name])),
    waits: waitSides.map((name) => times(totals[`WAIT_${name}`])),
    ...more,
  };
}

function look(atMs: number, queueDepth: number, ...executors: ReturnType<typeof executor>[]): Look {
  const snapshot = { executors, queueDepth, numSlots: 8 };
  return { atMs, snapshot: snapshot as unknown as SegmentSnapshot };
}

const wallMs = 1_700_000_000_000;

function started(): Timeline {
  const timeline = new Timeline(['cpu:0']);
  timeline.start(look(1000, 0, executor({})), wallMs);
  return timeline;
}

test('a stretch has what was done in it, when it was, and how full the queue was', () => {
  const timeline = started();
  timeline.look(look(1100, 3, executor({ TRAIN: 60, WAIT_DEQUEUE: 40 })));
  timeline.look(look(1200, 5, executor({ TRAIN: 90, WAIT_DEQUEUE: 110 })));
  expect(timeline.record).toMatchObject({
    queueCapacity: 8,
    stretches: [
      {
        ...{ startAtMs: wallMs, durationNs: 1e8, queueDepth: 3 },
        executors: [{ role: 'TRAINER', device: 'cpu:0', trainNs: 6e7, waitDequeueNs: 4e7 }],
      },
      { startAtMs: wallMs + 100, queueDepth: 5, executors: [{ trainNs: 3e7, waitDequeueNs: 7e7 }] },
    ],
  });
});

test('a stage that was told at its end is counted when it happened', () => {
  const timeline = started();
  timeline.look(look(1100, 0, executor({ TRAIN: 80 })));
  timeline.look(look(1200, 0, executor({ TRAIN: 80 })));
  timeline.look(look(1300, 0, executor({ TRAIN: 80, EVALUATE: 205, WAIT_DUE: 10 })));
  const parts = timeline.record.stretches.map(({ executors: [times] }) => {
    return [times?.trainNs, times?.evaluateNs, times?.waitDueNs];
  });
  expect(parts).toEqual([
    [8e7, 1.5e7, 0],
    [0, 1e8, 0],
    [0, 9e7, 1e7],
  ]);
});

test('half an hour is in as many stretches as a minute, and nothing of it is lost', () => {
  const timeline = started();
  const looks = 1800 * 10;
  for (let index = 1; index <= looks; index += 1) {
    timeline.look(look(1000 + 100 * index, index % 2, executor({ TRAIN: 70 * index })));
  }
  const { stretches } = timeline.record;
  expect(stretches.length).toBeLessThanOrEqual(stretchesMax);
  expect(stretches.length).toBeGreaterThan(stretchesMax / 2 - 1);
  const sum = (of: (stretch: (typeof stretches)[number]) => number) =>
    stretches.reduce((total, stretch) => total + of(stretch), 0);
  expect(sum(({ durationNs }) => durationNs)).toBe(looks * 1e8);
  expect(sum(({ executors }) => executors[0]?.trainNs ?? 0)).toBe(looks * 7e7);
  expect(sum(({ queueDepth }) => queueDepth) / stretches.length).toBeCloseTo(0.5, 3);
  const ends = stretches.map(({ startAtMs, durationNs }) => startAtMs + durationNs / 1e6);
  expect(stretches.slice(1).map(({ startAtMs }) => startAtMs)).toEqual(ends.slice(0, -1));
});

test('one that took the place of a dead one goes on in its lane', () => {
  const timeline = started();
  const dead = executor({ TRAIN: 50 }, { phase: 'REAPED' });
  const successor = { ...executor({ TRAIN: 20 }, { incarnation: 2 }), registeredNs: 1.07e9 };
  timeline.look(look(1100, 0, dead, successor));
  expect(timeline.record.stretches[0]?.executors).toMatchObject([{ trainNs: 7e7 }]);
});

test('a record is read from its file, and a broken file is no record', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gnnd-timeline-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const timeline = started();
  timeline.look(look(1100, 3, executor({ TRAIN: 60 })));
  const file = join(folder, 'timeline.json');
  writeFileSync(file, timelineText(timeline.record));
  expect(await readTimeline(file)).toEqual(timeline.record);
  writeFileSync(file, timelineText(timeline.record).slice(0, -5));
  expect(await readTimeline(file)).toBeNull();
  expect(await readTimeline(join(folder, 'other'))).toBeNull();
});
