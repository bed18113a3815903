import { existsSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { ArrayImport } from './array-import.ts';
import { folderArrays, npzArrays } from './array-set.ts';
import { fileChunks, fileLines } from './byte-streams.ts';
import { ignoredColumns } from './column-names.ts';
import { OtherFormat } from './converted-formats.ts';
import type { DatasetFacts } from './dataset-writer.ts';
import { edgeColumns, importEdges } from './edge-import.ts';
import { type ImportContext, part } from './import-context.ts';
import { idProblem, NodeIds } from './node-ids.ts';
import { readZipDirectory } from './npz.ts';
import { badFile, formatCount } from './problems.ts';
import { Table } from './table.ts';
import { shown } from './table-columns.ts';
import { tablePath } from './table-files.ts';
import { importTables } from './table-import.ts';
import { importLinksBeside } from './target-links.ts';

/** Folders that have .npy files, and .npz files. */

/** Imports a folder of .npy files, with or without a meta.json. */
export async function importNpyFolder(context: ImportContext): Promise<DatasetFacts> {
  const facts = await new ArrayImport(context, await folderArrays(context)).run();
  await copyNames(context, numNodesOf(context));
  await importLinksBeside(context);
  return facts;
}

/**
 * Imports one .npz file with the arrays of a folder as members. Throws OtherFormat for an archive
 * of something else.
 */
export async function importNpzFile(context: ImportContext): Promise<DatasetFacts> {
  const members = [...(await readZipDirectory(context.source)).keys()];
  const has = (pattern: RegExp) => members.some((name) => pattern.test(name));
  // TorchScript, a model, has constants beside its data.
  if (has(/(^|\/)data\.pkl$/) && !has(/(^|\/)constants\.pkl$/)) throw new OtherFormat('PYG');
  const benchmark = ['adj_indptr.npy', 'node_features.npy'];
  if (benchmark.some((name) => members.includes(name))) throw new OtherFormat('BENCHMARK_NPZ');
  if (['format.npy', 'shape.npy', 'indptr.npy'].every((name) => members.includes(name))) {
    const what = 'is a matrix of scipy.sparse.save_npz, with nothing but edges';
    const remedy = 'in Python client.import_scipy(PATH, NAME, features=…, labels=…) takes it';
    throw badFile(basename(context.source), `${what}: ${remedy}`);
  }
  if (context.directed) {
    const why = 'arrays say their direction themselves';
    throw badFile('directed', `is for lists of edges, and this is an .npz file of arrays: ${why}`);
  }
  return await new ArrayImport(context, await npzArrays(context)).run();
}

/** Imports a table of edges, with a table of nodes or arrays of what a node has. */
export async function importTableFolder(context: ImportContext): Promise<DatasetFacts> {
  const { source } = context;
  const hasArrays = (await readdir(source)).some((name) => name.endsWith('.npy'));
  if (!hasArrays || tablePath(source, 'nodes') !== null) return await importTables(context);
  const edges = async (numNodes: number) => {
    const ids = await namedIds(context, numNodes);
    const table = await Table.open(context, 'edges');
    const ignored = ignoredColumns(context, [table])(table);
    const ends = edgeColumns(table, ignored, context.notices);
    context.problems.throwIfAny();
    if (ends !== null) await importEdges(part(context, arraysShare, 1), table, ends, ids);
  };
  const set = { ...(await folderArrays(context)), edges, undirected: !context.directed };
  const facts = await new ArrayImport(part(context, 0, arraysShare), set).run();
  await copyNames(context, numNodesOf(context));
  await importLinksBeside(context);
  return { ...facts, source: `arrays and edges ${basename(source)}` };
}

/** Where the arrays end, of 1. */
const arraysShare = 0.5;

/** The lines of `names.txt`, where there is one; else nodes are called by their numbers. */
async function namedIds(
  { source, problems, native }: ImportContext,
  numNodes: number,
): Promise<NodeIds> {
  const path = join(source, 'names.txt');
  if (!existsSync(path)) return NodeIds.counted(native, numNodes);
  const ids = new NodeIds(native);
  let line = 0;
  for await (const name of fileLines(path)) {
    line += 1;
    const wrong = idProblem(name);
    if (wrong === null && ids.add(name) !== null) continue;
    const what = `has the id '${shown(name)}' ${wrong ?? 'again, ids must be unique'}`;
    problems.add(`names.txt:${line}`, what);
  }
  // The graph has a row for each node, however many lines there are.
  if (ids.size !== numNodes) problems.add('names.txt', linesProblem(line, numNodes));
  problems.throwIfAny();
  return ids;
}

function linesProblem(lines: number, nodes: number): string {
  const expected = `expected one for each of the ${formatCount(nodes)} nodes`;
  return `has ${formatCount(lines)} lines, ${expected}`;
}

function numNodesOf({ writer }: ImportContext): number {
  return (writer.written('indptr')?.rows ?? 1) - 1;
}

/** Nobody reads on where names are longer. */
const nameMaxBytes = 1 << 20;

/** What `names.txt` calls the nodes, where there is one. */
export async function copyNames(context: ImportContext, nodes: number): Promise<void> {
  const { source, writer, problems, signal } = context;
  const path = join(source, 'names.txt');
  if (!existsSync(path)) return;
  let lines = 0;
  let last = 0;
  let lineBytes = 0;
  const chunks = async function* (): AsyncGenerator<Uint8Array> {
    for await (const chunk of fileChunks(path)) {
      signal.throwIfAborted();
      for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) lines += 1;
      last = chunk.at(-1) ?? last;
      const end = chunk.lastIndexOf(10);
      lineBytes = end < 0 ? lineBytes + chunk.length : chunk.length - end - 1;
      if (lineBytes > nameMaxBytes) {
        const what = `has more than ${nameMaxBytes} bytes, expected the name of a node`;
        throw badFile(`names.txt:${lines + 1}`, what);
      }
      yield chunk;
    }
  };
  await writer.writeNames(chunks());
  if (last !== 10 && (await stat(path)).size > 0) lines += 1;
  if (lines !== nodes) problems.add('names.txt', linesProblem(lines, nodes));
}
