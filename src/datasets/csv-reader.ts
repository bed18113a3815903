import { isUtf8 } from 'node:buffer';
import { basename } from 'node:path';
import { TextDecoder } from 'node:util';
import { fileBlocks, fileChunks, openSource } from './byte-streams.ts';
import { packingOf, textBytes } from './packed-text.ts';
import { badFile } from './problems.ts';

/** One record of a CSV file (RFC 4180), or why it is none. */
export interface CsvRow {
  /** Where it begins, from 1. */
  readonly line: number;
  readonly fields: readonly string[];
  /** Null when the record is well formed. */
  readonly problem: string | null;
}

/** Rows with many features are long; beyond this a quote was not closed. */
const recordCharsMax = 16 << 20;
/** What native code reads at once: so few rows that what they are made of is soon gone again. */
const pieceBytes = 1 << 20;
/** The begin of a file, by which its form is told. */
const startBytes = 1 << 15;
/** Rows that tell how fields are separated. */
const sniffedRows = 50;
const byteOrderMark = '\ufeff';
const newlineByte = 0x0a;

/** What stands between fields; a blank means as many blanks and tabs as there are. */
export type Separator = ',' | ';' | '\t' | '|' | ' ';

const separators: readonly Separator[] = [',', '\t', ';', '|', ' '];

/** How a file of text is read. */
export interface CsvForm {
  readonly separator: Separator;
  /** Lines that begin with one of these characters are left out. */
  readonly comments?: string;
}

/** A CSV file, plain or (as its name says) packed, that is read from start to end. */
export class CsvFile {
  readonly name: string;
  readonly #path: string;
  readonly #bytes: number;
  readonly #signal: AbortSignal;
  readonly #form: CsvForm;
  #read = 0;

  private constructor(path: string, bytes: number, signal: AbortSignal, form: CsvForm) {
    this.name = basename(path);
    this.#path = path;
    this.#bytes = bytes;
    this.#signal = signal;
    this.#form = form;
  }

  static async open(
    path: string,
    signal: AbortSignal,
    form: CsvForm = { separator: ',' },
  ): Promise<CsvFile> {
    const file = await openSource(path);
    const { size } = await file.stat().finally(() => file.close());
    return new CsvFile(path, size, signal, form);
  }

