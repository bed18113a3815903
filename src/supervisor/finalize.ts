import { sleep } from '../base/clock.ts';
import { isScarcity } from '../base/descriptors.ts';
import { messageOf } from '../base/errors.ts';
import { featureNamesOf } from '../datasets/feature-names.ts';
import { writeCheckpoint } from '../files/checkpoint.ts';
import { type CoreAddon, counters, type SegmentHandle } from '../native/contract.ts';
import type { JobLayout } from '../plan/job-layout.ts';
import type { JobResult } from '../records/job-record.ts';
import { infers } from '../spec/rules/inference.ts';
import type { AttemptContext, AttemptInput } from './attempt-types.ts';
import type { EpochReports } from './epoch-reports.ts';
import type { JobInference } from './job-inference.ts';
import { accuracyIn, testMetricsOf } from './progress.ts';

/** The end of a job's training: its final model, made durable. */

export interface CheckpointCounts {
  readonly ok: number;
  readonly failed: number;
  /** Of the newest; 0 before the first. */
  readonly bytes: number;
  readonly lastSuccessAtMs: number | null;
}

export interface FinishOptions {
  readonly segment: SegmentHandle;
  readonly layout: JobLayout;
  readonly reports: EpochReports;
  /** Of a job that infers. */
  readonly inference: Pick<JobInference, 'publish' | 'stop'>;
  /** Rejects where the dataset is not any more what it was as the job began. */
  readonly checkDataset: () => Promise<void>;
}

/** Of a segment that is complete: writes its model, until that is durable or nobody wants it. */
export class Finish {
  readonly #context: AttemptContext;
  readonly #options: FinishOptions;
  /** Ends waiting for a disk that is full. */
  readonly #stop = new AbortController();
  #writing: Promise<void> | null = null;
  #counts: CheckpointCounts = { ok: 0, failed: 0, bytes: 0, lastSuccessAtMs: null };

  constructor(context: AttemptContext, options: FinishOptions) {
    this.#context = context;
    this.#options = options;
  }

  /** Checkpoints written. */
  get counts(): CheckpointCounts {
    return this.#counts;
  }

  /** With the first call, all epochs having been reported. Rejects with what cannot be written. */
  async once(): Promise<void> {
    if (this.#writing !== null) return;
    this.#writing = this.#write();
    await this.#writing;
  }

  /** Resolves when nothing is being written: the model is durable, or its failure was told. */
  async stop(): Promise<void> {
    this.#stop.abort();
    // Nobody waits for hours of writing that are not wanted any more.
    await this.#options.inference.stop();
    await this.#writing?.catch(() => {});
  }

  async #write(): Promise<void> {
    const { native, clock, log, emit, input } = this.#context;
    const { segment, layout, reports, inference, checkDataset } = this.#options;
    const { signal } = this.#stop;
    emit({ kind: 'phase', phase: 'FINALIZING' });
    await checkDataset();
    if (infers(input.spec)) log.info('inference.predicted', workOf(native, segment));
    const model = infers(input.spec)
      ? finalPredictionsOf(inference)
      : finalModelOf({ native, segment }, layout, reports, input);
    let startMs = 0;
    const write = async () => {
      startMs = clock.monotonicMs();
      try {
        return await model.write();
      } catch (error) {
        this.#counts = { ...this.#counts, failed: this.#counts.failed + 1 };
        throw error;
      }
    };
    const result = await written(write, {
      onFailed: (error) => log.warn('checkpoint.failed', { error: messageOf(error) }),
      sleep: (delayMs) => sleep(delayMs, signal).catch(() => {}),
      isStopped: () => signal.aborted,
    });
    if (result === null) return;
    const lastSuccessAtMs = clock.wallMs();
    this.#counts = { ...this.#counts, ok: 1, bytes: model.bytes, lastSuccessAtMs };
    emit({ kind: 'completed', result, checkpointMs: clock.monotonicMs() - startMs });
  }
}

interface FinalModel {
  /** Of both parameter vectors. */
  readonly bytes: number;
  /** Writes the checkpoint durably. Throws a CheckpointError, and then nothing of it is left. */
  readonly write: () => Promise<JobResult>;
}

