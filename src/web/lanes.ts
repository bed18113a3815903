import { ExecutorRole, type ExecutorTimes } from '../api/gen/gnnd/v1/executor_pb.ts';
import type { JobTimeline } from '../api/gen/gnnd/v1/timeline_pb.ts';
import { msOf, percent } from './format.ts';

/** What a timeline shows, as numbers; no DOM here. */

export interface Activity {
  /** S M C P E T, then words. */
  readonly label: string;
  /** What the activity is, in a sentence. */
  readonly meaning: string;
  readonly color: string;
  readonly ns: (times: ExecutorTimes) => number;
}

/** Everything that an executor does or waits for, in the order of a batch's way. */
export const activities: readonly Activity[] = [
  { label: 'S', meaning: 'samples', color: '--sample', ns: (t) => Number(t.sampleNs) },
  { label: 'M', meaning: 'marks hot ranks', color: '--mark', ns: (t) => Number(t.markNs) },
  { label: 'C', meaning: 'copies records', color: '--copy', ns: (t) => Number(t.copyNs) },
  { label: 'P', meaning: 'prunes', color: '--prune', ns: (t) => Number(t.pruneNs) },
  {
    label: 'E',
    meaning: 'waits for extraction',
    color: '--extract',
    ns: (t) => Number(t.waitExtractNs),
  },
  { label: 'T', meaning: 'trains', color: '--train', ns: (t) => Number(t.trainNs) },
  { label: 'apply', meaning: 'applies steps', color: '--apply', ns: (t) => Number(t.applyNs) },
  { label: 'evaluate', meaning: 'evaluates', color: '--evaluate', ns: (t) => Number(t.evaluateNs) },
  {
    label: 'stand by',
    meaning: 'leaves its device to the other role',
    color: '--stand-by',
    ns: (t) => Number(t.waitTurnNs),
  },
  {
    label: 'wait',
    meaning: 'waits for a slot, a batch or parameters',
    color: '--wait',
    ns: (t) => Number(t.waitEnqueueNs) + Number(t.waitDequeueNs) + Number(t.waitDueNs),
  },
];

/** One role on one device over time. */
export interface Lane {
  readonly device: string;
  readonly role: ExecutorRole;
  /** Share of each stretch, 0 to 1, by stretch and then by activity. */
  readonly shares: readonly (readonly number[])[];
  /** Total nanoseconds by activity. */
  readonly totalNs: readonly number[];
  readonly durationNs: number;
}

export interface Lanes {
  /** Seconds from the start to the end of each stretch. */
  readonly ends: readonly number[];
  /** Lanes by device, in the order in which devices came. */
  readonly lanes: readonly Lane[];
}

export function lanesOf({ stretches }: JobTimeline): Lanes {
  const startMs = msOf(stretches[0]?.startTime) ?? 0;
  const ends = stretches.map(({ startTime, durationNs }) => {
    return ((msOf(startTime) ?? startMs) - startMs) / 1000 + Number(durationNs) / 1e9;
  });
  const keys = new Map<string, Pick<Lane, 'device' | 'role'>>();
  for (const { executors } of stretches) {
    for (const { device, role } of executors) keys.set(`${device} ${role}`, { device, role });
  }
  const devices = [...new Set([...keys.values()].map(({ device }) => device))];
  const lanes = [...keys.values()]
    .sort((a, b) => devices.indexOf(a.device) - devices.indexOf(b.device) || a.role - b.role)
    .map((lane) => laneOf(lane, stretches));
  return { ends, lanes };
}

function laneOf(
  { device, role }: Pick<Lane, 'device' | 'role'>,
  stretches: JobTimeline['stretches'],
): Lane {
  const totalNs = activities.map(() => 0);
  let laneNs = 0;
  const shares = stretches.map(({ executors, durationNs }) => {
    const times = executors.find((each) => each.device === device && each.role === role);
    if (times === undefined) return [];
    laneNs += Number(durationNs);
    return activities.map(({ ns }, index) => {
      const spentNs = ns(times);
      totalNs[index] = (totalNs[index] ?? 0) + spentNs;
      return Number(durationNs) === 0 ? 0 : Math.min(1, spentNs / Number(durationNs));
    });
  });
  return { device, role, shares, totalNs, durationNs: laneNs };
}

/** Seconds, mean depth and capacity. */
export function queueOf(timeline: JobTimeline): (number | null)[][] {
  const { ends } = lanesOf(timeline);
  const depths = timeline.stretches.map(({ queueDepth }) => queueDepth);
  return [[...ends], depths, depths.map(() => timeline.queueCapacity)];
}

/** Seconds, and the share of feature rows that caches had; null where none was read. */
export function hitRatesOf(timeline: JobTimeline): (number | null)[][] {
  const rates = timeline.stretches.map(({ executors }) => hitRate(executors));
  return [[...lanesOf(timeline).ends], rates];
}

/** Hit rate over all rows that were read; null before any was. */
export function hitRate(executors: readonly ExecutorTimes[]): number | null {
  const cached = executors.reduce((sum, { cachedRows }) => sum + Number(cachedRows), 0);
  const read = executors.reduce((sum, one) => sum + Number(one.peerRows + one.readRows), 0);
  return cached + read === 0 ? null : cached / (cached + read);
}

const roleNames: Readonly<Record<number, string>> = {
  [ExecutorRole.SAMPLER]: 'Sampler',
  [ExecutorRole.TRAINER]: 'Trainer',
  [ExecutorRole.STANDBY]: 'standby Trainer',
};

export function roleName(role: ExecutorRole): string {
  return roleNames[role] ?? 'task';
}

/** What a lane did in one stretch, most first; activities under a hundredth left out. */
export function sentenceOf({ shares }: Lane, index: number): string {
  const parts = (shares[index] ?? [])
    .map((share, at) => ({ share, meaning: activities[at]?.meaning ?? '' }))
    .filter(({ share }) => share >= 0.01)
    .sort((a, b) => b.share - a.share)
    .map(({ share, meaning }) => `${meaning} ${percent(share, 0)}`);
  return parts.length === 0 ? 'nothing told yet' : parts.join(', ');
}
