import { GnndError } from '../base/errors.ts';
import type { JobRecord } from '../records/job-record.ts';
import type { JobSpecInput } from '../spec/job-spec.ts';
import type { Store } from '../store/store.ts';
import type { ResolvedJob } from './job-check.ts';

export interface CreateJob {
  /** Null: the server makes one. */
  readonly id: string | null;
  readonly spec: JobSpecInput;
  readonly validateOnly: boolean;
  readonly requestId: string | null;
  /** Name of the caller. */
  readonly createdBy: string;
}

/** A job's resolved spec and the dataset that it was checked with, or why it was refused. */
export type CheckedJob =
  | (ResolvedJob & { readonly datasetDigest: string })
  | { readonly error: unknown };

export interface PreparedJob extends CreateJob {
  readonly uid: string;
  readonly checked: CheckedJob;
}

/**
 * New jobs that come in together are stored together: one transaction and one sync of the disk for
 * all of them, and each is answered only after it. A job that is refused is refused alone; a store
 * that cannot write refuses all.
 */
export interface Submissions {
  /** Creates jobs in the order of the calls. */
  create(request: PreparedJob): Promise<JobRecord>;
}

export interface Made {
  readonly job: JobRecord;
  /** False for a preview, and for a job that an earlier call made. */
  readonly isNew: boolean;
}

export interface SubmissionsOptions {
  readonly store: Pick<Store, 'atomically' | 'getJob'>;
  /** Checks and stores a job; `others` are new in the same transaction. */
  readonly make: (request: PreparedJob, others: number) => Made;
  /** The jobs are durable from now on. */
  readonly submit: (jobs: readonly JobRecord[]) => void;
}

/** Jobs that one turn of the event loop may store. */
const madeAtOnce = 32;

interface Call {
  readonly request: PreparedJob;
  readonly resolve: (job: JobRecord) => void;
  readonly reject: (error: unknown) => void;
}

type Outcome = { readonly made: Made } | { readonly error: unknown };

export function createSubmissions(options: SubmissionsOptions): Submissions {
  const { store, make, submit } = options;
  const calls: Call[] = [];

  const tryToMake = (request: PreparedJob, others: number): Outcome => {
    try {
      // A part of the transaction: what fails leaves nothing, the others stay.
      return { made: store.atomically(() => make(request, others)) };
    } catch (error) {
      if (isOfStore(error)) throw error;
      return { error };
    }
  };
  const makeAll = (group: readonly Call[]): readonly Outcome[] =>
    store.atomically(() => {
      let others = 0;
      return group.map(({ request }) => {
        const outcome = tryToMake(request, others);
        if ('made' in outcome && outcome.made.isNew) others += 1;
        return outcome;
      });
    });
  const flush = () => {
    const group = calls.splice(0, madeAtOnce);
    if (calls.length > 0) setImmediate(flush);
    try {
      const outcomes = makeAll(group);
      const made = outcomes.flatMap((outcome) => ('made' in outcome ? [outcome.made] : []));
      submit(made.filter(({ isNew }) => isNew).map(({ job }) => job));
      group.forEach((call, index) => {
        const outcome = outcomes[index];
        if (outcome === undefined || 'error' in outcome) call.reject(outcome?.error);
        else call.resolve(store.getJob(outcome.made.job.id) ?? outcome.made.job);
      });
    } catch (error) {
      for (const { reject } of group) reject(error);
    }
  };

  return {
    create: (request) =>
      new Promise((resolve, reject) => {
        // At the end of this turn: by then all calls that have arrived are here.
        if (calls.length === 0) setImmediate(flush);
        calls.push({ request, resolve, reject });
      }),
  };
}

/** Whether the database refused: then the transaction is over, and nothing of it was kept. */
function isOfStore(error: unknown): boolean {
  return (
    error instanceof GnndError &&
    ['STATE_DISK_FULL', 'STORE_UNAVAILABLE', 'STORE_CORRUPT'].includes(error.reason)
  );
}
