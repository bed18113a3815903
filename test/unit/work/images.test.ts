import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { createLog } from '../../../src/base/log.ts';
import type { ImageFacts, SegmentHandle, SegmentSnapshot } from '../../../src/native/contract.ts';
import type { AttemptContext, AttemptEvent } from '../../../src/supervisor/attempt-types.ts';
import { Images, resume } from '../../../src/work/images.ts';

const segment = {} as SegmentHandle;
const layout = { batchesPerEpoch: 10 };

/** Native code that writes files, takes `tookMs` for each, and fails as it is told. */
class World {
  readonly folder = join(mkdtempSync(join(tmpdir(), 'gnnd-images-')), 'images');
  readonly events: AttemptEvent[] = [];
  readonly log: string[] = [];
  written: number[] = [];
  nowMs = 1000;
  tookMs = 1;
  version = 0;
  failure: Error | null = null;
  /** Why an image cannot be loaded, by the image's name. */
  readonly refused = new Map<string, Error>();

  constructor() {
    onTestFinished(() => rmSync(join(this.folder, '..'), { recursive: true, force: true }));
  }

  context(checkpoint: Partial<AttemptContext['input']['spec']['checkpoint']> = {}): AttemptContext {
    const spec = {
      checkpoint: { everyEpochs: 0, everySteps: 0, everyMs: 0, keepLast: 2, ...checkpoint },
    };
    const native = {
      segmentBuildId: () => 'this build',
      segmentWriteImage: async (_: unknown, folder: string, owner: string) => {
        await turn();
        this.nowMs += this.tookMs;
        if (this.failure !== null) throw this.failure;
        this.written.push(this.version);
        const path = join(folder, nameOf(this.version));
        writeFileSync(path, owner);
        return factsOf(path, this.version);
      },
      segmentLoadImage: async (_: unknown, path: string) => {
        const name = path.slice(path.lastIndexOf('/') + 1);
        const failure = this.refused.get(name);
        if (failure !== undefined) throw failure;
        return factsOf(path, Number(name.slice(-16, -6)) + 10 * Number(name.slice(6, 14)));
      },
    };
    return {
      input: { uid: 'uid-1', imagesFolder: this.folder, spec },
      native,
      clock: { monotonicMs: () => this.nowMs, wallMs: () => this.nowMs },
      log: createLog({ level: 'info', write: (line) => this.log.push(line) }),
      emit: (event: AttemptEvent) => this.events.push(event),
    } as unknown as AttemptContext;
  }

  /** Does one look and waits for all that it begins. */
  async look(images: Images, version: number, more: Partial<SegmentSnapshot> = {}): Promise<void> {
    this.version = version;
    images.look({ version, complete: false, ...more } as SegmentSnapshot, Math.floor(version / 10));
    await images.settled();
  }

  files(): readonly string[] {
    return readdirSync(this.folder).sort();
  }
}

/** Image name for a job without groups: versions are batches. */
function nameOf(version: number): string {
  const epochs = String(Math.floor(version / 10)).padStart(8, '0');
  return `epoch-${epochs}-batch-${String(version % 10).padStart(10, '0')}.image`;
}

function factsOf(path: string, version: number): ImageFacts {
  const epochs = Math.floor(version / 10);
  const rest = { bytes: 1, sha256: 'ab', buildId: 'this build' };
  return { path, version, batches: version, epochs, ...rest };
}

const errorOf = (code: string) => Object.assign(new Error(`it is ${code}`), { code });

test('an image is due by epochs, by steps and by time, once something was trained', async () => {
  const world = new World();
  const byEpochs = new Images(world.context({ everyEpochs: 2 }), segment);
  for (const version of [0, 9, 10, 19, 20, 25, 39, 41]) {
    await world.look(byEpochs, version);
    world.nowMs += 1000;
  }
  expect(world.written).toEqual([20, 41]);

  world.written = [];
  const bySteps = new Images(world.context({ everySteps: 3 }), segment);
  for (const version of [1, 2, 3, 4, 6, 8]) {
    await world.look(bySteps, version);
    world.nowMs += 1000;
  }
  expect(world.written).toEqual([3, 6]);

  world.written = [];
  const byTime = new Images(world.context({ everyMs: 2500 }), segment);
  for (const version of [0, 0, 0, 0, 1, 2, 2, 2, 3]) {
    await world.look(byTime, version);
    world.nowMs += 1000;
  }
  expect(world.written).toEqual([1, 2]);
});

test('with nothing asked for none is written, and none of a job that is complete', async () => {
  const world = new World();
  const none = new Images(world.context(), segment);
  for (const version of [10, 20, 30]) await world.look(none, version);
  const images = new Images(world.context({ everyEpochs: 1 }), segment);
  await world.look(images, 10, { complete: true });
  expect(world.written).toEqual([]);
});

