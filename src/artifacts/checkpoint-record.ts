import { GnndError, messageOf } from '../base/errors.ts';
import type { CheckpointFacts, CheckpointKind, CheckpointLook } from '../files/checkpoint.ts';
import type { EpochReport, JobRecord, JobResult } from '../records/job-record.ts';
import type { Metric } from '../spec/metrics.ts';
import { reads } from '../spec/spec-parts.ts';
import type { Store } from '../store/store.ts';

/** A checkpoint as others see it, and the job that left it. */

export interface CheckpointRecord {
  readonly jobId: string;
  readonly kind: CheckpointKind;
  readonly epoch: number;
  readonly valAccuracy: number;
  readonly testAccuracy: number;
  readonly valMetrics: readonly Metric[];
  readonly testMetrics: readonly Metric[];
  readonly file: CheckpointFacts;
}

/** A job that SUCCEEDED, with the report of the last epoch it trained. */
export interface TrainedJob {
  readonly job: JobRecord;
  readonly result: JobResult;
  readonly last: EpochReport | null;
}

/** Throws JOB_NOT_FOUND, JOB_STATE_CONFLICT. */
export function trainedJob(store: Store, id: string): TrainedJob {
  const resource = `jobs/${id}`;
  const job = store.getJob(id);
  if (job === null) throw new GnndError('JOB_NOT_FOUND', `there is no job ${id}`, { resource });
  const { result, state } = job;
  if (!reads(job.effectiveSpec, 'training')) {
    const message = `job ${id} is an inference: it has predictions, and no checkpoint`;
    throw new GnndError('JOB_STATE_CONFLICT', message, { resource });
  }
  if (result !== null && state === 'SUCCEEDED') {
    const attempt = job.attempts.at(-1)?.number ?? 0;
    const [last] = store.epochs(id, attempt, Math.max(0, result.epochs - 1), 1);
    return { job, result, last: last?.report ?? null };
  }
  const message = `job ${id} is ${state}: only a job that SUCCEEDED has checkpoints`;
  throw new GnndError('JOB_STATE_CONFLICT', message, { resource });
}

/** Reads a file of the job's checkpoint; what goes wrong is CHECKPOINT_CORRUPT. */
export async function read<T>(
  { job, result }: TrainedJob,
  kind: CheckpointKind,
  reader: (folder: string, kind: CheckpointKind) => Promise<T>,
): Promise<T> {
  return await reader(result.checkpointDir, kind).catch((cause: unknown) => {
    throw corrupt(job, cause);
  });
}

export async function recordOf(found: TrainedJob, kind: CheckpointKind, look: CheckpointLook) {
  return recordOfFile(found, kind, await read(found, kind, look));
}

export function recordOfFile(
  { job, result, last }: TrainedJob,
  kind: CheckpointKind,
  { path, size, sha256, parametersSha256, model, task, featureNames, tensors }: CheckpointFacts,
): CheckpointRecord {
  const accuracies =
    kind === 'BEST'
      ? {
          epoch: result.bestEpoch,
          valAccuracy: result.bestValAccuracy,
          testAccuracy: result.testAccuracyBest,
          valMetrics: result.bestValMetrics,
          testMetrics: result.testMetricsBest,
        }
      : {
          epoch: last?.epoch ?? 0,
          valAccuracy: last?.valAccuracy ?? 0,
          testAccuracy: result.testAccuracyLast,
          valMetrics: last?.valMetrics ?? [],
          testMetrics: result.testMetricsLast,
        };
  const what = { model, task, featureNames, tensors };
  const file = { path, size, sha256, parametersSha256, ...what };
  return { jobId: job.id, kind, ...accuracies, file };
}

export function corrupt(job: JobRecord, cause: unknown): GnndError {
  const details = { resource: `jobs/${job.id}`, cause };
  return new GnndError('CHECKPOINT_CORRUPT', messageOf(cause), details);
}
