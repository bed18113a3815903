/** The face of the room: what is made of a dataset before executors start, and kept for others. */

export { DataWitness } from './data-witness.ts';
export { HostTier, rowsKeptBy } from './host-tier.ts';
export { type HotOrder, prepareFavoured, prepareHotOrder } from './hot-order.ts';
export {
  type AttemptDataset,
  DatasetLoad,
  type DeriveGraph,
  type FeaturesRequest,
  type LoadedDataset,
  loadDataset,
  loadFeatures,
  loadTypedRows,
} from './load-dataset.ts';
export {
  graphKeyOf,
  type MessageGraph,
  prepareMessageGraph,
  splitOfLinks,
  walksOf,
} from './message-graph.ts';
export { ModelProbe } from './model-probe.ts';
export type {
  GivenMoments,
  PropagationDevice,
  PropagationEnd,
  PropagationMaker,
  PropagationRequest,
} from './propagation-types.ts';
export { idOf, Propagations, tokensOf } from './propagations.ts';
export { rowSource, trainedSource } from './row-source.ts';
export {
  foldMoments,
  foldProblem,
  type Moments,
  type MomentsFile,
  momentsPath,
  readMoments,
} from './standardization.ts';
export { type SharedTopology, Topologies } from './topologies.ts';
export { typedRowFiles } from './typed-rows.ts';
