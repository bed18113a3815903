import stringWidth from 'string-width';
import type { CliOutput } from './io.ts';

/** Colours, glyphs, widths, and a region of a terminal that is redrawn in place. */

export interface Style {
  bold(text: string): string;
  dim(text: string): string;
  red(text: string): string;
  green(text: string): string;
  yellow(text: string): string;
  cyan(text: string): string;
}

export function createStyle(isColoured: boolean): Style {
  const paint = (code: number, end: number) => (text: string) =>
    isColoured ? `\u001b[${code}m${text}\u001b[${end}m` : text;
  return {
    bold: paint(1, 22),
    dim: paint(2, 22),
    red: paint(31, 39),
    green: paint(32, 39),
    yellow: paint(33, 39),
    cyan: paint(36, 39),
  };
}

export interface Glyphs {
  readonly barFull: string;
  /** Eighths of a cell, from one eighth on; empty where cells are whole. */
  readonly barParts: readonly string[];
  readonly barEmpty: string;
  readonly dot: string;
  readonly check: string;
  readonly cross: string;
  readonly warn: string;
  readonly arrow: string;
  readonly ellipsis: string;
  readonly hasBraille: boolean;
}

const unicodeGlyphs: Glyphs = {
  barFull: '█',
  barParts: ['▏', '▎', '▍', '▌', '▋', '▊', '▉'],
  barEmpty: '░',
  dot: '·',
  check: '✓',
  cross: '✗',
  warn: '!',
  arrow: '→',
  ellipsis: '…',
  hasBraille: true,
};

const asciiGlyphs: Glyphs = {
  barFull: '#',
  barParts: [],
  barEmpty: '.',
  dot: '-',
  check: 'ok',
  cross: 'X',
  warn: '!',
  arrow: '->',
  ellipsis: '...',
  hasBraille: false,
};

type Environment = Readonly<Record<string, string | undefined>>;

/** Unicode where the locale says UTF-8 and the terminal can show it. */
export function glyphsOf(env: Environment): Glyphs {
  const locale = env['LC_ALL'] || env['LC_CTYPE'] || env['LANG'] || '';
  const isPlainTerminal = env['TERM'] === 'dumb' || env['TERM'] === 'linux';
  return /utf-?8/i.test(locale) && !isPlainTerminal ? unicodeGlyphs : asciiGlyphs;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: colours start with one
const escapes = /\u001b\[[0-9;?]*[A-Za-z]/g;

/** Columns of a text: two for a wide character, none for what combines, none for colours. */
export function widthOf(text: string): number {
  return stringWidth(text);
}

const graphemes = new Intl.Segmenter();

/** As much of `plain` as fits into so many columns. */
function fitting(plain: string, width: number): string {
  let used = 0;
  for (const { segment, index } of graphemes.segment(plain)) {
    used += widthOf(segment);
    if (used > width) return plain.slice(0, index);
  }
  return plain;
}

export function padEnd(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - widthOf(text)));
}

export function padStart(text: string, width: number): string {
  return ' '.repeat(Math.max(0, width - widthOf(text))) + text;
}

/** Cut to `width` columns; colours that were open are closed. */
export function truncate(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let result = '';
  let used = 0;
  let position = 0;
  const take = (plain: string) => {
    const part = fitting(plain, width - used);
    result += part;
    // What comes after a character that did not fit is left out, too.
    used = part === plain ? used + widthOf(part) : width;
  };
  for (const match of text.matchAll(escapes)) {
    take(text.slice(position, match.index));
    result += match[0];
    position = match.index + match[0].length;
  }
  take(text.slice(position));
  return result;
}

/** Lines of at most `width` columns, broken between words; a word that is wider stays whole. */
export function wrap(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (line !== '' && widthOf(longer) > width) {
      lines.push(line);
      line = word;
    } else line = longer;
  }
  return [...lines, line];
}

/** Text of others, without what would move the cursor or repaint the screen. */
export function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is removed
  return text.replaceAll(escapes, '').replaceAll(/[\u0000-\u0008\u000a-\u001f\u007f-\u009f]/g, ' ');
}

/**
 * What a terminal does nothing of, whoever wrote it: colours of createStyle stay, all else that is
 * no text, and what turns the direction of text around, is shown as an escape. JSON stays JSON.
 */