  /** What separates the fields of a file, by its first lines. */
  static async separatorOf(path: string, signal: AbortSignal, comments = ''): Promise<Separator> {
    const file = await CsvFile.open(path, signal);
    for await (const chunk of textBytes(file.name, file.#chunks())) {
      return sniffedSeparator(new TextDecoder().decode(chunk.subarray(0, startBytes)), comments);
    }
    return ',';
  }

  /** How much of the file was read, of 1. */
  get fraction(): number {
    return this.#bytes === 0 ? 1 : this.#read / this.#bytes;
  }

  /**
   * Its records, in batches of what one chunk holds; empty lines are skipped. Throws ImportFailure
   * when the file cannot be read.
   */
  async *rows(): AsyncGenerator<CsvRow[]> {
    const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
    const splitter = new CsvSplitter(this.#form);
    this.#read = 0;
    for await (const chunk of startFirst(textBytes(this.name, this.#chunks()))) {
      const rows = splitter.push(this.#decode(decoder, chunk, splitter));
      if (rows.length > 0) yield rows;
    }
    const rest = splitter.push(this.#decode(decoder, null, splitter));
    const last = [...rest, ...splitter.end()];
    if (last.length > 0) yield last;
  }

  /** Its text as bytes, unpacked, in pieces of some size; each is valid until the next one. */
  async *pieces(): AsyncGenerator<Uint8Array> {
    this.#read = 0;
    if (packingOf(this.name) === null) {
      yield* textBytes(this.name, this.#counted(fileBlocks(this.#path, pieceBytes)));
      return;
    }
    let waiting: Uint8Array[] = [];
    let bytes = 0;
    for await (const chunk of textBytes(this.name, this.#chunks())) {
      waiting.push(chunk);
      bytes += chunk.length;
      if (bytes < pieceBytes) continue;
      yield Buffer.concat(waiting, bytes);
      waiting = [];
      bytes = 0;
    }
    if (bytes > 0) yield Buffer.concat(waiting, bytes);
  }

  #chunks(): AsyncGenerator<Uint8Array> {
    return this.#counted(fileChunks(this.#path));
  }

  async *#counted(chunks: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of chunks) {
      this.#signal.throwIfAborted();
      this.#read += chunk.length;
      yield chunk;
    }
  }

  #decode(decoder: TextDecoder, bytes: Uint8Array | null, splitter: CsvSplitter): string {
    try {
      return bytes === null ? decoder.decode() : decoder.decode(bytes, { stream: true });
    } catch {
      const line = splitter.lineOfEnd + linesBeforeFault(bytes ?? new Uint8Array());
      throw badFile(`${this.name}:${line}`, 'is not UTF-8 text: store the file as UTF-8');
    }
  }
}

/** The first chunk in two, of which the first is small: many look at a file's first rows only. */
async function* startFirst(chunks: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
  let isFirst = true;
  for await (const chunk of chunks) {
    if (isFirst && chunk.length > startBytes) {
      yield chunk.subarray(0, startBytes);
      yield chunk.subarray(startBytes);
    } else yield chunk;
    isFirst = false;
  }
}

/** Lines of a piece of a file that end before the first one that is not UTF-8. */
function linesBeforeFault(bytes: Uint8Array): number {
  // What continues a character of the piece before.
  let begin = Math.max(
    0,
    bytes.subarray(0, 3).findIndex((byte) => byte >> 6 !== 0b10),
  );
  let lines = 0;
  for (;;) {
    const end = bytes.indexOf(newlineByte, begin);
    if (end < 0 || !isUtf8(bytes.subarray(begin, end))) return lines;
    lines += 1;
    begin = end + 1;
  }
}

/**
 * The separator that cuts the first lines of a text into equally many fields, and into most; a
 * comma where none does. A last line that was cut off does not count.
 */
export function sniffedSeparator(text: string, comments = ''): Separator {
  let best: Separator = ',';
  let bestScore = 0;
  for (const separator of separators) {
    const splitter = new CsvSplitter({ separator, comments });
    const whole = splitter.push(text);
    const rows = (whole.length > 0 ? whole : splitter.end()).slice(0, sniffedRows);
    const width = rows[0]?.fields.length ?? 1;
    if (width < 2) continue;
    const alike = rows.filter(({ fields, problem }) => problem === null && fields.length === width);
    // Blanks are part of names and texts; they separate only where nothing else does.
    const score = (alike.length / rows.length) * (separator === ' ' ? 1 : 2) + width / 1e9;
    if (score > bestScore) [best, bestScore] = [separator, score];
  }
  return best;
}

/** Cuts text that comes in pieces into records. */
export class CsvSplitter {
  /** Line of the record that is being read, from 1. */
  line = 1;
  readonly #separator: Separator;
  readonly #comments: string;
  #rest = '';
  #isStart = true;
  /** Within a line that is too long to be kept. */
  #isSkipping = false;

  constructor({ separator, comments = '' }: CsvForm = { separator: ',' }) {
    this.#separator = separator;
    this.#comments = comments;
  }

  /** Where the text ends that was pushed: further than `line` within quotes. */
  get lineOfEnd(): number {
    return this.line + this.#rest.split('\n').length - 1;
  }

  push(text: string): CsvRow[] {
    const isFirst = this.#isStart && text !== '';
    if (isFirst) this.#isStart = false;
    const piece = isFirst && text.startsWith(byteOrderMark) ? text.slice(1) : text;
    this.#rest += this.#isSkipping ? this.#afterSkipped(piece) : piece;
    const rows: CsvRow[] = [];
    let at = 0;
    let quote = this.#rest.indexOf('"');
    for (;;) {
      // Looked for only when passed: most files have none, and each search reads to the end.
      if (quote >= 0 && quote < at) quote = this.#rest.indexOf('"', at);
      const end = this.#recordEnd(at, quote);
      if (end < 0) break;
      this.#take(this.#rest.slice(at, end), rows);
      at = end + 1;
    }
    this.#rest = this.#rest.slice(at);
    if (this.#rest.length > recordCharsMax) this.#giveUp(rows);
    return rows;
  }

  /** The last record, when no newline ends it. */
  end(): CsvRow[] {
    const rows: CsvRow[] = [];
    this.#take(this.#rest, rows);
    this.#rest = '';
    return rows;
  }

  /**
   * Position of the newline that ends the record at `at`, outside of quotes; -1 when it is not here
   * yet. `firstQuote` is the first one from `at` on, or -1.
   */
  #recordEnd(at: number, firstQuote: number): number {
    let newline = this.#rest.indexOf('\n', at);
    let quote = firstQuote;
    while (newline >= 0 && quote >= 0 && quote < newline) {
      const closing = this.#rest.indexOf('"', quote + 1);
      if (closing < 0) return -1;
      if (newline < closing) newline = this.#rest.indexOf('\n', closing + 1);
      quote = this.#rest.indexOf('"', closing + 1);
    }
    return newline;
  }

  #take(text: string, rows: CsvRow[]): void {
    const record = text.endsWith('\r') ? text.slice(0, -1) : text;
    const { line } = this;
    this.line += 1;
    if (record === '') return;
    if (this.#comments.includes(record[0] ?? '') && this.#comments !== '') return;
    const cut = cutRecord(record, this.#separator);
    if (cut.fields[0] === '' && this.#separator === ' ') return;
    rows.push({ line, ...cut });
    if (this.#separator === ' ' || !record.includes('"')) return;
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) this.line += 1;
  }

  /** Takes the first line of an endless record as a bad one, and goes on after it. */
  #giveUp(rows: CsvRow[]): void {
    const newline = this.#rest.indexOf('\n');
    const problem = `is longer than ${recordCharsMax >> 20} MiB: is a quote not closed?`;
    rows.push({ line: this.line, fields: [], problem });
    this.line += 1;
    this.#isSkipping = newline < 0;
    this.#rest = newline < 0 ? '' : this.#rest.slice(newline + 1);
  }

  /** Text from the end of a line on that is too long to be kept; the line was told of. */
  #afterSkipped(text: string): string {
    const newline = text.indexOf('\n');
    this.#isSkipping = newline < 0;
    return newline < 0 ? '' : text.slice(newline + 1);
  }
}

/** The fields of a record, without the newline that ends it, or why it is none. */
export function cutRecord(
  record: string,
  separator: Separator,
): Pick<CsvRow, 'fields' | 'problem'> {
  if (separator === ' ') return { fields: record.trim().split(/[ \t]+/), problem: null };
  if (!record.includes('"')) return { fields: record.split(separator), problem: null };
  return splitQuoted(record, separator);
}

function splitQuoted(record: string, separator: Separator): Pick<CsvRow, 'fields' | 'problem'> {
  const fields: string[] = [];
  let at = 0;
  for (;;) {
    if (record[at] === '"') {
      const close = closingQuote(record, at);
      if (close < 0) return { fields, problem: 'has a quote that is never closed' };
      fields.push(record.slice(at + 1, close).replaceAll('""', '"'));
      at = close + 1;
      if (at < record.length && record[at] !== separator) {
        return { fields, problem: `has text after the closing quote of field ${fields.length}` };
      }
    } else {
      const next = record.indexOf(separator, at);
      const field = record.slice(at, next < 0 ? record.length : next);
      fields.push(field);
      if (field.includes('"')) {
        return { fields, problem: `has a quote inside of field ${fields.length}, which has none` };
      }
      at += field.length;
    }
    if (at >= record.length) return { fields, problem: null };
    at += 1;
  }
}

/** Index of the quote that ends the field opened at `open`; doubled quotes are part of it. */
function closingQuote(record: string, open: number): number {
  let at = record.indexOf('"', open + 1);
  while (at >= 0 && record[at + 1] === '"') at = record.indexOf('"', at + 2);
  return at;
}
