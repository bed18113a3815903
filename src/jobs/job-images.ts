import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { setImmediate as yieldToLoop } from 'node:timers/promises';
import { messageOf } from '../base/errors.ts';
import { imageFilesIn, imagesFolderOf, removeImages } from '../files/image-files.ts';
import type { ResumePoint } from '../records/job-record.ts';
import { counted } from '../spec/counted.ts';
import type { RunnerOptions } from './runner-options.ts';

/** Images of jobs: what is said about them, and that none outlives its job. */

export function resumedMessage({ epochs, batches, image, otherBuild }: ResumePoint): string {
  const build = otherBuild ? ', which another build of gnnd wrote: bits may differ' : '';
  return `goes on in epoch ${epochs + 1} after ${batchesText(batches)}, from ${image}${build}`;
}

/** `error`: why one could not be written; null when they can be again. */
export function imageMessage(error: string | null): string {
  if (error === null) return '';
  return `trains on, but an interruption costs the work since the last image: ${error}`;
}

/** Says where a job that has no attempt now will go on. */
export function goingOnMessage(jobsFolder: string, uid: string): string {
  const image = newestImage(jobsFolder, uid);
  if (image === null) return 'begins at the beginning: there is no image';
  const [, epochs = '', batches = ''] = /^epoch-(\d+)-batch-(\d+)/.exec(image) ?? [];
  const next = Number(epochs) + 1;
  return `goes on in epoch ${next} after ${batchesText(Number(batches))}, from ${image}`;
}

/** The name of a job's newest image. */
export function newestImage(jobsFolder: string, uid: string): string | null {
  return imageFilesIn(imagesFolderOf(jobsFolder, uid))[0] ?? null;
}

type Parts = Pick<RunnerOptions, 'jobsFolder' | 'log' | 'store'>;

/**
 * Removes the images of a job that has no use for them: a failed or cancelled job may be retried
 * and keeps them. A removal that fails is tried again at the daemon's next start.
 */
export async function dropImages({ jobsFolder, log }: Parts, uid: string): Promise<void> {
  try {
    await removeImages(jobsFolder, uid);
  } catch (error) {
    log.warn('images.stay', { uid, error: messageOf(error) });
  }
}

/** Removes images of jobs that succeeded or were deleted while nobody could remove them. */
export async function sweepImages(parts: Parts): Promise<void> {
  const uids = await readdir(parts.jobsFolder).catch(() => []);
  for (const uid of uids) {
    await yieldToLoop();
    if (!existsSync(imagesFolderOf(parts.jobsFolder, uid))) continue;
    const job = parts.store.getJobByUid(uid);
    if (job === null || job.state === 'SUCCEEDED') await dropImages(parts, uid);
  }
}

function batchesText(batches: number | bigint): string {
  return counted(batches, 'batch', 'batches');
}
