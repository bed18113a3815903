import { cyclesOf } from './cycles.ts';
import { codeOnly, lineOf, type Source, type Violation } from './sources.ts';

/** Which part of native/ may include which; docs/architecture.md says why. */

/** Rooms of core, highest first: a room includes those below it, never one beside it. */
export const coreRanks: Readonly<Record<string, number>> = {
  prepare: 8,
  executor: 7,
  image: 6,
  feature: 6,
  kernels: 6,
  sample: 5,
  ledger: 5,
  model: 5,
  history: 4,
  batch: 3,
  item: 3,
  graph: 3,
  draw: 2,
  metric: 1,
  table: 1,
  vec: 1,
  device: 1,
  base: 0,
};

/** Rooms of train, likewise. */
export const trainRanks: Readonly<Record<string, number>> = {
  work: 5,
  evaluate: 4,
  device: 3,
  input: 2,
  tasks: 1,
  layers: 1,
  ops: 0,
};

const roomRanks: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  core: coreRanks,
  train: trainRanks,
};

/** Areas of native/ and whose headers they see beside their own; tests see more than they test. */
const areas: Readonly<Record<string, readonly string[]>> = {
  // Headers that users' code includes.
  include: ['include'],
  core: ['core', 'include'],
  // Plug-ins of devices, and their kernels.
  cuda: ['cuda', 'core', 'include'],
  probe: ['probe', 'core', 'include'],
  reader: ['reader', 'core'],
  train: ['train', 'core'],
  node: ['node', 'train', 'core'],
  'test/core': ['test', 'reader', 'core', 'include'],
  'test/device': ['test', 'cuda', 'core', 'include'],
  'test/cuda': ['test', 'cuda', 'core', 'include'],
  'test/train': ['test', 'train', 'core'],
  'test/support': ['test', 'core'],
};

/** Libraries that belong to one area, by the headers that bring them. */
const libraries: readonly { header: RegExp; by: RegExp; name: string }[] = [
  {
    header: /^(torch|ATen|c10|caffe2)\//,
    by: /^(train\/|test\/train\/|probe\/torch\.cc)/,
    name: 'libtorch',
  },
  { header: /^(napi|node_api|js_native_api|uv|v8)(\.h|-)/, by: /^node\//, name: 'Node-API' },
  { header: /^(cuda|cublas|cusparse|nccl)/, by: /^cuda\//, name: 'CUDA' },
  { header: /^doctest\//, by: /^test\//, name: 'doctest' },
  { header: /^sys\/mman\.h$/, by: /^(core\/base|cuda\/shim|test)\//, name: 'memory mappings' },
];

interface Include {
  readonly header: string;
  /** Named in quotes, which our own headers are. */
  readonly isOwn: boolean;
  readonly line: number;
}

function includesOf({ text }: Source): readonly Include[] {
  const code = codeOnly(text, 'cc');
  return [...code.matchAll(/^[ \t]*#\s*include\s*(?:"( *)"|<([^>\n]+)>)/gm)].map((match) => {
    const end = match.index + match[0].length - 1;
    const header = text.slice(end - (match[1] ?? match[2] ?? '').length, end);
    return { header, isOwn: match[1] !== undefined, line: lineOf(text, match.index) };
  });
}

/** All violations of one file of native/; `path` counts from native/. */
export function includeViolations(file: Source): readonly Violation[] {
  const { path } = file;
  return includesOf(file).flatMap(({ header, isOwn, line }) => {
    const message = isOwn ? judgeOwn(path, header) : judgeLibrary(path, header);
    return message === null ? [] : [{ path, line, message }];
  });
}

function areaOf(path: string): string {
  const [first = '', second = ''] = path.split('/');
  return first === 'test' ? `test/${second}` : first;
}

function judgeOwn(path: string, header: string): string | null {
  const seen = areas[areaOf(path)];
  if (seen === undefined) return `${areaOf(path)} is no area of native/: add it to test/unit/tidy`;
  const [area = '', room = ''] = header.split('/');
  // Tests and public headers may name a header beside them; everything else is named from native/.
  const isBeside = !header.includes('/');
  if (path.startsWith('include/') && isBeside) return null;
  if (path.startsWith('test/') && (isBeside || area === 'support')) return null;
  if (!['include', 'core', 'cuda', 'probe', 'reader', 'train', 'node', 'test'].includes(area)) {
    return `includes ${header}: name it from native/`;
  }
  if (!seen.includes(area)) return `includes ${header}: upward`;
  const ranks = roomRanks[area];
  if (ranks === undefined || !path.startsWith(`${area}/`)) return null;
  const own = path.split('/')[1] ?? '';
  const [rank, otherRank] = [ranks[own], ranks[room]];
  if (rank === undefined) return `${area}/${own} has no rank: give it one in test/unit/tidy`;
  if (otherRank === undefined) return `includes ${header}: no room of ${area}`;
  if (own === room || otherRank < rank) return null;
  return `includes ${header}: ${otherRank === rank ? 'sideways' : 'upward'}`;
}

function judgeLibrary(path: string, header: string): string | null {
  const rule = libraries.find((library) => library.header.test(header));
  if (rule === undefined || rule.by.test(path)) return null;
  return `includes <${header}>: ${rule.name} is known to ${rule.by.source} only`;
}

/**
 * Headers and their sources that include each other in a circle: each as the paths without endings,
 * in order. A header and the source of the same name are one module.
 */
export function includeCycles(files: readonly Source[]): readonly string[] {
  const moduleOf = (path: string) => path.replace(/\.(h|cc|cuh?)$/, '');
  const known = new Set(files.map(({ path }) => moduleOf(path)));
  const below = new Map<string, Set<string>>([...known].map((module) => [module, new Set()]));
  for (const file of files) {
    const own = moduleOf(file.path);
    for (const { header, isOwn } of includesOf(file)) {
      const beside = file.path.slice(0, file.path.lastIndexOf('/') + 1);
      const target = moduleOf(header.includes('/') ? header : beside + header);
      if (isOwn && target !== own && known.has(target)) below.get(own)?.add(target);
    }
  }
  return cyclesOf(below);
}
