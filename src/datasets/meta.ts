import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../base/errors.ts';
import { type DatasetTask, datasetTasks } from '../records/dataset-record.ts';
import { nearestOf } from '../spec/nearest.ts';
import { sourceText } from './byte-streams.ts';
import { firstRepeated } from './feature-names.ts';
import type { ImportContext } from './import-context.ts';
import { badFile, formatCount, type ProblemList } from './problems.ts';

/** What a meta.json beside the arrays says; all of it is checked against them. */
export interface Meta {
  readonly counts: ReadonlyMap<string, number>;
  readonly undirected: boolean;
  readonly classNames: readonly string[] | null;
  readonly featureNames: readonly string[] | null;
  readonly task: DatasetTask | null;
  readonly sha256: ReadonlyMap<string, string>;
}

const file = 'meta.json';
/** Names of a million classes. */
const maxBytes = 16 << 20;
const countKeys = ['num_nodes', 'num_edges', 'num_features', 'num_classes'] as const;
const splitKeys = ['train', 'val', 'test'] as const;
const known = [
  ...countKeys,
  'split',
  'undirected',
  'class_names',
  'feature_names',
  'task',
  'sha256',
];

/** Null where there is none. What cannot be is a problem; throws ImportFailure for no JSON. */
export async function readMeta({
  source: folder,
  problems,
  notices,
}: Pick<ImportContext, 'source' | 'problems' | 'notices'>): Promise<Meta | null> {
  const path = join(folder, file);
  if (!existsSync(path)) return null;
  let parsed: unknown;
  const text = await sourceText(path, maxBytes);
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw badFile(file, `is not JSON: ${messageOf(error)}`);
  }
  const reader = new MetaReader(problems);
  const root = reader.fields(parsed, 'all of it');
  for (const key of root.keys()) {
    const nearest = known.includes(key) ? null : nearestOf(key, known);
    if (nearest !== null) notices.add(`${file}: ${key} is not used; did you mean ${nearest}?`);
  }
  const split = reader.fields(root.get('split') ?? {}, 'split');
  const counts = new Map<string, number>();
  const count = (key: string, value: unknown) => {
    const found = reader.count(key, value);
    if (found !== null) counts.set(key, found);
  };
  for (const key of countKeys) count(key, root.get(key));
  for (const key of splitKeys) count(`split.${key}`, split.get(key));
  return {
    counts,
    undirected: reader.flag('undirected', root.get('undirected')),
    classNames: reader.names('class_names', root.get('class_names')),
    featureNames: reader.names('feature_names', root.get('feature_names')),
    task: reader.task('task', root.get('task')),
    sha256: reader.sums('sha256', root.get('sha256')),
  };
}

type Fields = ReadonlyMap<string, unknown>;

/** Values as they are expected; what is there and no such value is a problem. */
class MetaReader {
  readonly #problems: ProblemList;

  constructor(problems: ProblemList) {
    this.#problems = problems;
  }

  fields(value: unknown, key: string): Fields {
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    if (!isObject) this.#wrong(key, value, 'an object');
    return new Map(isObject ? Object.entries(value) : []);
  }

  count(key: string, value: unknown): number | null {
    if (value === undefined) return null;
    if (Number.isSafeInteger(value) && Number(value) >= 0) return Number(value);
    this.#wrong(key, value, 'a whole number of 0 or more');
    return null;
  }

  flag(key: string, value: unknown): boolean {
    if (value !== undefined && typeof value !== 'boolean') this.#wrong(key, value, 'true or false');
    return value === true;
  }

  task(key: string, value: unknown): DatasetTask | null {
    const task = datasetTasks.find((each) => each === value) ?? null;
    if (task === null && value !== undefined && value !== null) {
      this.#wrong(key, value, `one of ${datasetTasks.join(', ')}`);
    }
    return task;
  }

  names(key: string, value: unknown): readonly string[] | null {
    if (value === undefined || value === null) return null;
    const isText = (name: unknown): name is string => typeof name === 'string' && name !== '';
    if (!Array.isArray(value) || !value.every(isText)) {
      this.#wrong(key, value, 'a list of texts that are not empty');
      return null;
    }
    const twice = firstRepeated(value);
    if (twice === undefined) return value;
    this.#problems.add(file, `${key} has ${JSON.stringify(twice)} twice`);
    return null;
  }

  sums(key: string, value: unknown): ReadonlyMap<string, string> {
    const sums = new Map<string, string>();
    for (const [name, sum] of this.fields(value ?? {}, key)) {
      if (typeof sum === 'string') sums.set(name, sum);
      else this.#wrong(`${key}.${name}`, sum, 'a SHA-256 in hexadecimal');
    }
    return sums;
  }

  #wrong(key: string, value: unknown, expected: string): void {
    const text = JSON.stringify(value) ?? 'nothing';
    const shown = text.length > 80 ? `${text.slice(0, 80)}…` : text;
    this.#problems.add(file, `says ${key} is ${shown}, expected ${expected}`);
  }
}

/** What was read of the arrays; counts by the keys of meta.json, with the array that has them. */
export interface ReadArrays {
  readonly counts: ReadonlyMap<string, { readonly path: string; readonly count: number }>;
  /** By the names of arrays. */
  readonly sums: ReadonlyMap<string, string>;
  readonly task: DatasetTask;
  /** Classes of the labels that were seen, or columns of labels; 0 without labels. */
  readonly numClasses: number;
  readonly labelsPath: string;
}

/** Adds a problem for each promise that the arrays do not keep. */
export function checkMeta(meta: Meta, read: ReadArrays, problems: ProblemList): void {
  for (const [key, { path, count }] of read.counts) {
    const promised = meta.counts.get(key);
    if (promised === undefined || promised === count) continue;
    const counts = `${formatCount(promised)}, but ${path} has ${formatCount(count)}`;
    problems.add(file, `says ${key} is ${counts}`);
  }
  checkClasses(meta, read, problems);
  for (const [name, sum] of read.sums) {
    const promised = meta.sha256.get(name);
    if (promised === undefined || promised === sum) continue;
    const found = `the one of the array is ${sum}`;
    problems.add(`${name}.npy`, `was changed: ${file} has SHA-256 ${promised}, ${found}`);
  }
}

/** A class may have no node where num_classes says that there is one more. */
function checkClasses(meta: Meta, read: ReadArrays, problems: ProblemList): void {
  const { task, numClasses: seen, labelsPath } = read;
  if (seen === 0) return;
  const isOne = task === 'CLASSIFICATION';
  const promised = meta.counts.get('num_classes') ?? seen;
  const what = isOne ? 'classes' : 'columns';
  if (isOne ? promised < seen : promised !== seen) {
    const has = `${labelsPath} has ${formatCount(seen)} ${what}`;
    problems.add(file, `says num_classes is ${formatCount(promised)}, but ${has}`);
    return;
  }
  const names = meta.classNames?.length ?? promised;
  if (names === promised) return;
  const remedy = isOne && names > promised ? '; num_classes counts those without a node, too' : '';
  const expected = `expected one for each of the ${formatCount(promised)} ${what}${remedy}`;
  problems.add(file, `has ${formatCount(names)} class_names, ${expected}`);
}
