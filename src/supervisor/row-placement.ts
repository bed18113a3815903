import type { RowPlacement, RowTier } from '../records/memory-plan.ts';

/**
 * Where the rows of a job come from and how an epoch shuffles them: the procedure of Yue, Deng,
 * Zhang (MLSys 2025), with sizes computed in place of found by trial. A pure function; its table is
 * `rules`, read from the top.
 */

export interface RowFacts {
  /** Of all rows of all hops. */
  readonly bytes: number;
  /** Of training rows alone. */
  readonly trainBytes: number;
  /** Of one row of one hop. */
  readonly rowBytes: number;
  readonly batchSize: number;
  readonly hostBytes: number;
  /** That a process may lock (RLIMIT_MEMLOCK); infinite where there is no limit. */
  readonly lockableBytes: number;
  /** Devices with memory of their own that may train; none: the host's cores train. */
  readonly devices: readonly RowDevice[];
  /** Null: the procedure chooses. */
  readonly forcedTier: RowTier | null;
}

export interface RowDevice {
  readonly name: string;
  readonly freeBytes: number;
  /** That the model, its work and two batches take at most. */
  readonly workBytes: number;
}

/** Beyond this share of the host's memory rows stay on the disk. */
export const diskShare = 0.7;
/** So much of the host's memory may be locked. */
export const lockShare = 0.5;
/** Of a device's memory stays free. */
export const deviceMargin = 0.1;
/** A chunk is at least as long in each file: shorter reads are slower than the disk. */
export const chunkBytes = 256 * 1024;

/**
 * The smallest divisor of the batch size that makes chunks long enough, else a batch: small chunks
 * mix rows more.
 */
export function chunkOf({ batchSize, rowBytes }: Pick<RowFacts, 'batchSize' | 'rowBytes'>): number {
  for (let chunk = 1; chunk < batchSize; chunk += 1) {
    if (batchSize % chunk === 0 && chunk * rowBytes >= chunkBytes) return chunk;
  }
  return batchSize;
}

/** REQUIRES: sizes above 0. */
export function placeRows(facts: RowFacts): RowPlacement {
  const refused: string[] = [];
  for (const { place, why } of candidatesOf(facts)) {
    if (facts.forcedTier !== null && place.tier !== facts.forcedTier) continue;
    // Rows can always stay on the disk.
    const problem = facts.forcedTier === 'DISK' ? null : why.problem;
    if (problem === null) {
      const forced = facts.forcedTier === null ? why.reason : `the job asks for ${place.tier}`;
      return { ...place, reason: forced, refused };
    }
    refused.push(problem);
  }
  const asked = `the job asks for ${facts.forcedTier}`;
  const reason = `${asked}, which has no room: the host's memory is next`;
  return { ...inHost(facts, false), reason, refused };
}

type Place = Omit<RowPlacement, 'reason' | 'refused'>;

interface Candidate {
  readonly place: Place;
  readonly why: { readonly problem: string | null; readonly reason: string };
}

/** The table: what is tried, in this order, and what speaks against each. */
function candidatesOf(facts: RowFacts): readonly Candidate[] {
  const { devices } = facts;
  const eligible = devices.filter(({ freeBytes, workBytes }) => workBytes <= usable(freeBytes));
  const most = Math.max(1, eligible.length);
  const counts = Array.from({ length: devices.length === 0 ? 0 : most }, (_, at) => most - at);
  return [
    onDisk(facts),
    ...(devices.length === 0 ? [onCores(facts)] : []),
    ...counts.flatMap((count) => [
      onDevices(facts, eligible, count, 'ALL'),
      onDevices(facts, eligible, count, 'TRAIN'),
      lockedInHost(facts),
      stagedInHost(facts),
    ]),
  ];
}

const usable = (freeBytes: number) => (1 - deviceMargin) * freeBytes;

function inHost(facts: RowFacts, locked: boolean): Place {
  const chunk = locked ? chunkOf(facts) : 1;
  return { tier: 'HOST', splits: 'ALL', chunk, shards: 0, locked };
}

function onDisk(facts: RowFacts): Candidate {
  const limit = diskShare * facts.hostBytes;
  const rows = `${size(facts.bytes)} of rows`;
  const share = `${100 * diskShare} % of the host's ${size(facts.hostBytes)}`;
  return {
    place: { tier: 'DISK', splits: 'ALL', chunk: chunkOf(facts), shards: 0, locked: false },
    why: {
      problem: facts.bytes > limit ? null : `not from disk: ${rows} are within ${share}`,
      reason: `${rows} are more than ${share}: they stay on disk, which chunks read at its speed`,
    },
  };
}

function onCores(facts: RowFacts): Candidate {
  const reason =
    `${size(facts.bytes)} of rows fit into the host's memory, where the cores that train read ` +
    'them: single rows are shuffled';
  return { place: inHost(facts, false), why: { problem: null, reason } };
}

function onDevices(
  { bytes, trainBytes }: RowFacts,
  eligible: readonly RowDevice[],
  count: number,
  splits: 'ALL' | 'TRAIN',
): Candidate {
  const used = [...eligible].sort((a, b) => roomOf(b) - roomOf(a)).slice(0, count);
  const share = (splits === 'ALL' ? bytes : trainBytes) / count;
  const fits = used.length === count && used.every((device) => share <= roomOf(device));
  const what = `${splits === 'ALL' ? 'all' : 'training'} rows (${size(share)} a device)`;
  const where = count === 1 ? (used[0]?.name ?? 'a device') : `${count} devices`;
  return {
    place: { tier: 'DEVICE', splits, chunk: 1, shards: count, locked: false },
    why: {
      problem: fits ? null : `not on ${where}: no room for ${what} beside the model`,
      reason: `${what} fit on ${where} beside the model, and single rows are shuffled`,
    },
  };
}

function roomOf({ freeBytes, workBytes }: RowDevice): number {
  return usable(freeBytes) - workBytes;
}

function lockedInHost(facts: RowFacts): Candidate {
  const { trainBytes, hostBytes, lockableBytes } = facts;
  const rows = `${size(trainBytes)} of training rows`;
  const isSmall = trainBytes <= lockShare * hostBytes;
  const why = !isSmall
    ? `are more than ${100 * lockShare} % of it`
    : `are more than RLIMIT_MEMLOCK, ${size(lockableBytes)}`;
  const fits = isSmall && trainBytes <= lockableBytes;
  const problem = fits ? null : `not locked in the host's memory: ${rows} ${why}`;
  return {
    place: { ...inHost(facts, true), splits: 'TRAIN' },
    why: { problem, reason: `${rows} are locked in the host's memory, and chunks of them copied` },
  };
}

function stagedInHost(facts: RowFacts): Candidate {
  const reason = 'rows are gathered in the host and copied: single rows are shuffled';
  return { place: inHost(facts, false), why: { problem: null, reason } };
}

function size(bytes: number): string {
  if (bytes < 2 ** 30) return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
  return `${(bytes / 2 ** 30).toFixed(2)} GiB`;
}
