import { renameSync, statSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { JobRecord } from '../records/job-record.ts';

/** What attempts at an inference leave for each other; other jobs have no such folder. */

const folderOf = (jobsFolder: string, { uid }: JobRecord) => join(jobsFolder, uid, 'inference');

/** Whether the latest attempt finished a chunk. */
export function madeChunks(jobsFolder: string, job: JobRecord): boolean {
  const journal = join(folderOf(jobsFolder, job), 'chunks.bin');
  const found = statSync(journal, { throwIfNoEntry: false });
  const startMs = job.attempts.at(-1)?.startAtMs ?? 0;
  return found !== undefined && found.size > 0 && found.mtimeMs >= startMs;
}

/** Removes what an ended inference left, which nobody resumes; at the latest at a start. */
export async function dropWork(jobsFolder: string, job: JobRecord): Promise<void> {
  const folder = folderOf(jobsFolder, job);
  // A name that the sweep at the next start removes, too.
  const aside = `${folder}.tmp-ended`;
  try {
    renameSync(folder, aside);
  } catch {
    return; // There is none.
  }
  await rm(aside, { recursive: true, force: true });
}
