import { readFile } from 'node:fs/promises';
import type { ExecutorTimes, JobTimeline, TimelineStretch } from '../records/job-record.ts';
import { fromJson, toJson } from '../store/codec.ts';
import { jobTimeline } from '../store/shapes.ts';
import { ExecutorTimer } from './executor-times.ts';
import type { Look } from './look.ts';

/** Most stretches: more than a screen can tell apart; in memory and, after its end, in a file. */
export const stretchesMax = 240;
/** Most times that all stretches may have together: a message of 4 MiB holds so many. */
const timesMax = 20_000;

/** Numbers of an executor's times that add up from stretch to stretch; others are of the end. */
type Amount = Exclude<keyof ExecutorTimes, 'role' | 'device' | 'cacheBorder' | 'cacheGivenUpRows'>;
type Times = { -readonly [K in keyof ExecutorTimes]: ExecutorTimes[K] };

/** Text of a timeline as it is kept in a file. */
export function timelineText(timeline: JobTimeline): string {
  return toJson(timeline, jobTimeline, 'a timeline');
}

/** Reads the timeline of an attempt that is over; null where none can be read. */
export async function readTimeline(file: string): Promise<JobTimeline | null> {
  try {
    return fromJson(jobTimeline)(await readFile(file, 'utf8'), file);
  } catch {
    return null;
  }
}

/** Activities that an executor does one at a time; extraction may run beside training. */
const exclusive = [
  ...['sampleNs', 'markNs', 'copyNs', 'pruneNs', 'trainNs', 'applyNs', 'evaluateNs'],
  ...['waitEnqueueNs', 'waitDequeueNs', 'waitDueNs', 'waitTurnNs', 'waitExtractNs'],
] as readonly Amount[];

interface Stretch {
  readonly startMs: number;
  durationNs: number;
  /** Over time: depth times nanoseconds. */
  queueNs: number;
  readonly executors: Map<string, Times>;
}

/**
 * What an attempt's executors did over time, from looks at their segment. A stretch is one look
 * long at first; whenever there are too many, every two become one, so that the record covers the
 * whole attempt in bounded memory.
 */
export class Timeline {
  readonly #timer: ExecutorTimer;
  #stretches: Stretch[] = [];
  #looksEach = 1;
  #looksInLast = 0;
  #lastMs = 0;
  /** Offset from the monotonic clock to wall time. */
  #wallOffsetMs = 0;
  #queueCapacity = 0;

  constructor(deviceNames: readonly string[]) {
    this.#timer = new ExecutorTimer(deviceNames);
  }

  start(look: Look, wallMs: number): void {
    this.#timer.start(look);
    this.#lastMs = look.atMs;
    this.#wallOffsetMs = wallMs - look.atMs;
  }

  look(look: Look): void {
    const durationNs = Math.round((look.atMs - this.#lastMs) * 1e6);
    if (durationNs <= 0) return;
    const stretch = this.#openStretch();
    this.#lastMs = look.atMs;
    this.#queueCapacity = look.snapshot.numSlots;
    stretch.durationNs += durationNs;
    stretch.queueNs += look.snapshot.queueDepth * durationNs;
    for (const times of this.#timer.lap(look)) add(stretch.executors, times);
    this.#spreadBack();
  }

  get record(): JobTimeline {
    return {
      queueCapacity: this.#queueCapacity,
      stretches: this.#stretches.map((stretch) => this.#shown(stretch)),
    };
  }

  #shown({ startMs, durationNs, queueNs, executors }: Stretch): TimelineStretch {
    return {
      startAtMs: Math.round(startMs + this.#wallOffsetMs),
      durationNs,
      queueDepth: queueNs / durationNs,
      executors: [...executors.values()].map((times) => ({ ...times })),
    };
  }

  /** The one that the next look belongs to. */
  #openStretch(): Stretch {
    const last = this.#stretches.at(-1);
    if (last !== undefined && this.#looksInLast < this.#looksEach) {
      this.#looksInLast += 1;
      return last;
    }
    const most = timesMax / Math.max(1, last?.executors.size ?? 0);
    if (this.#stretches.length >= Math.min(stretchesMax, most)) this.#halve();
    const fresh = { startMs: this.#lastMs, durationNs: 0, queueNs: 0, executors: new Map() };
    this.#stretches.push(fresh);
    this.#looksInLast = 1;
    return fresh;
  }

  #halve(): void {
    const halves: Stretch[] = [];
    this.#stretches.forEach((stretch, index) => {
      const before = halves.at(-1);
      if (index % 2 === 0 || before === undefined) {
        halves.push(stretch);
        return;
      }
      before.durationNs += stretch.durationNs;
      before.queueNs += stretch.queueNs;
      for (const times of stretch.executors.values()) add(before.executors, times);
    });
    this.#stretches = halves;
    this.#looksEach *= 2;
  }

  /**
   * A stage is told when it ends: an evaluation of a minute would be a minute within one look. What
   * is more than a stretch holds goes to those before it, as far as they have time left.
   */
  #spreadBack(): void {
    const last = this.#stretches.at(-1);
    for (const [key, times] of last?.executors ?? []) {
      let excessNs = accountedNs(times) - times.durationNs;
      const amount = exclusive.reduce((a, b) => (times[b] > times[a] ? b : a), 'trainNs');
      for (let index = this.#stretches.length - 2; excessNs > 0 && index >= 0; index -= 1) {
        const earlier = this.#stretches[index]?.executors.get(key);
        if (earlier === undefined) break;
        const roomNs = earlier.durationNs - accountedNs(earlier);
        const movedNs = Math.min(excessNs, roomNs, times[amount]);
        if (movedNs <= 0) break;
        earlier[amount] += movedNs;
        times[amount] -= movedNs;
        excessNs -= movedNs;
      }
    }
  }
}

function accountedNs(times: Times): number {
  return exclusive.reduce((sum, amount) => sum + times[amount], 0);
}

function add(executors: Map<string, Times>, times: ExecutorTimes): void {
  const key = `${times.role} ${times.device}`;
  const known = executors.get(key);
  if (known === undefined) {
    executors.set(key, { ...times });
    return;
  }
  const { role, device, cacheBorder, cacheGivenUpRows, ...amounts } = times;
  for (const amount of Object.keys(amounts) as Amount[]) known[amount] += times[amount];
  Object.assign(known, { cacheBorder, cacheGivenUpRows });
}
