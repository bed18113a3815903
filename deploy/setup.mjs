#!/usr/bin/env node
// Sets up a clone of gnnd: packages, PyTorch, native build, TypeScript build. Needs Node only.
//
//   node deploy/setup.mjs [--tests] [--bench] [--check]
//
// Every step says what it does and why, does nothing when its inputs did not change, needs no root,
// and, when something is missing, prints the command that gets it. What it makes lies in
// node_modules/, .venv/, .cache/, build/ and dist/, all inside the clone.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
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
import { cpus } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
process.chdir(root);
const wants = {
  tests: process.argv.includes('--tests'),
  bench: process.argv.includes('--bench'),
  check: process.argv.includes('--check'),
};
const unknown = process.argv.slice(2).find((word) => !(word.replace(/^--/, '') in wants));
if (unknown !== undefined) {
  process.stderr.write(`${unknown}?\nusage: node deploy/setup.mjs [--tests] [--bench] [--check]\n`);
  process.exit(64);
}
const torchVersion = '2.13.0';
const openblasVersion = '0.3.34.481.3';
/** Matrix products, beside torch; oneDNN's wheels (products of bfloat16) are for x86-64 only. */
const productPackages = [
  `scipy-openblas32==${openblasVersion}`,
  ...(process.arch === 'x64'
    ? ['onednn-cpu-gomp==2023.2.0', 'onednn-devel-cpu-gomp==2023.2.0']
    : []),
];
const startedMs = Date.now();
let announced = false;

/** Ends with a sentence for people and the command that helps. */
class SetupError extends Error {
  constructor(message, command) {
    super(command === undefined ? message : `${message}\n\n    ${command}\n`);
  }
}

function say(step, text) {
  if (!announced) {
    process.stderr.write('Setting up gnnd in this folder (the first time takes some minutes)\n');
    announced = true;
  }
  const seconds = String(Math.round((Date.now() - startedMs) / 1000)).padStart(4);
  process.stderr.write(`${seconds}s  ${step.padEnd(11)} ${text}\n`);
}

