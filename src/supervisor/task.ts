import { setTimeout as later } from 'node:timers/promises';
import type { Accelerator } from '../devices/seat.ts';
import {
  type ProgressMessage,
  protocolVersion,
  type Task,
  type TaskAnswer,
} from '../executor/protocol.ts';
import type { InstructionSet, NativeCode } from '../native/contract.ts';
import type { MatrixLibrary } from '../spec/job-spec.ts';
import {
  type ExecutorProcess,
  type ExitStatus,
  spawnExecutor,
  unreadableMessage,
} from './executor-process.ts';
import { noteDump, processState } from './process-state.ts';

/** One piece of native work in a child process of its own: started, heard, reaped. */

export interface TaskOptions {
  readonly cores: readonly number[];
  /** Descriptor of the topology; null: none. */
  readonly topologyFd: number | null;
  /** Descriptor of the host tier; unset: none. */
  readonly hostTierFd?: number;
  readonly logPath: string;
  /** Number of threads of libraries that read it when they load. */
  readonly threads: number;
  readonly instructionSet: InstructionSet;
  /** Library that multiplies matrices. */
  readonly matrixLibrary?: MatrixLibrary;
  /** The device that it works on; unset: none but cores. */
  readonly accelerator?: Accelerator | undefined;
  /** Kills the process; the task then rejects with code ABORTED. */
  readonly signal: AbortSignal;
  readonly onProgress?: (progress: ProgressMessage) => void;
  /** A process that is stopped (SIGSTOP, a debugger) for so long is killed; unset: two minutes. */
  readonly stallMs?: number;
}

/** A task's failure, with the code its native side gave. */
export class TaskError extends Error {
  readonly code: NativeCode;

  constructor(code: NativeCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** The task's process did not run, and no known order stopped it. */
export class TaskStalled extends TaskError {
  constructor(message: string) {
    super('INTERNAL', message);
  }
}

/** The task's process died of a signal or with an unknown exit code, and not of a file. */
export class TaskDied extends TaskError {
  constructor(message: string) {
    super('INTERNAL', message);
  }
}

/** Resolves or rejects (with a TaskError) once the process has been reaped. */
export async function runTask(task: Task, options: TaskOptions): Promise<TaskAnswer> {
  const process = await spawnTask(task, options, null);
  return await answerOf(task, process, options);
}

/**
 * What the task writes to its output, as it comes; nothing is read ahead of the consumer. Ends or
 * throws as `runTask` does; a consumer that leaves earlier has the process killed and reaped.
 */
export async function* streamTask(
  task: Task,
  options: TaskOptions,
): AsyncGenerator<Buffer, void, void> {
  const process = await spawnTask(task, options, 'OUTPUT');
  const answer = answerOf(task, process, options);
  // Awaited below; until then a failure is no unhandled one.
  answer.catch(() => {});
  try {
    try {
      if (process.output !== null) yield* process.output;
    } catch (error) {
      // A broken stream is a dead process: why it died is the answer's to say.
      await answer;
      throw error;
    }
    await answer;
  } finally {
    process.kill();
    await reaped(process);
  }
}

async function spawnTask(
  task: Task,
  { signal, onProgress, stallMs: _, ...options }: TaskOptions,
  segmentFd: 'OUTPUT' | null,
): Promise<ExecutorProcess> {
  if (signal.aborted) throw stopped(task);
  const spawning = spawnExecutor({
    ...options,
    start: { kind: 'start', version: protocolVersion, cores: options.cores, ...task },
    segmentFd,
    scratchFd: null,
    determinism: 'STRICT',
    ...(onProgress === undefined ? {} : { onProgress }),
    signal,
  });
  return await spawning.catch((error: unknown) => {
    throw signal.aborted ? stopped(task) : error;
  });
}

/** Kills the process when `signal` says so. */
async function answerOf(
  task: Task,
  process: ExecutorProcess,
  { signal, stallMs = stoppedMaxMs }: Pick<TaskOptions, 'signal' | 'stallMs'>,
): Promise<TaskAnswer> {
  const watch = watchStopped(process, stallMs);
  let kill = () => {};
  const killed = new Promise<void>((resolve) => {
    kill = () => {
      process.kill();
      resolve();
    };
  });
  signal.addEventListener('abort', kill, { once: true });
  if (signal.aborted) kill();
  const status = await Promise.race([process.exited, killed.then(() => reaped(process))]);
  signal.removeEventListener('abort', kill);
  watch.end();
  if (status?.said?.kind === 'answered') return status.said.answer;
  if (signal.aborted || status === null) throw stopped(task);
  if (watch.why !== null) throw new TaskStalled(`${task.role} (pid ${process.pid}) ${watch.why}`);
  if (status.said?.kind === 'failed') throw new TaskError(status.said.code, status.said.message);
  throw deathOf(task, process.pid, status);
}

const stoppedMaxMs = 120_000;
const lookMs = 500;

/** Kills a process that somebody stopped; looks are counted, so a frozen daemon kills nobody. */
function watchStopped(process: ExecutorProcess, stallMs: number) {
  let looks = 0;
  const watch: { why: string | null; end: () => void } = { why: null, end: () => {} };
  const timer = setInterval(() => {
    looks = processState(process.pid)?.isStopped === true ? looks + 1 : 0;
    if (looks * lookMs <= stallMs || watch.why !== null) return;
    watch.why = `was stopped for ${(stallMs / 1000).toFixed(1)} s: killed`;
    noteDump(process.pid, process.logPath, watch.why);
    process.kill();
  }, lookMs);
  timer.unref();
  watch.end = () => clearInterval(timer);
  return watch;
}

/** A process that waits for a dead disk outlives its SIGKILL: nobody must wait for it. */
const reapMs = 5000;

/** How a killed process ended; null when it could not be reaped in time. */
async function reaped(process: ExecutorProcess): Promise<ExitStatus | null> {
  const late = new AbortController();
  const timeout = later(reapMs, null, { signal: late.signal }).catch(() => null);
  try {
    return await Promise.race([process.exited, timeout]);
  } finally {
    late.abort();
  }
}

/**
 * Tasks that read what nobody has checked, and that nobody tries again: a wrong address is laid to
 * the file. A job's task may have got the signal from anybody, and is tried again.
 */
const readsUnchecked: ReadonlySet<Task['role']> = new Set(['IMPORT', 'CHECK']);

function deathOf(task: Task, pid: number, status: ExitStatus): TaskError {
  const { code, signal, logTail, unreadable } = status;
  if (unreadable !== null) return new TaskError('DATASET_CORRUPT', unreadableMessage(unreadable));
  const isFault = signal === 'SIGBUS' || signal === 'SIGSEGV';
  if (isFault && readsUnchecked.has(task.role)) {
    return new TaskError('DATASET_CORRUPT', `${task.role} died of ${signal} while it read files`);
  }
  const how = signal === null ? `exited with ${code}` : `died of ${signal}`;
  return new TaskDied(`${task.role} (pid ${pid}) ${how}: ${logTail}`);
}

function stopped(task: Task): TaskError {
  return new TaskError('ABORTED', `${task.role} was stopped`);
}