/** What this attempt computed; what an earlier one did is not among it. */
function workOf(native: CoreAddon, segment: SegmentHandle) {
  const { executors } = native.segmentSnapshot(segment);
  const total = (counter: number) =>
    executors.reduce((sum, executor) => sum + (executor.counters[counter] ?? 0), 0);
  return { chunks: total(counters.evaluationChunks), rows: total(counters.evaluationRows) };
}

/** Of a segment all of whose chunks are done. */
function finalPredictionsOf(inference: Pick<JobInference, 'publish'>): FinalModel {
  const write = async () => {
    try {
      return await inference.publish();
    } catch (error) {
      throw new CheckpointError(`writing predictions: ${messageOf(error)}`, error);
    }
  };
  return { bytes: 0, write };
}

export class CheckpointError extends Error {
  constructor(message: string, cause: unknown) {
    super(message, { cause });
  }
}

/** Of a segment that is complete, and all epochs of which were reported. */
function finalModelOf(
  { native, segment }: { readonly native: CoreAddon; readonly segment: SegmentHandle },
  { manifest, model }: Pick<JobLayout, 'manifest' | 'model'>,
  reports: EpochReports,
  input: AttemptInput,
): FinalModel {
  const last = native.segmentParameters(segment, 'LAST');
  const best = native.segmentParameters(segment, 'BEST');
  const bestReport = reports.again(segment, best.at);
  if (bestReport === null) throw new Error('the job is complete, but its epochs are not');
  const testMetricsAt = (epoch: number) => testMetricsOf(native.segmentEpoch(segment, epoch));
  const testMetricsLast = testMetricsAt(reports.count - 1);
  const testMetricsBest = testMetricsAt(best.at);
  const metrics = { testMetricsLast, testMetricsBest, bestValMetrics: bestReport.valMetrics };
  const { jobId: job, uid, spec, datasetDigest, checkpointFolder } = input;
  const accuracies = {
    testAccuracyLast: accuracyIn(testMetricsLast) ?? 0,
    testAccuracyBest: accuracyIn(testMetricsBest) ?? 0,
    bestEpoch: best.at,
    bestValAccuracy: bestReport.valAccuracy ?? 0,
    epochs: reports.count,
  };
  const { task } = input.dataset.counts;
  const featureNames = featureNamesOf(input.dataset.folder);
  const what = { datasetDigest, task, featureNames, spec };
  const facts = { job, uid, ...what, ...accuracies, ...metrics };
  return {
    bytes: 2 * last.data.byteLength,
    write: async () => {
      try {
        const files = { last: last.data, best: best.data, model, facts };
        const digests = await writeCheckpoint(checkpointFolder, manifest, files);
        const { parametersSha256 } = digests.last;
        return { parametersSha256, checkpointDir: checkpointFolder, ...accuracies, ...metrics };
      } catch (error) {
        throw new CheckpointError(`writing ${checkpointFolder}: ${messageOf(error)}`, error);
      }
    },
  };
}

export interface Retries {
  /** Told of each failure that is followed by another try. */
  readonly onFailed: (error: unknown) => void;
  readonly sleep: (delayMs: number) => Promise<void>;
  /** Asked after each wait; true ends it without a result. */
  readonly isStopped: () => boolean;
}

/** Ten minutes: a disk that is full for a while must not cost the whole training. */
export const checkpointDelaysMs = [1, 2, 4, 8, 15, ...Array.from({ length: 19 }, () => 30)].map(
  (seconds) => seconds * 1000,
);

/** Whether a file could not be written for a reason that passes, such as a full disk. */
function mayPass(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    const code = 'code' in at ? String(at.code) : '';
    if (isScarcity(at) || ['ENOSPC', 'EDQUOT', 'EIO', 'EROFS'].includes(code)) return true;
  }
  return false;
}

/**
 * What `write` answered; null when it was stopped. Throws what the last try threw, or at once what
 * would be no other at the next try.
 */
export async function written<T>(write: () => Promise<T>, retries: Retries): Promise<T | null> {
  for (const delayMs of checkpointDelaysMs) {
    try {
      return await write();
    } catch (error) {
      if (!mayPass(error)) throw error;
      retries.onFailed(error);
    }
    await retries.sleep(delayMs);
    if (retries.isStopped()) return null;
  }
  return await write();
}
