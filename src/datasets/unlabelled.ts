import type { DatasetWriter } from './dataset-writer.ts';
import type { NoticeList } from './notices.ts';

/** A graph without labels: a dataset that is predicted by models of others and trains none. */

export const unlabelledNotice =
  'there are no labels: nodes can be predicted with a model that was trained on another dataset ' +
  '(gnnctl predict JOB --dataset ID), and no job can train on this one';

const rowsAtOnce = 1 << 20;

/**
 * Writes what stands for labels, which no node has, and splits, which are empty. The facts of such
 * a dataset are CLASSIFICATION with 0 classes.
 */
export async function writeUnlabelled(
  writer: DatasetWriter,
  notices: NoticeList,
  numNodes: number,
): Promise<void> {
  const labels = await writer.beginLabels('int32', null);
  for (let done = 0; done < numNodes; done += rowsAtOnce) {
    await labels.append(new Int32Array(Math.min(rowsAtOnce, numNodes - done)).fill(-1));
  }
  await writer.end('labels');
  const none = new BigInt64Array(0);
  for (const split of ['train', 'val', 'test'] as const) {
    if (writer.written(split) === null) await writer.write(split, none);
  }
  notices.add(unlabelledNotice);
}
