#!/usr/bin/env node
// The native core's tests under AddressSanitizer and UndefinedBehaviorSanitizer, in a build folder
// of their own. `node test/sanitize.mjs thread` runs them under ThreadSanitizer instead. Torch is
// not instrumented, so the Trainer's tests are not part of this.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cpus } from 'node:os';
import { delimiter, resolve } from 'node:path';

const kinds = { address: 'address,undefined', thread: 'thread' };
const kind = process.argv[2] ?? 'address';
if (!(kind in kinds)) {
  process.stderr.write(`usage: node test/sanitize.mjs [${Object.keys(kinds).join('|')}]\n`);
  process.exit(2);
}

function run(command, args, env = {}) {
  process.stdout.write(`${command} ${args.join(' ')}\n`);
  const options = { stdio: 'inherit', env: { ...process.env, ...env } };
  const { status } = spawnSync(command, args, options);
  if (status !== 0) process.exit(status ?? 1);
}

const folder = `build/sanitize-${kind}`;
const path = `${resolve('.cache/tools/bin')}${delimiter}${process.env.PATH}`;
const doctest = resolve('.cache/doctest/usr/include');
const tests = ['gnnd_core_test', 'gnnd_fault_test'];
const configure = [
  ...['-G', 'Ninja', '-S', '.', '-B', folder, '-DGNND_ADDON=OFF', '-DGNND_TRAIN=OFF'],
  ...['-DGNND_TESTS=ON', `-DGNND_SANITIZE=${kinds[kind]}`],
];
if (existsSync(doctest)) configure.push(`-DDOCTEST_INCLUDE=${doctest}`);
run('cmake', configure, { PATH: path });
run('ninja', ['-C', folder, `-j${cpus().length}`, ...tests], { PATH: path });
for (const test of tests) {
  run(`${folder}/${test}`, [], {
    ASAN_OPTIONS: 'detect_stack_use_after_return=1',
    UBSAN_OPTIONS: 'print_stacktrace=1',
  });
}
