import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { DatasetFacts } from './dataset-writer.ts';
import { importEdges } from './edge-import.ts';
import { type EdgeListFiles, edgeListFiles } from './edge-list-files.ts';
import { type EdgeList, openEdgeList } from './edge-list-rows.ts';
import { type ImportContext, part } from './import-context.ts';
import type { NodeColumns } from './node-columns.ts';
import { NodeIds } from './node-ids.ts';
import { nodeTable } from './node-lists.ts';
import { badFile, formatCount } from './problems.ts';
import { Table, type TableRow } from './table.ts';
import { textOf } from './table-columns.ts';
import { type Nodes, readNodes, storeNodes } from './table-import.ts';

/**
 * Imports a list of edges: a file of text with two nodes a line, alone or in a folder with a file
 * that says more of the nodes, in the forms of SNAP, LINQS, geom-gcn and MUSAE.
 */

/** Where the nodes end, of 1. */
const nodesShare = 0.5;
const wholeNumber = /^-?\d{1,15}$/;

export async function importEdgeList(context: ImportContext): Promise<DatasetFacts> {
  const { source, problems, notices } = context;
  const { folder, files } = await filesOf(source);
  const { edges: name, nodes: about } = files;
  const edges = await openEdgeList(context, join(folder, name));
  const [table, columns, nodes] =
    about === null || about.form === 'LABELS'
      ? await labelledEnds(context, edges, about === null ? null : join(folder, about.file))
      : await describedNodes(context, folder, files, about.form);
  problems.throwIfAny();
  const isLoose = about?.form === 'CONTENT';
  const kept = isLoose ? keptEdges(edges, nodes.ids) : { rows: () => edges.rows(), left: () => 0 };
  const made = {
    ...{ file: edges.file, columns: edges.columns, rows: kept.rows },
    get fraction() {
      return edges.fraction;
    },
  };
  const ends = { ...edges.ends, weight: edges.weight };
  const ids = nodes.areWhole ? nodes.ids : null;
  await importEdges(part(context, nodesShare, 1), Table.of(context, made), ends, ids);
  for (const notice of edges.notices) notices.add(notice);
  if (kept.left() > 0) {
    const what = `${formatCount(kept.left())} edges with an end that ${table.file} does not have`;
    notices.add(`${edges.file}: left out ${what}`);
  }
  problems.throwIfAny();
  const facts = await storeNodes(context, nodes);
  const hasNoSplits = columns.split < 0 && columns.masks.length === 0;
  const beside = about === null ? '' : ` with ${about.file}`;
  const list = `list of edges ${basename(source)}${beside}`;
  return { ...facts, hasNoSplits, source: list };
}

async function filesOf(source: string): Promise<{ folder: string; files: EdgeListFiles }> {
  if (!(await stat(source)).isDirectory()) {
    const files = { edges: basename(source), nodes: null, features: null };
    return { folder: dirname(source), files };
  }
  const files = edgeListFiles(await readdir(source));
  if (files !== null) return { folder: source, files };
  const expected = 'one file of edges, and one of labels (its name has "label" in it)';
  throw badFile(
    basename(source),
    `is a folder in which it is not clear what is what: expected ${expected}`,
  );
}

type Read = readonly [Table, NodeColumns, Nodes];

async function describedNodes(
  context: ImportContext,
  folder: string,
  files: EdgeListFiles,
  form: 'CONTENT' | 'FEATURE_LABEL' | 'TARGET',
): Promise<Read> {
  const path = join(folder, files.nodes?.file ?? '');
  const features = files.features === null ? null : join(folder, files.features);
  const { table, columns } = await nodeTable(context, { form, path, features });
  context.problems.throwIfAny();
  return [table, columns, await readNodes(context, table, columns)];
}

/** Nodes are the ends of edges and what is labelled; those without a label have none. */
async function labelledEnds(
  context: ImportContext,
  edges: EdgeList,
  path: string | null,
): Promise<Read> {
  const labels = path === null ? null : await labelsIn(context, path);
  const names = new NodeIds(context.native);
  const add = (id: string) => {
    if (names.numberOf(id) === undefined) names.add(id);
  };
  for await (const rows of edges.rows()) {
    for (const { fields } of rows) {
      for (const at of [edges.ends.source, edges.ends.target]) add(fields[at] ?? '');
    }
  }
  for (const id of labels?.keys() ?? []) add(id);
  const ids = sortedIds(names);
  const rows = async function* (): AsyncGenerator<readonly TableRow[]> {
    yield ids.map((id) => labels?.get(id) ?? { line: 0, fields: [id, ''] });
  };
  const file = path === null ? edges.file : basename(path);
  const table = Table.of(context, { file, columns: ['id', 'label'], fraction: 1, rows });
  const columns = { id: 0, labels: path === null ? [] : [1], split: -1, masks: [], features: [] };
  return [table, columns, await readNodes(context, table, columns)];
}

/** Rows of a file of labels by their nodes. */
async function labelsIn(
  context: ImportContext,
  path: string,
): Promise<ReadonlyMap<string, TableRow>> {
  const labels = new Map<string, TableRow>();
  const opened = await openEdgeList(context, path);
  if (opened.further > 0) throw badFile(opened.file, notLabels(2 + opened.further));
  const table = Table.of(context, opened);
  for await (const rows of table.batches()) {
    for (const row of rows) {
      const id = textOf(row.fields[0] ?? '');
      if (labels.has(id)) table.problem(row, `has the node '${id}' again`, 'with a node again');
      labels.set(id, row);
    }
  }
  table.countProblems();
  return labels;
}

function notLabels(columns: number): string {
  const found = `has ${columns} columns, and a file of labels has two: a node and its label`;
  return `${found}; a table of nodes with more is called nodes.csv, beside edges.csv`;
}

/** In the order of their numbers where all are numbers, else in that in which they came. */
function sortedIds(names: NodeIds): readonly string[] {
  const ids = names.first(names.size);
  const areNumbers = ids.every((id) => wholeNumber.test(id));
  return areNumbers ? ids.toSorted((a, b) => Number(a) - Number(b)) : ids;
}

/** Edges between known nodes: collections of citations name papers that they do not have. */
function keptEdges(edges: EdgeList, ids: NodeIds) {
  let left = 0;
  const { source, target } = edges.ends;
  const isKnown = (id: string | undefined) => id !== undefined && ids.numberOf(id) !== undefined;
  const rows = async function* () {
    for await (const batch of edges.rows()) {
      const known = batch.filter(
        ({ fields }) => fields.length < 2 || (isKnown(fields[source]) && isKnown(fields[target])),
      );
      left += batch.length - known.length;
      yield known;
    }
  };
  return { rows, left: () => left };
}
