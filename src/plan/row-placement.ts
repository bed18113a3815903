import type { RowPlacement, RowTier } from '../records/memory-plan.ts';

/**
 * Where the rows of a job come from and how an epoch shuffles them: after the procedure of Yue,
 * Deng, Zhang (MLSys 2025), with sizes computed in place of found by trial. Any Trainer takes any
 * batch, so a device that holds rows holds all that it may train on, where the paper deals them
 * out. A pure function; its table is `candidatesOf`, read from the top.
 */

export interface RowFacts {
  /** Size of all rows of all hops. */
  readonly bytes: number;
  /** Size of the training rows alone. */
  readonly trainBytes: number;
  /** Size of one row of one hop. */
  readonly rowBytes: number;
  readonly batchSize: number;
  readonly hostBytes: number;
  /** The smallest device with memory of its own that may train; null: the host's cores train. */
  readonly device: RowDevice | null;
  /** Null: the procedure chooses. */
  readonly forcedTier: RowTier | null;
}

export interface RowDevice {
  readonly freeBytes: number;
  /** Memory that the model, its work and batches take at most. */
  readonly workBytes: number;
}

/** Beyond this share of the host's memory rows stay on the disk. */
export const diskShare = 0.7;
const share = `${100 * diskShare} %`;
/** Fraction of device memory left unallocated. */
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
  const { forcedTier } = facts;
  const candidates = candidatesOf(facts);
  const refused: string[] = [];
  for (const { place, problem, reason } of candidates) {
    // Host and disk can always be read; a device must have room.
    const isForced = place.tier === forcedTier && (problem === null || place.tier !== 'DEVICE');
    if (isForced) return { ...place, reason: `the job asks for ${place.tier}`, refused };
    if (forcedTier !== null && place.tier !== forcedTier) continue;
    if (problem === null) return { ...place, reason, refused };
    refused.push(problem);
  }
  // A device that has no room, though the job asks for it.
  const next = placeRows({ ...facts, forcedTier: null });
  const reason = `the job asks for ${forcedTier}, which has no room; ${next.reason}`;
  return { ...next, reason };
}

interface Candidate {
  readonly place: Omit<RowPlacement, 'reason' | 'refused'>;
  /** Why this place is not possible; null: it is possible. */
  readonly problem: string | null;
  readonly reason: string;
}

/** The table: what is tried, in this order, and what speaks against each. */
function candidatesOf(facts: RowFacts): readonly Candidate[] {
  const { device } = facts;
  return [
    ...(device === null
      ? []
      : [onDevices(facts, device, 'ALL'), onDevices(facts, device, 'TRAIN')]),
    inHost(facts),
    onDisk(facts),
  ];
}

function onDevices(
  { bytes, trainBytes }: RowFacts,
  { freeBytes, workBytes }: RowDevice,
  splits: 'ALL' | 'TRAIN',
): Candidate {
  const needed = splits === 'ALL' ? bytes : trainBytes;
  const room = (1 - deviceMargin) * freeBytes - workBytes;
  const what = `${splits === 'ALL' ? 'all' : 'training'} rows (${size(needed)} on each device)`;
  const beside = `beside the model and its work (${size(workBytes)} of ${size(freeBytes)})`;
  return {
    place: { tier: 'DEVICE', splits, chunk: 1 },
    problem: needed <= room ? null : `not on devices: no room for ${what} ${beside}`,
    reason: `${what} fit ${beside}, and single rows are shuffled`,
  };
}

function inHost(facts: RowFacts): Candidate {
  const { bytes, hostBytes, device } = facts;
  const rows = `${size(bytes)} of rows`;
  const readers =
    device === null ? 'the cores that train read them' : 'they are gathered for devices';
  return {
    place: { tier: 'HOST', splits: 'ALL', chunk: 1 },
    problem:
      bytes <= diskShare * hostBytes
        ? null
        : `not in the host's memory: ${rows} are more than ${share} of ${size(hostBytes)}`,
    reason: `${rows} fit into the host's memory, where ${readers}: single rows are shuffled`,
  };
}

function onDisk(facts: RowFacts): Candidate {
  const { bytes, hostBytes } = facts;
  return {
    place: { tier: 'DISK', splits: 'ALL', chunk: chunkOf(facts) },
    problem: null,
    reason:
      `${size(bytes)} of rows are more than ${share} of the host's ${size(hostBytes)}: ` +
      'they stay on disk, which chunks read at its speed',
  };
}

function size(bytes: number): string {
  if (bytes < 2 ** 30) return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
  return `${(bytes / 2 ** 30).toFixed(2)} GiB`;
}
