#!/usr/bin/env node
// Sets up gnnd: packages, messages, PyTorch, native build, TypeScript build. Needs Node only.
//
//   node deploy/setup.mjs [--tests] [--bench] [--check] [--sim]
//
// --sim compiles the simulated devices (gnnd serve --sim-devices 2), as --tests does.
//
// Every step says what it does and why, does nothing when its inputs did not change, needs no root,
// and, when something is missing, prints the command that gets it. It makes node_modules/, .venv/,
// .cache/, build/, dist/, man/, Grafana's dashboard and, from proto/, two folders of src/: all
// inside the clone and ignored by git.
//
// An installed package (`npm install -g gnnd-*.tgz`) has its packages and dist/, and takes prebuilt
// native files where they fit; npm runs this after it, and `gnnd setup` does.
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { nativeCode, python } from './native.mjs';
import {
  digestOf,
  isClone,
  once,
  outputOf,
  root,
  run,
  SetupError,
  say,
  wasAnnounced,
} from './steps.mjs';

process.chdir(root);
// In a clone packages are only a part of set-up, which is asked for by name.
if (isClone && process.env.npm_lifecycle_event === 'postinstall') process.exit(0);
const wants = {
  tests: process.argv.includes('--tests'),
  bench: process.argv.includes('--bench'),
  check: process.argv.includes('--check'),
  // Of an installed package they are prebuilt, or else one build for all.
  sim: process.argv.includes('--sim') || !isClone,
};
const unknown = process.argv.slice(2).find((word) => !(word.replace(/^--/, '') in wants));
if (unknown !== undefined) {
  const options = '[--tests] [--bench] [--check] [--sim]';
  process.stderr.write(`${unknown}?\nusage: node deploy/setup.mjs ${options}\n`);
  process.exit(64);
}

function checkMachine() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major < 20 || (major === 20 && minor < 17)) {
    throw new SetupError(`Node ${process.versions.node} is too old: gnnd needs 20.17 or later.`);
  }
  if (process.platform !== 'linux') {
    throw new SetupError(`gnnd runs on Linux (memfd, futex); this is ${process.platform}.`);
  }
  if (isClone && outputOf('c++') === null) {
    throw new SetupError('No C++ compiler found.', 'sudo apt-get install g++');
  }
  if (outputOf('python3') === null) {
    throw new SetupError('No python3 found.', 'sudo apt-get install python3 python3-venv');
  }
}

async function npmPackages() {
  const digest = digestOf({
    files: ['package.json', 'package-lock.json'],
    words: [process.versions.modules],
  });
  await once('npm', digest, ['node_modules/.bin/tsc'], async () => {
    say('npm', 'installing packages at the exact versions of package-lock.json');
    await run('npm', 'npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund']);
    await betterSqlite();
  });
}

/** The one package with a native part of its own: kept per version, ABI and platform. */
async function betterSqlite() {
  const folder = 'node_modules/better-sqlite3';
  const { version } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
  const key = `better-sqlite3-${version}-${process.versions.modules}-${process.arch}.node`;
  const cached = join(root, '.cache', key);
  const product = `${folder}/build/Release/better_sqlite3.node`;
  if (existsSync(cached)) {
    mkdirSync(dirname(product), { recursive: true });
    cpSync(cached, product);
    return;
  }
  say('npm', 'building better-sqlite3 (the job store); compiles for a minute or two');
  await run('npm', 'npm', ['rebuild', 'better-sqlite3']);
  mkdirSync(dirname(cached), { recursive: true });
  cpSync(product, cached);
}

const quietPip = [
  ...['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'],
  ...['--retries', '1'],
];
const clientRequirements = 'test/e2e/python/requirements.txt';

/** A Python that makes Python's stubs, and is a gRPC client of the tests. */
async function pythonClient() {
  const digest = digestOf({ files: [clientRequirements] });
  await fetched('python-client', digest, 'gRPC for Python', async (folder) => {
    await run('python-client', 'python3', ['-m', 'venv', folder]);
    const pip = [...quietPip, '-r', clientRequirements];
    await run('python-client', join(folder, 'bin/python'), pip);
  });
}

/** TypeScript and Python of the messages. Without gRPC for Python there is no Python. */
async function messages() {
  const products = ['src/api/gen/gnnd/v1/job_pb.ts'];
  if (existsSync('.cache/python-client')) products.push('src/python/gnnd/v1/job_pb2.py');
  const digest = digestOf({
    folders: ['proto'],
    files: ['package-lock.json', clientRequirements],
    words: [String(products.length)],
  });
  await once('messages', digest, products, async () => {
    say('messages', 'making TypeScript and Python from proto/');
    await run('messages', process.execPath, ['proto/generate.mjs']);
  });
}

/** Formatters at the versions whose output is committed; types of Python with what these need. */
const checkerPackages = [
  ...['clang-format==19.1.7', 'mypy==2.4.1', 'ruff==0.17.6'],
  ...['numpy==2.4.6', 'types-grpcio==1.85.0.20261028', 'types-protobuf==7.35.1.20260906'],
];

async function checkers() {
  if (!wants.check) return;
  const path = join(root, '.cache/checkers/bin');
  const products = ['clang-format', 'mypy', 'ruff'].map((name) => join(path, name));
  await once('checkers', digestOf({ words: checkerPackages }), products, async () => {
    say('checkers', 'clang-format, mypy and ruff from PyPI, into .cache');
    await run('checkers', 'python3', ['-m', 'venv', '.cache/checkers']);
    const pip = ['-m', 'pip', 'install', '--quiet', ...checkerPackages];
    await run('checkers', join(path, 'python'), pip);
  });
}

