import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { NativeReader } from '../../../src/datasets/read-source.ts';
import { prepareFolder, runImport } from '../../../src/datasets/run-import.ts';
import type {
  ImportChoices,
  TypedManifest,
  TypedStory,
} from '../../../src/records/dataset-record.ts';
import {
  int64,
  makeFolder,
  never,
  noChoices,
  npy,
  numbersOf,
  tasksWith,
  trustingValidator,
} from './workbench.ts';

/** Sources of several types, and what their imports leave. */

export type Files = Readonly<Record<string, string | Uint8Array>>;

/** A folder that has these files, in folders of their own where their names say so. */
export function typedFolder(files: Files): string {
  const folder = makeFolder();
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
  return folder;
}

/** Pairs as an array [2, edges]. */
export function pairs(...edges: readonly (readonly [number, number])[]): Buffer {
  const ends = [...edges.map(([source]) => source), ...edges.map(([, target]) => target)];
  return npy('int32', [2, edges.length], Int32Array.from(ends));
}

/** Three papers with features and classes, two authors without; who wrote and what cites what. */
export const library: Files = {
  'types.json': JSON.stringify({ paper: 3, author: 2, author_names: ['ann', 'bob'] }),
  'nodes/paper/features.npy': npy('float32', [3, 2], Float32Array.of(1, 2, 3, 4, 5, 6)),
  'nodes/paper/labels.npy': int64(0, 1, 1),
  'nodes/paper/train.npy': int64(0),
  'nodes/paper/val.npy': int64(1),
  'nodes/paper/test.npy': int64(2),
  'edges/author__writes__paper.npy': pairs([0, 0], [1, 2], [0, 2], [1, 1], [1, 2]),
  'edges/paper__cites__paper.npy': pairs([2, 0], [1, 0], [1, 1]),
};

export interface TypedImported {
  readonly folder: string;
  readonly manifest: TypedManifest;
  readonly story: TypedStory;
  readonly notices: readonly string[];
  readonly digest: string;
  /** Elements of an array. */
  numbers(name: string): number[];
}

interface Asked extends Partial<ImportChoices> {
  readonly native?: NativeReader;
}

/** Imports `source` and keeps the result until the end of the test. */
export async function importTypedFolder(
  source: string,
  { native = trustingValidator(), ...choices }: Asked = {},
): Promise<TypedImported> {
  const parent = makeFolder();
  prepareFolder(parent, true);
  const { manifest, notices, digest } = await runImport({
    ...{ id: 'typed', source, format: 'TYPED_NPY', root: '', folder: parent },
    choices: { ...noChoices, ...choices },
    ...{ validateOnly: false, tasks: tasksWith(native), progress: () => undefined, signal: never },
  });
  if (manifest.version !== 2) throw new Error(`version ${manifest.version} has no types`);
  const folder = join(parent, 'typed');
  const story: TypedStory = JSON.parse(readFileSync(join(folder, 'import.json'), 'utf8'));
  const numbers = (name: string) => numbersOf(join(folder, name));
  return { folder, manifest, story, notices, digest, numbers };
}
