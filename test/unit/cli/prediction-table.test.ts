import { expect, test } from 'vitest';
import { Session } from '../../../src/cli/session/session.ts';
import { PredictionTable } from '../../../src/cli/show/prediction-table.ts';
import { createTestIo } from './test-io.ts';

const flags = { address: 'unix:/a', headers: true, color: 'never' } as const;
const session = new Session(createTestIo({ isTty: true }).io, flags);

function tableOf(text: string, pieceBytes: number): PredictionTable {
  const table = new PredictionTable();
  for (let at = 0; at < text.length; at += pieceBytes) table.take(text.slice(at, at + pieceBytes));
  return table;
}

test.each([1, 7, 1000])('names with commas, quotes and line ends, in pieces of %s', (bytes) => {
  const csv =
    'node,id,prediction,class,probabilities_0,probabilities_1\n' +
    '0,"a,b",1,"spam, ""eggs""",0.25,0.75\n1,"c\nd",0,ham,0.9,0.1\n2,e,0,ham,0.6,0.4\n';
  const table = tableOf(csv, bytes);
  expect(table.headText(session).split('\n')).toEqual([
    'ID   CLASS         PROBABILITY',
    'a,b  spam, "eggs"        0.750',
    expect.stringMatching(/^c.*d +ham +0\.900$/),
    'e    ham                 0.600',
  ]);
  expect([table.rows, table.countsText()]).toEqual([3, 'ham 2, spam, "eggs" 1']);
});

test('of many rows the first ten are shown and all are counted', () => {
  const rows = Array.from({ length: 1500 }, (_, at) => `${at},${at % 20}`);
  const table = tableOf(`node,prediction\n${rows.join('\n')}\n`, 100);
  expect(table.headText(session).split('\n')).toHaveLength(11);
  expect(table.rows).toBe(1500);
  expect(table.countsText()).toMatch(/^0 75, .* and 8 more$/);
});

test('of embeddings the first numbers are shown', () => {
  const names = Array.from({ length: 8 }, (_, at) => `embeddings_${at}`);
  const table = tableOf(`node,${names.join()}\n3,0.125,-2,3,4,5,6,7,8\n`, 9);
  expect(table.headText(session).split('\n')).toEqual([
    expect.stringMatching(/^NODE +EMBEDDING$/),
    expect.stringMatching(/^3 +0\.125 -2\.00 3\.00 4\.00 5\.00 6\.00 …$/),
  ]);
  expect(table.countsText()).toBe('');
});

test('several labels are those that a node has; numbers are shown, and not counted', () => {
  const labels = tableOf(
    'node,prediction_0,prediction_1,probabilities_0,probabilities_1\n0,1,1,0.9,0.8\n1,0,0,0,0\n',
    9,
  );
  expect(labels.headText(session).split('\n').slice(1)).toEqual(['0     0, 1', '1     none']);
  expect(labels.countsText()).toBe('0 1, 1 1');
  const numbers = tableOf('node,prediction_0\n0,1.5\n1,-2\n', 9);
  expect(numbers.headText(session).split('\n').slice(1)).toEqual(['0     1.5', '1     -2']);
  expect(numbers.countsText()).toBe('');
});

test('of scores every column is shown, of nodes that have ids these alone', () => {
  const scored = tableOf('source,destination,score\n0,12,0.5\n1,3,-1.25\n', 5);
  expect(scored.hasScores).toBe(true);
  expect(
    scored
      .headText(session)
      .split('\n')
      .map((line) => line.trim().split(/ +/)),
  ).toEqual([
    ['SOURCE', 'DESTINATION', 'SCORE'],
    ['0', '12', '0.5'],
    ['1', '3', '-1.25'],
  ]);
  const csv = 'node,id,rank,nearest,nearest_id,score\n0,ann,1,4,bread,2\n0,ann,2,7,milk,1.5\n';
  const nearest = tableOf(csv, 1000);
  expect(
    nearest
      .headText(session)
      .split('\n')
      .map((line) => line.trim().split(/ +/)),
  ).toEqual([
    ['ID', 'RANK', 'NEAREST_ID', 'SCORE'],
    ['ann', '1', 'bread', '2'],
    ['ann', '2', 'milk', '1.5'],
  ]);
  expect([nearest.rows, nearest.countsText()]).toEqual([2, '']);
});