export function harmless(text: string): string {
  const shown = (found: string) =>
    found.length > 1 ? found : `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return text.replaceAll('\r\n', '\n').replaceAll(ownColoursAndControls, shown);
}

const ownColoursAndControls =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is shown
  /\u001b\[(?:1|2|22|3[1236]|39)m|(?![\t\n])[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu;

/** Lines at the end of the output that the next frame replaces. */
export interface LiveRegion {
  /** Replaces the lines drawn last. Lines too wide or too many for the screen are cut. */
  draw(lines: readonly string[]): void;
  /** Prints a line above the region. */
  printAbove(line: string): void;
  /** Leaves the last frame on the screen and shows the cursor again. Idempotent. */
  close(): void;
}

export function createLiveRegion(output: CliOutput): LiveRegion {
  let drawn: readonly string[] = [];
  let isOpen = true;
  let isHidden = false;
  // After a resize the terminal has wrapped what was drawn: count rows at today's width.
  const rowsDrawn = () => {
    const columns = Math.max(1, output.columns());
    return drawn.reduce((rows, line) => rows + Math.max(1, Math.ceil(widthOf(line) / columns)), 0);
  };
  const toTop = () => {
    const rows = rowsDrawn();
    return rows === 0 ? '' : `\u001b[${rows}A\r`;
  };
  const render = (lines: readonly string[], above: readonly string[] = []) => {
    if (!isOpen) return;
    const width = Math.max(1, output.columns() - 1);
    const fitting = lines.slice(0, Math.max(1, output.rows() - 1));
    const cut = fitting.map((line) => truncate(harmless(line), width));
    const hide = isHidden ? '' : '\u001b[?25l';
    const body = [...above, ...cut].map((line) => `${line}\u001b[K\n`).join('');
    // Drawn as one write between begin and end of a synchronised update: no flicker.
    output.write(`\u001b[?2026h${hide}${toTop()}${body}\u001b[J\u001b[?2026l`);
    isHidden = true;
    drawn = cut;
  };
  return {
    draw: (lines) => render(lines),
    printAbove: (line) => render(drawn, [harmless(line)]),
    close() {
      if (!isOpen) return;
      isOpen = false;
      if (isHidden) output.write('\u001b[?25h');
    },
  };
}

/** `share` from 0 to 1 of `width` cells; in eighths of a cell where glyphs allow. */
export function bar(share: number, width: number, glyphs: Glyphs): string {
  const steps = glyphs.barParts.length + 1;
  const bounded = Math.min(1, Math.max(0, Number.isFinite(share) ? share : 0));
  const filled = Math.round(bounded * width * steps);
  const full = Math.floor(filled / steps);
  const part = glyphs.barParts[(filled % steps) - 1] ?? '';
  const empty = width - full - (part === '' ? 0 : 1);
  return glyphs.barFull.repeat(full) + part + glyphs.barEmpty.repeat(empty);
}

/** A curve of `width` cells at most, from its lowest to its highest value. */
export function sparkline(values: readonly number[], width: number, glyphs: Glyphs): string {
  const finite = values.filter((value) => Number.isFinite(value));
  if (finite.length === 0) return '';
  const points = resample(finite, glyphs.hasBraille ? width * 2 : width);
  const low = Math.min(...points);
  const high = Math.max(...points);
  const span = high - low;
  const level = (value: number, levels: number) =>
    span === 0 ? 0 : Math.round(((value - low) / span) * (levels - 1));
  if (!glyphs.hasBraille) {
    return points.map((value) => '_.-~=+*#'.charAt(level(value, 8))).join('');
  }
  let text = '';
  for (let index = 0; index < points.length; index += 2) {
    const right = points[index + 1];
    const dots =
      (leftDots[level(points[index] ?? low, 4)] ?? 0) |
      (right === undefined ? 0 : (rightDots[level(right, 4)] ?? 0));
    text += String.fromCodePoint(0x2800 + dots);
  }
  return text;
}

/** Braille columns filled from below, 1 to 4 dots high. */
const leftDots = [0x40, 0x44, 0x46, 0x47];
const rightDots = [0x80, 0xa0, 0xb0, 0xb8];

/** Means of equal parts, at most `count` of them. */
function resample(values: readonly number[], count: number): readonly number[] {
  if (values.length <= count) return values;
  return Array.from({ length: count }, (_, index) => {
    const from = Math.floor((index * values.length) / count);
    const to = Math.floor(((index + 1) * values.length) / count);
    const part = values.slice(from, to);
    return part.reduce((sum, value) => sum + value, 0) / part.length;
  });
}