/** Runs a command; shows that it lives; on failure shows the end of what it printed. */
function run(step, command, args, options = {}) {
  return new Promise((done, fail) => {
    const child = spawn(command, args, {
      cwd: options.cwd ?? root,
      env: { ...process.env, ...options.env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    let shownMs = Date.now();
    const take = (data) => {
      output = (output + data).slice(-20_000);
      if (Date.now() - shownMs < 10_000) return;
      shownMs = Date.now();
      const line = output.trim().split('\n').at(-1) ?? '';
      say(step, `… ${line.slice(0, 90)}`);
    };
    child.stdout.on('data', take);
    child.stderr.on('data', take);
    child.on('error', (error) => fail(new SetupError(`${command}: ${error.message}`)));
    child.on('close', (code, signal) => {
      if (code === 0) {
        done(output);
        return;
      }
      const tail = output.trim().split('\n').slice(-40).join('\n');
      const why = `${step} failed (${signal ?? `exit ${code}`}): ${command} ${args.join(' ')}`;
      fail(new SetupError(`${tail}\n\n${why}`));
    });
  });
}

function outputOf(command, args = ['--version']) {
  const result = spawnSync(command, args, { encoding: 'utf8' });
  return result.status === 0 ? result.stdout.trim() : null;
}

function filesUnder(path) {
  return readdirSync(path, { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const full = join(path, entry.name);
      return entry.isDirectory() ? filesUnder(full) : [full];
    });
}

/** SHA-256 over the files (or all files under the folders) of `paths`, and `words`. */
function digestOf({ folders = [], files = [], words = [] }) {
  const hash = createHash('sha256');
  for (const word of words) hash.update(`${word}\0`);
  const all = [...folders.filter(existsSync).flatMap(filesUnder), ...files.filter(existsSync)];
  for (const path of all) {
    hash.update(`${path}\0`);
    hash.update(readFileSync(path));
  }
  return hash.digest('hex');
}

/** Runs `work` unless `digest` is what it was when it last succeeded and `products` are there. */
async function once(name, digest, products, work) {
  const stamp = join(root, '.cache', `${name}.stamp`);
  const isThere = products.every(existsSync) && existsSync(stamp);
  if (isThere && readFileSync(stamp, 'utf8') === digest) return;
  rmSync(stamp, { force: true });
  await work();
  mkdirSync(dirname(stamp), { recursive: true });
  writeFileSync(stamp, digest);
}

function checkMachine() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major < 20 || (major === 20 && minor < 17)) {
    throw new SetupError(`Node ${process.versions.node} is too old: gnnd needs 20.17 or later.`);
  }
  if (process.platform !== 'linux') {
    throw new SetupError(`gnnd runs on Linux (memfd, futex); this is ${process.platform}.`);
  }
  if (outputOf('c++') === null) {
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

/**
 * The Python whose PyTorch and OpenBLAS the Trainer links: the user's if it has both, else one of
 * our own with both pinned.
 */
async function python() {
  const { GNND_PYTHON, VIRTUAL_ENV, CONDA_PREFIX } = process.env;
  if (GNND_PYTHON && librariesOf(GNND_PYTHON) === null) {
    const packages = [`torch==${torchVersion}`, ...productPackages];
    const names = packages.map((each) => each.replace(/==.*/, '')).join(', ');
    const missing = `but that Python lacks one of ${names}.`;
    const hint = `${GNND_PYTHON} -m pip install ${packages.join(' ')}`;
    throw new SetupError(`GNND_PYTHON is ${GNND_PYTHON}, ${missing}`, hint);
  }
  const environments = [VIRTUAL_ENV, CONDA_PREFIX].filter(Boolean);
  const candidates = [GNND_PYTHON, ...environments.map((folder) => join(folder, 'bin/python'))];
  for (const path of candidates.filter(Boolean)) {
    const libraries = librariesOf(path);
    if (libraries !== null) return { path, libraries };
  }
  const own = join(root, '.venv/bin/python');
  if (librariesOf(own) === null) await ownPython(own);
  return { path: own, libraries: librariesOf(own) };
}

async function ownPython(path) {
  say('python', `no active PyTorch found: making .venv with PyTorch ${torchVersion} (CPU)`);
  if (!existsSync(path)) {
    await run('python', 'python3', ['-m', 'venv', '.venv']).catch(() => {
      throw new SetupError('python3 has no venv module.', 'sudo apt-get install python3-venv');
    });
  }
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'];
  pip.push('numpy==2.4.6', ...productPackages);
  // The CPU build by its own name where the index has it, the plain version otherwise.
  await run('python', path, [...pip, `torch==${torchVersion}+cpu`]).catch(() =>
    run('python', path, [...pip, `torch==${torchVersion}`]),
  );
}

/**
 * The versions and the folder of a Python's torch, OpenBLAS and oneDNN, read without importing
 * them; null when it lacks one.
 */
function librariesOf(pythonPath) {
  const names = JSON.stringify(productPackages.map((each) => each.replace(/==.*/, '')));
  const code = `import importlib.metadata as m
import importlib.util as u
facts = m.version('torch'), u.find_spec('torch').origin, *map(m.version, ${names})
print(*facts, sep='\\n')`;
  const [torch, origin, ...products] = (outputOf(pythonPath, ['-c', code]) ?? '').split('\n');
  if (origin === undefined) return null;
  return { products: products.join(' '), torch, folder: dirname(origin) };
}

/** cmake and ninja from the system, else from PyPI. Returns the PATH to build with. */
async function buildTools() {
  const version = /version (\d+)\.(\d+)/.exec(outputOf('cmake') ?? '');
  const recent = version !== null && (Number(version[1]) > 3 || Number(version[2]) >= 22);
  const missing = recent ? [] : ['cmake'];
  if (outputOf('ninja') === null) missing.push('ninja');
  const path = process.env.PATH ?? '';
  if (missing.length === 0) return path;
  const bin = join(root, '.cache/tools/bin');
  if (!missing.every((tool) => existsSync(join(bin, tool)))) {
    say('tools', `not on this machine, taken from PyPI: ${missing.join(', ')}`);
    await run('tools', 'python3', ['-m', 'venv', '.cache/tools']);
    const packages = missing.map((tool) => (tool === 'cmake' ? 'cmake<4' : tool));
    await run('tools', join(bin, 'python'), ['-m', 'pip', 'install', '--quiet', ...packages]);
  }
  return `${bin}${delimiter}${path}`;
}

/**
 * The folder of doctest/doctest.h: the system's, else Debian's package unpacked in .cache without
 * root. Null where neither is to be had; native unit tests are then skipped, loudly.
 */
async function doctestFolder() {
  const own = join(root, '.cache/doctest/usr/include');
  for (const folder of ['/usr/include', '/usr/local/include', own]) {
    if (existsSync(join(folder, 'doctest/doctest.h'))) return folder;
  }
  if (outputOf('apt-get') === null) return null;
  say('doctest', 'fetching doctest-dev (header-only C++ test library) into .cache');
  const state = join(root, '.cache/apt');
  mkdirSync(join(state, 'lists/partial'), { recursive: true });
  mkdirSync(join(state, 'cache/archives/partial'), { recursive: true });
  const apt = ['-qq', '-o', `Dir::State::Lists=${state}/lists`, '-o', `Dir::Cache=${state}/cache`];
  try {
    await run('doctest', 'apt-get', [...apt, 'update']);
    await run('doctest', 'apt-get', [...apt, 'download', 'doctest-dev'], { cwd: state });
    const deb = readdirSync(state).find((name) => name.endsWith('.deb')) ?? '';
    await run('doctest', 'dpkg', ['-x', join(state, deb), join(root, '.cache/doctest')]);
    return own;
  } catch (error) {
    say('doctest', `could not fetch it (${String(error.message).split('\n').at(-1)})`);
    return null;
  } finally {
    rmSync(state, { recursive: true, force: true });
  }
}

async function nativeBuild({ path: pythonPath, libraries }, searchPath) {
  const doctest = wants.tests ? await doctestFolder() : null;
  if (wants.tests && doctest === null) {
    say('native', 'WITHOUT native unit tests; to get them: sudo apt-get install doctest-dev');
  }
  // Options only ever add targets, so that "demo" after "test" rebuilds nothing.
  const cacheFile = 'build/native/CMakeCache.txt';
  const cache = existsSync(cacheFile) ? readFileSync(cacheFile, 'utf8') : '';
  const tests = doctest !== null || /GNND_TESTS:\w+=ON/.test(cache);
  const bench = wants.bench || /GNND_BENCH:\w+=ON/.test(cache);
  const digest = digestOf({
    folders: ['native', 'bench/native'],
    files: ['CMakeLists.txt'],
    words: [...Object.values(libraries), String(tests), String(bench)],
  });
  const products = ['gnnd_core.node', 'gnnd_train.node', 'gnnd_sim.so', 'gnnd_probe'];
  if (tests) {
    const names = ['core', 'fault', 'cuda', 'device', 'train'];
    products.push(...names.map((name) => `gnnd_${name}_test`));
  }
  if (bench) products.push('sampler_bench', 'queue_bench');
  const paths = products.map((name) => `build/native/${name}`);
  await once('native', digest, paths, async () => {
    say('native', `building the C++ core and the Trainer (PyTorch ${libraries.torch})`);
    const options = [
      ...['--out=build/native', '--config=RelWithDebInfo', '--generator=Ninja'],
      `--parallel=${Math.max(1, cpus().length)}`,
      `--CDGNND_PYTHON=${pythonPath}`,
      `--CDGNND_TESTS=${tests ? 'ON' : 'OFF'}`,
      `--CDGNND_BENCH=${bench ? 'ON' : 'OFF'}`,
    ];
    if (doctest !== null) options.push(`--CDDOCTEST_INCLUDE=${doctest}`);
    if (outputOf('ccache') !== null) options.push('--CDCMAKE_CXX_COMPILER_LAUNCHER=ccache');
    const builder = resolve('node_modules/.bin/cmake-js');
    // "build" alone would keep the options of the first time.
    for (const step of ['configure', 'build']) {
      await run('native', builder, [step, ...options], { env: { PATH: searchPath } });
    }
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
 * What other libraries are tested against: torch_geometric beside the Python that has torch, and a
 * gRPC client in an environment of its own. Without an index their tests are skipped, loudly.
 */
async function testPackages({ path: pythonPath }) {
  if (!wants.tests) return;
  const quiet = [
    '-m',
    'pip',
    'install',
    '--quiet',
    '--disable-pip-version-check',
    '--retries',
    '1',
  ];
  const geometric = 'torch_geometric==2.8.1';
  await fetched('pyg', digestOf({ words: [geometric, pythonPath] }), geometric, async (folder) => {
    await run('pyg', pythonPath, [...quiet, '--target', folder, geometric]);
  });
  const requirements = 'test/e2e/python/requirements.txt';
  const digest = digestOf({ files: [requirements] });
  await fetched('python-client', digest, 'gRPC for Python', async (folder) => {
    await run('python-client', 'python3', ['-m', 'venv', folder]);
    await run('python-client', join(folder, 'bin/python'), [...quiet, '-r', requirements]);
  });
  await packagePackages(pythonPath, quiet);
}

/** For the tests of our Python package: wheels to install from without an index, and libraries. */
async function packagePackages(pythonPath, quiet) {
  const folderOf = 'test/e2e/python/package';
  const wheels = `${folderOf}/requirements.txt`;
  const wheelsDigest = digestOf({ files: [wheels], words: [pythonPath] });
  await fetched('python-wheels', wheelsDigest, 'wheels of grpcio and numpy', async (folder) => {
    const download = quiet.map((word) => (word === 'install' ? 'download' : word));
    const options = ['--only-binary', ':all:', '--no-deps', '--dest', folder, '-r', wheels];
    await run('python-wheels', pythonPath, [...download, ...options]);
  });
  const extras = `${folderOf}/extras.txt`;
  const digest = digestOf({ files: [extras], words: [pythonPath] });
  await fetched('python-extras', digest, 'pandas and others', async (folder) => {
    const options = ['--no-deps', '--no-compile', '--target', folder, '-r', extras];
    await run('python-extras', pythonPath, [...quiet, ...options]);
  });
}

/** Fills .cache/`name` unless that was done with this digest; says so where it cannot. */
async function fetched(name, digest, what, work) {
  const folder = join(root, '.cache', name);
  await once(name, digest, [folder], async () => {
    say(name, `for tests: ${what} from PyPI, into .cache`);
    rmSync(folder, { recursive: true, force: true });
    await work(folder);
  }).catch((error) => {
    rmSync(folder, { recursive: true, force: true });
    say(name, `could not get it (${String(error.message).trim().split('\n').at(-1)})`);
  });
}

async function typescriptBuild() {
  const parts = readdirSync('src', { withFileTypes: true }).filter(({ name }) => name !== 'python');
  const [folders, files] = [true, false].map((isFolder) =>
    parts.filter((part) => part.isDirectory() === isFolder).map(({ name }) => join('src', name)),
  );
  const digest = digestOf({
    folders: folders.sort(),
    files: [...files.sort(), 'tsconfig.json', 'tsconfig.build.json', 'package-lock.json'],
  });
  await once('typescript', digest, ['dist/main.js', 'dist/web/index.html'], async () => {
    say('typescript', 'compiling the daemon, gnnctl and the page to dist/');
    rmSync('dist', { recursive: true, force: true });
    rmSync('build/tsc.tsbuildinfo', { force: true });
    await run('typescript', 'npm', ['run', 'build']);
  });
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

async function main() {
  checkMachine();
  // npm compiles SQLite while pip unpacks PyTorch: one is bound by the processor, one by the disk.
  const [, pythonFacts] = await Promise.all([npmPackages(), python()]);
  await checkers();
  await testPackages(pythonFacts);
  await nativeBuild(pythonFacts, await buildTools());
  await typescriptBuild();
  if (announced) say('done', 'gnnd is set up');
}

main().catch((error) => {
  process.stderr.write(`\n${error instanceof SetupError ? error.message : error.stack}\n`);
  process.exit(1);
});
