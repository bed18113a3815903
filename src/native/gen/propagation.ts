// Made by "npm run build:contract" from the tables in native/node.

import type { DatasetCounts, DatasetLocation } from './dataset.ts';
import type { DeviceOptions } from './sampler.ts';

export type PropagationKind = 'SYMMETRIC' | 'ROW' | 'PPR' | 'HEAT';

export type RowDtype = 'FLOAT32' | 'FLOAT16' | 'BFLOAT16';

export interface PropagationOperator {
  readonly kind: PropagationKind;
  readonly selfLoops: boolean;
  /** Read for PPR. */
  readonly alpha: number;
  /** Read for HEAT. */
  readonly time: number;
  /** Terms of PPR and HEAT, the identity included. */
  readonly terms: number;
}

export interface PropagationPlan {
  readonly operators: readonly PropagationOperator[];
  readonly hops: number;
  readonly rowDtype: RowDtype;
  readonly randomSeed: bigint;
  /** False: rows in the order of node ids. */
  readonly permuted: boolean;
  /** Each column of each hop, over all nodes. */
  readonly standardize: boolean;
  /** Rows of all nodes in the order of ids, not of labelled nodes alone. */
  readonly allNodes: boolean;
}

export interface PropagationSizes {
  /** Rows of each file. */
  readonly rows: number;
  readonly fileBytes: number;
  /** Most bytes on disk while the files are made. */
  readonly peakBytes: number;
  readonly memoryBytes: number;
  readonly blockColumns: number;
  readonly blocks: number;
  /** Passes over the topology. */
  readonly steps: number;
}

export interface PropagateOptions {
  readonly dataset: DatasetLocation;
  readonly plan: PropagationPlan;
  /** An existing folder for this plan and dataset alone. */
  readonly folder: string;
  /** Folder of a propagation by whose moments columns are standardised; empty: their own. */
  readonly momentsFrom: string;
  /** Memory for columns of all nodes. */
  readonly memoryBytes: number;
  readonly threads: number;
  /** The device that multiplies; no plug-in: the host's cores. */
  readonly device: DeviceOptions;
}

export interface DigestedFile {
  readonly name: string;
  readonly bytes: number;
  readonly sha256: string;
}

export interface PropagateReport {
  readonly files: readonly DigestedFile[];
  readonly rows: number;
  /** Edges times columns that this run added. */
  readonly edgeColumns: number;
  /** The part of them that a device added. */
  readonly deviceEdgeColumns: number;
  /** Why a device was given up; empty: it was not. */
  readonly deviceProblem: string;
  readonly memoryBytes: number;
  readonly blockColumns: number;
  readonly blocks: number;
}

export interface PropagationProgress {
  /** Edges times columns. */
  readonly done: number;
  /** The part of them that was found done. */
  readonly resumed: number;
  /** 0: not known yet. */
  readonly total: number;
  readonly op: number;
  readonly hop: number;
  readonly column: number;
  /** Only digests are left. */
  readonly finishing: boolean;
}

/** How far a propagation is. */
export type PropagationHandle = { readonly propagation: unique symbol };

export interface PropagationFunctions {
  propagationSizes(counts: DatasetCounts, plan: PropagationPlan, memoryBytes: number): PropagationSizes;
  /** For one run. */
  propagationOpen(): PropagationHandle;
  /** Makes what is missing in the folder. */
  propagationRun(handle: PropagationHandle, options: PropagateOptions): Promise<PropagateReport>;
  propagationProgress(handle: PropagationHandle): PropagationProgress;
}
