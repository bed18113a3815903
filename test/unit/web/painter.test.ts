import { expect, test } from 'vitest';
import { Painter, paintPeriodMs } from '../../../src/web/painter.ts';
import { Thinned } from '../../../src/web/thinned.ts';

/** Time that a test moves, with its calls in order. */
function virtualTime() {
  let now = 0;
  let waiting: { readonly atMs: number; readonly run: () => void }[] = [];
  return {
    nowMs: () => now,
    later(run: () => void, delayMs: number) {
      const entry = { atMs: now + delayMs, run };
      waiting.push(entry);
      return () => {
        waiting = waiting.filter((each) => each !== entry);
      };
    },
    advance(ms: number) {
      const end = now + ms;
      for (;;) {
        const next = waiting.filter(({ atMs }) => atMs <= end).sort((a, b) => a.atMs - b.atMs)[0];
        if (next === undefined) break;
        waiting = waiting.filter((each) => each !== next);
        now = Math.max(now, next.atMs);
        next.run();
      }
      now = end;
    },
  };
}

test('a thousand points a second for a minute are four draws a second of 1,000 points', () => {
  const time = virtualTime();
  const series = new Thinned(2, 1000);
  let drawn = 0;
  const painter = new Painter(() => {
    const points = series.points()[0]?.length ?? 0;
    expect(points).toBeLessThanOrEqual(1000);
    drawn += points;
  }, time);
  for (let index = 0; index < 60_000; index += 1) {
    series.add([index, Math.sin(index)]);
    painter.ask();
    time.advance(1);
  }
  time.advance(paintPeriodMs);
  expect(painter.draws).toBe(60_000 / paintPeriodMs + 1);
  expect(drawn).toBeLessThanOrEqual(painter.draws * 1000);
  expect(series.count).toBe(60_000);
});

test('what changes once is drawn at once, and what does not is not', () => {
  const time = virtualTime();
  const painter = new Painter(() => {}, time);
  time.advance(10_000);
  expect(painter.draws).toBe(0);
  painter.ask();
  time.advance(0);
  expect(painter.draws).toBe(1);
  time.advance(10_000);
  expect(painter.draws).toBe(1);
  painter.ask();
  painter.stop();
  time.advance(10_000);
  expect(painter.draws).toBe(1);
});

test('points that do not fit become means of equally many, and none is lost', () => {
  const series = new Thinned(2, 8);
  for (let index = 0; index < 100; index += 1) series.add([index, index % 2]);
  const [xs = [], ys = []] = series.points();
  expect(series.stride).toBe(16);
  expect(xs).toEqual([7.5, 23.5, 39.5, 55.5, 71.5, 87.5, 97.5]);
  expect(new Set(ys)).toEqual(new Set([0.5]));
});

test('a column may lack values, as of epochs without an evaluation', () => {
  const series = new Thinned(2, 4);
  for (let index = 0; index < 8; index += 1) series.add([index, index === 5 ? 0.75 : null]);
  expect(series.points()[1]).toEqual([null, 0.75]);
});
