import { existsSync, readdirSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { entriesOf } from '../base/files.ts';
import type { Log } from '../base/log.ts';
import type { Store } from '../store/store.ts';

/** Files of a state directory that its store does not know: the store was lost or replaced. */

/** Most orphans that are told of one by one. */
export const orphansMax = 1000;

/**
 * Folders below `jobsFolder` of jobs that the store does not know, at most `orphansMax`. What a
 * deletion was asked to keep is none: a checkpoint and nothing else.
 */
export async function orphansBelow(
  store: Pick<Store, 'getJobByUid' | 'removalsAt'>,
  jobsFolder: string,
): Promise<readonly string[]> {
  const leaving = new Set(store.removalsAt('FILES', orphansMax).map(({ uid }) => uid));
  const orphans: string[] = [];
  for (const entry of await entriesOf(jobsFolder)) {
    if (orphans.length === orphansMax) break;
    const isKnown = leaving.has(entry.name) || store.getJobByUid(entry.name) !== null;
    if (!entry.isDirectory() || isKnown || entry.name.includes('.tmp-')) continue;
    const path = join(jobsFolder, entry.name);
    const members = await readdir(path).catch(() => []);
    if (members.some((name) => name !== 'checkpoint')) orphans.push(path);
  }
  return orphans;
}

/** Says so where the store is missing, and what it knew of is not. */
export function warnOfMissingStore(stateDir: string, path: string, log: Log): void {
  if (existsSync(path)) return;
  const count = (folder: string) => {
    const place = join(stateDir, folder);
    if (!existsSync(place)) return 0;
    return readdirSync(place).filter((name) => !name.startsWith('.')).length;
  };
  const [jobs, datasets] = [count('jobs'), count('datasets')];
  if (jobs + datasets === 0) return;
  const remedy =
    'the daemon starts without any job: if that is wrong, stop it and put the store back; ' +
    'datasets are taken up again, gnnctl gc lists folders of jobs that are not known';
  log.warn('store.missing', { path, jobs, datasets, remedy });
}
