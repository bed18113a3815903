import type { JobRecord } from '../records/job-record.ts';
import type { SchedulerState } from '../scheduler/state.ts';
import { type QueueView, viewQueue } from '../scheduler/waiting.ts';

/**
 * What a queued job waits for, put into its record when somebody reads it. It is never stored:
 * one step at the head of the queue would change the rows of all who stand behind it.
 */
export interface WaitingJobs {
  /** The job as it is; one that waits says for what. */
  shown(job: JobRecord): JobRecord;
}

/** The queue is walked once for each state that differs in who holds and who waits. */
export function createWaitingJobs(stateNow: () => SchedulerState): WaitingJobs {
  let seen: SchedulerState | null = null;
  let view: QueueView | null = null;
  const current = (): QueueView => {
    const state = stateNow();
    if (view === null || seen === null || !isSameQueue(seen, state)) view = viewQueue(state);
    seen = state;
    return view;
  };
  return {
    shown(job) {
      if (job.state !== 'PENDING' || job.intent !== 'RUN') return job;
      const waiting = current().waitingFor(job.id);
      return waiting === null ? job : { ...job, reason: waiting.reason, message: waiting.message };
    },
  };
}

/** Whether the same jobs hold and want the same devices: steps of running jobs change neither. */
export function isSameQueue(one: SchedulerState, other: SchedulerState): boolean {
  return (
    one.queue === other.queue &&
    one.devices === other.devices &&
    one.draining === other.draining &&
    one.running.length === other.running.length &&
    one.running.every(({ stage }, index) => stage.devices === other.running[index]?.stage.devices)
  );
}
