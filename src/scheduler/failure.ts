import type { Reason } from '../records/job-record.ts';

/** What each reason of a failed attempt means for the job's next one (a table, no code). */

/** The reasons with which an attempt or an executor can fail. */
export type FailureReason = Exclude<
  Reason,
  | 'NONE'
  | 'COMPLETED'
  | 'USER_CANCELLED'
  | 'WAITING_FOR_DEVICES'
  | 'BACKOFF'
  | 'RESTART_BUDGET_EXHAUSTED'
  | 'STARTUP_BUDGET_EXHAUSTED'
>;

/**
 * NEVER: the job fails at once. ONCE: retried, and final the second time. BUDGET: retried while
 * the budget lasts. FREE: retried at once, costs nothing.
 */
export type RetryClass = 'NEVER' | 'ONCE' | 'BUDGET' | 'FREE';

export interface FailureRule {
  readonly retry: RetryClass;
  /** Whether the dead executor alone can be replaced while the attempt goes on. */
  readonly respawn: boolean;
}

export const failureRules: Readonly<Record<FailureReason, FailureRule>> = {
  SPEC_INVALID: { retry: 'NEVER', respawn: false },
  DATASET_CORRUPT: { retry: 'NEVER', respawn: false },
  CHECKPOINT_CORRUPT: { retry: 'NEVER', respawn: false },
  PLAN_INFEASIBLE: { retry: 'NEVER', respawn: false },
  NUMERIC_DIVERGENCE: { retry: 'NEVER', respawn: false },
  PLUGIN_FAILED: { retry: 'NEVER', respawn: false },
  PENDING_TIMEOUT: { retry: 'NEVER', respawn: false },
  RUN_TIMEOUT: { retry: 'NEVER', respawn: false },
  SHM_ALLOCATION_FAILED: { retry: 'ONCE', respawn: false },
  INTERNAL: { retry: 'ONCE', respawn: false },
  STARTUP_TIMEOUT: { retry: 'BUDGET', respawn: false },
  EXECUTOR_CRASHED: { retry: 'BUDGET', respawn: true },
  EXECUTOR_STALLED: { retry: 'BUDGET', respawn: true },
  // The segment is abandoned and the device quarantined, so no executor can replace it.
  EXECUTOR_UNKILLABLE: { retry: 'BUDGET', respawn: false },
  SHM_CORRUPTED: { retry: 'BUDGET', respawn: false },
  CHECKPOINT_WRITE_FAILED: { retry: 'BUDGET', respawn: false },
  // Somebody has it now; a new process may find it free.
  DEVICE_UNAVAILABLE: { retry: 'BUDGET', respawn: false },
  // Once more: memory of a process that was killed comes back late.
  DEVICE_OUT_OF_MEMORY: { retry: 'ONCE', respawn: false },
  // The error is the process's: a new one begins anew.
  DEVICE_FAILED: { retry: 'BUDGET', respawn: true },
  DEVICE_LOST: { retry: 'BUDGET', respawn: false },
  DAEMON_SHUTDOWN: { retry: 'FREE', respawn: false },
  DAEMON_RESTARTED: { retry: 'FREE', respawn: false },
  // Once more: what took the memory may have been another process.
  HOST_OUT_OF_MEMORY: { retry: 'ONCE', respawn: false },
  PREEMPTED: { retry: 'FREE', respawn: false },
  DEVICE_DRAINED: { retry: 'FREE', respawn: false },
  // Resumed while its executors were still being stopped.
  USER_SUSPENDED: { retry: 'FREE', respawn: false },
};

/** Why an attempt or an executor failed: a word for code and a sentence for people. */
export interface Failure {
  readonly reason: FailureReason;
  readonly message: string;
}
