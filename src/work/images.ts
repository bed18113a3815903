import { rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { makeFolder } from '../base/atomic-file.ts';
import { messageOf } from '../base/errors.ts';
import { imageFilesIn } from '../files/image-files.ts';
import type { ImageFacts, SegmentHandle, SegmentSnapshot } from '../native/contract.ts';
import { nativeCodeOf } from '../native/load.ts';
import type { JobLayout } from '../plan/plan.ts';
import type { ResumePoint } from '../records/job-record.ts';
import type { AttemptContext } from '../supervisor/supervisor.ts';

/** Images of a running job (docs/formats/image.md): written beside training, and gone on from. */

/** An image takes at most this share of the time, and what it makes Trainers wait far less. */
const shareMax = 1 / 20;

interface Place {
  readonly epochs: number;
  readonly version: number;
  readonly atMs: number;
}

/** Writes images as the spec wants them, one at a time; what cannot be written is told, once. */
export class Images {
  readonly #context: AttemptContext;
  readonly #segment: SegmentHandle;
  /** Place where the last image was due. */
  #last: Place;
  /** Version of the newest image; -1 = none. */
  #version = -1;
  #writing: Promise<void> | null = null;
  /** No further image is written before this time of the monotonic clock. */
  #nextMs = 0;
  #isFailing = false;

  constructor(context: AttemptContext, segment: SegmentHandle) {
    this.#context = context;
    this.#segment = segment;
    this.#last = { epochs: 0, version: 0, atMs: context.clock.monotonicMs() };
  }

  /** The segment was made from this one. */
  resume({ epochs, version }: Pick<ImageFacts, 'epochs' | 'version'>): void {
    this.#version = version;
    this.#last = { epochs, version, atMs: this.#context.clock.monotonicMs() };
  }

  /** Begins to write an image when one is due after a look. `epochs` are over and recorded. */
  look({ version, complete }: SegmentSnapshot, epochs: number): void {
    const nowMs = this.#context.clock.monotonicMs();
    const now = { epochs, version, atMs: nowMs };
    if (complete || this.#writing !== null || nowMs < this.#nextMs || !this.#isDue(now)) return;
    this.#last = now;
    this.#writing = this.#write().finally(() => {
      this.#writing = null;
    });
  }

  /** Writes an image of the segment's present version unless it exists. Never rejects. */
  async writeLast({ version }: Pick<SegmentSnapshot, 'version'>): Promise<void> {
    await this.#writing;
    if (version > this.#version) await this.#write();
  }

  /** Resolves when none is being written. */
  async settled(): Promise<void> {
    await this.#writing;
  }

  #isDue(now: Place): boolean {
    const { everyEpochs, everySteps, everyMs } = this.#context.input.spec.checkpoint;
    const last = this.#last;
    return (
      (everyEpochs > 0 && now.epochs - last.epochs >= everyEpochs) ||
      (everySteps > 0 && now.version - last.version >= everySteps) ||
      (everyMs > 0 && now.version > last.version && now.atMs - last.atMs >= everyMs)
    );
  }

  async #write(): Promise<void> {
    const { native, clock, log, emit, input } = this.#context;
    const startMs = clock.monotonicMs();
    try {
      makeFolder(input.imagesFolder);
      const facts = await native.segmentWriteImage(this.#segment, input.imagesFolder, input.uid);
      await keepNewest(input.imagesFolder, input.spec.checkpoint.keepLast);
      const tookMs = clock.monotonicMs() - startMs;
      this.#nextMs = startMs + tookMs / shareMax;
      this.#version = facts.version;
      const { epochs, batches, bytes, sha256 } = facts;
      const image = basename(facts.path);
      log.info('image.written', { image, epochs, batches, bytes, sha256, tookMs });
      if (this.#isFailing) emit({ kind: 'imageTried', error: null });
      this.#isFailing = false;
    } catch (error) {
      const message = messageOf(error);
      log.warn('image.failed', { error: message });
      this.#nextMs = clock.monotonicMs() + failurePauseMs;
      if (!this.#isFailing) emit({ kind: 'imageTried', error: message });
      this.#isFailing = true;
    }
  }
}

/** A disk that is full for a while is not asked each time that one is due. */
const failurePauseMs = 10_000;

async function keepNewest(folder: string, count: number): Promise<void> {
  for (const name of imageFilesIn(folder).slice(count))
    await rm(join(folder, name), { force: true });
}

/** Where a segment stands after its image was loaded. */
export interface Resumed {
  readonly point: ResumePoint;
  readonly facts: ImageFacts;
}

/**
 * Makes a new segment go on from the newest image that is sound, before anybody works on it; null
 * when there is none, and the segment is as it was. One that is damaged, or another job's, is
 * removed: the one before it takes its place.
 */
export async function resume(
  { native, log, input }: AttemptContext,
  { segment, layout }: { segment: SegmentHandle; layout: Pick<JobLayout, 'batchesPerEpoch'> },
): Promise<Resumed | null> {
  for (const image of imageFilesIn(input.imagesFolder)) {
    const path = join(input.imagesFolder, image);
    try {
      const facts = await native.segmentLoadImage(segment, path, input.uid);
      const { epochs, buildId } = facts;
      const batches = facts.batches - epochs * layout.batchesPerEpoch;
      const otherBuild = buildId !== native.segmentBuildId();
      const point = { epochs, batches, image, otherBuild };
      log.info('attempt.resumed', { ...point, sha256: facts.sha256, build: buildId });
      return { point, facts };
    } catch (error) {
      const code = nativeCodeOf(error);
      const isUseless = code === 'DATASET_CORRUPT' || code === 'SPEC_INVALID';
      log.warn('image.refused', { image, error: messageOf(error), removed: isUseless });
      if (isUseless) await rm(path, { force: true });
    }
  }
  return null;
}
