import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { CrewDevice, Seat, StandbyRoom } from '../devices/seat.ts';
import type { CoreAddon, DatasetLocation } from '../native/contract.ts';
import type { BatchTimes } from '../records/batch-times.ts';
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
  /** The number as stored: 1, 2, … without a gap. */
  readonly number: number;
  /** The scheduler's number, which counts attempts that could not be stored, too. */
  readonly ordinal: number;
  /** Attempts that may still fail while running, this one included. */
  readonly failuresLeft: number;
  readonly spec: JobSpec;
  readonly dataset: Pick<DatasetLocation, 'folder' | 'counts' | 'schema'>;
  readonly datasetDigest: string;
  /** Memory that this daemon and its children may use: the host's, or a limit. */
  readonly hostBytes: number;
  /** Devices in the order granted. */
  readonly devices: readonly CrewDevice[];
  /** Logs of this attempt. */
  readonly logFolder: string;
  /** File of what the attempt's executors did over time, written when it is over. */
  readonly timelineFile: string;
  /** The job's checkpoint. */
  readonly checkpointFolder: string;
  /** Folder of the job, which holds the folders below. */
  readonly jobFolder: string;
  /** Where the job's images are, from the newest of which it goes on. */
  readonly imagesFolder: string;
  /** Epochs that attempts before this one have reported. */
  readonly epochsReported: number;
  /** Scales that followed those epochs, where locality adapts: they follow them again. */
  readonly scalesRecorded: readonly FollowingScale[];
  /** Derived files, keyed by their inputs. */
  readonly cacheFolder: string;
  /** Folder of what an inference has done so far; other jobs have none. */
  readonly inferenceFolder: string;
  /** Folder of an inference's predictions, which appears once it is complete. */
  readonly predictionsFolder: string;
  /** The dataset that an inference's model was trained on; null where there is none. */
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

/** Parts of an attempt's phases that take time of their own, for traces. */
export type AttemptPart =
  | 'read dataset'
  | 'split links'
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
  /** A part of a phase ended, which began `ms` ago. */
  | { readonly kind: 'partEnded'; readonly part: AttemptPart; readonly ms: number }
  | {
      readonly kind: 'calibrated';
      readonly timings: MeasuredTimings;
      /** M, and what the queue will hold. */
      readonly epoch: { readonly batches: number; readonly slots: number };
      /** Room for standby Trainers on devices with memory of their own. */
      readonly standbyRoom: readonly StandbyRoom[];
      /** For each number of Samplers the devices whose links Trainers miss least. */
      readonly samplerSets: readonly (readonly string[])[];
    }
  /** The attempt resumes from an image; so many epochs were reported before. */
  | { readonly kind: 'resumed'; readonly point: ResumePoint; readonly epochs: number }
  /** An image could not be written, after one that could; null: images can be written again. */
  | { readonly kind: 'imageTried'; readonly error: string | null }
  /** One of the plan's sentences about caches has changed. */
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
  /** Reports in order, at least one. */
  | {
      readonly kind: 'epochsEnded';
      readonly reports: readonly EpochReport[];
      /** Timings of the epochs; null while history is filling, because they still change. */
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
  readonly timings: BatchTimes;
}

/** Facts that the plan view shows beside the split. */
export interface LaunchFacts {
  readonly queueCapacity: number;
  readonly slotBytes: number;
  readonly parameterCount: number;
  readonly cache: CachePlan;
}
