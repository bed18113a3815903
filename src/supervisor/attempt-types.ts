import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { CrewDevice, Seat, StandbyRoom } from '../devices/seat.ts';
import type { CoreAddon, DatasetCounts } from '../native/contract.ts';
import type {
  CachePlan,
  EpochReport,
  ExecutorExit,
  ExecutorRole,
  FollowingScale,
  JobPhase,
  JobResult,
  Reason,
  ResumePoint,
} from '../records/job-record.ts';
import type { JobSpec } from '../spec/job-spec.ts';
import type { ExecutorOutcome } from './exit-reason.ts';
import type { MeasuredTimings } from './timings.ts';

/** What an attempt is told and what it reports. */

export interface AttemptInput {
  readonly jobId: string;
  readonly uid: string;
  /** As stored: 1, 2, … without a gap. */
  readonly number: number;
  /** The scheduler's number of it, which counts attempts that could not be stored, too. */
  readonly ordinal: number;
  /** Attempts that may still fail while running, this one included. */
  readonly failuresLeft: number;
  readonly spec: JobSpec;
  readonly dataset: { readonly folder: string; readonly counts: DatasetCounts };
  readonly datasetDigest: string;
  /** What the host's memory is to this daemon. */
  readonly hostBytes: number;
  /** In the order granted. */
  readonly devices: readonly CrewDevice[];
  /** Logs of this attempt. */
  readonly logFolder: string;
  /** What its executors did over time, once it is over. */
  readonly timelineFile: string;
  /** The job's checkpoint. */
  readonly checkpointFolder: string;
  /** Of the job: where its parts below are. */
  readonly jobFolder: string;
  /** Where the job's images are, from the newest of which it goes on. */
  readonly imagesFolder: string;
  /** Epochs that attempts before this one have reported. */
  readonly epochsReported: number;
  /** By which those epochs were followed, where locality adapts: then they are so again. */
  readonly scalesRecorded: readonly FollowingScale[];
  /** Derived files, keyed by their inputs. */
  readonly cacheFolder: string;
  /** What an inference has done so far; of other jobs nothing. */
  readonly inferenceFolder: string;
  /** What it leaves: there once all of it is. */
  readonly predictionsFolder: string;
  /** Of an inference: the dataset that its model was trained on; null where there is none. */
  readonly trainedDataset: AttemptInput['dataset'] | null;
}

/** What an attempt and its parts work with. */
export interface AttemptContext {
  readonly input: AttemptInput;
  readonly native: CoreAddon;
  readonly log: Log;
  readonly clock: Clock;
  readonly emit: (event: AttemptEvent) => void;
}

/** What of an attempt's phases takes time of its own, for traces. */
export type AttemptPart =
  | 'read dataset'
  | 'propagate'
  | 'probe model'
  | 'list nodes'
  | 'pre-sample'
  | 'favour nodes'
  | 'pin rows';

/** What an attempt reports; times are the receiver's. */
export type AttemptEvent =
  | { readonly kind: 'phase'; readonly phase: JobPhase }
  | { readonly kind: 'prepared' }
  /** Something within a phase, which began so long ago. */
  | { readonly kind: 'partEnded'; readonly part: AttemptPart; readonly ms: number }
  | {
      readonly kind: 'calibrated';
      readonly timings: MeasuredTimings;
      /** M, and what the queue will hold. */
      readonly epoch: { readonly batches: number; readonly slots: number };
      /** Of devices with memory of their own. */
      readonly standbyRoom: readonly StandbyRoom[];
      /** By their number, the devices whose links Trainers miss least. */
      readonly samplerSets: readonly (readonly string[])[];
    }
  /** It goes on from an image; so many epochs were reported before. */
  | { readonly kind: 'resumed'; readonly point: ResumePoint; readonly epochs: number }
  /** An image could not be written, where the one before could; null: now they can again. */
  | { readonly kind: 'imageTried'; readonly error: string | null }
  /** What the plan says of caches has changed in one of its sentences. */
  | { readonly kind: 'cacheSeen'; readonly cache: CachePlan }
  | { readonly kind: 'executorSpawned'; readonly role: ExecutorRole }
  | { readonly kind: 'executorReady'; readonly executor: string }
  | {
      readonly kind: 'executorExited';
      readonly executor: string;
      readonly outcome: ExecutorOutcome | { readonly kind: 'UNKILLABLE'; readonly message: string };
      readonly exit: ExecutorExit;
    }
  | { readonly kind: 'progress'; readonly committedBatches: number }
  /** In order, at least one. */
  | {
      readonly kind: 'epochsEnded';
      readonly reports: readonly EpochReport[];
      /** Null while they are not yet what they will be: history is filling. */
      readonly timings: MeasuredTimings | null;
    }
  | { readonly kind: 'attemptFailed'; readonly reason: AttemptFailure; readonly message: string }
  /** The model is durable; `checkpointMs` is how long that took. */
  | { readonly kind: 'completed'; readonly result: JobResult; readonly checkpointMs: number }
  | { readonly kind: 'stopped' };

export type AttemptFailure = Extract<
  Reason,
  | 'SPEC_INVALID'
  | 'DATASET_CORRUPT'
  | 'PLAN_INFEASIBLE'
  | 'SHM_ALLOCATION_FAILED'
  | 'SHM_CORRUPTED'
  | 'CHECKPOINT_WRITE_FAILED'
  | 'EXECUTOR_STALLED'
  | 'EXECUTOR_CRASHED'
  | 'CHECKPOINT_CORRUPT'
  | 'NUMERIC_DIVERGENCE'
  | 'PLUGIN_FAILED'
  | 'DEVICE_UNAVAILABLE'
  | 'DEVICE_OUT_OF_MEMORY'
  | 'DEVICE_FAILED'
  | 'DEVICE_LOST'
  | 'INTERNAL'
>;

export interface LaunchPlan {
  readonly executors: readonly Seat[];
  readonly standby: 'AUTO' | 'OFF' | 'ALWAYS';
  /** T_s, T_t, T_t'; 0 = not measured. */
  readonly timings: Omit<MeasuredTimings, 'parts'>;
}

/** What the plan view shows beside the split. */
export interface LaunchFacts {
  readonly queueCapacity: number;
  readonly slotBytes: number;
  readonly parameterCount: number;
  readonly cache: CachePlan;
}
