import { posix } from 'node:path';
import { codeOnly, lineOf, type Source, type Violation } from './sources.ts';

/** Which part of src/ may know which; docs/architecture.md says why. */

/** A file imports from lower ranks and from its own room, never sideways. */
export const ranks: Readonly<Record<string, number>> = {
  base: 0,
  spec: 1,
  config: 1,
  placement: 1,
  pool: 1,
  records: 2,
  native: 3,
  store: 3,
  metrics: 3,
  traces: 3,
  datasets: 4,
  executor: 5,
  devices: 6,
  files: 6,
  plan: 7,
  supervisor: 8,
  prepare: 9,
  scheduler: 9,
  work: 10,
  artifacts: 11,
  jobs: 12,
  api: 13,
  'daemon.ts': 14,
  'service-manager.ts': 14,
  cli: 14,
  'run.ts': 15,
  'serve.ts': 16,
  'main.ts': 17,
};

/** The rooms of the client, which are ranked among themselves. */
const cliRanks: Readonly<Record<string, number>> = {
  session: 0,
  read: 1,
  show: 1,
  commands: 2,
  'program.ts': 3,
  demo: 3,
  'main.ts': 4,
};

/** Rooms that see fewer others than their rank would allow. */
const onlyFrom: Readonly<Record<string, readonly string[]>> = {
  // A client like any other: the contract, and words shared with the daemon.
  cli: ['cli', 'api/gen', 'spec', 'base'],
  // Likewise, in a browser.
  web: ['web', 'api/gen', 'spec'],
  // Pure: its inputs are events.
  scheduler: ['scheduler', 'records', 'placement', 'spec', 'base'],
  spec: ['spec', 'base', 'api/gen'],
  placement: ['placement', 'base'],
};

/** Files that few may import. */
const importers: readonly { target: RegExp; by: RegExp; why: string }[] = [
  {
    target: /^api\/gen\//,
    by: /^(api|cli|spec|web)\//,
    why: 'only api/, cli/, spec/ and web/ know the generated messages',
  },
  {
    target: /^cli\//,
    by: /^(cli\/|run\.ts$|serve\.ts$)/,
    why: 'a client; gnnd run alone is client and daemon in one',
  },
  {
    target: /^(main\.ts|executor\/main\.ts|pool\/worker\.ts|cli\/main\.ts|cli\/demo\/demo\.ts)$/,
    by: /^$/,
    why: 'entry point',
  },
];

/**
 * The files by which other rooms enter a room. A room that is not here has words and values that
 * every file may use (base, spec, records), or is ruled above (cli).
 */
export const faces: Readonly<Record<string, readonly string[]>> = {
  // Only the process's own files put the daemon together.
  api: [],
  // A face for each thing that people ask for.
  artifacts: [
    ...['cache-reports.ts', 'checkpoints.ts', 'derived-files.ts', 'placement-simulations.ts'],
    ...['plugin-files.ts', 'propagation-requests.ts'],
  ],
  config: ['daemon-config.ts', 'retention-limits.ts', 'tls-files.ts', 'tokens.ts'],
  // Children of the daemon run the tasks, and read and write arrays.
  datasets: [
    ...['datasets.ts', 'ready-dataset.ts', 'feature-names.ts', 'source-root.ts', 'problems.ts'],
    ...['data-tasks.ts', 'local-tasks.ts', 'converted-formats.ts', 'import-context.ts'],
    ...['dataset-writer.ts', 'npy.ts', 'array-digest.ts', 'byte-streams.ts', 'node-ids.ts'],
    ...['list-pairs.ts'],
  ],
  devices: ['host-devices.ts', 'seat.ts', 'accelerator-environment.ts'],
  executor: ['protocol.ts'],
  // A face for each kind of file.
  files: ['checkpoint.ts', 'file-witness.ts', 'image-files.ts', 'start-file.ts'],
  jobs: ['jobs.ts', 'runner.ts', 'deletion.ts', 'retention.ts'],
  metrics: ['metrics.ts', 'labels.ts'],
  native: ['contract.ts', 'load.ts', 'stream-sink.ts'],
  placement: ['placement.ts'],
  plan: ['plan.ts'],
  pool: ['pool.ts'],
  prepare: ['prepare.ts'],
  // Pure functions of its state, each asked by itself.
  scheduler: ['scheduler.ts', 'state.ts', 'request.ts', 'plan.ts', 'restart.ts', 'waiting.ts'],
  // What timelines lie in is packed as the store packs its rows.
  store: ['store.ts', 'codec.ts', 'shapes.ts'],
  supervisor: ['supervisor.ts'],
  traces: [],
  // A model that a job trained is read before there is a job that predicts with it.
  work: ['work.ts', 'trained-model.ts'],
};
/** The process's own files put the parts together, and so see all of them. */
const composers = /^[^/]+\.ts$/;

