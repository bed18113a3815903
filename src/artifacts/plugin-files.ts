import { createHash } from 'node:crypto';
import { closeSync, readSync, realpathSync, statSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import { fileProblem } from '../base/file-problem.ts';
import { kindOf, openRegularSync } from '../base/regular-file.ts';
import { isInside } from '../base/rooted.ts';
import type { PluginLookup } from '../spec/rules/rule.ts';
import { scriptProblem } from './script-file.ts';

/**
 * Files of users that executors load and run. The daemon reads their bytes, never more: code of a
 * user's runs in executors only.
 */

/** The daemon reads a file whole while it creates a job. */
const fileBytesMax = 2 ** 28;
const chunkBytes = 2 ** 20;

/** Allows regular files in `folder`, also by links from elsewhere; none where it is empty. */
export function pluginFilesIn(folder: string): PluginLookup {
  return (path, kind) => {
    if (folder === '') return { problem: "this daemon's plugins_dir is not set: it loads none" };
    if (!isAbsolute(path) || path.includes('\0')) return { problem: 'expected an absolute path' };
    try {
      const real = realpathSync(path);
      if (!isInside(realpathSync(folder), real)) {
        return { problem: `is not in ${folder}, the daemon's plugins_dir` };
      }
      const stats = statSync(real);
      const { size } = stats;
      if (!stats.isFile()) {
        return { problem: `is ${kindOf(stats)}, expected a regular file` };
      }
      if (size > fileBytesMax) return { problem: `${size} bytes, at most ${fileBytesMax}` };
      const problem = kind === 'MODEL' ? scriptProblem(real) : null;
      return problem === null ? { sha256: sha256Of(real) } : { problem };
    } catch (error) {
      return { problem: fileProblem(error) };
    }
  };
}

function sha256Of(path: string): string {
  const hash = createHash('sha256');
  const chunk = Buffer.alloc(chunkBytes);
  const fd = openRegularSync(path);
  try {
    for (let got = -1; got !== 0; ) {
      got = readSync(fd, chunk);
      hash.update(chunk.subarray(0, got));
    }
  } finally {
    closeSync(fd);
  }
  return hash.digest('hex');
}
