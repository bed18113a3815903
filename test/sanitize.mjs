#!/usr/bin/env node
// The native core's tests under AddressSanitizer and UndefinedBehaviorSanitizer, in a build folder
// of their own. `node test/sanitize.mjs thread` runs them under ThreadSanitizer instead; names of
// test programs after that choose among them. Torch is not instrumented, so the Trainer's tests are
// not part of this.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cpus } from 'node:os';
import { delimiter, resolve } from 'node:path';

const kinds = { address: 'address,undefined', thread: 'thread' };
const all = ['gnnd_core_test', 'gnnd_fault_test', 'gnnd_cuda_test', 'gnnd_device_test'];
const [kind = 'address', ...asked] = process.argv.slice(2);
if (!(kind in kinds) || asked.some((test) => !all.includes(test))) {
  const words = [Object.keys(kinds), all].map((each) => `[${each.join('|')}]`);
  process.stderr.write(`usage: node test/sanitize.mjs ${words.join(' ')}...\n`);
  process.exit(2);
}
const tests = asked.length > 0 ? asked : all;

function run(command, args, env = {}) {
  process.stdout.write(`${command} ${args.join(' ')}\n`);
  const options = { stdio: 'inherit', env: { ...process.env, ...env } };
  const { status } = spawnSync(command, args, options);
  if (status !== 0) process.exit(status ?? 1);
}

const folder = `build/sanitize-${kind}`;
const path = `${resolve('.cache/tools/bin')}${delimiter}${process.env.PATH}`;
const doctest = resolve('.cache/doctest/usr/include');
const configure = [
  ...['-G', 'Ninja', '-S', '.', '-B', folder, '-DGNND_ADDON=OFF', '-DGNND_TRAIN=OFF'],
  ...['-DGNND_TESTS=ON', `-DGNND_SANITIZE=${kinds[kind]}`],
];
if (existsSync(doctest)) configure.push(`-DDOCTEST_INCLUDE=${doctest}`);
run('cmake', configure, { PATH: path });
run('ninja', ['-C', folder, `-j${cpus().length}`, ...tests], { PATH: path });
// GCC 12's ThreadSanitizer does not start where the kernel spreads mappings over 32 bits.
const steady = ['setarch', '--addr-no-randomize'];
const canSteady = spawnSync(steady[0], [steady[1], 'true']).status === 0;
const env = {
  // A test asks for more memory than there is, and must be told so.
  ASAN_OPTIONS: 'detect_stack_use_after_return=1:allocator_may_return_null=1',
  UBSAN_OPTIONS: 'print_stacktrace=1',
};
const commandOf = (test) => [...(canSteady ? steady : []), `${folder}/${test}`];
for (const test of tests) {
  const [command, ...args] = commandOf(test);
  run(command, args, env);
  if (test === 'gnnd_cuda_test') checkPlanted(commandOf(test));
}

/** Faults that kernels were given for this sanitizer, one at a time: each must be reported. */
function checkPlanted([command, ...args]) {
  const options = { encoding: 'utf8', env: { ...process.env, ...env } };
  const wanted = [...args, '--no-skip', `--test-case=planted for ${kind}:*`];
  const names = spawnSync(command, [...wanted, '--list-test-cases'], options)
    .stdout.split('\n')
    .filter((line) => line.startsWith('planted for'));
  const unseen = names.filter((name) => {
    const one = [...args, '--no-skip', `--test-case=${name}`];
    const { status, stderr } = spawnSync(command, one, options);
    return status === 0 || !/ERROR: AddressSanitizer|WARNING: ThreadSanitizer/.test(stderr);
  });
  process.stdout.write(`planted faults: ${names.length - unseen.length} of ${names.length} seen\n`);
  for (const name of unseen) process.stderr.write(`not reported: ${name}\n`);
  if (names.length === 0 || unseen.length > 0) process.exit(1);
}
