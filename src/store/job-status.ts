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

/** Throws JOB_STATE_CONFLICT unless the job lives and the intent moves from RUN to CANCEL. */
export function changedIntent(status: JobStatus, intent: JobStatus['intent']): JobStatus {
  if (terminalStates.has(status.state)) throw ended(status.state);
  if (intent === 'RUN') {
    throw new GnndError('JOB_STATE_CONFLICT', 'a job that was cancelled cannot run again');
  }
  return { ...status, intent };
}

function ended(state: JobState): GnndError {
  return new GnndError('JOB_STATE_CONFLICT', `a job that is ${state} does not change any more`, {
    metadata: { from: state },
  });
}
