import { expect, test } from 'vitest';
import {
  bar,
  createLiveRegion,
  createStyle,
  glyphsOf,
  harmless,
  padEnd,
  printable,
  sparkline,
  truncate,
  widthOf,
  wrap,
} from '../../../src/cli/session/terminal.ts';

const unicode = glyphsOf({ LANG: 'C.UTF-8' });
const ascii = glyphsOf({ LANG: 'C' });

test('unicode is for UTF-8 locales and able terminals', () => {
  expect(ascii.hasBraille).toBe(false);
  expect(unicode.hasBraille).toBe(true);
  expect(glyphsOf({ LC_ALL: 'C', LANG: 'en_US.UTF-8' }).hasBraille).toBe(false);
  expect(glyphsOf({ LANG: 'en_US.utf8', TERM: 'dumb' }).hasBraille).toBe(false);
});

test('bars have the width asked for, at any share', () => {
  expect(bar(0, 8, unicode)).toBe('░░░░░░░░');
  expect(bar(1, 8, unicode)).toBe('████████');
  expect(bar(0.5, 3, unicode)).toBe('█▌░');
  expect(bar(0.5, 4, ascii)).toBe('##..');
  for (const share of [-1, 0.01, 0.37, 0.999, 2, Number.NaN]) {
    expect([...bar(share, 7, unicode)].length, String(share)).toBe(7);
  }
});

test('curves go from the lowest to the highest value', () => {
  expect(sparkline([0, 1, 2, 3], 10, unicode)).toBe('⣠⣾');
  expect(sparkline([0, 1, 2, 3, 4, 5, 6, 7], 10, ascii)).toBe('_.-~=+*#');
  expect(sparkline([5, 5], 10, ascii)).toBe('__');
  expect(sparkline([], 10, unicode)).toBe('');
});

test('long curves are averaged into the width there is', () => {
  const values = Array.from({ length: 1000 }, (_, index) => index);
  expect([...sparkline(values, 10, unicode)].length).toBe(10);
  expect(sparkline(values, 10, ascii).length).toBe(10);
});

test('colours take no width and survive a cut', () => {
  const style = createStyle(true);
  const text = `${style.red('abc')}def`;
  expect(widthOf(text)).toBe(6);
  expect(truncate(text, 2)).toBe('\u001b[31mab\u001b[39m');
  expect(truncate(text, 6)).toBe(text);
  expect(createStyle(false).red('abc')).toBe('abc');
});

test('a wide character takes two columns, and one that is combined none', () => {
  expect(widthOf('図e\u0301')).toBe(3);
  expect(padEnd('図', 4)).toBe('図  ');
  expect(truncate('a図図', 4)).toBe('a図');
  expect(truncate('a図b', 2)).toBe('a');
  expect(wrap('図図 図図', 6)).toEqual(['図図', '図図']);
});

test('text of others cannot move the cursor', () => {
  expect(printable('a\u001b[2Jb\nc\u0007d\te')).toBe('ab c d\te');
});

function screen(columns: number) {
  let written = '';
  const size = { columns };
  const output = {
    write: (text: string) => {
      written += text;
    },
    isTty: true,
    columns: () => size.columns,
    rows: () => 5,
  };
  const take = () => {
    const text = written;
    written = '';
    return text;
  };
  return { output, take, size };
}

test('a frame replaces the one before with one write, and the cursor comes back once', () => {
  const { output, take } = screen(20);
  const region = createLiveRegion(output);
  region.draw(['one', 'two']);
  expect(take()).toBe('\u001b[?2026h\u001b[?25lone\u001b[K\ntwo\u001b[K\n\u001b[J\u001b[?2026l');
  region.draw(['three']);
  expect(take()).toBe('\u001b[?2026h\u001b[2A\rthree\u001b[K\n\u001b[J\u001b[?2026l');
  region.close();
  region.close();
  expect(take()).toBe('\u001b[?25h');
  region.draw(['late']);
  expect(take()).toBe('');
});

test('lines are cut to the window, and after a resize the wrapped rows are cleared', () => {
  const { output, take, size } = screen(11);
  const region = createLiveRegion(output);
  region.draw(['0123456789abc', '1', '2', '3', '4', '5', '6']);
  const first = take();
  expect(first).toContain('0123456789\u001b[K');
  expect(first).not.toContain('a\u001b[K');
  expect(first.split('\n').length - 1).toBe(4);
  size.columns = 5;
  region.draw(['x']);
  // The first line now fills two rows of the narrower window.
  expect(take()).toContain('\u001b[5A\r');
});

test('text is broken between words only', () => {
  expect(wrap('one two three', 7)).toEqual(['one two', 'three']);
  expect(wrap('one two three', 13)).toEqual(['one two three']);
  expect(wrap('a superlong b', 5)).toEqual(['a', 'superlong', 'b']);
  expect(wrap('', 5)).toEqual(['']);
  expect(wrap(createStyle(true).yellow('one two'), 7)).toEqual(['\u001b[33mone two\u001b[39m']);
});

test('what others wrote does nothing to a terminal, and what gnnctl paints stays painted', () => {
  const style = createStyle(true);
  const painted = `${style.red('bad')} ${style.dim('dim')}\tü\n`;
  expect(harmless(painted)).toBe(painted);
  const title = '\u001b]0;owned\u0007';
  expect(harmless(title)).toBe('\\u001b]0;owned\\u0007');
  expect(harmless('\u001b[2J\u001b[1;31mx\u001b[8m')).toBe('\\u001b[2J\\u001b[1;31mx\\u001b[8m');
  // A sequence of one character, an overwritten line, text that reads backwards.
  expect(harmless('\u009b2J a\rb \u202ec')).toBe('\\u009b2J a\\u000db \\u202ec');
  expect(harmless('of another system\r\n')).toBe('of another system\n');
  const json = JSON.stringify({ value: '\u009b\u202e\u0007' });
  expect(JSON.parse(harmless(json))).toEqual({ value: '\u009b\u202e\u0007' });
});
