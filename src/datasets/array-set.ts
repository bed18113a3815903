import { readdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { typed } from '../base/advice.ts';
import type { DatasetTask } from '../records/dataset-record.ts';
import type { ImportContext } from './import-context.ts';
import { zipLooksLike } from './looks-like.ts';
import { type Meta, readMeta } from './meta.ts';
import { type NpySource, openNpyFile, openNpyStream } from './npy.ts';
import { readZipDirectory, readZipMember } from './npz.ts';
import { badFile } from './problems.ts';

/** The arrays of a source by what they mean, whether files of a folder or members of an .npz. */
export interface ArraySet {
  /** For people. */
  readonly source: string;
  /** Names of all arrays there are, without .npy. */
  readonly names: readonly string[];
  /** The name of the array that is `role` here, or null. */
  nameOf(role: ArrayRole): string | null;
  /** How messages call the array of a role, also of one that is missing. */
  pathOf(role: ArrayRole): string;
  /** Bytes of all arrays that have a role. */
  readonly totalBytes: number;
  /** REQUIRES: the role has an array. */
  open(role: ArrayRole): Promise<NpySource>;
  readonly meta: Meta | null;
  /** A graph that is no array here. */
  readonly edges: EdgeList | null;
  /** What the source says beside a meta.json; null: nothing. */
  readonly undirected: boolean | null;
  readonly classNames: readonly string[] | null;
  /** What the columns of features are called; null: the source does not say. */
  readonly featureNames: readonly string[] | null;
  /** Arrays have the element types that somebody chose, and not those of a format. */
  readonly keepsTypes: boolean;
  /** What its format or meta.json says is learnt of a node; null: what the labels tell. */
  readonly task: DatasetTask | null;
  /** An `edge_index` is stored as a table of edges is: each once, in both directions by default. */
  readonly isTable: boolean;
}

/** Writes the graph of a list of edges between so many nodes. */
export type EdgeList = (numNodes: number) => Promise<void>;

/**
 * What an array may be to a dataset, and the names it goes by: ours first, then those of PyTorch
 * Geometric, OGB and DGL.
 */
const aliases = {
  indptr: ['indptr'],
  indices: ['indices'],
  edge_index: ['edge_index'],
  features: ['features', 'x', 'feat'],
  labels: ['labels', 'y', 'label'],
  train: ['train', 'train_idx', 'train_mask'],
  val: ['val', 'val_idx', 'val_mask', 'valid', 'valid_idx', 'valid_mask'],
  test: ['test', 'test_idx', 'test_mask'],
  edge_weights: ['edge_weights', 'edge_weight'],
} as const satisfies Readonly<Record<string, readonly [string, ...string[]]>>;

export type ArrayRole = keyof typeof aliases;
const roles = Object.keys(aliases) as readonly ArrayRole[];

/** Arrays that PyTorch Geometric saves and gnnd has no use for, and why. */
const unusedBecause: ReadonlyMap<string, string> = new Map([
  ['edge_attr', 'models here read no edge features; a weight per edge is edge_weights'],
  ['edge_type', 'graphs here have one type of edge'],
  ['node_type', 'graphs here have one type of node'],
  ['pos', 'append its columns to the features to use them'],
  ['batch', 'a dataset here is one graph'],
]);

/** A folder of .npy files, with or without a meta.json. */
export async function folderArrays(context: ImportContext): Promise<ArraySet> {
  const { source: folder, signal } = context;
  const files = (await readdir(folder)).filter((name) => name.endsWith('.npy'));
  const sizes = new Map<string, number>();
  for (const name of files) sizes.set(stemOf(name), (await stat(join(folder, name))).size);
  return arraySet(context, {
    source: `npy folder ${basename(folder)}`,
    names: files.map(stemOf),
    pathOf: (name) => `${name}.npy`,
    bytesOf: (name) => sizes.get(name) ?? 0,
    open: (name) => openNpyFile(join(folder, `${name}.npy`), signal),
    meta: await readMeta(context),
    keepsTypes: true,
  });
}

/** One .npz file. Throws ImportFailure for a ZIP archive of something else. */
export async function npzArrays(context: ImportContext): Promise<ArraySet> {
  const { source: path, signal } = context;
  return arraySet(context, { ...(await npzMembers(path, signal)), keepsTypes: true });
}

/** The arrays of an .npz file by their names. */
export async function npzMembers(path: string, signal: AbortSignal): Promise<NamedArrays> {
  const file = basename(path);
  const members = await readZipDirectory(path);
  const names = [...members.keys()];
  const arrays = names.filter((name) => name.endsWith('.npy'));
  if (arrays.length === 0) {
    const { what, remedy } = zipLooksLike(names);
    throw badFile(file, `${what}: ${remedy.replaceAll(/\bFILE\b/g, typed(path))}`);
  }
  return {
    source: `npz file ${file}`,
    names: arrays.map(stemOf),
    pathOf: (name) => `${file}/${name}.npy`,
    bytesOf: (name) => members.get(`${name}.npy`)?.bytes ?? 0,
    open: (name) => {
      const member = members.get(`${name}.npy`);
      if (member === undefined) throw badFile(`${file}/${name}.npy`, 'is missing');
      const chunks = readZipMember(path, member, signal);
      return openNpyStream(`${file}/${name}.npy`, member.bytes, chunks, signal);
    },
  };
}

/** Arrays by name, and what the source says beside them. */
export interface NamedArrays {
  readonly source: string;
  readonly names: readonly string[];
  readonly pathOf: (name: string) => string;
  readonly bytesOf: (name: string) => number;
  readonly open: (name: string) => Promise<NpySource>;
  readonly meta?: Meta | null;
  readonly edges?: EdgeList | null;
  readonly undirected?: boolean | null;
  readonly classNames?: readonly string[] | null;
  readonly featureNames?: readonly string[] | null;
  readonly keepsTypes?: boolean;
  readonly task?: DatasetTask | null;
  readonly isTable?: boolean;
}

/** Finds out what each array is; one that is nothing becomes a notice. */
export function arraySet({ problems, notices }: ImportContext, arrays: NamedArrays): ArraySet {
  const { source, names, pathOf, bytesOf, open, meta = null, edges = null } = arrays;
  const { undirected = null, classNames = null, task = meta?.task ?? null } = arrays;
  const { featureNames = null } = arrays;
  const byRole = new Map<ArrayRole, string>();
  for (const role of roles) {
    const [name, ...others] = aliases[role].filter((alias) => names.includes(alias));
    if (name === undefined) continue;
    byRole.set(role, name);
    for (const other of others) {
      problems.add(pathOf(other), `is the same as ${pathOf(name)}, expected one of them`);
    }
  }
  if (byRole.has('edge_index') && byRole.has('indptr')) {
    problems.add(pathOf('edge_index'), `is the same graph as ${pathOf('indptr')}, expected one`);
  }
  const used = new Set<string>(Object.values(aliases).flat());
  for (const name of names.filter((each) => !used.has(each)).sort()) {
    const why = unusedBecause.get(name);
    notices.add(`${pathOf(name)} is not used${why === undefined ? '' : `: ${why}`}`);
  }
  const nameOf = (role: ArrayRole): string | null => byRole.get(role) ?? null;
  return {
    source,
    names,
    nameOf,
    pathOf: (role) => pathOf(byRole.get(role) ?? role),
    totalBytes: [...byRole.values()].reduce((sum, name) => sum + bytesOf(name), 0),
    open: (role) => open(byRole.get(role) ?? role),
    ...{
      meta,
      edges,
      undirected,
      classNames,
      featureNames,
      task,
      isTable: arrays.isTable ?? false,
    },
    keepsTypes: arrays.keepsTypes ?? false,
  };
}

function stemOf(file: string): string {
  return file.slice(0, -'.npy'.length);
}
