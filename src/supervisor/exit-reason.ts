import { executorExit } from '../base/exit-codes.ts';
import type { NativeCode } from '../native/contract.ts';
import type { ExecutorRole, Reason } from '../records/job-record.ts';
import { type ExitStatus, unreadableMessage } from './executor-process.ts';

/** One classifier for every way an executor can end. */

export type ExecutorOutcome =
  | { readonly kind: 'DONE' }
  | { readonly kind: 'CRASHED'; readonly reason: CrashReason; readonly message: string }
  | { readonly kind: 'STALLED'; readonly message: string };

export type CrashReason = Extract<
  Reason,
  | 'EXECUTOR_CRASHED'
  | 'SPEC_INVALID'
  | 'DATASET_CORRUPT'
  | 'SHM_ALLOCATION_FAILED'
  | 'SHM_CORRUPTED'
  | 'NUMERIC_DIVERGENCE'
  | 'PLUGIN_FAILED'
  | 'DEVICE_UNAVAILABLE'
  | 'DEVICE_OUT_OF_MEMORY'
  | 'DEVICE_FAILED'
  | 'DEVICE_LOST'
  | 'HOST_OUT_OF_MEMORY'
>;

const reasonOfCode: Readonly<Partial<Record<NativeCode, CrashReason>>> = {
  SPEC_INVALID: 'SPEC_INVALID',
  DATASET_NOT_FOUND: 'DATASET_CORRUPT',
  DATASET_CORRUPT: 'DATASET_CORRUPT',
  SHM_ALLOCATION_FAILED: 'SHM_ALLOCATION_FAILED',
  SHM_CORRUPTED: 'SHM_CORRUPTED',
  NUMERIC_DIVERGENCE: 'NUMERIC_DIVERGENCE',
  PLUGIN_FAILED: 'PLUGIN_FAILED',
  DEVICE_UNAVAILABLE: 'DEVICE_UNAVAILABLE',
  DEVICE_OUT_OF_MEMORY: 'DEVICE_OUT_OF_MEMORY',
  DEVICE_FAILED: 'DEVICE_FAILED',
  DEVICE_LOST: 'DEVICE_LOST',
};

/** Reasons by exit code, where the last message was lost with the process. */
const reasonOfExit: Readonly<Record<number, CrashReason>> = {
  [executorExit.SPEC]: 'SPEC_INVALID',
  [executorExit.DATASET]: 'DATASET_CORRUPT',
  [executorExit.SHM_CORRUPTED]: 'SHM_CORRUPTED',
  [executorExit.NUMERIC_DIVERGENCE]: 'NUMERIC_DIVERGENCE',
  [executorExit.PLUGIN]: 'PLUGIN_FAILED',
  [executorExit.DEVICE_OUT_OF_MEMORY]: 'DEVICE_OUT_OF_MEMORY',
  [executorExit.DEVICE_ERROR_STICKY]: 'DEVICE_FAILED',
  [executorExit.DEVICE_LOST]: 'DEVICE_LOST',
};

export interface ExitFacts {
  readonly role: ExecutorRole;
  readonly device: string;
  readonly pid: number;
  readonly status: ExitStatus;
  /** Why the watchdog killed it, set before it did; null otherwise. */
  readonly stalled: string | null;
  /** Whether the kernel has killed for memory lately. */
  readonly oomKilled: boolean;
  /** True once the attempt was told to stop: then any exit is an orderly one. */
  readonly stopping: boolean;
  /** True once nothing is left to do: then a last word may be lost. */
  readonly workIsOver: boolean;
}

export function outcomeOf(facts: ExitFacts): ExecutorOutcome {
  const { status } = facts;
  const who = `${facts.role} on ${facts.device} (pid ${facts.pid})`;
  if (facts.stalled !== null) {
    return { kind: 'STALLED', message: `${who} ${facts.stalled}: killed` };
  }
  // Code of the user's may call exit(0): without a last word that is a crash like any other.
  const isOver = status.code === executorExit.OK && facts.workIsOver;
  const isOrderly = status.said?.kind === 'ended' || isOver;
  if (status.unreadable !== null && !facts.stopping) {
    const message = `${who}: ${unreadableMessage(status.unreadable)}`;
    return { kind: 'CRASHED', reason: 'DATASET_CORRUPT', message };
  }
  if (facts.stopping || isOrderly) return { kind: 'DONE' };
  if (status.said?.kind === 'failed') {
    const { code, message } = status.said;
    if (code === 'ABORTED') return { kind: 'DONE' };
    const reason = reasonOfCode[code] ?? 'EXECUTOR_CRASHED';
    return { kind: 'CRASHED', reason, message: `${who} failed: ${message}` };
  }
  if (status.signal === 'SIGKILL' && facts.oomKilled) {
    const message = `${who} was killed by the kernel, because memory ran out`;
    return { kind: 'CRASHED', reason: 'HOST_OUT_OF_MEMORY', message };
  }
  const early = status.code === executorExit.OK ? ' before its work was over' : '';
  const how =
    status.signal === null ? `exited with ${status.code}${early}` : `died of ${status.signal}`;
  const reason = reasonOfExit[status.code ?? -1] ?? 'EXECUTOR_CRASHED';
  return { kind: 'CRASHED', reason, message: `${who} ${how}` };
}
