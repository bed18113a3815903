import type { DatasetRecord, ImportChoices, OperationRecord } from '../records/dataset-record.ts';
import {
  type Converted,
  type ConvertedFormat,
  type ConvertedOrigin,
  OtherFormat,
  type ReadFormat,
} from './converted-formats.ts';
import type { DatasetWritten } from './dataset-writer.ts';
import type { ReportProgress } from './import-context.ts';
import { ImportFailure } from './problems.ts';

/**
 * All that reads a user's data, as tasks: the daemon asks for them, a child process does them
 * (decision 0027), so that nothing a file can do reaches the daemon.
 */
export interface DataTasks {
  /** Makes a folder of arrays of what only Python reads. Throws ImportFailure for a bad source. */
  convert(source: SourceConversion, watch: TaskWatch): Promise<Converted>;
  /**
   * Makes the dataset's files in an empty folder. Throws ImportFailure for a bad source, and
   * OtherFormat for one that must be converted first.
   */
  importSource(source: SourceImport, watch: TaskWatch): Promise<DatasetWritten>;
  /** Compares checksums and checks every element. */
  check(dataset: DatasetCheck, watch: TaskWatch): Promise<Validation>;
}

export interface SourceConversion {
  readonly format: ConvertedFormat;
  /** A file or folder. */
  readonly source: string;
  /** The daemon's sources_dir, out of which nothing of the source leads; empty: there is none. */
  readonly root: string;
  /** Edges are kept as they are listed. */
  readonly directed: boolean;
  /** Receives the arrays; empty. */
  readonly folder: string;
}

export interface SourceImport {
  readonly choices: ImportChoices;
  readonly id: string;
  /** A file or folder. */
  readonly source: string;
  readonly format: ReadFormat;
  /** Origin of a source that was converted to the folder of arrays that is read. */
  readonly origin: ConvertedOrigin | null;
  /** The daemon's sources_dir, out of which nothing of the source leads; empty: there is none. */
  readonly root: string;
  /** Receives the dataset; the caller's to remove, also after a failure. */
  readonly folder: string;
}

export type DatasetCheck = Pick<DatasetRecord, 'path' | 'digest'>;

/** What a check found. */
export type Validation = NonNullable<OperationRecord['validation']>;

export interface TaskWatch {
  readonly progress: ReportProgress;
  /** Abort ends the task, whatever it waits for, and rejects with the signal's reason. */
  readonly signal: AbortSignal;
}

/** How an import ended, as plain data that crosses a channel. */
export type ImportOutcome =
  | { readonly kind: 'WRITTEN'; readonly written: DatasetWritten }
  | { readonly kind: 'OTHER_FORMAT'; readonly format: ConvertedFormat }
  | Pick<BadSource, 'kind' | 'problems' | 'problemCount'>
  | { readonly kind: 'DISK_FULL'; readonly message: string };

interface BadSource extends Pick<ImportFailure, 'problems' | 'problemCount'> {
  readonly kind: 'BAD_SOURCE';
}

/** Resolves also for failures that are no bug of ours. */
export async function outcomeOfImport(written: Promise<DatasetWritten>): Promise<ImportOutcome> {
  try {
    return { kind: 'WRITTEN', written: await written };
  } catch (error) {
    if (error instanceof OtherFormat) return { kind: 'OTHER_FORMAT', format: error.format };
    if (error instanceof ImportFailure) {
      const { problems, problemCount } = error;
      return { kind: 'BAD_SOURCE', problems, problemCount };
    }
    const code = error instanceof Error && 'code' in error ? error.code : null;
    if (code !== 'ENOSPC' && code !== 'EDQUOT') throw error;
    return { kind: 'DISK_FULL', message: (error as Error).message };
  }
}
