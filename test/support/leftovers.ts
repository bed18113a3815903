import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

/** What a daemon leaves in its folder and in its process. */

/** What docs/operating.md lists, below the state directory; names of all other files. */
export function unlistedFiles(state: string): readonly string[] {
  const listed = [
    /^LOCK$/,
    /^store\/gnnd\.db(-wal|-shm|\.reserve)?$/,
    /^datasets\/[^/]+\/[^/]+$/,
    /^cache\/features\/[^/]+(\.npy(\.moments)?|-hotness\.json)(\.sha256)?$/,
    /^cache\/propagations\/[^/]+\/(rows\/)?[^/]+$/,
    /^jobs\/[^/]+\/attempts\/\d+\/(log\/[^/]+\.log|timeline\.json)$/,
    /^jobs\/[^/]+\/checkpoint\/(last\.safetensors|best\.safetensors|MANIFEST\.json)$/,
    /^jobs\/[^/]+\/predictions\/[^/]+$/,
    // Images of jobs that were cancelled or failed, which may be retried.
    /^jobs\/[^/]+\/images\/epoch-\d+-batch-\d+\.image$/,
    /^log\/preparer\.log$/,
  ];
  return readdirSync(state, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(state.length + 1))
    .filter((name) => name.includes('.tmp-') || !listed.some((known) => known.test(name)));
}

export interface Holdings {
  /** Open descriptors. */
  readonly all: number;
  /** Number of these that are gnnd's memfds. */
  readonly memory: number;
  readonly threads: number;
  readonly residentBytes: number;
}

/** What a living process holds. */
export function holdingsOf(pid: number): Holdings {
  const targets = readdirSync(`/proc/${pid}/fd`).map((fd) => linkOf(`/proc/${pid}/fd/${fd}`));
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const field = (name: string) => Number(new RegExp(`^${name}:\\s*(\\d+)`, 'm').exec(status)?.[1]);
  return {
    all: targets.length,
    memory: targets.filter((target) => target.includes('memfd:gnnd')).length,
    threads: field('Threads'),
    residentBytes: 1024 * field('VmRSS'),
  };
}

/** Processes that hold a memfd of ours, mapped or open. */
export function processesWithSegments(): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return (
          readFileSync(`/proc/${pid}/maps`, 'utf8').includes('memfd:gnnd') ||
          holdingsOf(pid).memory > 0
        );
      } catch {
        return false;
      }
    });
}

export function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}
