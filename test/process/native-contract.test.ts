import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadCore, loadTrain } from '../../src/native/load.ts';
import { contractFiles } from '../support/native-contract.ts';

/** src/native/gen says what the addons take and give; misuse throws, never crashes. */

const folder = new URL('../../src/native/gen/', import.meta.url);

test('src/native/gen is what the addons declare by their tables', () => {
  const made = contractFiles();
  if (process.env['UPDATE_GOLDEN'] === '1') {
    for (const [name, text] of made) writeFileSync(new URL(name, folder), text);
  }
  expect([...made.keys()].sort()).toEqual(readdirSync(folder).sort());
  for (const [name, text] of made) {
    const committed = readFileSync(new URL(name, folder), 'utf8');
    expect(committed, 'run "npm run build:contract" and commit what it makes').toBe(text);
  }
});

test('the addons export what is declared, in the same order, and nothing beside it', () => {
  const declared = (subjects: readonly string[]) =>
    subjects.flatMap((subject) => {
      const text = readFileSync(new URL(`${subject}.ts`, folder), 'utf8');
      const [, body = ''] = /Functions \{\n([\s\S]*?)\n\}/.exec(text) ?? [];
      return [...body.matchAll(/^ {2}(\w+)\(/gm)].map(([, method]) => method);
    });
  const subjects = ['host', 'dataset', 'table', 'model', 'segment', 'sampler', 'lender', 'cache'];
  const core = declared([...subjects, 'propagation']);
  expect(core.length).toBeGreaterThan(20);
  expect(Object.keys(loadCore())).toEqual(core);
  expect(Object.keys(loadTrain())).toEqual(declared(['trainer', 'predict']));
});

const spec = {
  batchesPerEpoch: 4,
  batchLimit: 0,
  epochs: 2,
  firstEpoch: 0,
  batchesPerStep: 1,
  staleness: 0,
  stalenessCompensation: 'NONE',
  bornReady: false,
  numSlots: 4,
  slotBytes: 4096,
  queueMaxBytes: 1 << 20,
  registeredBytes: 0,
  parameterFloats: 16,
  optimizerFloats: 32,
  numDevices: 2,
  maxExecutors: 4,
  batchSize: 2,
  trainNodes: 8,
  evaluateEveryEpochs: 1,
  evaluationChunks: 6,
  ...{ chunkCounts: 0, keptBytes: 0 },
  lowWater: 1,
  stopPatience: 2,
  stopMinDelta: 0.01,
  history: {
    ...{ bytes: 0, staleVersions: 0, startVersion: 0, rowBytes: 0, levels: 0, numNodes: 0 },
    ...{ featureBytes: 0, cacheRows: 0 },
  },
  ...{ localityScale: 16, localityAdapts: 0 },
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

test('why an image cannot be written or loaded is told by a code', async () => {
  const core = loadCore();
  const { segment } = core.segmentCreate(spec);
  await expect(core.segmentWriteImage(segment, tmpdir(), 'job')).rejects.toMatchObject({
    code: 'DATASET_NOT_FOUND',
    message: 'no parameters yet',
  });
  const path = join(tmpdir(), 'no-such.image');
  await expect(core.segmentLoadImage(segment, path, 'job')).rejects.toMatchObject({
    code: 'DATASET_NOT_FOUND',
    message: expect.stringContaining(path),
  });
  expect(core.segmentBuildId()).toMatch(/^[0-9a-f]{32,}$/);
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
  const unknown = { ...spec, stalenessCompensation: 'GUESS' as 'NONE' };
  expect(() => core.segmentCreate(unknown)).toThrow(
    "spec.stalenessCompensation must be one of 'PREDICT' | 'NONE'",
  );
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
