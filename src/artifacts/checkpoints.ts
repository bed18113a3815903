import { checkpointFacts, createCheckpointLook } from '../files/checkpoint.ts';
import { poolTask } from '../pool/pool.ts';
import { type CheckpointRecord, recordOf, trainedJob } from './checkpoint-record.ts';
import { createExport, type Export, type ExportsOptions } from './exports.ts';
import { type FilePart, predictionFiles } from './predictions.ts';

export type { CheckpointRecord } from './checkpoint-record.ts';
export type { ExportPart } from './export-files.ts';
export type { ExportRequest } from './exports.ts';
export type { FilePart } from './predictions.ts';

/** What jobs leave: their parameters, and what those predict. */

export interface Checkpoints {
  /** The best epoch's, then the last one's. Throws JOB_NOT_FOUND, JOB_STATE_CONFLICT. */
  list(jobId: string): Promise<readonly CheckpointRecord[]>;
  readonly export: Export;
  /** The files of an inference (predictions.ts). */
  predictions(jobId: string): AsyncGenerator<FilePart, void, void>;
}

const looking = poolTask(import.meta.url, '../files/checkpoint.ts', 'LONG', checkpointFacts);

export function createCheckpoints(options: ExportsOptions): Checkpoints {
  const look = createCheckpointLook((folder, kind) => options.pool.run(looking, { folder, kind }));
  return {
    async list(jobId) {
      const found = trainedJob(options.store, jobId);
      const kinds = ['BEST', 'LAST'] as const;
      return await Promise.all(kinds.map((kind) => recordOf(found, kind, look)));
    },
    export: createExport(options),
    predictions: (jobId) => predictionFiles(options.store, jobId),
  };
}