/**
 * Libraries that tests compare with, such as torch_geometric beside the Python that has torch.
 * Without an index these tests are skipped, loudly.
 */
async function testPackages({ path: pythonPath }) {
  if (!wants.tests) return;
  const geometric = 'torch_geometric==2.8.1';
  await fetched('pyg', digestOf({ words: [geometric, pythonPath] }), geometric, async (folder) => {
    await run('pyg', pythonPath, [...quietPip, '--target', folder, geometric]);
  });
  await packagePackages(pythonPath);
  const schemas = 'kubernetes-validate==1.37.0';
  await fetched('kubernetes', digestOf({ words: [schemas] }), schemas, async (folder) => {
    await run('kubernetes', pythonPath, [...quietPip, '--target', folder, schemas]);
  });
}

/** For the tests of our Python package: wheels to install from without an index, and libraries. */
async function packagePackages(pythonPath) {
  const folderOf = 'test/e2e/python/package';
  const wheels = `${folderOf}/requirements.txt`;
  const wheelsDigest = digestOf({ files: [wheels], words: [pythonPath] });
  await fetched('python-wheels', wheelsDigest, 'wheels of grpcio and numpy', async (folder) => {
    const download = quietPip.map((word) => (word === 'install' ? 'download' : word));
    const options = ['--only-binary', ':all:', '--no-deps', '--dest', folder, '-r', wheels];
    await run('python-wheels', pythonPath, [...download, ...options]);
  });
  const extras = `${folderOf}/extras.txt`;
  const digest = digestOf({ files: [extras], words: [pythonPath] });
  await fetched('python-extras', digest, 'pandas and others', async (folder) => {
    const options = ['--no-deps', '--no-compile', '--target', folder, '-r', extras];
    await run('python-extras', pythonPath, [...quietPip, ...options]);
  });
}

/** Fills .cache/`name` unless that was done with this digest; says so where it cannot. */
async function fetched(name, digest, what, work) {
  const folder = join(root, '.cache', name);
  await once(name, digest, [folder], async () => {
    say(name, `${what} from PyPI, into .cache`);
    rmSync(folder, { recursive: true, force: true });
    await work(folder);
  }).catch((error) => {
    rmSync(folder, { recursive: true, force: true });
    say(name, `could not get it (${String(error.message).trim().split('\n').at(-1)})`);
  });
}

/** Imports of formats that only Python reads ask it (src/supervisor/converter.ts). */
function notePython({ path }) {
  mkdirSync('build', { recursive: true });
  writeFileSync('build/python.txt', `${path}\n`);
}

const dashboard = 'deploy/monitoring/dashboard.json';
const makers = [
  ...['tsconfig.json', 'tsconfig.build.json', 'package.json'],
  ...['deploy/formats.mjs', 'deploy/manual.mjs', 'deploy/monitoring/dashboard.mjs'],
];

async function typescriptBuild() {
  const parts = readdirSync('src', { withFileTypes: true }).filter(({ name }) => name !== 'python');
  const [folders, files] = [true, false].map((isFolder) =>
    parts.filter((part) => part.isDirectory() === isFolder).map(({ name }) => join('src', name)),
  );
  const digest = digestOf({
    folders: [...folders.sort(), 'src/python/gnnd_formats'],
    files: [...files.sort(), ...makers, 'package-lock.json'],
  });
  await once(
    'typescript',
    digest,
    ['dist/main.js', 'dist/web/index.html', 'dist/python', 'man/gnnd.1', dashboard],
    async () => {
      say('typescript', 'compiling the daemon, gnnctl and the page to dist/, writing manual pages');
      rmSync('dist', { recursive: true, force: true });
      rmSync('build/tsc.tsbuildinfo', { force: true });
      await run('typescript', 'npm', ['run', 'build']);
    },
  );
  // So that `npx gnnd` and `npx gnnctl` work in the clone.
  for (const [name, target] of Object.entries({
    gnnd: 'dist/main.js',
    gnnctl: 'dist/cli/main.js',
  })) {
    const link = join('node_modules/.bin', name);
    chmodSync(target, 0o755);
    if (existsSync(link)) continue;
    rmSync(link, { force: true });
    symlinkSync(join('../..', target), link);
  }
}

/** npm has installed the packages; without install scripts SQLite is not built. */
async function installedPackages() {
  const require = createRequire(join(root, 'package.json'));
  const folder = dirname(require.resolve('better-sqlite3/package.json'));
  const open = `new (require(${JSON.stringify(folder)}))(':memory:')`;
  if (spawnSync(process.execPath, ['-e', open]).status === 0) return;
  say('npm', 'building better-sqlite3 (the job store); compiles for a minute or two');
  await run('npm', 'npm', ['run', 'install'], { cwd: folder });
}

async function main() {
  checkMachine();
  if (!isClone) {
    await installedPackages();
    const found = await python();
    await nativeCode(found, wants);
    notePython(found);
  } else {
    // npm compiles SQLite while pip unpacks PyTorch: processor beside disk.
    const sources = Promise.all([npmPackages(), pythonClient()]).then(messages);
    const [, pythonFacts] = await Promise.all([sources, python()]);
    await checkers();
    await testPackages(pythonFacts);
    await nativeCode(pythonFacts, wants);
    notePython(pythonFacts);
    await typescriptBuild();
  }
  if (wasAnnounced()) say('done', 'gnnd is set up');
}

main().catch((error) => {
  process.stderr.write(`\n${error instanceof SetupError ? error.message : error.stack}\n`);
  process.exit(1);
});
