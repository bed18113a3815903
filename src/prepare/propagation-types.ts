import type { Accelerator } from '../devices/seat.ts';
import type { DatasetLocation } from '../native/contract.ts';
import type { PropagationRecord, PropagationSource } from '../records/propagation-record.ts';
import type { TaskOptions } from '../supervisor/supervisor.ts';
import type { Moments, MomentsFile } from './standardization.ts';

/** What attempts and users ask of whoever makes propagations. */

export interface PropagationRequest {
  readonly source: PropagationSource;
  readonly dataset: Pick<DatasetLocation, 'folder' | 'counts' | 'schema'>;
  /** The graph that `source.graph` names; left out: the dataset's own. */
  readonly graph?: DatasetLocation;
  /** Memory for columns of all nodes. */
  readonly memoryBytes: number;
  /** Receives standardised features. */
  readonly derivedFolder: string;
  /** Files of the moments that `source.moments` names. */
  readonly given?: GivenMoments;
}

/** Moments of another dataset that features and rows are standardised by. */
export interface GivenMoments {
  /** Moments of the features; null where those are not standardised. */
  readonly features: MomentsFile | null;
  /** Folder of a file for each token, as a propagation has them; empty: rows are not. */
  readonly rowsFolder: string;
}

/** How far it is, and what it is doing, for people. */
export type PropagationWatch = (share: number, message: string) => void;

/** How a Propagator's work ended. */
export interface PropagationEnd {
  readonly outcome: 'COMPLETE' | 'FAILED';
  readonly seconds: number;
  /** Products of an operator and all columns; what an earlier run left is not among them. */
  readonly hops: number;
  /** Number of those products that devices with memory of their own computed. */
  readonly deviceHops: number;
  readonly bytes: number;
}

/** A device that multiplies in place of the host's cores. It decides no bit. */
export interface PropagationDevice {
  readonly accelerator: Accelerator;
  /** Most of the device's memory that may be used. */
  readonly budgetBytes: number;
}

export type PropagationTask = Omit<TaskOptions, 'topologyFd' | 'onProgress' | 'accelerator'> & {
  /** Unset: the host's cores. */
  readonly device?: PropagationDevice | undefined;
};

export interface PropagationMaker {
  /** The propagation that `make` makes or made. Throws SPEC_INVALID where columns have no room. */
  plan(request: PropagationRequest): PropagationRecord;
  /**
   * Makes what is missing of it, after whoever makes it now, and goes on where one ended before.
   * Rejects with STATE_DISK_FULL (what is complete stays), DATASET_CORRUPT, the signal's reason.
   */
  make(
    request: PropagationRequest,
    task: PropagationTask,
    watch: PropagationWatch,
  ): Promise<PropagationRecord>;
  /**
   * The folder of a complete one's rows, whose files hold what its manifest says; each file is read
   * once in a daemon's life. Rejects with DATASET_CORRUPT, which names the file and the remedy, and
   * with DATASET_CHANGED.
   */
  open(id: string, datasetDigest: string, task: PropagationTask): Promise<string>;
  /** Moments that each token's columns were standardised by, or null where they were not. */
  moments(
    source: PropagationSource,
    columns: number,
  ): Promise<readonly { readonly token: string; readonly moments: Moments }[] | null>;
  /** Keeps a propagation from being deleted until the returned function is called. */
  hold(id: string): () => void;
}
