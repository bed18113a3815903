import { protocolVersion, type Task, type TaskAnswer } from '../executor/protocol.ts';
import type { NativeCode } from '../native/contract.ts';
import { type ExecutorProcess, spawnExecutor } from './executor-process.ts';

/** One piece of native work in a child process of its own: started, heard, reaped. */

export interface TaskOptions {
  readonly cores: readonly number[];
  readonly topologyFd: number;
  readonly logPath: string;
  /** Of libraries that read it when they load. */
  readonly threads: number;
  readonly instructionSet: 'SCALAR' | 'AVX2' | 'AVX512';
  /** Kills the process; the task then rejects with code ABORTED. */
  readonly signal: AbortSignal;
}

/** A task's failure, with the code its native side gave. */
export class TaskError extends Error {
  readonly code: NativeCode;

  constructor(code: NativeCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** Resolves or rejects (with a TaskError) once the process has been reaped. */
export async function runTask(task: Task, options: TaskOptions): Promise<TaskAnswer> {
  const process = await spawnTask(task, options, null);
  return await answerOf(task, process, options.signal);
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
  const answer = answerOf(task, process, options.signal);
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
    await process.exited;
  }
}

async function spawnTask(
  task: Task,
  { cores, logPath, topologyFd, threads, instructionSet, signal }: TaskOptions,
  segmentFd: 'OUTPUT' | null,
): Promise<ExecutorProcess> {
  if (signal.aborted) throw stopped(task);
  const spawning = spawnExecutor({
    start: { kind: 'start', version: protocolVersion, cores, ...task },
    logPath,
    segmentFd,
    topologyFd,
    scratchFd: null,
    threads,
    instructionSet,
    determinism: 'STRICT',
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
  signal: AbortSignal,
): Promise<TaskAnswer> {
  const kill = () => process.kill();
  signal.addEventListener('abort', kill);
  if (signal.aborted) kill();
  const { said, code, signal: deadly, logTail } = await process.exited;
  signal.removeEventListener('abort', kill);
  if (said?.kind === 'answered') return said.answer;
  if (signal.aborted) throw stopped(task);
  if (said?.kind === 'failed') throw new TaskError(said.code, said.message);
  const how = deadly === null ? `exited with ${code}` : `died of ${deadly}`;
  throw new TaskError('INTERNAL', `${task.role} (pid ${process.pid}) ${how}: ${logTail}`);
}

function stopped(task: Task): TaskError {
  return new TaskError('ABORTED', `${task.role} was stopped`);
}
