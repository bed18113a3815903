import { posix } from 'node:path';
import { codeOnly, lineOf, type Source, type Violation } from './sources.ts';

/** Which part of src/ may know which; docs/architecture.md says why. */

/** A file imports from lower ranks and from its own room, never sideways. */
export const ranks: Readonly<Record<string, number>> = {
  base: 0,
  spec: 1,
  native: 2,
  store: 2,
  metrics: 2,
  datasets: 3,
  executor: 4,
  supervisor: 5,
  scheduler: 6,
  jobs: 7,
  api: 8,
  'daemon.ts': 9,
  'serve.ts': 10,
  'main.ts': 11,
};

/** Rooms that see fewer others than their rank would allow. */
const onlyFrom: Readonly<Record<string, readonly string[]>> = {
  // A client like any other: the contract, and words shared with the daemon.
  cli: ['cli', 'api/gen', 'spec', 'base'],
  // Pure: its inputs are events.
  scheduler: ['scheduler', 'spec', 'base'],
  spec: ['spec', 'base', 'api/gen'],
};

/** Files that few may import. */
const importers: readonly { target: RegExp; by: RegExp; why: string }[] = [
  {
    target: /^api\/gen\//,
    by: /^(api|cli|spec)\//,
    why: 'only api/, cli/ and spec/ know the generated messages',
  },
  {
    target: /^executor\/(?!protocol\.ts$)/,
    by: /^executor\//,
    why: 'of executor/ others see protocol.ts only',
  },
  { target: /^(main\.ts|executor\/main\.ts|cli\/(main|demo)\.ts)$/, by: /^$/, why: 'entry point' },
];

