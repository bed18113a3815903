import type { Seat } from '../devices/seat.ts';
import type { SegmentSnapshot } from '../native/contract.ts';
import type {
  CachePlan,
  EpochReport,
  JobPhase,
  JobProgress,
  JobResult,
} from '../records/job-record.ts';
import type { Metric } from '../spec/metrics.ts';
import type { AttemptEvent, LaunchFacts } from './attempt-types.ts';
import type { Crew, CrewParts } from './crew.ts';
import type { Look } from './look.ts';

/**
 * The work of an attempt, as the supervisor sees it: whatever differs between kinds of jobs is
 * asked here (src/work), while children are spawned, watched and reaped in the same way for all.
 */
export interface AttemptWork {
  /** Plan of the rows that devices keep, as far as it is known. */
  readonly cachePlan: CachePlan;
  /** Makes all that executors need before any of them starts; false when it was stopped. */
  prepare(isStopped: () => boolean): Promise<boolean>;
  /** The parts that a trial's crew of so many executors shares. */
  trial(executorCount: number): CrewParts;
  /** Notes what a trial of so many executors measured; returns what the scheduler is told. */
  tried(snapshot: SegmentSnapshot, executorCount: number): Omit<Calibration, 'kind'>;
  /** The parts that the crew of a run on these seats shares, and the facts told to people. */
  launch(executors: readonly Seat[]): { readonly parts: CrewParts; readonly facts: LaunchFacts };
  /** The run of the crew that was launched, before any executor is spawned. */
  run(crew: RunningCrew): RunningWork;
  /** Resolves when no process of this work is left. */
  stop(): Promise<void>;
  close(): void;
}

export type Calibration = Extract<AttemptEvent, { readonly kind: 'calibrated' }>;
export type RunningCrew = Pick<Crew, 'segment' | 'pids' | 'look'>;

/** The work of an attempt from its launch on. */
export interface RunningWork {
  /** The phase that people are shown while executors work. */
  readonly phase: JobPhase;
  /** Epochs that ended: their number, the last report, and the metrics of the last evaluation. */
  readonly epochs: EndedEpochs;
  /** Goes on from what an earlier attempt left, before any executor is spawned. */
  resume(): Promise<void>;
  /** Executors work from this look on. */
  begin(look: Look): void;
  /** Reports what a look shows. */
  look(look: Look, hasBegun: boolean): Told;
  /** Where the work stands. A job that awaits its user makes no progress, and is not stalled. */
  standing(snapshot: SegmentSnapshot): Standing;
  /** Units of work that are done: a number that grows while the job goes on. */
  done(snapshot: SegmentSnapshot): number;
  progress(facts: ProgressFacts): JobProgress;
  /** The work to be written for good, once the segment is complete and all was told. */
  final(): Promise<FinalWork>;
  /** Once no executor is left: writes down where the work stands, if that is worth it. */
  keep(isWorthIt: boolean): Promise<void>;
  /** Ends what is being written and not wanted any more. */
  stop(): Promise<void>;
}

export type Standing = 'WORKS' | 'AWAITS_USER' | 'COMPLETE';

/** Work that awaits nobody. */
export function standingOf({ complete }: SegmentSnapshot): Standing {
  return complete ? 'COMPLETE' : 'WORKS';
}

export interface EndedEpochs {
  readonly count: number;
  readonly last: EpochReport | null;
  readonly valMetrics: readonly Metric[];
}

export const noEpochs: EndedEpochs = { count: 0, last: null, valMetrics: [] };

export interface Told {
  /** Whether all that has ended was told. */
  readonly all: boolean;
  /** Milliseconds after which more may be told; null: nothing waits. */
  readonly againMs: number | null;
}

export interface ProgressFacts {
  /** About a second before `now`; null on the first look. */
  readonly before: Look | null;
  readonly now: Look;
  /** When executors began to work. */
  readonly startedMs: number;
}

export interface FinalWork {
  /** Bytes of what is written, as metrics count them. */
  readonly bytes: number;
  /** Writes the result durably. Throws a CheckpointError, and then nothing of it is left. */
  readonly write: () => Promise<JobResult>;
}
