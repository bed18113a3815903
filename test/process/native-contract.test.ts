import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadCore, loadTrain } from '../../src/native/load.ts';

/** src/native/contract.ts and the addons list the same functions; misuse throws, never crashes. */

function declaredIn(name: 'CoreAddon' | 'TrainAddon'): string[] {
  const text = readFileSync(new URL('../../src/native/contract.ts', import.meta.url), 'utf8');
  const body = text.slice(text.indexOf(`export interface ${name} {`)).split('\n}')[0] ?? '';
  return [...body.matchAll(/^ {2}(\w+)\(/gm)].map(([, method]) => method ?? '');
}

test('the addons export what the contract declares, in the same order', () => {
  expect(Object.keys(loadCore())).toEqual(declaredIn('CoreAddon'));
  expect(Object.keys(loadTrain())).toEqual(declaredIn('TrainAddon'));
});

const spec = {
  batchesPerEpoch: 4,
  batchLimit: 0,
  epochs: 2,
  firstEpoch: 0,
  batchesPerStep: 1,
  staleness: 0,
  stalenessCompensation: 'NONE',
  numSlots: 4,
  slotBytes: 4096,
  queueMaxBytes: 1 << 20,
  parameterFloats: 16,
  optimizerFloats: 32,
  numDevices: 2,
  maxExecutors: 4,
  batchSize: 2,
  trainNodes: 8,
  evaluateEveryEpochs: 1,
  evaluationChunks: 6,
  lowWater: 1,
  stopPatience: 2,
  stopMinDelta: 0.01,
} as const;

test('a segment counts what it was made for', () => {
  const core = loadCore();
  const { segment } = core.segmentCreate(spec);
  const snapshot = core.segmentSnapshot(segment);
  expect(snapshot).toMatchObject({
    version: 0,
    totalBatches: 8,
    epochsToTrain: 2,
    complete: false,
    executors: [],
  });
  expect(core.segmentEpoch(segment, 1)).toMatchObject({ epoch: 1, committed: false, batches: 0 });
  core.segmentClose(segment);
});

test('a closed or foreign handle is refused', () => {
  const core = loadCore();
  const { segment } = core.segmentCreate(spec);
  core.segmentClose(segment);
  expect(() => core.segmentSnapshot(segment)).toThrow(/closed/);
  expect(() => core.segmentClose(segment)).toThrow(/closed/);
  expect(() => core.segmentSnapshot({ open: null })).toThrow(/open segment/);
});

test('a missing or wrong field is named with its path', () => {
  const core = loadCore();
  for (const key of Object.keys(spec)) {
    const { [key as keyof typeof spec]: _, ...rest } = spec;
    expect(() => core.segmentCreate(rest as typeof spec)).toThrow(`spec.${key}`);
  }
  const fraction = { ...spec, epochs: 1.5 };
  expect(() => core.segmentCreate(fraction)).toThrow(/spec.epochs must be an integer/);
});

test('a segment that cannot be is refused with a code', () => {
  const core = loadCore();
  const impossible = { ...spec, batchesPerStep: 3, numSlots: 2 };
  expect(() => core.segmentCreate(impossible)).toThrow(
    expect.objectContaining({ code: 'SPEC_INVALID' }),
  );
});

test('the lock of a path is held once', () => {
  const core = loadCore();
  const path = join(mkdtempSync(join(tmpdir(), 'gnnd-lock-')), 'LOCK');
  expect(core.hostLock(path)).toBeGreaterThan(2);
  expect(core.hostLock(path)).toBe(null);
});
