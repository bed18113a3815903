import { join } from 'node:path';
import { GnndError } from '../base/errors.ts';
import { OtherFormat } from '../datasets/converted-formats.ts';
import type { DataTasks, TaskWatch } from '../datasets/data-tasks.ts';
import { badFile, ImportFailure } from '../datasets/problems.ts';
import type { Task, TaskAnswer } from '../executor/protocol.ts';
import type { CoreAddon } from '../native/contract.ts';
import { convertSource } from './converter.ts';
import { runTask, TaskError } from './task.ts';

/**
 * Preparers: processes that read a user's data and make files of it, one task each. Whatever the
 * data does to them (a file that shrinks or cannot be read is a deadly signal) is an answer here.
 */
export interface PreparerOptions {
  readonly native: Pick<CoreAddon, 'hostInstructionSet'>;
  /** Folder that takes the Preparers' log. */
  readonly stateDir: string;
}

export function createPreparer(options: PreparerOptions): DataTasks {
  const run = <T extends Task>(task: T, watch: TaskWatch) => answerOf(options, task, watch);
  return {
    convert: convertSource,
    async importSource(source, watch) {
      const { value } = await run({ role: 'IMPORT', options: source }, watch).catch((error) => {
        throw isDataError(error) ? badFile(source.source, error.message) : error;
      });
      switch (value.kind) {
        case 'WRITTEN':
          return value.written;
        case 'OTHER_FORMAT':
          throw new OtherFormat(value.format);
        case 'BAD_SOURCE':
          throw new ImportFailure(value.problems, value.problemCount);
        case 'DISK_FULL':
          throw new GnndError('STATE_DISK_FULL', value.message);
      }
    },
    async check(dataset, watch) {
      try {
        return (await run({ role: 'CHECK', options: dataset }, watch)).value;
      } catch (error) {
        if (!isDataError(error)) throw error;
        const problems = [{ path: dataset.path, description: error.message }];
        return { problems, problemCount: problems.length };
      }
    },
  };
}

type AnswerTo<T extends Task> = Extract<TaskAnswer, { readonly role: T['role'] }>;

async function answerOf<T extends Task>(
  { native, stateDir }: PreparerOptions,
  task: T,
  { progress, signal }: TaskWatch,
): Promise<AnswerTo<T>> {
  try {
    const answer = await runTask(task, {
      cores: [],
      topologyFd: null,
      threads: 1,
      logPath: join(stateDir, 'log', 'preparer.log'),
      instructionSet: native.hostInstructionSet(),
      signal,
      onProgress: ({ share, message }) => progress(share, message),
    });
    return answer as AnswerTo<T>;
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
}

function isDataError(error: unknown): error is TaskError {
  return error instanceof TaskError && error.code === 'DATASET_CORRUPT';
}
