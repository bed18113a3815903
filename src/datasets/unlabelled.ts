import { join } from 'node:path';
import type { ImportContext } from './import-context.ts';
import { openNpyFile } from './npy.ts';

/**
 * A graph without labels and splits: a dataset whose links jobs learn, and whose nodes models of
 * other datasets predict. Importers write no labels then, and answer CLASSIFICATION with 0 classes.
 */

const notice =
  'there are no labels: jobs can learn links of it (task: LINKS), and nodes can be predicted ' +
  'with a model that was trained on another dataset (gnnctl predict JOB --dataset ID)';

const rowsAtOnce = 1 << 20;

/** What stands for labels, which no node has, and empty splits. REQUIRES: indptr is written. */
export async function writeUnlabelled(context: ImportContext): Promise<void> {
  const { writer, notices, problems, randomSplit, signal } = context;
  if (randomSplit !== null) {
    problems.add(
      'random_split',
      'the source has no labels, and labelled nodes are split: leave it out',
    );
    return;
  }
  const ends = await openNpyFile(join(writer.folder, 'indptr.npy'), signal);
  const numNodes = (ends.header.shape[0] ?? 1) - 1;
  await ends.close();
  const labels = await writer.beginLabels('int32', null);
  for (let done = 0; done < numNodes; done += rowsAtOnce) {
    await labels.append(new Int32Array(Math.min(rowsAtOnce, numNodes - done)).fill(-1));
  }
  await writer.end('labels');
  for (const split of ['train', 'val', 'test'] as const) {
    await writer.write(split, new BigInt64Array(0));
  }
  notices.add(notice);
}
