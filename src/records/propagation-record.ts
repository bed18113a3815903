import type { JobSpec } from '../spec/job-spec.ts';

/** The nouns of propagated features (docs/formats/propagation.md); data only. */

/** What is propagated, with every default filled in. */
export type PropagationSpec = JobSpec['propagation'];

/** All that decides the files. */
export interface PropagationSource {
  readonly dataset: string;
  /** SHA-256 of dataset.json. */
  readonly datasetDigest: string;
  readonly propagation: PropagationSpec;
  readonly standardize: boolean;
  /** Rows of all nodes, in the order of ids: what inference takes. */
  readonly allNodes?: boolean;
  /** What tells the graph of messages of a job of links from the dataset's own. */
  readonly graph?: string;
  /** Digest of another dataset's moments that features and rows are standardised by. */
  readonly moments?: string;
}

/** `propagation.json` of a propagation's folder; the last file that is written there. */
export interface PropagationManifest {
  readonly format: 'gnnd-propagation';
  readonly version: 1;
  readonly source: PropagationSource;
  /** Rows of each file: those of training, validation and test nodes, one after the other. */
  readonly rows: number;
  readonly split: { readonly train: number; readonly val: number; readonly test: number };
  readonly num_features: number;
  readonly num_classes: number;
  readonly files: readonly {
    readonly name: string;
    readonly bytes: number;
    readonly sha256: string;
  }[];
}

/** A propagation that exists, complete or not, or one that would be made. */
export interface PropagationRecord {
  readonly id: string;
  readonly source: PropagationSource;
  readonly complete: boolean;
  readonly rows: number;
  /** Size of the files, or the size that they will have. */
  readonly bytes: number;
  readonly peakBytes: number;
  readonly memoryBytes: number;
  readonly blockColumns: number;
  readonly path: string;
  /** SHA-256 of propagation.json; empty until complete. */
  readonly digest: string;
}
