import { readdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';

/** Files from which interrupted jobs go on (docs/formats/image.md), by their folders. */

const imageName = /^epoch-\d{8}-batch-\d{10}\.image$/;

export function imagesFolderOf(jobsFolder: string, uid: string): string {
  return join(jobsFolder, uid, 'images');
}

/** Names of the images in a folder, the newest first; none where that cannot be read. */
export function imageFilesIn(folder: string): readonly string[] {
  return namesIn(folder)
    .filter((name) => imageName.test(name))
    .sort()
    .reverse();
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    // No image was written yet, or the disk gives none: the job begins at the beginning.
    return [];
  }
}

/** A job that has ended needs no images. */
export async function removeImages(jobsFolder: string, uid: string): Promise<void> {
  await rm(imagesFolderOf(jobsFolder, uid), { recursive: true, force: true });
}
