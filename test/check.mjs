#!/usr/bin/env node
// Everything that is judged without running gnnd: formatting, lint, types, structure, protos.
// With --oldest, sources are compiled against the oldest PyTorch alone, not the newest, too.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';

const failures = [];
const skipped = [];

function run(name, command, args, options = {}) {
  const { status, error } = spawnSync(command, args, { stdio: 'inherit', ...options });
  process.stdout.write(`${status === 0 ? 'ok  ' : 'FAIL'}  ${name}\n`);
  if (status !== 0) failures.push(error === undefined ? name : `${name} (${error.message})`);
}

function filesUnder(folder, ending) {
  return readdirSync(folder, { recursive: true })
    .map(String)
    .filter((name) => ending.test(name))
    .map((name) => join(folder, name))
    .sort();
}

/** A check that ends with 75 could not look, for want of something. */
function runOrSkip(name, what, args) {
  const { status } = spawnSync(process.execPath, args, { stdio: 'inherit' });
  process.stdout.write(`${{ 0: 'ok  ', 75: 'skip' }[status] ?? 'FAIL'}  ${name}\n`);
  if (status === 75 && process.env.GNND_NO_SKIPS !== '1') skipped.push(what);
  else if (status !== 0) failures.push(name);
}

function has(command) {
  return spawnSync(command, ['--version'], { stdio: 'ignore' }).status === 0;
}

const bin = (name) => resolve('node_modules/.bin', name);
runOrSkip('what is made from proto/', "Python's messages (no grpc_tools)", [
  ...['proto/generate.mjs', '--check'],
]);
run('biome: format and lint', bin('biome'), ['check', '--error-on-warnings', '.']);
run('tsc: strict types', bin('tsc'), ['--noEmit']);
run('tsc: strict types of the page', bin('tsc'), ['--noEmit', '-p', 'src/web']);
run('tidy: imports, includes, sizes, words', bin('vitest'), ['run', 'test/unit/tidy']);
run('buf: lint', bin('buf'), ['lint'], { cwd: 'proto' });
run('buf: format', bin('buf'), ['format', '--diff', '--exit-code'], { cwd: 'proto' });

const clangFormat = '.cache/checkers/bin/clang-format';
if (!has(clangFormat)) {
  skipped.push('clang-format (node deploy/setup.mjs --check)');
} else {
  const sources = [...filesUnder('native', /\.(h|cc|cuh?)$/), ...filesUnder('bench', /\.(h|cc)$/)];
  run('clang-format', clangFormat, ['--dry-run', '--Werror', ...sources]);
}
const checkers = resolve('.cache/checkers/bin');
if (!has(join(checkers, 'ruff')) || !has(join(checkers, 'mypy'))) {
  skipped.push('ruff, mypy (node deploy/setup.mjs --check)');
} else {
  const folders = ['src/python', 'test/e2e/python/package', 'proto'];
  const config = ['--config', 'src/python/pyproject.toml', ...folders];
  run('ruff: lint', join(checkers, 'ruff'), ['check', '--quiet', ...config]);
  run('ruff: format', join(checkers, 'ruff'), ['format', '--check', '--quiet', ...config]);
  run('mypy: strict types', join(checkers, 'mypy'), ['--no-error-summary'], { cwd: 'src/python' });
}
// Half a gigabyte of wheel each, once; then seconds where ccache has the objects.
const matrix = 'sources against other versions of PyTorch';
runOrSkip(matrix, `${matrix} (no wheels)`, ['test/torch-matrix.mjs', ...process.argv.slice(2)]);
// Set-up does not build this, because nvcc takes minutes.
if (!has('nvcc')) {
  skipped.push('nvcc: the CUDA plug-in for all architectures (no nvcc)');
} else {
  const path = `${resolve('.cache/tools/bin')}${delimiter}${process.env.PATH}`;
  const env = { ...process.env, PATH: path };
  run('nvcc: the CUDA plug-in', 'ninja', ['-C', 'build/native', 'gnnd_cuda'], { env });
  const test = 'build/native/gnnd_device_test';
  if (existsSync(test)) run('the CUDA plug-in without a driver', test, ['-tc=*CUDA*']);
}
if (has('systemd-analyze')) {
  run('systemd-analyze verify', 'node', ['deploy/verify-unit.mjs']);
} else {
  skipped.push('systemd-analyze (sudo apt-get install systemd)');
}
if (existsSync('deploy/gnnd.example.yaml') && existsSync('dist/main.js')) {
  run('example configuration', 'node', [
    ...['dist/main.js', 'config', 'check', '--config', 'deploy/gnnd.example.yaml'],
  ]);
}

for (const what of skipped) process.stdout.write(`SKIPPED: ${what}\n`);
if (failures.length > 0) {
  process.stdout.write(`\nFAILED: ${failures.join(', ')}\n`);
  process.exit(1);
}
process.stdout.write('\nAll checks passed.\n');
