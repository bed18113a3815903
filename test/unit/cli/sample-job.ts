import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { ExecutorRole } from '../../../src/api/gen/gnnd/v1/executor_pb.ts';
import { type Job, JobPhase, JobSchema, JobState } from '../../../src/api/gen/gnnd/v1/job_pb.ts';
import { ModelType } from '../../../src/api/gen/gnnd/v1/model_pb.ts';
import { Reason } from '../../../src/api/gen/gnnd/v1/types_pb.ts';

/** When the sample job was created. */
export const startMs = Date.UTC(2026, 0, 2, 3, 4, 5);

/** A job in its fourth epoch, on two devices, with the fields of `change` in place of its own. */
export function sampleJob(change: MessageInitShape<typeof JobSchema> = {}): Job {
  const job = create(JobSchema, {
    name: 'jobs/npm-sage',
    effectiveSpec: {
      dataset: 'npm-deps-2016',
      model: { type: ModelType.GRAPHSAGE, hiddenDim: 128 },
      sampling: { fanouts: [10, 10] },
      training: { epochs: 10 },
      priority: 100,
    },
    state: JobState.RUNNING,
    phase: JobPhase.TRAINING,
    reason: Reason.NONE,
    createTime: timestampFromMs(startMs),
    startTime: timestampFromMs(startMs + 1000),
    attempts: [{ number: 1 }],
    revision: 7n,
    epochs: [1.9, 1.5, 1.2].map((loss, epoch) => ({
      epoch,
      loss,
      batches: 34n,
      valAccuracy: 0.6 + 0.04 * epoch,
      trainAccuracy: 0.5,
      durationMs: 5200n,
    })),
    numEpochs: 3,
    progress: {
      epoch: 3,
      epochs: 10,
      batchesCommitted: 13n,
      batchesPerEpoch: 34n,
      version: 115n,
      loss: 1.0234,
      valAccuracy: 0.68,
      seedsPerSecond: 6640,
      edgesPerSecond: 1_234_567,
      remainingMs: 72_000n,
      queueDepth: 5,
      queueCapacity: 8,
      executors: [
        { role: ExecutorRole.SAMPLER, device: 'cpu:0', busy: 0.82, batches: 123n, stage: 'SAMPLE' },
        { role: ExecutorRole.STANDBY, device: 'cpu:0', busy: 0, batches: 0n, stage: 'WAIT' },
        { role: ExecutorRole.TRAINER, device: 'cpu:1', busy: 0.97, batches: 115n, stage: 'TRAIN' },
      ],
    },
  });
  const changed = create(JobSchema, change);
  const names = Object.keys(change) as (keyof Job)[];
  return Object.assign(job, Object.fromEntries(names.map((name) => [name, changed[name]])));
}
