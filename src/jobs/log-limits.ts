import { lstatSync, readdirSync } from 'node:fs';
import { open, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { entriesOf, filesBelow, type SizedFile } from '../base/files.ts';

/**
 * Logs of executors within their bytes. Executors append to files that are theirs and never wait:
 * who writes too much finds its file cut by its beginning, under its feet.
 */

/** A log that is removed, whole or in part from its beginning. */
export interface LogCut {
  readonly path: string;
  /** Bytes that are removed. */
  readonly bytes: number;
  /** Bytes that stay at the log's end; 0: the file is removed. */
  readonly keep: number;
  readonly reason: string;
}

export interface LogSweep {
  /** Jobs whose executors run, by uid, and the attempt that they belong to. */
  readonly live: ReadonlyMap<string, number>;
  /** Uids of jobs that are being deleted. */
  readonly gone: ReadonlySet<string>;
  /** False: only those of live jobs, which may grow. */
  readonly allLogs: boolean;
}

export interface LogLimits {
  readonly jobLogsBytes: number;
  readonly logsBytes: number;
}

interface LogFile extends SizedFile {
  readonly isLive: boolean;
}

interface JobLogs {
  /** Modification time of the folder of attempts, which changes with each new attempt. */
  readonly atMs: number;
  readonly files: readonly LogFile[];
}

/** Most that stays of a log that is cut while it is written, because that part is copied. */
const keptMax = 8 * 2 ** 20;

/** The logs below a folder of jobs; looks again only at jobs that could have logged. */
export class LogFolder {
  readonly #jobsFolder: string;
  readonly #tasksFolder: string;
  readonly #ended = new Map<string, JobLogs>();

  /** `tasksFolder`: logs of what belongs to no job, such as exports; they are never closed. */
  constructor(jobsFolder: string, tasksFolder: string) {
    this.#jobsFolder = jobsFolder;
    this.#tasksFolder = tasksFolder;
  }

  /** Cuts of the logs that are beyond the limits, oldest first. */
  async plan(limits: LogLimits, { live, gone, allLogs }: LogSweep): Promise<readonly LogCut[]> {
    const uids = allLogs ? await this.#uids() : [...live.keys()];
    const cuts: LogCut[] = [];
    const kept: LogFile[] = [];
    if (allLogs) {
      const files = await filesBelow(this.#tasksFolder);
      const live = files.map((file) => ({ ...file, isLive: true }));
      cuts.push(...beyondOfJob(live, limits.jobLogsBytes).cuts);
    }
    for (const uid of uids) {
      if (gone.has(uid)) continue;
      const cut = beyondOfJob(await this.#logsOf(uid, live.get(uid)), limits.jobLogsBytes);
      cuts.push(...cut.cuts);
      kept.push(...cut.kept);
    }
    return allLogs ? [...cuts, ...beyondInAll(kept, limits.logsBytes)] : cuts;
  }

  /**
   * What is beyond the limit of a job among logs that are written now. Cheap: it is asked for a few
   * times a second, so that nobody fills the disk between two looks at all of them.
   */
  growing({ jobLogsBytes }: LogLimits, live: LogSweep['live']): readonly LogCut[] {
    const folders = [...live].map(([uid, attempt]) =>
      join(this.#jobsFolder, uid, 'attempts', String(attempt), 'log'),
    );
    return [...folders, this.#tasksFolder].flatMap((folder) => {
      const files = logsIn(folder);
      return totalOf(files) > jobLogsBytes ? beyondOfJob(files, jobLogsBytes).cuts : [];
    });
  }

  async #uids(): Promise<readonly string[]> {
    const entries = await entriesOf(this.#jobsFolder);
    const uids = new Set(entries.filter((one) => one.isDirectory()).map(({ name }) => name));
    for (const uid of this.#ended.keys()) if (!uids.has(uid)) this.#ended.delete(uid);
    return [...uids];
  }

  /** False when there was nothing to do any more. */
  async apply({ path, keep }: LogCut): Promise<boolean> {
    this.#ended.delete(uidOf(this.#jobsFolder, path));
    if (keep > 0) return await cutBeginning(path, keep);
    return await rm(path).then(
      () => true,
      () => false,
    );
  }

  async #logsOf(uid: string, liveAttempt: number | undefined): Promise<readonly LogFile[]> {
    const folder = join(this.#jobsFolder, uid, 'attempts');
    const atMs = (await stat(folder).catch(() => null))?.mtimeMs ?? 0;
    const known = this.#ended.get(uid);
    if (liveAttempt === undefined && known?.atMs === atMs) return known.files;
    const liveFolder = join(folder, String(liveAttempt ?? 'none'), 'log');
    const files = (await filesBelow(folder))
      .filter(({ path }) => path.endsWith('.log'))
      .map((file) => ({ ...file, isLive: join(file.path, '..') === liveFolder }));
    if (liveAttempt === undefined) this.#ended.set(uid, { atMs, files });
    else this.#ended.delete(uid);
    return files;
  }
}

function logsIn(folder: string): readonly LogFile[] {
  let names: readonly string[];
  try {
    names = readdirSync(folder);
  } catch {
    return [];
  }
  return names.flatMap((name) => {
    const path = join(folder, name);
    const stats = name.endsWith('.log') ? lstatSync(path, { throwIfNoEntry: false }) : undefined;
    if (stats?.isFile() !== true) return [];
    return [{ path, bytes: stats.size, atMs: stats.mtimeMs, isLive: true }];
  });
}

function uidOf(jobsFolder: string, path: string): string {
  return path.slice(jobsFolder.length + 1).split('/')[0] ?? '';
}

/** Whole files of ended attempts go first; then the files that are written are cut. */
function beyondOfJob(
  files: readonly LogFile[],
  maxBytes: number,
): { readonly cuts: readonly LogCut[]; readonly kept: readonly LogFile[] } {
  const reason = `the logs of one job may take ${maxBytes} bytes (job_logs_max_bytes)`;
  let total = totalOf(files);
  const cuts: LogCut[] = [];
  const kept: LogFile[] = [];
  const shareBytes = Math.min(keptMax, Math.floor(maxBytes / 2 / Math.max(1, files.length)));
  for (const file of oldestFirst(files)) {
    if (total <= maxBytes) {
      kept.push(file);
      continue;
    }
    // The last of a job's logs is worth more than the room that it takes.
    const isLast = total === file.bytes;
    const keep = file.isLive || isLast ? Math.min(file.bytes, shareBytes) : 0;
    if (keep < file.bytes) cuts.push({ path: file.path, bytes: file.bytes - keep, keep, reason });
    if (keep > 0) kept.push({ ...file, bytes: keep });
    total -= file.bytes - keep;
  }
  return { cuts, kept };
}

function beyondInAll(files: readonly LogFile[], maxBytes: number): readonly LogCut[] {
  const reason = `all logs may take ${maxBytes} bytes (logs_max_bytes)`;
  let total = totalOf(files);
  const cuts: LogCut[] = [];
  for (const { path, bytes } of oldestFirst(files.filter(({ isLive }) => !isLive))) {
    if (total <= maxBytes) break;
    cuts.push({ path, bytes, keep: 0, reason });
    total -= bytes;
  }
  return cuts;
}

function totalOf(files: readonly LogFile[]): number {
  return files.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** Sorts logs oldest first. Logs still being written come last: their lines are newer. */
function oldestFirst(files: readonly LogFile[]): readonly LogFile[] {
  return [...files].sort(
    (a, b) => Number(a.isLive) - Number(b.isLive) || a.atMs - b.atMs || (a.path < b.path ? -1 : 1),
  );
}

/**
 * Leaves the last `keep` bytes, from the beginning of a line on. Executors have the file open for
 * appending, so it is emptied and filled again in place; a line that is written in that instant may
 * be lost.
 */
async function cutBeginning(path: string, keep: number): Promise<boolean> {
  const handle = await open(path, 'r+').catch(() => null);
  if (handle === null) return false;
  try {
    const { size } = await handle.stat();
    if (size <= keep) return false;
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(keep), 0, keep, size - keep);
    const end = buffer.subarray(0, bytesRead);
    const line = end.subarray(end.indexOf('\n') + 1);
    const notice = Buffer.from(
      `[gnnd removed the first ${size - line.length} bytes of this log]\n`,
    );
    await handle.truncate(0);
    const appending = await open(path, 'a');
    try {
      await appending.write(Buffer.concat([notice, line]));
    } finally {
      await appending.close();
    }
    return true;
  } finally {
    await handle.close();
  }
}
