import { protocolVersion, type Task, type TaskAnswer } from '../executor/protocol.ts';
import type { NativeCode } from '../native/contract.ts';
import { spawnExecutor } from './executor-process.ts';

/** One piece of native work in a child process of its own: started, heard, reaped. */

export interface TaskOptions {
  readonly cores: readonly number[];
  readonly topologyFd: number;
  readonly logPath: string;
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
  const aborted = () => new TaskError('ABORTED', `${task.role} was stopped`);
  if (options.signal.aborted) throw aborted();
  const process = await spawnExecutor({
    start: { kind: 'start', version: protocolVersion, cores: options.cores, ...task },
    logPath: options.logPath,
    segmentFd: null,
    topologyFd: options.topologyFd,
    threads: 1,
    instructionSet: options.instructionSet,
    determinism: 'STRICT',
  });
  const kill = () => process.kill();
  options.signal.addEventListener('abort', kill);
  if (options.signal.aborted) kill();
  const { said, code, signal, logTail } = await process.exited;
  options.signal.removeEventListener('abort', kill);
  if (said?.kind === 'answered') return said.answer;
  if (options.signal.aborted) throw aborted();
  if (said?.kind === 'failed') throw new TaskError(said.code, said.message);
  const how = signal === null ? `exited with ${code}` : `died of ${signal}`;
  throw new TaskError('INTERNAL', `${task.role} (pid ${process.pid}) ${how}: ${logTail}`);
}
