import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../base/errors.ts';
import { type RelationName, relationText } from '../spec/job-relations.ts';
import { meantBy } from '../spec/nearest.ts';
import { sourceText } from './byte-streams.ts';
import type { ImportContext } from './import-context.ts';
import { badFile, formatCount } from './problems.ts';
import {
  inOrder,
  isTypedName,
  nameRule,
  relationOf,
  relationsMax,
  typesMax,
} from './typed-schema.ts';

/** What a folder of several types has, by names and before any array is read. */

/** Edges of a relation: pairs of ids, or rows of a CSC. */
export interface RelationSource extends RelationName {
  /** Path below the source: a file of pairs, or a folder of `indptr.npy` and `indices.npy`. */
  readonly path: string;
  readonly form: 'PAIRS' | 'ROWS';
}

export interface TypedLayout {
  /** Nodes of each type, in the order of their names. */
  readonly types: ReadonlyMap<string, number>;
  /** Types that have a folder in `nodes`. */
  readonly described: ReadonlySet<string>;
  /** In the order of their names. */
  readonly relations: readonly RelationSource[];
  /** Entries of `links`. */
  readonly links: readonly string[];
}

type Looking = Pick<ImportContext, 'source' | 'problems' | 'notices'>;

const typesFile = 'types.json';
const typesBytesMax = 1 << 24;
/** Ids are 32 bits, and the last one is kept free. */
const nodesMax = 2 ** 32 - 2;
const form = 'edges/SOURCE__RELATION__DESTINATION.npy';

/** Looks at the folder; what cannot be is a problem. Throws ImportFailure without types. */
export async function typedLayout(looking: Looking): Promise<TypedLayout> {
  const types = await readTypes(looking);
  return {
    types,
    described: await describedTypes(looking, types),
    relations: await relationSources(looking, types),
    links: await entriesOf(looking.source, 'links'),
  };
}

async function readTypes({ source, problems, notices }: Looking) {
  const expected = 'expected the number of nodes of each type, {"author": 5, "paper": 9}';
  const text = await sourceText(join(source, typesFile), typesBytesMax);
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw badFile(typesFile, `is not JSON: ${messageOf(error)}; ${expected}`);
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw badFile(typesFile, `is no object: ${expected}`);
  }
  const found = new Map<string, number>();
  for (const [name, count] of inOrder(Object.entries(parsed), ([key]) => key)) {
    // Lists are names of nodes, or notes of whoever made the folder.
    if (typeof count === 'object' && count !== null) {
      notices.add(`${typesFile}: ${name} is not used: it is no number of nodes`);
      continue;
    }
    if (!isTypedName(name)) problems.add(typesFile, `has the type '${name}': ${nameRule}`);
    if (Number.isInteger(count) && count >= 1 && count <= nodesMax) found.set(name, count);
    else {
      const range = `expected a number of nodes from 1 to ${formatCount(nodesMax)}`;
      problems.add(typesFile, `says ${name} is ${JSON.stringify(count)}, ${range}`);
      // Its name is known all the same: that other files use it is no second mistake.
      found.set(name, nodesMax);
    }
  }
  if (found.size === 0) problems.add(typesFile, `has no type: ${expected}`);
  if (found.size > typesMax) {
    problems.add(typesFile, `has ${found.size} types, expected at most ${typesMax}`);
  }
  return found;
}

async function describedTypes({ source, problems, notices }: Looking, types: TypedLayout['types']) {
  const described = new Set<string>();
  for (const name of await entriesOf(source, 'nodes')) {
    const isFolder = (await stat(join(source, 'nodes', name))).isDirectory();
    if (!isFolder) notices.add(`nodes/${name} is not used: it is no folder of a type`);
    else if (types.has(name)) described.add(name);
    else problems.add(`nodes/${name}`, unknownType(name, types));
  }
  return described;
}

function unknownType(name: string, types: TypedLayout['types']): string {
  const known = [...types.keys()];
  return `'${name}' is no type of ${typesFile}${meantBy(name, known)}`;
}

async function relationSources(looking: Looking, types: TypedLayout['types']) {
  const { source, problems } = looking;
  const found = new Map<string, RelationSource>();
  for (const entry of await entriesOf(source, 'edges')) {
    const relation = await relationSource(looking, entry, types);
    if (relation === null) continue;
    const text = relationText(relation);
    const other = found.get(text);
    if (other === undefined) found.set(text, relation);
    else problems.add(relation.path, `is the same relation as ${other.path}, expected one of them`);
  }
  if (found.size === 0 && problems.count === 0) problems.add('edges', `has no relation: ${form}`);
  if (found.size > relationsMax) {
    problems.add('edges', `has ${found.size} relations, expected at most ${relationsMax}`);
  }
  return inOrder(found.values(), relationText);
}

/** Null: it is none, which is told. */
async function relationSource(
  { source, problems, notices }: Looking,
  entry: string,
  types: TypedLayout['types'],
): Promise<RelationSource | null> {
  const path = `edges/${entry}`;
  const isFolder = (await stat(join(source, path))).isDirectory();
  if (!isFolder && !entry.endsWith('.npy')) {
    notices.add(`${path} is not used: it is no .npy file`);
    return null;
  }
  const name = relationOf(isFolder ? entry : entry.slice(0, -'.npy'.length));
  if (name === null) {
    problems.add(path, `is called after no relation: expected ${form}; of names: ${nameRule}`);
    return null;
  }
  const unknown = [...new Set([name.source, name.destination])].filter((type) => !types.has(type));
  for (const type of unknown) problems.add(path, unknownType(type, types));
  if (unknown.length > 0) return null;
  if (!isFolder) return { ...name, path, form: 'PAIRS' };
  return await folderSource({ source, problems, notices }, path, name);
}

/** Arrays of edges that datasets of several types have no place for yet. */
const notYet = new Set(['weights', 'edge_weights', 'edge_weight', 'features', 'times'].map(npy));

async function folderSource(
  { source, problems, notices }: Looking,
  path: string,
  name: RelationName,
): Promise<RelationSource | null> {
  const names = await entriesOf(source, path);
  const pairs = ['pairs.npy', 'edge_index.npy'].filter((each) => names.includes(each));
  const rows = ['indptr.npy', 'indices.npy'].filter((each) => names.includes(each));
  for (const other of names.filter((each) => ![...pairs, ...rows].includes(each))) {
    const why = 'several types take edges alone so far; remove it to import them without';
    if (notYet.has(other)) problems.add(`${path}/${other}`, why);
    else notices.add(`${path}/${other} is not used`);
  }
  const [listed] = pairs;
  if (pairs.length + Math.min(rows.length, 1) > 1) {
    problems.add(path, `has ${[...pairs, ...rows].join(', ')}: expected the edges once`);
  } else if (listed !== undefined) return { ...name, path: `${path}/${listed}`, form: 'PAIRS' };
  else if (rows.length === 2) return { ...name, path, form: 'ROWS' };
  else problems.add(path, 'expected indptr.npy and indices.npy in it, or pairs.npy');
  return null;
}

function npy(stem: string): string {
  return `${stem}.npy`;
}

/** Names in a folder of the source that no file manager hides, in order; none where it is none. */
async function entriesOf(source: string, folder: string): Promise<readonly string[]> {
  const names = await readdir(join(source, folder)).catch(() => []);
  return names.filter((name) => !name.startsWith('.')).sort();
}
