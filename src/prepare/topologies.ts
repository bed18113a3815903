import { closeSync, fstatSync } from 'node:fs';
import type { CoreAddon } from '../native/contract.ts';
import type { TopologyPlace } from '../records/memory-plan.ts';
import { TaskError } from '../supervisor/supervisor.ts';

/**
 * Graphs' topologies in shared memory: one of each, whoever uses it. Attempts, cache reports and
 * exports hold shares; the first one has it made, the last one's end gives it back, after a while
 * in which the next job on the same dataset finds it. What lies idle goes at once when another one
 * is to be made.
 */

/** Everything that decides a topology, and where it lies. */
export interface TopologyKey {
  readonly datasetDigest: string;
  /** FILE: it stays in the dataset's files, and the memfd says so. */
  readonly place: TopologyPlace;
  /** Whether it has tables to sample by edge weight. */
  readonly alias: boolean;
  /** NUMA node whose memory holds it; null: any. */
  readonly node: number | null;
}

/** A share of a topology. */
export interface SharedTopology {
  /** A sealed memfd; it stays the store's. */
  readonly fd: number;
  readonly bytes: number;
  /** Releases the share; a second call does nothing. */
  readonly release: () => void;
}

/** Fills a reserved memfd in a process of its own; resolves or rejects once that is reaped. */
export type FillTopology = (fd: number, signal: AbortSignal) => Promise<void>;

export interface TopologiesOptions {
  readonly native: Pick<CoreAddon, 'topologyReserve'>;
  /** How long one that nobody uses is kept; 0: not at all. */
  readonly idleMs: number;
}

interface Entry extends TopologyKey {
  readonly fd: number;
  readonly abort: AbortController;
  /** Resolves to the topology's size in bytes. */
  made: Promise<number>;
  /** Size of the topology; 0 until it is made. */
  bytes: number;
  shares: number;
  idle: NodeJS.Timeout | null;
}

export class Topologies {
  readonly #options: TopologiesOptions;
  readonly #entries = new Set<Entry>();

  constructor(options: TopologiesOptions) {
    this.#options = options;
  }

  /** Topologies that have been made, used or idle. */
  get resident(): readonly { readonly bytes: number; readonly shares: number }[] {
    return [...this.#entries].filter(({ bytes }) => bytes > 0);
  }

  /**
   * A share of the topology of that key; `fill` makes it where there is none, once for all who ask
   * meanwhile. Rejects as `fill` does, or with a TaskError ABORTED after `signal`; a making that
   * nobody waits for any more is stopped, and then this rejects when its process is gone.
   */
  async share(key: TopologyKey, fill: FillTopology, signal: AbortSignal): Promise<SharedTopology> {
    if (signal.aborted) throw stopped();
    const entry = this.#find(key) ?? this.#make(key, fill);
    this.#keep(entry);
    entry.shares += 1;
    try {
      const bytes = await unlessAborted(entry.made, signal);
      let isHeld = true;
      const release = () => {
        if (isHeld) this.#release(entry);
        isHeld = false;
      };
      return { fd: entry.fd, bytes, release };
    } catch (error) {
      const isLast = this.#release(entry);
      if (isLast) await entry.made.catch(() => {});
      throw error;
    }
  }

  /** Drops idle topologies and stops making others; shares stay until they are released. */
  close(): void {
    for (const entry of this.#entries) {
      if (entry.bytes === 0) entry.abort.abort();
      else if (entry.shares === 0) this.#drop(entry);
    }
  }

  #find({ datasetDigest, place, alias, node }: TopologyKey): Entry | undefined {
    return [...this.#entries].find(
      (entry) =>
        entry.datasetDigest === datasetDigest &&
        entry.place === place &&
        entry.alias === alias &&
        (node === null || entry.node === node),
    );
  }

  #make(key: TopologyKey, fill: FillTopology): Entry {
    for (const entry of this.#entries) if (entry.shares === 0) this.#drop(entry);
    const fd = this.#options.native.topologyReserve();
    const abort = new AbortController();
    const entry: Entry = {
      ...key,
      ...{ fd, abort, bytes: 0, shares: 0, idle: null },
      made: Promise.resolve(0),
    };
    entry.made = fill(fd, abort.signal).then(() => {
      // The topology's last waiter left while it was being finished.
      if (abort.signal.aborted) throw stopped();
      entry.bytes = fstatSync(fd).size;
      return entry.bytes;
    });
    entry.made.catch(() => this.#drop(entry));
    this.#entries.add(entry);
    return entry;
  }

  #keep(entry: Entry): void {
    if (entry.idle !== null) clearTimeout(entry.idle);
    entry.idle = null;
  }

  /** Whether that was the last share. */
  #release(entry: Entry): boolean {
    entry.shares -= 1;
    if (entry.shares > 0) return false;
    const { idleMs } = this.#options;
    if (entry.bytes === 0) {
      // Whoever asks from now on has another one made.
      this.#entries.delete(entry);
      entry.abort.abort();
    } else if (idleMs === 0) {
      this.#drop(entry);
    } else {
      entry.idle = setTimeout(() => this.#drop(entry), idleMs).unref();
    }
    return true;
  }

  /** The kernel frees it with its last mapping. */
  #drop(entry: Entry): void {
    this.#keep(entry);
    this.#entries.delete(entry);
    closeSync(entry.fd);
  }
}

function stopped(): TaskError {
  return new TaskError('ABORTED', 'waiting for a topology was stopped');
}

async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  let onAbort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(stopped());
    signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
