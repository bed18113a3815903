import type { EvaluationMethodJson } from '../api/gen/gnnd/v1/evaluation_pb.ts';
import type { CachePolicyJson, StandardizeJson } from '../api/gen/gnnd/v1/features_pb.ts';
import type { JobSpecJson, JobSpec as JobSpecMessage } from '../api/gen/gnnd/v1/job_spec_pb.ts';
import type { MatrixLibraryJson, PrecisionJson } from '../api/gen/gnnd/v1/training_pb.ts';

/**
 * The job spec as the daemon works with it: the message of `proto/gnnd/v1/job_spec.proto` as plain
 * values. Enums are their short names, 64-bit sizes and times are numbers, the random seed is a
 * decimal string. What each field means stands there.
 */

/** `GCN` of `MODEL_TYPE_GCN`: without what all names of the enum begin with. */
type ShortName<
  Name extends string,
  Prefix extends string = PrefixOf<Name>,
> = Name extends `${Prefix}_${infer Short}` ? Exclude<Short, 'UNSPECIFIED'> : never;
type PrefixOf<Name extends string> = Name extends `${infer Prefix}_UNSPECIFIED` ? Prefix : never;

/** A field's value, from its type in messages and from that in proto JSON, which names enums. */
type Plain<Message, Json> = [Message] extends [bigint]
  ? number
  : [Message] extends [number]
    ? [Json] extends [string]
      ? ShortName<Json>
      : number
    : [Message] extends [string | boolean]
      ? Message
      : [Message, Json] extends [(infer M)[], (infer J)[]]
        ? readonly Plain<M, J>[]
        : PlainMembers<Message, Json>;

type PlainMembers<Message, Json> = {
  readonly [K in keyof Json & keyof Message]-?: K extends 'randomSeed'
    ? string // All 64 bits of it count.
    : Plain<NonNullable<Message[K]>, NonNullable<Json[K]>>;
};

type Optional<T> = T extends readonly unknown[]
  ? T
  : T extends object
    ? { readonly [K in keyof T]?: Optional<T[K]> | undefined }
    : T;

type Mutable<T> = T extends readonly unknown[]
  ? T
  : T extends object
    ? { -readonly [K in keyof T]: Mutable<T[K]> }
    : T;

type AnySpec = PlainMembers<JobSpecMessage, JobSpecJson>;

export type EvaluationMethod = Exclude<ShortName<EvaluationMethodJson>, 'AUTO'>;
export type Standardize = Exclude<ShortName<StandardizeJson>, 'AUTO'>;
export type Precision = Exclude<ShortName<PrecisionJson>, 'AUTO'>;
export type MatrixLibrary = ShortName<MatrixLibraryJson>;
export type CachePolicy = ShortName<CachePolicyJson>;

/** A spec with every default filled in; from then on it never changes. */
export type JobSpec = AnySpec & {
  readonly evaluation: { readonly method: EvaluationMethod };
  readonly features: { readonly standardize: Standardize };
  readonly training: { readonly precision: Precision };
};

/** A spec as a user sent it: any field may be missing. */
export type JobSpecInput = Optional<AnySpec>;

/** A spec that is being resolved. */
export type SpecDraft = Mutable<AnySpec>;

export type ModelType = JobSpec['model']['type'];
export type LrScheduleType = JobSpec['training']['lrSchedule']['type'];
export type DatasetTask = JobSpec['inference']['task'];

/** A file of the user's that executors load: by its path, frozen by its digest (hex). */
export type PluginFile = JobSpec['model']['script'];
export type Determinism = JobSpec['training']['determinism'];
export type PlacementPolicy = JobSpec['placement']['policy'];
export type StandbyPolicy = JobSpec['placement']['standby'];
