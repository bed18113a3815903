import { type Failure, failureRules } from './failure.ts';
import type { Active, Ending, RestartPolicy, Tally } from './state.ts';

/** Decides after a death whether a job is tried again, and how soon. */

export const freshTally: Tally = {
  attempt: 0,
  runFailures: 0,
  startupFailures: 0,
  ranMs: 0,
  onceMet: [],
  daemonDeaths: 0,
};

/** Daemon deaths in a row that may be bad luck; one more, and the job is to blame. */
const daemonDeathsForgiven = 2;
/** Jobs that may be to blame start so far apart that the next death finds one of them at work. */
const suspectSpacingMs = 30_000;

export interface FailedAttempt {
  readonly tally: Tally;
  readonly policy: RestartPolicy;
  readonly failure: Failure;
  /** Whether the attempt was RUNNING; before that another budget counts. */
  readonly wasRunning: boolean;
}

export interface Verdict {
  readonly tally: Tally;
  readonly ending: Ending;
}

/** Charges a failed attempt to the job's budgets and says what follows. */
export function judge({ tally: before, policy, failure, wasRunning }: FailedAttempt): Verdict {
  const { reason, message } = failure;
  const tally: Tally = { ...before, daemonDeaths: 0 };
  const { retry } = failureRules[reason];
  if (retry === 'FREE') return { tally, ending: { kind: 'RETRY', failure, free: true } };
  if (retry === 'NEVER') return { tally, ending: { kind: 'FAIL', reason, message } };
  if (retry === 'ONCE' && tally.onceMet.includes(reason)) {
    return { tally, ending: { kind: 'FAIL', reason, message: `for the second time: ${message}` } };
  }
  const charged: Tally = {
    ...tally,
    runFailures: tally.runFailures + (wasRunning ? 1 : 0),
    startupFailures: tally.startupFailures + (wasRunning ? 0 : 1),
    onceMet: retry === 'ONCE' ? [...tally.onceMet, reason] : tally.onceMet,
  };
  const last = `the last with ${reason}: ${message}`;
  if (!wasRunning && charged.startupFailures > policy.startupFailures) {
    const text = `${charged.startupFailures} attempts failed to start, ${last}`;
    const ending = { kind: 'FAIL', reason: 'STARTUP_BUDGET_EXHAUSTED', message: text } as const;
    return { tally: charged, ending };
  }
  if (wasRunning && charged.runFailures >= policy.maxAttempts) {
    const text = `${charged.runFailures} attempts failed, ${last}`;
    const ending = { kind: 'FAIL', reason: 'RESTART_BUDGET_EXHAUSTED', message: text } as const;
    return { tally: charged, ending };
  }
  return { tally: charged, ending: { kind: 'RETRY', failure, free: false } };
}

export interface LostAttempt {
  readonly tally: Tally;
  /** Whether it had finished an epoch. */
  readonly madeProgress: boolean;
  /** Jobs that were found before it and may be to blame, too. */
  readonly suspectsBefore: number;
}

export type LostVerdict =
  | {
      readonly kind: 'AGAIN';
      readonly tally: Tally;
      readonly isSuspect: boolean;
      readonly delayMs: number;
    }
  | { readonly kind: 'FAIL'; readonly tally: Tally; readonly message: string };

/** Decides on a job whose attempt ended with the daemon, without an orderly stop. */
export function judgeLost({ tally, madeProgress, suspectsBefore }: LostAttempt): LostVerdict {
  const daemonDeaths = madeProgress ? 1 : tally.daemonDeaths + 1;
  const charged = { ...tally, daemonDeaths };
  if (daemonDeaths > daemonDeathsForgiven) {
    const message =
      `${daemonDeaths} attempts in a row ended with the daemon's death before an epoch was done: ` +
      'the job may be what kills it; see the log of the daemon';
    return { kind: 'FAIL', tally: charged, message };
  }
  const isSuspect = daemonDeaths > 1;
  const delayMs = isSuspect ? suspectsBefore * suspectSpacingMs : 0;
  return { kind: 'AGAIN', tally: charged, isSuspect, delayMs };
}

/**
 * Delay before the next attempt in whole ms, exponential in the failures so far.
 * `jitter` in [0, 1) spreads it evenly over +-policy.backoff.jitter of itself.
 */
export function backoffDelayMs(
  policy: Pick<RestartPolicy, 'backoff'>,
  tally: Tally,
  jitter: number,
): number {
  const { initialMs, factor, maxMs, jitter: share } = policy.backoff;
  const failures = tally.runFailures + tally.startupFailures;
  const delayMs = Math.min(initialMs * factor ** Math.max(failures - 1, 0), maxMs);
  return Math.round(delayMs * (1 + share * (2 * jitter - 1)));
}

/**
 * Null when a dead executor of a running attempt may be replaced now, else why not. Two limits:
 * a rate, and a count without progress, or else a job whose executors die slowly enough would
 * never end.
 */
export function whyNoRespawn(active: Active, policy: RestartPolicy, nowMs: number): string | null {
  const { executorRestarts, windowMs } = policy;
  const recent = recentRespawns(active, policy, nowMs).length;
  if (recent >= executorRestarts) {
    return `${recent} executors were already replaced within ${windowMs / 1000} s`;
  }
  if (active.respawnsWithoutProgress >= executorRestarts) {
    return `${active.respawnsWithoutProgress} executors were already replaced without progress`;
  }
  return null;
}

/** Times of the respawns that still count at `nowMs`. */
export function recentRespawns(
  active: Active,
  policy: RestartPolicy,
  nowMs: number,
): readonly number[] {
  return active.respawnedAtMs.filter((atMs) => atMs > nowMs - policy.windowMs);
}
