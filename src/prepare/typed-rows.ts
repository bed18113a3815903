import { createHash } from 'node:crypto';
import { dirname, join } from 'node:path';
import { makeFolder } from '../base/atomic-file.ts';
import type { DatasetLocation, GraphSchema } from '../native/contract.ts';
import { namesOf } from '../plan/plan.ts';
import { relationText, rowSourcesOf } from '../spec/job-relations.ts';
import { runTask, type TaskOptions } from '../supervisor/supervisor.ts';
import type { DataWitness } from './data-witness.ts';
import { momentsPath } from './standardization.ts';

/**
 * Input rows of the types of a job: features as they were imported or standardised, and of types
 * without any the mean over a relation. Derived files, made once for a dataset and kept for others.
 */

/** Changes when the same inputs would give other rows. */
const rowsVersion = 1;

type Task = Omit<TaskOptions, 'topologyFd'>;

export interface TypedRowsRequest {
  readonly dataset: Pick<DatasetLocation, 'folder' | 'schema'>;
  readonly datasetDigest: string;
  /** Receives the files. */
  readonly folder: string;
  readonly standardize: boolean;
}

/** A file of rows that is to be made, and what tells it from others of the dataset. */
interface RowsFile {
  readonly path: string;
  /** Index of the relation that rows are means over. */
  readonly relation: number;
  /** Relations that lead here from features, the nearest first. */
  readonly chain: readonly string[];
}

/** Rows of one type: its features, or a file; the path is empty for features as they are. */
interface TypeRows {
  readonly path: string;
  readonly chain: readonly string[];
}

/** Paths of each type's rows, as DatasetLocation has them. Rejects as `runTask` does. */
export async function prepareTypedRows(
  witness: DataWitness,
  request: TypedRowsRequest,
  task: Task,
): Promise<readonly string[]> {
  const { dataset, folder, standardize } = request;
  const { schema } = dataset;
  const check = { ...task, logPath: join(dirname(task.logPath), 'check.log') };
  const rows: TypeRows[] = schema.types.map(() => ({ path: '', chain: [] }));
  makeFolder(folder);
  for (const { type, relation } of rowSourcesOf(namesOf(schema)).means) {
    const file = meanFile(request, { type, relation }, rows);
    rows[type] = file;
    if (await witness.isSound([file.path], check)) continue;
    const sourceRows = rows[schema.relations[relation]?.source ?? 0]?.path ?? '';
    const options = {
      ...{ folder: dataset.folder, schema, relation: file.relation, sourceRows },
      ...{ output: file.path, threads: task.threads },
    };
    await runTask({ role: 'AVERAGE', options }, { ...task, topologyFd: null });
    await witness.made([file.path], check);
  }
  if (!standardize) return rows.map(({ path }) => path);
  const paths: string[] = [];
  for (const [type, { name }] of schema.types.entries()) {
    const input = rows[type]?.path || join(dataset.folder, 'nodes', name, 'features.npy');
    const output = pathOf(request, name, rows[type]?.chain ?? [], 'standardized');
    const files = [output, momentsPath(output)];
    paths.push(output);
    if (await witness.isSound(files, check)) continue;
    await runTask(
      { role: 'STANDARDIZE', options: { input, output } },
      { ...task, topologyFd: null },
    );
    await witness.made(files, check);
  }
  return paths;
}

/** The files of `paths` and of their moments; features as they were imported are none of them. */
export function typedRowFiles({ typeRows }: Pick<DatasetLocation, 'typeRows'>): readonly string[] {
  return typeRows.flatMap((path) => {
    if (path === '') return [];
    return path.endsWith('-standardized.npy') ? [path, momentsPath(path)] : [path];
  });
}

function meanFile(
  request: TypedRowsRequest,
  { type, relation }: { readonly type: number; readonly relation: number },
  rows: readonly TypeRows[],
): RowsFile {
  const { types, relations } = namesOf(request.dataset.schema);
  const over = relations[relation];
  const source = request.dataset.schema.relations[relation]?.source ?? 0;
  const chain = [over === undefined ? '' : relationText(over), ...(rows[source]?.chain ?? [])];
  const path = pathOf(request, types[type]?.name ?? '', chain, 'mean');
  return { path, relation, chain };
}

function pathOf(
  { datasetDigest, folder }: TypedRowsRequest,
  type: string,
  chain: readonly string[],
  what: 'mean' | 'standardized',
): string {
  const facts = JSON.stringify({ rowsVersion, type, chain });
  const key = createHash('sha256').update(facts).digest('hex').slice(0, 16);
  return join(folder, `${datasetDigest.slice(0, 32)}-${key}-${what}.npy`);
}

/** What tells the topology of a job's types and relations from others of the dataset. */
export function schemaKeyOf(schema: GraphSchema): string {
  if (schema.types.length === 0) return '';
  const { types, relations } = namesOf(schema);
  const facts = JSON.stringify([types.map(({ name }) => name), relations.map(relationText)]);
  return createHash('sha256').update(facts).digest('hex').slice(0, 16);
}
