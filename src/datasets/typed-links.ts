import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { relationText } from '../spec/job-relations.ts';
import { meantBy } from '../spec/nearest.ts';
import type { ImportContext } from './import-context.ts';
import { NoticeList } from './notices.ts';
import { openNpyFile } from './npy.ts';
import { ImportFailure, ProblemList } from './problems.ts';
import { importLinks } from './target-links.ts';
import { edgesOfPairs } from './typed-edges.ts';
import type { TypedLayout } from './typed-layout.ts';
import type { RelationWritten } from './typed-relations.ts';

/**
 * Links of relations, which jobs are to learn: `links/SOURCE__RELATION__DESTINATION/train.npy` and
 * what stands beside it, as links of a graph of one type. Those that lie in `links` itself are of
 * the relation that has them for edges.
 */

const form = 'links/SOURCE__RELATION__DESTINATION';

/** Adds links to the relations; what is wrong becomes problems. */
export async function importTypedLinks(
  context: ImportContext,
  { links, types }: TypedLayout,
  relations: readonly RelationWritten[],
): Promise<readonly RelationWritten[]> {
  const { problems, notices, source } = context;
  const known = relations.map(({ relation }) => relationText(relation));
  const bare = links.filter((name) => name.endsWith('.npy'));
  const places = new Map<string, string>();
  for (const name of links.filter((each) => !bare.includes(each))) {
    if (known.includes(name)) places.set(name, `links/${name}`);
    else problems.add(`links/${name}`, `is called after no relation here${meantBy(name, known)}`);
  }
  if (bare.includes('train.npy')) {
    const found = await relationOfLinks(context, relations).catch((error: unknown) => {
      if (!(error instanceof ImportFailure)) throw error;
      return { problem: error.problems[0]?.description ?? '' };
    });
    if (typeof found !== 'string') problems.add('links/train.npy', found.problem);
    else if (places.has(found)) problems.add(`links/${found}`, 'is there beside links/train.npy');
    else {
      places.set(found, 'links');
      notices.add(`links/train.npy says no relation, and is of ${found}, whose edges it has`);
    }
  } else if (bare.length > 0) {
    problems.add(`links/${bare[0]}`, `says no relation: expected it in ${form}`);
  }
  const filled: RelationWritten[] = [];
  for (const written of relations) {
    const place = places.get(relationText(written.relation));
    const path = place === undefined ? null : { place, folder: join(source, place) };
    filled.push(path === null ? written : await withLinks(context, written, types, path));
  }
  return filled;
}

async function withLinks(
  context: ImportContext,
  { relation, writer }: RelationWritten,
  types: TypedLayout['types'],
  { place, folder }: { readonly place: string; readonly folder: string },
): Promise<RelationWritten> {
  const problems = new ProblemList();
  const notices = new NoticeList();
  const numNodes = [types.get(relation.source) ?? 0, types.get(relation.destination) ?? 0] as const;
  const isOneType = relation.source === relation.destination;
  await importLinks({ ...context, writer, problems, notices }, { folder, numNodes, isOneType });
  await writer.close();
  // Whoever reads links calls their folder `links`.
  const placed = (text: string) => text.replaceAll(/\blinks\//g, `${place}/`);
  const found = problems.kept.map(({ path, description }) => ({
    path: placed(path),
    description: placed(description),
  }));
  context.problems.addAll(found, problems.count);
  for (const notice of notices.kept)
    context.notices.add(`${relationText(relation)}: ${placed(notice)}`);
  const { links } = writer;
  return links === null ? { relation, writer } : { relation: { ...relation, links }, writer };
}

/** Training links that are looked for among edges, spread over all. */
const lookedForMax = 1000;

/** The only relation whose edges training links are. */
async function relationOfLinks(
  { source, signal }: ImportContext,
  relations: readonly RelationWritten[],
): Promise<string | { readonly problem: string }> {
  const pairs: (readonly [number, number])[] = [];
  const path = join(source, 'links', 'train.npy');
  const { header } = await openNpyFile(path, signal, 'ANY').then(async (array) => {
    await array.close();
    return array;
  });
  const count = Math.max(...header.shape, 1);
  const step = Math.ceil(count / lookedForMax);
  let at = 0;
  for await (const { sources, targets } of edgesOfPairs(
    () => openNpyFile(path, signal, 'ANY'),
    () => {},
  )) {
    for (let edge = 0; edge < sources.length; edge += 1) {
      if (at % step === 0) pairs.push([sources[edge] ?? 0, targets[edge] ?? 0]);
      at += 1;
    }
  }
  const found: string[] = [];
  for (const { relation, writer } of relations) {
    const rows = await RowFiles.open(writer.folder, signal);
    try {
      if (await rows.haveAll(pairs)) found.push(relationText(relation));
    } finally {
      await rows.close();
    }
  }
  const [only, ...others] = found;
  if (only !== undefined && others.length === 0) return only;
  const which = only === undefined ? 'no relation' : `each of ${found.join(', ')}`;
  return {
    problem: `says no relation, and ${which} has its links for edges: expected it in ${form}`,
  };
}

/** Rows of a relation that was written. */
class RowFiles {
  readonly #files: readonly [FileHandle, FileHandle];
  readonly #dataAt: readonly [number, number];
  readonly #numRows: number;

  private constructor(
    files: readonly [FileHandle, FileHandle],
    dataAt: readonly [number, number],
    numRows: number,
  ) {
    this.#files = files;
    this.#dataAt = dataAt;
    this.#numRows = numRows;
  }

  static async open(folder: string, signal: AbortSignal): Promise<RowFiles> {
    const paths = [join(folder, 'indptr.npy'), join(folder, 'indices.npy')] as const;
    const [indptr, indices] = [
      await openNpyFile(paths[0], signal),
      await openNpyFile(paths[1], signal),
    ];
    await indptr.close();
    await indices.close();
    const files = [await open(paths[0]), await open(paths[1])] as const;
    const dataAt = [indptr.place?.dataAt ?? 0, indices.place?.dataAt ?? 0] as const;
    return new RowFiles(files, dataAt, (indptr.header.shape[0] ?? 1) - 1);
  }

  async haveAll(pairs: readonly (readonly [source: number, target: number])[]): Promise<boolean> {
    for (const [source, target] of pairs) {
      if (target >= this.#numRows || !(await this.#row(target)).includes(source)) return false;
    }
    return pairs.length > 0;
  }

  async #row(target: number): Promise<Uint32Array> {
    const ends = new BigInt64Array(2);
    await this.#read(0, ends, target * ends.BYTES_PER_ELEMENT);
    const [start = 0, end = 0] = [...ends].map(Number);
    const row = new Uint32Array(end - start);
    await this.#read(1, row, start * row.BYTES_PER_ELEMENT);
    return row;
  }

  async #read(file: 0 | 1, into: BigInt64Array | Uint32Array, at: number): Promise<void> {
    if (into.length > 0) {
      await this.#files[file].read(into, 0, into.byteLength, this.#dataAt[file] + at);
    }
  }

  async close(): Promise<void> {
    for (const file of this.#files) await file.close();
  }
}
