import type { JobProgress, JobRecord } from '../records/job-record.ts';
import type { EpochSlice } from './epoch-pages.ts';

interface JobShown {
  readonly revision: number;
  readonly job: JobRecord;
  /** That ended in its attempt. */
  readonly numEpochs: number;
  readonly progress: JobProgress | null;
}

export interface EpochsShown {
  readonly revision: number;
  readonly attempt: number;
  readonly epochs: readonly EpochSlice[];
}

/** One event of a watch, before it becomes a message. */
export type WatchEvent =
  | ({ readonly kind: 'SNAPSHOT' } & JobShown & EpochsShown)
  | ({ readonly kind: 'CHANGED' | 'PROGRESS' | 'DELETED' } & JobShown)
  | ({ readonly kind: 'EPOCHS' } & EpochsShown)
  | { readonly kind: 'BOOKMARK'; readonly revision: number };