test('writing takes at most a twentieth of the time, one image at once', async () => {
  const world = new World();
  world.tookMs = 50;
  const images = new Images(world.context({ everySteps: 1 }), segment);
  world.version = 1;
  const snapshot = (version: number) => ({ version, complete: false }) as SegmentSnapshot;
  images.look(snapshot(1), 0);
  images.look(snapshot(2), 0);
  await images.settled();
  expect(world.written).toEqual([1]);
  world.nowMs = 1000 + 999;
  await world.look(images, 3);
  expect(world.written).toEqual([1]);
  world.nowMs = 1000 + 1000;
  await world.look(images, 4);
  expect(world.written).toEqual([1, 4]);
});

test('the newest stay, so many, and files of others are let be', async () => {
  const world = new World();
  mkdirSync(world.folder, { recursive: true });
  writeFileSync(join(world.folder, 'epoch-00000001-batch-0000000002.image.tmp-abc'), '');
  const images = new Images(world.context({ everySteps: 1, keepLast: 2 }), segment);
  for (const version of [9, 11, 12, 103]) {
    await world.look(images, version);
    world.nowMs += 1000;
  }
  expect(world.files()).toEqual([
    'epoch-00000001-batch-0000000002.image',
    'epoch-00000001-batch-0000000002.image.tmp-abc',
    'epoch-00000010-batch-0000000003.image',
  ]);
});

test('what cannot be written is told once, and when it can be again', async () => {
  const world = new World();
  const images = new Images(world.context({ everySteps: 1 }), segment);
  world.failure = errorOf('DISK_FULL');
  await world.look(images, 1);
  // A failed image is not tried again at each look.
  await world.look(images, 2);
  world.nowMs += 10_000;
  await world.look(images, 3);
  expect(world.events).toEqual([{ kind: 'imageTried', error: 'it is DISK_FULL' }]);
  expect(world.log.filter((line) => line.includes('image.failed'))).toHaveLength(2);
  world.failure = null;
  world.nowMs += 10_000;
  await world.look(images, 4);
  expect(world.events.at(-1)).toEqual({ kind: 'imageTried', error: null });
  expect(world.written).toEqual([4]);
});

test('the last one is written unless the newest is that already', async () => {
  const world = new World();
  const images = new Images(world.context({ everySteps: 5 }), segment);
  await world.look(images, 5);
  await images.writeLast({ version: 5 });
  expect(world.written).toEqual([5]);
  world.version = 7;
  await images.writeLast({ version: 7 });
  expect(world.written).toEqual([5, 7]);
  const resumed = new Images(world.context({ everySteps: 5 }), segment);
  resumed.resume({ epochs: 0, version: 7 });
  await resumed.writeLast({ version: 7 });
  await world.look(resumed, 11);
  expect(world.written).toEqual([5, 7]);
});

test('an attempt goes on from the newest sound image; useless ones are removed', async () => {
  const world = new World();
  mkdirSync(world.folder, { recursive: true });
  for (const version of [5, 12, 23, 31, 44]) {
    writeFileSync(join(world.folder, nameOf(version)), '');
  }
  world.refused.set(nameOf(44), errorOf('DATASET_CORRUPT'));
  world.refused.set(nameOf(31), errorOf('SPEC_INVALID'));
  world.refused.set(nameOf(23), errorOf('INTERNAL'));
  const resumed = await resume(world.context(), { segment, layout });
  const point = { epochs: 1, batches: 2, image: nameOf(12), otherBuild: false };
  expect(resumed).toMatchObject({ point, facts: { version: 12 } });
  expect(world.files()).toEqual([nameOf(5), nameOf(12), nameOf(23)]);
  expect(world.log.filter((line) => line.includes('image.refused'))).toHaveLength(3);
});

test('without a sound image an attempt begins at the beginning', async () => {
  const world = new World();
  writeFileSync(world.folder, 'in place of the folder');
  expect(await resume(world.context(), { segment, layout })).toBeNull();
  rmSync(world.folder);
  expect(await resume(world.context(), { segment, layout })).toBeNull();
  mkdirSync(world.folder, { recursive: true });
  writeFileSync(join(world.folder, nameOf(5)), '');
  world.refused.set(nameOf(5), errorOf('DATASET_CORRUPT'));
  expect(await resume(world.context(), { segment, layout })).toBeNull();
  expect(world.files()).toEqual([]);
});

test('an image of another build is taken, and that is told', async () => {
  const world = new World();
  mkdirSync(world.folder, { recursive: true });
  writeFileSync(join(world.folder, nameOf(5)), '');
  const context = world.context();
  const native = { ...context.native, segmentBuildId: () => 'a later build' };
  const resumed = await resume({ ...context, native }, { segment, layout });
  expect(resumed?.point.otherBuild).toBe(true);
});
