/**
 * Everything the addons export: the only declaration of native functions, made from the tables by
 * which the addons read and write (`npm run build:contract`), a file a subject.
 * Validation is TypeScript's: a wrong field here is a bug and throws a TypeError with its path.
 * Native failures throw, or reject with, an Error whose `code` is a NativeCode.
 * Numbers are integers up to 2^53 - 1 unless named a share, probability or rate.
 */

import type { CacheFunctions } from './gen/cache.ts';
import type { DatasetFunctions } from './gen/dataset.ts';
import type { HostFunctions } from './gen/host.ts';
import type { LenderFunctions } from './gen/lender.ts';
import type { ModelFunctions } from './gen/model.ts';
import type { PredictFunctions } from './gen/predict.ts';
import type { PropagationFunctions } from './gen/propagation.ts';
import type { SamplerFunctions } from './gen/sampler.ts';
import type { SegmentFunctions } from './gen/segment.ts';
import type { TableFunctions } from './gen/table.ts';
import type { TrainerFunctions } from './gen/trainer.ts';

export type * from './gen/cache.ts';
export type * from './gen/dataset.ts';
export type * from './gen/host.ts';
export type * from './gen/lender.ts';
export type * from './gen/model.ts';
export type * from './gen/predict.ts';
export type * from './gen/propagation.ts';
export type * from './gen/sampler.ts';
export * from './gen/segment.ts';
export type * from './gen/table.ts';
export type * from './gen/trainer.ts';

/** gnnd_core.node: no torch, no CUDA; for the daemon and Samplers. */
export interface CoreAddon
  extends HostFunctions,
    DatasetFunctions,
    TableFunctions,
    ModelFunctions,
    SegmentFunctions,
    SamplerFunctions,
    LenderFunctions,
    CacheFunctions,
    PropagationFunctions {}

/** gnnd_train.node: libtorch; for Trainers. */
export interface TrainAddon extends TrainerFunctions, PredictFunctions {}