/** Packages and Node modules that belong to one place. Every package must be listed. */
const owners: readonly { module: RegExp; by: RegExp }[] = [
  { module: /^better-sqlite3$/, by: /^store\// },
  { module: /^piscina$/, by: /^pool\// },
  { module: /^yauzl$/, by: /^datasets\/npz\.ts$/ },
  // Types elsewhere, too; it is loaded in one place.
  {
    module: /^@duckdb\/node-api$/,
    by: /^datasets\/(duckdb|parquet-edges|parquet-reader|feature-blocks)\.ts$/,
  },
  { module: /^fzstd$/, by: /^datasets\/packed-text\.ts$/ },
  { module: /^hyparquet-writer$/, by: /^executor\/publish-predictions\.ts$/ },
  { module: /^prom-client$/, by: /^metrics\// },
  { module: /^@opentelemetry\//, by: /^traces\// },
  { module: /^@grpc\/grpc-js$/, by: /^(api|cli)\// },
  { module: /^@bufbuild\/protobuf(\/|$)/, by: /^(api|cli|spec|web)\// },
  { module: /^preact(\/|$)/, by: /^web\// },
  { module: /^uplot(\/|$)/, by: /^web\/chart\.tsx$/ },
  { module: /^yaml$/, by: /^(cli\/|serve\.ts$|datasets\/graphbolt-import\.ts$)/ },
  { module: /^commander$/, by: /^(cli\/|serve\.ts$)/ },
  { module: /^cli-table3$/, by: /^cli\// },
  { module: /^string-width$/, by: /^cli\/session\/terminal\.ts$/ },
  // Children of the daemon are the supervisor's. The client looks at the machine (doctor) and
  // starts a converter and a daemon of its own (demo).
  {
    module: /^node:child_process$/,
    by: /^(supervisor\/|devices\/probe-devices\.ts$|cli\/(demo\/|commands\/doctor\.ts$))/,
  },
  { module: /^node:module$/, by: /^native\/load\.ts$/ },
  // Threads are the pool's, and piscina starts them.
  { module: /^node:worker_threads$/, by: /^$/ },
  { module: /^node:inspector$/, by: /^base\/no-debugger\.ts$/ },
  { module: /^node:(cluster|vm)$/, by: /^$/ },
  { module: /^node:/, by: /^(?!scheduler\/|spec\/|placement\/|web\/)/ },
];

/** Reading time anywhere else could not be replaced by a test's clock. */
const timeReaders = /^(base|web)\/clock\.ts$/;
const timeCalls =
  /\bDate\.now\b|\bperformance\.(now|timeOrigin)\b|\bprocess\.hrtime\b|\bnew Date\(\s*\)/g;
const timeWaivers: Readonly<Record<string, { call: RegExp; why: string }>> = {
  'executor/main.ts': { call: /^process\.hrtime$/, why: 'how long its own loop ran, for its log' },
};

export interface Import {
  /** A path from src/, or a package. */
  readonly target: string;
  readonly isRelative: boolean;
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
      return { target, isRelative, line: lineOf(text, match.index) };
    }),
  );
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
  if (room === 'cli' && other === 'cli') return judgeRanks(cliRanks, inCli(path), inCli(target));
  if (room === other) return null;
  const allowed = onlyFrom[room];
  const isAllowed = allowed?.some((folder) => target.startsWith(`${folder}/`)) ?? true;
  if (!isAllowed) return `imports ${target}: ${room}/ may import only ${allowed?.join(', ')}`;
  return (
    (allowed === undefined ? judgeRanks(ranks, path, target) : null) ?? judgeFace(path, target)
  );
}

function judgeFace(path: string, target: string): string | null {
  const room = roomOf(target);
  const face = faces[room];
  if (face === undefined || composers.test(path) || target.startsWith('api/gen/')) return null;
  if (face.some((file) => target === `${room}/${file}`)) return null;
  return `imports ${target}: others enter ${room}/ by ${face.join(', ') || 'no file'}`;
}

function judgeRanks(
  known: Readonly<Record<string, number>>,
  path: string,
  target: string,
): string | null {
  const [room, other] = [roomOf(path), roomOf(target)];
  if (room === other) return null;
  const [rank, otherRank] = [known[room], known[other]];
  if (rank === undefined) return `${room} has no rank: give it one in test/unit/tidy`;
  if (otherRank === undefined) return `imports ${target}: nobody but its own room may`;
  if (otherRank < rank) return null;
  const direction = otherRank === rank ? 'sideways' : 'upward';
  return `imports ${target}: ${direction}, from rank ${rank} to rank ${otherRank}`;
}

function inCli(path: string): string {
  return path.slice('cli/'.length);
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
