import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createLog } from '../../../src/base/log.ts';
import type { ImageFacts } from '../../../src/native/contract.ts';
import {
  AttemptRun,
  type AttemptRunOptions,
  lookEveryMs,
} from '../../../src/supervisor/attempt-run.ts';
import type { AttemptEvent } from '../../../src/supervisor/attempt-types.ts';
import type { WorkContext } from '../../../src/work/context.ts';
import { TrainingRun, type TrainingRunOptions } from '../../../src/work/training-run.ts';

/** The looks at an attempt's segment. */

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gnnd-run-'));
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
  rmSync(folder, { recursive: true, force: true });
});

/** A run whose image is loaded when the test says so. */
function runOf(complete = false) {
  const imagesFolder = join(folder, 'images');
  mkdirSync(imagesFolder);
  writeFileSync(join(imagesFolder, 'epoch-00000002-batch-0000000000.image'), '');
  let looks = 0;
  const events: AttemptEvent[] = [];
  let resolve = (_: ImageFacts) => {};
  const promise = new Promise<ImageFacts>((settle) => {
    resolve = settle;
  });
  const context = {
    input: {
      ...{ devices: [], imagesFolder, uid: 'uid-1', epochsReported: 0, scalesRecorded: [] },
      dataset: { counts: { task: 'CLASSIFICATION' } },
      spec: {
        ...{ kind: 'TRAINING', timeouts: { stallMs: 1000 }, training: { batchesPerStep: 1 } },
        evaluation: { metric: 'AUTO' },
      },
    },
    native: {
      segmentBuildId: () => 'this build',
      segmentLoadImage: () => promise,
      // The epoch as the native thread has written it so far.
      segmentEpoch: () => ({ complete: false, seeds: 0 }),
      segmentCommand: () => {},
    },
    clock: { monotonicMs: () => Date.now(), wallMs: () => Date.now() },
    log: createLog({ level: 'error' }),
    emit: (event: AttemptEvent) => events.push(event),
  } as unknown as WorkContext;
  const crew = {
    segment: {},
    look: () => {
      looks += 1;
      const epochsToTrain = complete ? 0 : 5;
      const none = { executors: [], version: 0, committedBatches: 0, totalBatches: 0, epoch: 0 };
      return { ...none, epochsToTrain, evaluation: null, complete };
    },
    watch: () => {},
    pids: new Map(),
  };
  const cache = { seen: () => false };
  const work = new TrainingRun(context, {
    ...{ crew, layout: { batchesPerEpoch: 10 }, cache },
    checkDataset: async () => {},
  } as unknown as TrainingRunOptions);
  const options = {
    ...{ crew, work },
    plan: { standby: 'OFF' },
    prefetch: false,
    perform: (step: () => Promise<void>) => void step().catch(() => {}),
  } as unknown as AttemptRunOptions;
  const facts = { epochs: 2, batches: 20, version: 20, buildId: 'this build' } as ImageFacts;
  const loaded = () => resolve(facts);
  return { run: new AttemptRun(context, options), loaded, events, looks: () => looks };
}

test('nobody looks at a segment into which an image is being read', async () => {
  const { run, loaded, events, looks } = runOf();
  const resuming = run.resume();
  await vi.advanceTimersByTimeAsync(10 * lookEveryMs);
  // Epochs of the image would be told as this attempt's own, before it is known to go on.
  expect(looks()).toBe(0);
  loaded();
  await resuming;
  expect(events.map(({ kind }) => kind)).toEqual(['resumed']);
  await vi.advanceTimersByTimeAsync(2 * lookEveryMs);
  expect(looks()).toBe(2);
  await run.stop();
});

test('an attempt that is stopped while its image is read looks at nothing any more', async () => {
  const { run, loaded, looks } = runOf();
  const resuming = run.resume();
  await run.stop();
  loaded();
  await resuming;
  await vi.advanceTimersByTimeAsync(10 * lookEveryMs);
  expect(looks()).toBe(0);
});

test('an attempt that goes on from the end of its job begins before it ends', async () => {
  const { run, loaded, events } = runOf(true);
  loaded();
  await run.resume();
  await vi.advanceTimersByTimeAsync(3 * lookEveryMs);
  // The job is PREPARING, and could not become SUCCEEDED.
  const phases = () => events.flatMap((event) => (event.kind === 'phase' ? [event.phase] : []));
  expect(phases()).toEqual([]);
  run.begin();
  await vi.advanceTimersByTimeAsync(2 * lookEveryMs);
  expect(phases()).toEqual(['TRAINING', 'FINALIZING']);
  await run.stop();
});
