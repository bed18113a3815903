import { readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from '../base/atomic-file.ts';
import { sleep, systemClock } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import { isInside } from '../base/rooted.ts';
import type { CoreAddon } from './contract.ts';

/**
 * Whose a folder is. A claim is the kernel's (flock) and on the folder itself: it goes with the
 * process, and removing a file gets around none.
 */

type Locks = Pick<CoreAddon, 'hostLock' | 'hostLockFolder' | 'hostShareFolder'>;

/**
 * Makes the state directory ours for the life of this process, or throws a sentence that says why
 * that cannot be. LOCK, which tells people who has it, is locked, too: NFS locks no folders.
 */
export function claimState(native: Locks, stateDir: string): void {
  const path = join(stateDir, 'LOCK');
  let isOurs: boolean;
  try {
    makeFolder(join(stateDir, 'store'));
    isOurs = folderClaim(native, stateDir, false) !== null && native.hostLock(path) !== null;
  } catch (error) {
    throw new Error(`the state directory ${stateDir} cannot be used: ${messageOf(error)}`);
  }
  if (!isOurs) {
    throw new Error(`another daemon (pid ${holderOf(path)}) uses the state directory ${stateDir}`);
  }
  try {
    writeFileSync(path, `${process.pid}\n`);
  } catch {
    // A full disk: people do without it.
  }
}

function holderOf(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim() || 'unknown';
  } catch {
    return 'unknown';
  }
}

/** Folders in which several daemons may work. */
export interface SharedFolders {
  /** Whether nobody else works there: then what looks left behind by a killed process is. */
  isAlone(folder: string): boolean;
  /** Lets others in, once what was left behind is removed. */
  share(): void;
}

/** How long another daemon may take to remove what it finds at its start. */
const sweepMaxMs = 30_000;
const lookMs = 50;

/** Claims the folders, which are made where they are missing, for the life of this process. */
export async function claimShared(
  native: Locks,
  stateDir: string,
  folders: readonly string[],
): Promise<SharedFolders> {
  const state = realpathSync(stateDir);
  const alone = new Set<string>();
  const claims: number[] = [];
  for (const folder of folders) {
    makeFolder(folder);
    const place = realpathSync(folder);
    // Claimed already, by the state directory's claim or for another purpose of the same folder.
    if (place === state) alone.add(place);
    if (alone.has(place)) continue;
    const claim = folderClaim(native, place, false);
    if (claim === null) await joinOthers(native, place);
    else if (claim !== 'UNSUPPORTED' || isInside(state, place)) alone.add(place);
    if (typeof claim === 'number') claims.push(claim);
  }
  return {
    isAlone: (folder) => alone.has(realpathSync(folder)),
    share: () => {
      for (const claim of claims.splice(0)) native.hostShareFolder(claim);
    },
  };
}

/** Waits for whoever is alone there to let others in. */
async function joinOthers(native: Locks, folder: string): Promise<void> {
  const untilMs = systemClock.monotonicMs() + sweepMaxMs;
  while (folderClaim(native, folder, true) === null) {
    if (systemClock.monotonicMs() > untilMs) {
      throw new Error(`another daemon has had ${folder} to itself for ${sweepMaxMs / 1000} s`);
    }
    await sleep(lookMs);
  }
}

/** Null where others are in the way. */
function folderClaim(native: Locks, folder: string, shared: boolean) {
  try {
    return native.hostLockFolder(folder, shared);
  } catch {
    return 'UNSUPPORTED';
  }
}
