import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { NodeType } from '../records/dataset-record.ts';
import { ArrayImport } from './array-import.ts';
import { folderArrays } from './array-set.ts';
import { addSplit } from './complete-dataset.ts';
import { type DatasetFacts, DatasetWriter } from './dataset-writer.ts';
import type { ImportContext } from './import-context.ts';
import { NoticeList } from './notices.ts';
import { copyNames } from './npy-import.ts';
import { formatCount, ImportFailure, ProblemList } from './problems.ts';

/** What the nodes of one type have: read as the arrays of a graph of one type are. */

export interface TypeWritten {
  readonly type: NodeType;
  /** Of its arrays; null: it has none. */
  readonly writer: DatasetWriter | null;
  readonly featureNames: readonly string[] | null;
}

/** Arrays of a graph's edges, which belong elsewhere here. */
const edgeArrays = ['indptr', 'indices', 'edge_index', 'edge_weights', 'edge_weight'];

/** Reads `nodes/NAME` of the source into that of the dataset; what is wrong becomes problems. */
export async function importType(
  context: ImportContext,
  name: string,
  numNodes: number,
): Promise<TypeWritten> {
  const place = `nodes/${name}`;
  const folder = join(context.writer.folder, place);
  await mkdir(folder, { recursive: true });
  const writer = new DatasetWriter(folder);
  const problems = new ProblemList();
  const notices = new NoticeList();
  const own: ImportContext = {
    ...context,
    ...{ source: join(context.source, place), writer, problems, notices, split: null },
    ...{ checked: new Set<string>(), called: new Map<string, string>() },
  };
  try {
    const facts = await readArrays(own, numNodes);
    problems.throwIfAny();
    const type = typeOf(name, numNodes, writer, facts);
    return { type, writer, featureNames: facts.featureNames };
  } catch (error) {
    if (!(error instanceof ImportFailure)) throw error;
    const placed = error.problems.map(({ path, description }) => ({
      path: `${place}/${path}`,
      description,
    }));
    context.problems.addAll(placed, error.problemCount);
    return { type: { name, num_nodes: numNodes }, writer, featureNames: null };
  } finally {
    await writer.close();
    for (const notice of notices.kept) context.notices.add(`${name}: ${notice}`);
    for (const file of own.checked) context.checked.add(`${place}/${file}`);
    for (const [file, called] of own.called)
      context.called.set(`${place}/${file}`, `${place}/${called}`);
  }
}

async function readArrays(context: ImportContext, numNodes: number): Promise<DatasetFacts> {
  const { problems, writer } = context;
  const set = await folderArrays(context);
  for (const edges of set.names.filter((each) => edgeArrays.includes(each))) {
    problems.add(
      `${edges}.npy`,
      'is of edges: these lie in edges/SOURCE__RELATION__DESTINATION.npy',
    );
  }
  if (set.names.includes('times')) {
    problems.add('times.npy', 'times of nodes are not read yet; remove it to import them without');
  }
  problems.throwIfAny();
  const task = set.nameOf('labels') === null ? null : context.task;
  const arrays = { ...set, edges: async () => undefined };
  const facts = await new ArrayImport({ ...context, task }, arrays).run();
  for (const role of ['features', 'labels'] as const) {
    const rows = writer.written(role)?.rows ?? numNodes;
    if (rows === numNodes) continue;
    const expected = `types.json says ${formatCount(numNodes)} nodes`;
    problems.add(set.pathOf(role), `has ${formatCount(rows)} rows, ${expected}`);
  }
  if (writer.written('labels') !== null) await completeSplit(context, facts);
  await copyNames(context, numNodes);
  return facts;
}

async function completeSplit(context: ImportContext, facts: DatasetFacts): Promise<void> {
  const { writer, problems } = context;
  if (writer.written('train') === null) await addSplit(context, facts);
  if (writer.written('train')?.rows === 0) {
    problems.add('train.npy', 'the training split is empty: at least one node must be in it');
  }
}

function typeOf(
  name: string,
  numNodes: number,
  writer: DatasetWriter,
  { numFeatures, task, numClasses, classNames }: DatasetFacts,
): NodeType {
  const rows = (array: 'train' | 'val' | 'test') => writer.written(array)?.rows ?? 0;
  const features = { columns: numFeatures, dtype: writer.featureDtype };
  const split = { train: rows('train'), val: rows('val'), test: rows('test') };
  const named = classNames === null ? {} : { class_names: classNames };
  const labels = { task, num_classes: numClasses, split, ...named };
  return {
    ...{ name, num_nodes: numNodes },
    ...(writer.written('features') === null ? {} : { features }),
    ...(writer.written('labels') === null ? {} : { labels }),
  };
}
