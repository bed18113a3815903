import { GnndError } from '../base/errors.ts';
import { type JobState, terminalStates } from '../records/job-record.ts';
import type { JobStatus } from './event-table.ts';
import type { JobChange } from './store-types.ts';

/**
 * The status after `change` (JobStore.transition says which fields follow from the state). Throws
 * JOB_STATE_CONFLICT when the job has ended or the state may not follow.
 */
export function changedStatus(
  status: JobStatus,
  change: JobChange,
  nowMs: number,
  assertTransition: (from: JobState, to: JobState) => void,
): JobStatus {
  const state = change.state ?? status.state;
  if (state !== status.state) assertTransition(status.state, state);
  else if (terminalStates.has(state)) throw ended(state);
  const next = { ...status, ...change, state };
  const isActive = state === 'PREPARING' || state === 'RUNNING';
  const startAtMs = state === 'PREPARING' ? (next.startAtMs ?? nowMs) : next.startAtMs;
  return {
    ...next,
    phase: isActive ? next.phase : null,
    startAtMs,
    endAtMs: terminalStates.has(state) ? (next.endAtMs ?? nowMs) : next.endAtMs,
    nextAttemptAtMs: state === 'PENDING' ? next.nextAttemptAtMs : null,
  };
}

/** States of jobs that have not ended, as an SQL list. */
export const living =
  "('PENDING', 'PREPARING', 'RUNNING', 'CANCELLING', 'SUSPENDING', 'SUSPENDED')";

/**
 * The very same status where that is wanted already. Throws JOB_STATE_CONFLICT unless the job
 * lives; what is being cancelled stays so.
 */
export function changedIntent(status: JobStatus, intent: JobStatus['intent']): JobStatus {
  if (status.intent === intent) return status;
  if (terminalStates.has(status.state)) throw ended(status.state);
  if (status.intent === 'CANCEL') {
    const then = intent === 'RUN' ? 'run again before it has ended: retry it then' : 'be suspended';
    throw new GnndError('JOB_STATE_CONFLICT', `a job that was cancelled cannot ${then}`, {
      metadata: { from: status.state },
    });
  }
  return { ...status, intent };
}

/** PENDING again. Throws JOB_STATE_CONFLICT unless it FAILED or was CANCELLED. */
export function reopenedStatus(status: JobStatus, message: string): JobStatus {
  if (status.state !== 'FAILED' && status.state !== 'CANCELLED') {
    const text = `only a job that FAILED or was CANCELLED can be retried, not one ${status.state}`;
    const metadata = { from: status.state, allowed: 'FAILED,CANCELLED' };
    throw new GnndError('JOB_STATE_CONFLICT', text, { metadata });
  }
  return {
    ...status,
    ...{ intent: 'RUN', state: 'PENDING', reason: 'NONE', message },
    ...{ endAtMs: null, nextAttemptAtMs: null, result: null },
  };
}

function ended(state: JobState): GnndError {
  return new GnndError('JOB_STATE_CONFLICT', `a job that is ${state} does not change any more`, {
    metadata: { from: state },
  });
}
