import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { daemonFamilies } from '../../../src/metrics/families.ts';
import {
  deviceStates,
  executorOutcomes,
  jobPhases,
  segmentKinds,
} from '../../../src/metrics/labels.ts';
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

const daemon = readFileSync('src/daemon.ts', 'utf8');
const devices = readFileSync('src/api/device-facts.ts', 'utf8');
const attempts = readSources(/^src\/(supervisor|work)\//)
  .map(({ text }) => text)
  .join();

test.each([
  ['way in which an executor ends', executorOutcomes, daemon],
  ['kind of segment', segmentKinds, daemon],
  ['state of a device', deviceStates, devices],
  ['phase of a job', jobPhases, attempts],
] as const)('every %s is told', (_, values, teller) => {
  expect(values.filter((value) => !teller.includes(`'${value}'`))).toEqual([]);
});

test('what describes the build is known of it', () => {
  const labels = Object.keys(daemonFamilies.gnnd_build_info.labels);
  const told = /build: \{([^}]*)\}/.exec(daemon)?.[1] ?? '';
  expect(told).not.toMatch(/'/);
  expect(labels).toHaveLength(told.split(',').length);
});
