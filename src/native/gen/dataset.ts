// Made by "npm run build:contract" from the tables in native/node.

export type FeatureDtype = 'float32' | 'float16';

export interface DatasetCounts {
  readonly numNodes: number;
  /** CSC entries. */
  readonly numEdges: number;
  readonly numFeatures: number;
  readonly numClasses: number;
  readonly train: number;
  readonly val: number;
  readonly test: number;
  /** Of features.npy; derived features are float32. */
  readonly featureDtype: FeatureDtype;
}

export interface DatasetLocation {
  readonly folder: string;
  readonly counts: DatasetCounts;
  /** Empty: features.npy of the folder. */
  readonly featuresPath: string;
}

export interface DatasetProblem {
  readonly path: string;
  readonly description: string;
}

export interface DatasetValidation {
  /** The first ones. */
  readonly problems: readonly DatasetProblem[];
  /** All of them. */
  readonly problemCount: number;
}

export interface DatasetFunctions {
  datasetValidate(folder: string, counts: DatasetCounts): Promise<DatasetValidation>;
  datasetStandardize(inputPath: string, outputPath: string): Promise<void>;
  /** An empty memfd, the caller's to close. */
  topologyReserve(): number;
  /** Seals it for all Samplers of the host; `alias`: to sample by edge weight. */
  topologyFill(fd: number, location: DatasetLocation, alias: boolean): Promise<void>;
}
