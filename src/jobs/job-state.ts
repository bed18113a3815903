import { GnndError } from '../base/errors.ts';
import { type JobRecord, type JobState, terminalStates } from '../records/job-record.ts';

/**
 * The state machine of a job: which state may follow which. Everything that moves a job goes
 * through this table; a stay in one state is no transition.
 *
 * PENDING goes to FAILED when it waited too long or its plan cannot be met, and to CANCELLED at
 * once, because it has no executors. PREPARING and RUNNING go back to PENDING to back off, and when
 * the daemon stops or died. CANCELLING ends as SUCCEEDED when the final model was durable before
 * the cancel could stop it; an executor's crash changes nothing there. SUSPENDING is the same for
 * jobs that rest, and for those that only leave their devices to another one: these become PENDING.
 * A job that ended stays so, unless its user retries it (`Store.reopenJob`).
 */
const followers: Readonly<Record<JobState, readonly JobState[]>> = {
  PENDING: ['PREPARING', 'SUSPENDED', 'FAILED', 'CANCELLED'],
  PREPARING: ['PENDING', 'RUNNING', 'SUSPENDING', 'SUSPENDED', 'CANCELLING', 'FAILED'],
  RUNNING: ['PENDING', 'SUSPENDING', 'SUSPENDED', 'CANCELLING', 'SUCCEEDED', 'FAILED'],
  SUSPENDING: ['PENDING', 'SUSPENDED', 'CANCELLING', 'SUCCEEDED', 'FAILED'],
  SUSPENDED: ['PENDING', 'CANCELLED'],
  CANCELLING: ['SUCCEEDED', 'CANCELLED'],
  SUCCEEDED: [],
  FAILED: [],
  CANCELLED: [],
};

/** Since when a PENDING job has been pending: its creation, or the end of its last attempt. */
export function pendingSinceMs(job: Pick<JobRecord, 'createAtMs' | 'attempts'>): number {
  return job.attempts.at(-1)?.endAtMs ?? job.createAtMs;
}

export function canTransition(from: JobState, to: JobState): boolean {
  return followers[from].includes(to);
}

/** Throws GnndError JOB_STATE_CONFLICT, whose metadata names the states that are allowed. */
export function assertTransition(from: JobState, to: JobState): void {
  if (canTransition(from, to)) return;
  const allowed = followers[from];
  throw new GnndError(
    'JOB_STATE_CONFLICT',
    terminalStates.has(from)
      ? `a job that is ${from} cannot become ${to}: it has ended`
      : `a job that is ${from} cannot become ${to}; expected one of ${allowed.join(', ')}`,
    { metadata: { from, to, allowed: allowed.join(',') } },
  );
}
