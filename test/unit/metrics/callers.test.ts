import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { executorOutcomes } from '../../../src/metrics/labels.ts';
import { readSources } from '../tidy/sources.ts';

test('every method of Metrics is called by the daemon', () => {
  const source = readFileSync('src/metrics/metrics-types.ts', 'utf8');
  const face = /export interface Metrics \{(.*?)\n\}/s.exec(source)?.[1] ?? '';
  const methods = [...face.matchAll(/^ {2}(\w+)\(/gm)].map((match) => match[1] ?? '');
  expect(methods.length).toBeGreaterThan(10);
  const callers = readSources(/^src\/(?!metrics\/metrics\.ts$)/);
  const silent = methods.filter(
    (method) => !callers.some(({ text }) => new RegExp(`etrics\\.${method}\\(`).test(text)),
  );
  expect(silent).toEqual([]);
});

test('every way in which an executor ends is told', () => {
  const daemon = readFileSync('src/daemon.ts', 'utf8');
  expect(executorOutcomes.filter((outcome) => !daemon.includes(`'${outcome}'`))).toEqual([]);
});
