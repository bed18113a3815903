import { type Dataset, DatasetState } from '../../api/gen/gnnd/v1/dataset_service_pb.ts';
import { DatasetTask, DatasetTaskSchema } from '../../api/gen/gnnd/v1/types_pb.ts';
import { shortName } from '../../spec/enum-names.ts';

/** What is learnt of a dataset's nodes, for people. */

/** The task as `--task` has it; a message without one means classes. */
export function taskText({ task }: Pick<Dataset, 'task'>): string {
  return shortName(DatasetTaskSchema, task || DatasetTask.CLASSIFICATION).toLowerCase();
}

/** What the number of classes counts. */
export function classesNouns({ task }: Pick<Dataset, 'task'>) {
  if (task === DatasetTask.MULTI_LABEL) return { one: 'label', many: 'labels' } as const;
  if (task === DatasetTask.REGRESSION) return { one: 'target', many: 'targets' } as const;
  return { one: 'class', many: 'classes' } as const;
}

/** What an import had to say, a line each. */
export function noticesOf({ state, message }: Pick<Dataset, 'state' | 'message'>): string[] {
  return state === DatasetState.READY ? message.split('\n').filter((line) => line !== '') : [];
}
