import { mkdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Relation } from '../records/dataset-record.ts';
import { counted } from '../spec/counted.ts';
import { type RelationName, relationText } from '../spec/job-relations.ts';
import { DatasetWriter } from './dataset-writer.ts';
import { EdgeSorter, sideBySide } from './edge-sorter.ts';
import { writeRows } from './graph-writer.ts';
import type { ImportContext } from './import-context.ts';
import { type NpyOrders, openNpyFile } from './npy.ts';
import { formatCount, ImportFailure } from './problems.ts';
import { type EdgeEnds, edgesOfPairs, edgesOfRows } from './typed-edges.ts';
import type { RelationSource } from './typed-layout.ts';
import { reversedName } from './typed-schema.ts';

/** Relations of a source as those of a dataset: rows that ascend, each edge once. */

export interface RelationWritten {
  readonly relation: Relation;
  readonly writer: DatasetWriter;
}

type Counts = ReadonlyMap<string, number>;

/** Null where the edges are none, which is told. */
export async function importRelation(
  context: ImportContext,
  source: RelationSource,
  types: Counts,
): Promise<RelationWritten | null> {
  const { problems, notices } = context;
  const isPairs = source.form === 'PAIRS';
  try {
    const edges = isPairs
      ? edgesOfPairs(opener(context, source.path, 'ANY'), (what) =>
          notices.add(`${source.path} ${what}`),
        )
      : edgesOfRows(
          opener(context, `${source.path}/indptr.npy`),
          opener(context, `${source.path}/indices.npy`),
          types.get(source.destination) ?? 0,
        );
    const where = isPairs ? source.path : `${source.path}/indices.npy`;
    return await writeRelation(context, source, { edges, types, where });
  } catch (error) {
    if (!(error instanceof ImportFailure)) throw error;
    // Readers call a file by its last name.
    const folder = isPairs ? dirname(source.path) : source.path;
    const placed = error.problems.map(({ path, description }) => ({
      path: path.includes('/') ? path : `${folder}/${path}`,
      description,
    }));
    problems.addAll(placed, error.problemCount);
    return null;
  }
}

/**
 * The relation with its edges in the other direction, made of what was written of it; null where
 * that has each edge both ways, so that the reverse is the relation itself.
 */
export async function reverseRelation(
  context: ImportContext,
  { relation, writer }: RelationWritten,
  types: Counts,
): Promise<RelationWritten | null> {
  const written = (name: string) => () => openNpyFile(join(writer.folder, name), context.signal);
  const numRows = types.get(relation.destination) ?? 0;
  const given = edgesOfRows(written('indptr.npy'), written('indices.npy'), numRows);
  const edges = turned(given);
  const where = `edges/${relationText(relation)}`;
  const made = await writeRelation(context, reversedName(relation), { edges, types, where });
  if (made === null) return null;
  const digestOf = (of: DatasetWriter) => arrays.map((name) => of.written(name)?.sha256).join();
  if (relation.source === relation.destination && digestOf(made.writer) === digestOf(writer)) {
    await rm(made.writer.folder, { recursive: true });
    return null;
  }
  return { ...made, relation: { ...made.relation, reverse_of: relationText(relation) } };
}

const arrays = ['indptr', 'indices'] as const;

async function* turned(edges: AsyncGenerator<EdgeEnds>): AsyncGenerator<EdgeEnds> {
  for await (const { sources, targets } of edges) yield { sources: targets, targets: sources };
}

function opener({ source, signal }: ImportContext, path: string, orders: NpyOrders = 'C') {
  return () => openNpyFile(join(source, path), signal, orders);
}

interface Listed {
  readonly edges: AsyncGenerator<EdgeEnds>;
  readonly types: Counts;
  /** What messages call the edges. */
  readonly where: string;
}

/** Null where an end is no node, which is told of all such ends. */
async function writeRelation(
  context: ImportContext,
  name: RelationName,
  { edges, types, where }: Listed,
): Promise<RelationWritten | null> {
  const { native, notices, problems, signal } = context;
  const folder = join(context.writer.folder, 'edges', relationText(name));
  await mkdir(folder, { recursive: true });
  const numSources = types.get(name.source) ?? 0;
  const numNodes = types.get(name.destination) ?? 0;
  const sorter = new EdgeSorter(native, {
    ...{ numNodes, numSources, folder },
    ...{ isWeighted: false, keep: 'ONCE', bothWays: false },
  });
  const ends = [
    new EndCheck(name.source, numSources, 'source'),
    new EndCheck(name.destination, numNodes, 'destination'),
  ] as const;
  const writer = new DatasetWriter(folder);
  try {
    let isClean = true;
    for await (const { sources, targets } of edges) {
      signal.throwIfAborted();
      const areNodes = [ends[0].see(sources), ends[1].see(targets)];
      isClean &&= areNodes.every((each) => each);
      if (!isClean) continue;
      const block = { ends: sideBySide(sources, targets), weights: null };
      sorter.addAll({ ...block, lines: new Uint32Array(), firstLine: 0 });
      await sorter.settle();
    }
    for (const description of ends.flatMap((end) => end.problem ?? [])) {
      problems.add(where, description);
    }
    if (!isClean) return null;
    await writeRows(sorter, { isWeighted: false }, writer, () => undefined);
    if (sorter.duplicates > 0) {
      const repeated = counted(sorter.duplicates, 'edge that is', 'edges that are');
      notices.add(`${relationText(name)}: ${repeated} listed again and stored once`);
    }
    const numEdges = writer.written('indices')?.rows ?? 0;
    return { relation: { ...named(name), num_edges: numEdges }, writer };
  } finally {
    await sorter.close();
    await writer.close();
  }
}

function named({ source, name, destination }: RelationName): RelationName {
  return { source, name, destination };
}

/** Whether the ends of edges on one side are nodes of its type. */
class EndCheck {
  readonly #type: string;
  readonly #numNodes: number;
  readonly #side: string;
  #first = '';
  #count = 0;
  #passed = 0;

  constructor(type: string, numNodes: number, side: string) {
    this.#type = type;
    this.#numNodes = numNodes;
    this.#side = side;
  }

  /** False: one of them is none. */
  see(ids: Uint32Array): boolean {
    const before = this.#count;
    for (let at = 0; at < ids.length; at += 1) {
      const id = ids[at] ?? 0;
      if (id < this.#numNodes) continue;
      if (this.#count === 0) this.#first = `${id} of edge ${this.#passed + at}`;
      this.#count += 1;
    }
    this.#passed += ids.length;
    return this.#count === before;
  }

  /** Null: all are. */
  get problem(): string | null {
    if (this.#count === 0) return null;
    const more = this.#count > 1 ? ` and ${formatCount(this.#count - 1)} more` : '';
    const expected = `expected ids below the ${formatCount(this.#numNodes)} nodes of ${this.#type}`;
    return `has the ${this.#side} ${this.#first}${more}, ${expected}`;
  }
}