/** Packages and Node modules that belong to one place. Every package must be listed. */
const owners: readonly { module: RegExp; by: RegExp }[] = [
  { module: /^better-sqlite3$/, by: /^store\// },
  { module: /^prom-client$/, by: /^metrics\// },
  { module: /^piscina$/, by: /^datasets\// },
  { module: /^@grpc\/grpc-js$/, by: /^(api|cli)\// },
  { module: /^@bufbuild\/protobuf(\/|$)/, by: /^(api|cli|spec)\// },
  { module: /^yaml$/, by: /^(cli\/|serve\.ts$)/ },
  { module: /^commander$/, by: /^(cli\/|serve\.ts$)/ },
  { module: /^cli-table3$/, by: /^cli\// },
  // Children of the daemon are the supervisor's. npm fetches a package for an importer; the client
  // looks at the machine (doctor) and starts a daemon of its own (demo).
  {
    module: /^node:child_process$/,
    by: /^(supervisor\/|datasets\/npm-package\.ts$|cli\/(demo|doctor|npm-package)[\w-]*\.ts$)/,
  },
  { module: /^node:module$/, by: /^native\/load\.ts$/ },
  // Reading a large store's file to its end would hold the daemon up.
  { module: /^node:worker_threads$/, by: /^store\/(file-check|check-worker)\.ts$/ },
  { module: /^node:(cluster|vm|inspector)$/, by: /^$/ },
  { module: /^node:/, by: /^(?!scheduler\/|spec\/)/ },
];

/** Reading time anywhere else could not be replaced by a test's clock. */
const timeReaders = /^base\/clock\.ts$/;
const timeCalls =
  /\bDate\.now\b|\bperformance\.(now|timeOrigin)\b|\bprocess\.hrtime\b|\bnew Date\(\s*\)/g;
const timeWaivers: Readonly<Record<string, { call: RegExp; why: string }>> = {
  'executor/main.ts': { call: /^process\.hrtime$/, why: 'how long its own loop ran, for its log' },
};

export interface Import {
  /** A path from src/, or a package. */
  readonly target: string;
  readonly isRelative: boolean;
  /** Erased when compiled, so it cannot make a cycle at run time. */
  readonly isTypeOnly: boolean;
  readonly line: number;
}

/** Static and dynamic imports and re-exports of a file; `path` counts from src/. */
export function importsOf({ path, text }: Source): readonly Import[] {
  const code = codeOnly(text, 'ts');
  const patterns = [
    /^(?<clause>(?:import|export)\b[^;'"=()]*?\bfrom\s*)(?<quote>['"])(?<name> *)\k<quote>/gm,
    /(?<clause>^import\s*)(?<quote>['"])(?<name> *)\k<quote>/gm,
    /(?<clause>\bimport\(\s*)(?<quote>['"])(?<name> *)\k<quote>/g,
  ];
  return patterns.flatMap((pattern) =>
    [...code.matchAll(pattern)].map((match) => {
      const clause = match.groups?.['clause'] ?? '';
      const from = match.index + clause.length + 1;
      const name = text.slice(from, from + (match.groups?.['name'] ?? '').length);
      const isRelative = name.startsWith('.');
      const target = isRelative ? posix.join(posix.dirname(path), name) : name;
      const isTypeOnly = /^\w+\s+type\b/.test(clause) || allNamesAreTypes(clause);
      return { target, isRelative, isTypeOnly, line: lineOf(text, match.index) };
    }),
  );
}

function allNamesAreTypes(clause: string): boolean {
  const names = /^\w+\s*\{([^}]*)\}/.exec(clause)?.[1];
  if (names === undefined) return false;
  const list = names.split(',').filter((name) => name.trim() !== '');
  return list.length > 0 && list.every((name) => /^\s*type\s/.test(name));
}

function roomOf(path: string): string {
  return path.includes('/') ? path.slice(0, path.indexOf('/')) : path;
}

/** All violations of one file of src/; `path` counts from src/. */
export function importViolations(file: Source): readonly Violation[] {
  const problems = importsOf(file).flatMap((imported) => {
    const message = imported.isRelative
      ? judgeFile(file.path, imported.target)
      : judgeModule(file.path, imported.target);
    return message === null ? [] : [{ path: file.path, line: imported.line, message }];
  });
  return [...problems, ...timeViolations(file)];
}

function judgeFile(path: string, target: string): string | null {
  const [room, other] = [roomOf(path), roomOf(target)];
  const guarded = importers.find((rule) => rule.target.test(target) && !rule.by.test(path));
  if (guarded !== undefined) return `imports ${target}: ${guarded.why}`;
  if (room === other) return null;
  const allowed = onlyFrom[room];
  if (allowed !== undefined) {
    if (allowed.some((folder) => target.startsWith(`${folder}/`))) return null;
    return `imports ${target}: ${room}/ may import only ${allowed.join(', ')}`;
  }
  const [rank, otherRank] = [ranks[room], ranks[other]];
  if (rank === undefined) return `${room} has no rank: give it one in test/unit/tidy`;
  if (otherRank === undefined) return `imports ${target}: nobody but its own room may`;
  if (otherRank < rank) return null;
  const direction = otherRank === rank ? 'sideways' : 'upward';
  return `imports ${target}: ${direction}, from rank ${rank} to rank ${otherRank}`;
}

function judgeModule(path: string, module: string): string | null {
  const rule = owners.find((owner) => owner.module.test(module));
  if (rule === undefined) return `imports ${module}: a package without an owner in test/unit/tidy`;
  return rule.by.test(path) ? null : `imports ${module}: only ${rule.by.source} may`;
}

function timeViolations({ path, text }: Source): readonly Violation[] {
  if (timeReaders.test(path)) return [];
  return [...codeOnly(text, 'ts').matchAll(timeCalls)]
    .filter(([call]) => timeWaivers[path]?.call.test(call) !== true)
    .map((match) => ({
      path,
      line: lineOf(text, match.index),
      message: `${match[0]}: only base/clock.ts reads time; take a Clock`,
    }));
}

/** Files that need each other at run time, each cycle once: `a -> b -> a`. */
export function cyclesOf(files: readonly Source[]): readonly string[] {
  const edges = new Map(
    files.map((file) => [
      file.path,
      importsOf(file)
        .filter(({ isRelative, isTypeOnly }) => isRelative && !isTypeOnly)
        .map(({ target }) => target),
    ]),
  );
  const done = new Set<string>();
  const cycles: string[] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    const at = trail.indexOf(path);
    if (at >= 0) {
      cycles.push([...trail.slice(at), path].join(' -> '));
      return;
    }
    if (done.has(path)) return;
    for (const target of edges.get(path) ?? []) visit(target, [...trail, path]);
    done.add(path);
  };
  for (const path of edges.keys()) visit(path, []);
  return cycles;
}
