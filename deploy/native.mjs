// The native code: libraries of Python's wheels that it links, and the build; or, in an installed
// package, files that were built when it was packed.
import { spawnSync } from 'node:child_process';
import {
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
import { cpus } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { digestOf, isClone, once, outputOf, root, run, SetupError, say } from './steps.mjs';
import { timeLeft } from './time-left.mjs';

const torchVersion = '2.13.0';
const openblasVersion = '0.3.34.481.3';
/** Matrix products, beside torch; oneDNN's wheels (products of bfloat16) are for x86-64 only. */
const productPackages = [
  `scipy-openblas32==${openblasVersion}`,
  ...(process.arch === 'x64'
    ? ['onednn-cpu-gomp==2023.2.0', 'onednn-devel-cpu-gomp==2023.2.0']
    : []),
];

/** What runs; all else in build/native is for tests. */
const products = [
  ...['gnnd_core.node', 'gnnd_train.node', 'gnnd_reader.so'],
  ...['gnnd_probe', 'gnnd_torch_probe'],
];
/** Simulated devices; whoever trains on the processor needs none. */
const simPlugin = 'gnnd_sim.so';
/** Of a machine with CUDA's toolchain only. */
const cudaPlugin = 'gnnd_cuda.so';
/** Of this platform, as `npm pack` leaves them (deploy/pack.mjs). */
export const prebuiltFolder = `prebuilt/${process.platform}-${process.arch}`;

/**
 * The Python whose PyTorch and OpenBLAS the Trainer links: the user's if it has both, else one of
 * our own with both pinned.
 */
export async function python() {
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
  else if (hasGpu && !librariesOf(own).hasCuda) await withCuda(own);
  return { path: own, libraries: librariesOf(own) };
}

/** Whether this machine has NVIDIA's driver; a PyTorch without CUDA would leave its GPUs idle. */
const hasGpu = existsSync('/proc/driver/nvidia/version');

/** Replaces a PyTorch without CUDA, as it was before there was a GPU. */
async function withCuda(path) {
  say('python', `this machine has a GPU: PyTorch ${torchVersion} with CUDA for .venv (gigabytes)`);
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'];
  await run('python', path, [...pip, '--force-reinstall', `torch==${torchVersion}`]).catch(() => {
    say('python', 'could not get it: Trainers compute on the processor (gnnctl doctor)');
  });
}

async function ownPython(path) {
  const variant = hasGpu ? 'CUDA' : 'CPU';
  say('python', `no active PyTorch found: making .venv with PyTorch ${torchVersion} (${variant})`);
  if (!existsSync(path)) {
    await run('python', 'python3', ['-m', 'venv', '.venv']).catch(() => {
      throw new SetupError('python3 has no venv module.', 'sudo apt-get install python3-venv');
    });
  }
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'];
  pip.push('numpy==2.4.6', ...productPackages);
  // The plain version has CUDA. The CPU build has a name of its own where the index has it.
  const plain = () => run('python', path, [...pip, `torch==${torchVersion}`]);
  if (hasGpu) await plain();
  else await run('python', path, [...pip, `torch==${torchVersion}+cpu`]).catch(plain);
}

/**
 * The versions and folders of a Python's torch, OpenBLAS and oneDNN, read without importing them;
 * null when it lacks one. `folders` are those that native/cmake/train.cmake links to.
 */
export function librariesOf(pythonPath) {
  const names = productPackages.map((each) => each.replace(/==.*/, ''));
  const code = `import importlib.metadata as m, importlib.util as u, json, os
folder = lambda name: os.path.dirname(u.find_spec(name).origin)
found = {'torch': os.path.join(folder('torch'), 'lib')}
found['openblas'] = os.path.join(folder('scipy_openblas32'), 'lib')
for file in m.files('onednn-cpu-gomp') if 'onednn-cpu-gomp' in ${JSON.stringify(names)} else []:
    if file.name.startswith('libdnnl.so'):
        found['onednn'] = str(file.locate().resolve().parent)
products = ' '.join(name + ' ' + m.version(name) for name in ${JSON.stringify(names)})
print(json.dumps({'torch': m.version('torch'), 'products': products, 'folders': found}))`;
  const facts = outputOf(pythonPath, ['-c', code]);
  if (facts === null) return null;
  const libraries = JSON.parse(facts);
  const hasCuda = existsSync(join(libraries.folders.torch, 'libtorch_cuda.so'));
  return { ...libraries, hasCuda };
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

/** Builds what is missing or changed; of an installed package only where its files do not do. */
export async function nativeCode(python, wants) {
  const build = await plannedBuild(python, wants);
  await once('native', build.digest, build.paths, async () => {
    if (!isClone && usePrebuilt(python.libraries)) return;
    say('native', `building the C++ core and the Trainer (PyTorch ${python.libraries.torch})`);
    if (outputOf('c++') === null) {
      throw new SetupError('No C++ compiler found.', 'sudo apt-get install g++');
    }
    const env = { PATH: await buildTools() };
    const builder = packageFile('cmake-js', 'bin/cmake-js');
    // "build" alone would keep the options of the first time.
    await run('native', process.execPath, [builder, 'configure', ...build.options], { env });
    const commands = outputOf('ninja', ['-C', 'build/native', '-t', 'commands', 'all'], env) ?? '';
    const listener = timeLeft(commands);
    const options = { env, listener };
    await run('native', process.execPath, [builder, 'build', ...build.options], options);
  });
}

async function plannedBuild({ path: pythonPath, libraries }, wants) {
  const doctest = wants.tests ? await doctestFolder() : null;
  if (wants.tests && doctest === null) {
    say('native', 'WITHOUT native unit tests; to get them: sudo apt-get install doctest-dev');
  }
  // Options only ever add targets, so that "demo" after "test" rebuilds nothing.
  const cacheFile = 'build/native/CMakeCache.txt';
  const cache = existsSync(cacheFile) ? readFileSync(cacheFile, 'utf8') : '';
  const tests = doctest !== null || /GNND_TESTS:\w+=ON/.test(cache);
  const bench = wants.bench || /GNND_BENCH:\w+=ON/.test(cache);
  const sim = wants.sim || tests || /GNND_SIM:\w+=ON/.test(cache);
  const digest = digestOf({
    folders: ['native', 'bench/native'],
    files: ['CMakeLists.txt'],
    words: [JSON.stringify(libraries), String(tests), String(bench), String(sim)],
  });
  const names = [...products];
  if (sim) names.push(simPlugin);
  if (tests) {
    names.push(...['core', 'fault', 'cuda', 'device', 'train'].map((name) => `gnnd_${name}_test`));
  }
  if (bench) names.push('sampler_bench', 'queue_bench');
  const options = [
    ...['--out=build/native', '--config=RelWithDebInfo', '--generator=Ninja'],
    ...[`--parallel=${Math.max(1, cpus().length)}`, `--CDGNND_PYTHON=${pythonPath}`],
    `--CDGNND_NODE_API=${headerFolders().join(';')}`,
    `--CDGNND_TESTS=${tests ? 'ON' : 'OFF'}`,
    `--CDGNND_BENCH=${bench ? 'ON' : 'OFF'}`,
    `--CDGNND_SIM=${sim ? 'ON' : 'OFF'}`,
  ];
  if (doctest !== null) options.push(`--CDDOCTEST_INCLUDE=${doctest}`);
  if (outputOf('ccache') !== null) options.push('--CDCMAKE_CXX_COMPILER_LAUNCHER=ccache');
  return { digest, paths: names.map((name) => `build/native/${name}`), options };
}

/** npm puts packages of an installed package where it likes. */
function packageFile(name, file) {
  const { resolve } = createRequire(join(root, 'package.json'));
  return join(dirname(resolve(`${name}/package.json`)), file);
}

/** Of node_api.h and napi.h. */
const headerFolders = () => [
  packageFile('node-api-headers', 'include'),
  packageFile('node-addon-api', ''),
];

/** Puts files of `npm pack` in place where they are of this platform and of these libraries. */
function usePrebuilt(libraries) {
  const manifest = join(prebuiltFolder, 'manifest.json');
  if (!existsSync(manifest)) return declined(`there is none for ${process.platform}`);
  const { libraries: built } = JSON.parse(readFileSync(manifest, 'utf8'));
  if (built !== wordOf(libraries)) return declined(`for ${built}; here is ${wordOf(libraries)}`);
  if (hasGpu && !existsSync(join(prebuiltFolder, cudaPlugin))) {
    return declined(`without ${cudaPlugin}, and this machine has a GPU`);
  }
  rmSync('build/native', { recursive: true, force: true });
  mkdirSync('build/native/lib', { recursive: true });
  for (const [name, folder] of Object.entries(libraries.folders)) {
    symlinkSync(folder, `build/native/lib/${name}`);
  }
  for (const name of readdirSync(prebuiltFolder)) {
    if (name !== 'manifest.json') cpSync(join(prebuiltFolder, name), `build/native/${name}`);
  }
  // Loaded in a process of its own: another C library says so there.
  const addons = products.filter((name) => name.endsWith('.node'));
  const load = addons.map((name) => `require('./build/native/${name}')`).join('; ');
  const { status, stderr } = spawnSync(process.execPath, ['-e', load], { encoding: 'utf8' });
  if (status === 0) {
    say('native', `prebuilt files of ${prebuiltFolder}`);
    return true;
  }
  rmSync('build/native', { recursive: true, force: true });
  return declined(/Error: .*/.exec(stderr)?.[0] ?? 'they do not load');
}

function declined(why) {
  say('native', `no prebuilt files: ${why}`);
  return false;
}

/** Copies what was built to `folder`, without debugging information. */
export async function packPrebuilt(folder, libraries) {
  mkdirSync(folder, { recursive: true });
  for (const name of [...products, simPlugin, cudaPlugin]) {
    const built = join('build/native', name);
    if (!existsSync(built)) continue;
    cpSync(built, join(folder, name));
    const strip = ['--strip-debug', join(folder, name)];
    if (outputOf('strip') !== null) await run('pack', 'strip', strip);
  }
  const manifest = { libraries: wordOf(libraries) };
  writeFileSync(join(folder, 'manifest.json'), `${JSON.stringify(manifest)}\n`);
  say('pack', `native files in ${folder}: ${manifest.libraries}`);
}

/** What prebuilt files are tied to. */
function wordOf({ torch, products: others, hasCuda }) {
  return `PyTorch ${torch.replace(/\+.*/, '')}${hasCuda ? ' with CUDA' : ''}, ${others}`;
}
