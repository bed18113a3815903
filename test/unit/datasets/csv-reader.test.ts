import { describe, expect, test } from 'vitest';
import { CsvSplitter } from '../../../src/datasets/csv-reader.ts';
import { forAll } from '../../support/random.ts';

function split(...pieces: string[]) {
  const splitter = new CsvSplitter();
  return [...pieces.flatMap((piece) => splitter.push(piece)), ...splitter.end()];
}

describe('CsvSplitter', () => {
  test('knows carriage returns, empty lines and a missing last newline', () => {
    expect(split('\ufeffa,b\r\n\n1,2\n\r\n3,')).toEqual([
      { line: 1, fields: ['a', 'b'], problem: null },
      { line: 3, fields: ['1', '2'], problem: null },
      { line: 5, fields: ['3', ''], problem: null },
    ]);
  });

  test('knows quotes: commas, quotes and line breaks within', () => {
    expect(split('"a,b","say ""hi""",\n"two\nlines",x,y\nz\n')).toEqual([
      { line: 1, fields: ['a,b', 'say "hi"', ''], problem: null },
      { line: 2, fields: ['two\nlines', 'x', 'y'], problem: null },
      { line: 4, fields: ['z'], problem: null },
    ]);
  });

  test('reports quotes that are wrong, with the line where the record begins', () => {
    const problems = split('a,b\n"x"y,1\nx"y"z,1\n"open,1\n2,3\n').map(
      ({ line, problem }) => `${line}: ${problem}`,
    );
    expect(problems).toEqual([
      '1: null',
      '2: has text after the closing quote of field 1',
      '3: has a quote inside of field 1, which has none',
      '4: has a quote that is never closed',
    ]);
  });

  test('gives up on a record without end, and goes on after its first line', () => {
    const splitter = new CsvSplitter();
    const long = 'x'.repeat(1 << 20);
    const rows = splitter.push(`"open,1\n${`${long},3\n`.repeat(17)}`);
    expect(rows.map(({ line, problem }) => `${line}: ${problem}`)).toEqual([
      '1: is longer than 16 MiB: is a quote not closed?',
    ]);
    expect(splitter.push('4,5\n')[0]).toEqual({ line: 2, fields: [long, '3'], problem: null });
  });

  test('tells of a line without end once, and keeps none of it', () => {
    const splitter = new CsvSplitter();
    const long = 'x'.repeat(1 << 20);
    const told = Array.from({ length: 60 }, () => splitter.push(long)).flat();
    expect(told.map(({ line, problem }) => `${line}: ${problem}`)).toEqual([
      '1: is longer than 16 MiB: is a quote not closed?',
    ]);
    expect(splitter.lineOfEnd).toBe(2);
    expect(splitter.push(`${long}\n1,2\n`)).toEqual([
      { line: 2, fields: ['1', '2'], problem: null },
    ]);
    expect(splitter.end()).toEqual([]);
  });

  test('gives the same records however the text is cut', () => {
    forAll(200, (random) => {
      const field = () => random.pick(['', 'a', '1.5', '"q,""\n"', '"x"', 'b c']);
      const record = () => Array.from({ length: random.integer(1, 4) }, field).join(',');
      const text = Array.from({ length: random.integer(1, 8) }, record).join(
        random.pick(['\n', '\r\n']),
      );
      const pieces: string[] = [];
      for (let at = 0; at < text.length; ) {
        const length = random.integer(1, 7);
        pieces.push(text.slice(at, at + length));
        at += length;
      }
      expect(split(...pieces)).toEqual(split(text));
    });
  });
});
