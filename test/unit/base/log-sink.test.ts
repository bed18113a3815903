import { expect, test } from 'vitest';
import { createLog } from '../../../src/base/log.ts';
import { createLogSink } from '../../../src/base/log-sink.ts';

/** A stream that takes so many bytes and no more until it is told to. */
class Narrow {
  text = '';
  room = 0;

  readonly writeNow = (text: string): number => {
    const taken = Buffer.from(text).subarray(0, this.room);
    this.room -= taken.length;
    this.text += taken.toString();
    return taken.length;
  };
}

const lostLine = (lines: number) => `lost ${lines}\n`;

test('what is not taken now is written later, in order and whole', () => {
  const stream = new Narrow();
  const sink = createLogSink({ writeNow: stream.writeNow, lostLine });
  stream.room = 3;
  for (const line of ['first\n', 'second\n', 'third\n']) sink.write(line);
  expect(stream.text).toBe('fir');
  stream.room = 5;
  sink.flush(0);
  expect(stream.text).toBe('first\nse');
  stream.room = 100;
  sink.flush(0);
  sink.write('fourth\n');
  expect(stream.text).toBe('first\nsecond\nthird\nfourth\n');
});

test('beyond the limit the oldest lines go, and how many is said in their place', () => {
  const stream = new Narrow();
  const sink = createLogSink({ writeNow: stream.writeNow, heldMaxBytes: 8, lostLine });
  stream.room = 1;
  for (const line of ['ab\n', 'c1\n', 'c2\n', 'c3\n', 'c4\n']) sink.write(line);
  stream.room = 100;
  sink.flush(0);
  expect(stream.text).toBe('ab\nlost 2\nc3\nc4\n');
  sink.write('d\n');
  expect(stream.text).toBe('ab\nlost 2\nc3\nc4\nd\n');
});

test('fields that are no JSON end nobody', () => {
  const lines: string[] = [];
  const log = createLog({ level: 'info', write: (line) => lines.push(line) });
  const circle: Record<string, unknown> = {};
  circle['self'] = circle;
  log.info('one', { circle });
  log.warn('two', { count: 3n });
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { lvl: 'info', msg: 'one', unshown: expect.stringContaining('circular') },
    { lvl: 'warn', msg: 'two', unshown: expect.stringContaining('BigInt') },
  ]);
});
