import type { ImportChoices } from '../records/dataset-record.ts';
import type { ArrayCopier } from './copy-array.ts';
import type { DatasetFacts, DatasetWriter } from './dataset-writer.ts';
import type { NativeSorter } from './edge-sorter.ts';
import type { NativeIds } from './node-ids.ts';
import type { NoticeList } from './notices.ts';
import type { ProblemList } from './problems.ts';
import type { TextReader } from './text-batches.ts';

/** Tells how far an import is: 0 to 1, and what it is doing, for people. */
export type ReportProgress = (fraction: number, message: string) => void;

/** What importers need of native code. */
export type ImportNative = ArrayCopier & TextReader & NativeSorter & NativeIds;

/** What an importer works with. */
export interface ImportContext extends ImportChoices {
  /** A file or folder on this host. */
  readonly source: string;
  readonly native: ImportNative;
  readonly writer: DatasetWriter;
  /** Files whose elements were found right as they passed by: the importer adds them. */
  readonly checked: Set<string>;
  /** How people call what is stored under a name, as `x.npy` for `features.npy`. */
  readonly called: Map<string, string>;
  /** Everything wrong with the source; when any is added the import fails. */
  readonly problems: ProblemList;
  /** What a user should know although nothing is wrong. */
  readonly notices: NoticeList;
  readonly progress: ReportProgress;
  /** Abort rejects with the signal's reason. */
  readonly signal: AbortSignal;
}

/**
 * Reads the source and writes the arrays. May return after it added problems (the caller checks),
 * and throws ImportFailure for what makes it pointless to go on.
 */
export type Importer = (context: ImportContext) => Promise<DatasetFacts>;

/** The same import, whose progress is the part between two shares of the whole. */
export function part(context: ImportContext, from: number, to: number): ImportContext {
  const progress: ReportProgress = (fraction, message) =>
    context.progress(from + (to - from) * fraction, message);
  return { ...context, progress };
}
