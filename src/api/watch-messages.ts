import { create, toBinary } from '@bufbuild/protobuf';
import type { Jobs } from '../jobs/jobs.ts';
import type { JobProgress, JobRecord } from '../records/job-record.ts';
import { jobToProto } from './convert-job.ts';
import { createEpochPages, type EpochPages } from './epoch-pages.ts';
import { WatchJobResponseSchema, WatchType } from './gen/gnnd/v1/job_service_pb.ts';
import type { WatchEvent } from './watch-event.ts';

/**
 * What watches of one job have in common: the job as it is now, and messages as bytes. Each is made
 * once, however many watch: a message is a head of its own, and parts that all of them share.
 */
export interface WatchMessages {
  readonly epochs: EpochPages;
  /** The job as it is now. Throws JOB_NOT_FOUND. */
  current(id: string): CurrentJob;
  /** A WatchJobResponse. */
  encode(event: WatchEvent): Uint8Array;
}

export interface CurrentJob {
  readonly job: JobRecord;
  readonly numEpochs: number;
  readonly progress: JobProgress | null;
}

/** Bytes of jobs that are kept for the next watch: those of the latest events. */
const keptBytesMax = 4 * 1024 * 1024;

type JobEvent = Extract<WatchEvent, { readonly job: JobRecord }>;

/** Bytes, and what they depend on beside the revision; not the event, whose job is larger. */
interface Part {
  /** Which progress: by number, for the object keeps the job that it was told with. */
  readonly progress: number;
  readonly numEpochs: number;
  readonly reason: string;
  readonly message: string;
  readonly bytes: Uint8Array;
}

/** Memory of a part beside its bytes: its key and what it depends on. */
const partBytes = 1024;

export function createWatchMessages(jobs: Jobs): WatchMessages {
  const latest = new WeakMap<JobProgress, CurrentJob>();
  const parts = new Map<string, Part>();
  const numbers = new WeakMap<JobProgress, number>();
  let lastNumber = 0;
  let keptBytes = 0;

  /** 0: none. */
  const numberOf = (progress: JobProgress | null): number => {
    if (progress === null) return 0;
    const known = numbers.get(progress);
    if (known !== undefined) return known;
    lastNumber += 1;
    numbers.set(progress, lastNumber);
    return lastNumber;
  };

  const jobPart = (event: JobEvent): Uint8Array => {
    const { job } = event;
    const key = `${job.uid}/${job.revision}/${event.kind === 'PROGRESS' ? 'LIST' : 'FULL'}`;
    const known = parts.get(key);
    const number = numberOf(event.progress);
    if (known !== undefined && isSame(known, event, number)) return known.bytes;
    const view = event.kind === 'PROGRESS' ? 'LIST' : 'FULL';
    const { progress, numEpochs } = event;
    const message = { job: jobToProto(job, { progress, numEpochs, epochs: [] }, view) };
    const bytes = toBinary(WatchJobResponseSchema, create(WatchJobResponseSchema, message));
    parts.delete(key);
    const { reason, message: words } = job;
    parts.set(key, { progress: number, numEpochs, reason, message: words, bytes });
    keptBytes += partBytes + bytes.length;
    if (known !== undefined) keptBytes -= partBytes + known.bytes.length;
    for (const [oldest, part] of parts) {
      if (keptBytes <= keptBytesMax) break;
      parts.delete(oldest);
      keptBytes -= partBytes + part.bytes.length;
    }
    return bytes;
  };

  return {
    epochs: createEpochPages((...page) => jobs.epochs(...page)),
    current(id) {
      const progress = jobs.progress(id);
      // A running job looks at itself ten times a second: nobody needs to look more often.
      const known = progress === null ? undefined : latest.get(progress);
      if (known !== undefined) return known;
      const job = jobs.get(id);
      const found = { job, numEpochs: jobs.epochCount(job), progress };
      if (progress !== null) latest.set(progress, found);
      return found;
    },
    encode(event) {
      const head = toBinary(
        WatchJobResponseSchema,
        create(WatchJobResponseSchema, {
          type: WatchType[event.kind],
          revision: BigInt(event.revision),
          attempt: 'epochs' in event && event.epochs.length > 0 ? event.attempt : 0,
        }),
      );
      const job = 'job' in event ? [jobPart(event)] : [];
      const epochs = 'epochs' in event ? event.epochs.map(({ bytes }) => bytes) : [];
      return Buffer.concat([head, ...job, ...epochs]);
    },
  };
}

/** Whether the event of one revision shows the job in the words that are known. */
function isSame(known: Part, event: JobEvent, progress: number): boolean {
  return (
    known.progress === progress &&
    known.numEpochs === event.numEpochs &&
    known.reason === event.job.reason &&
    known.message === event.job.message
  );
}
