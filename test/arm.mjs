#!/usr/bin/env node
// The native core for 64-bit ARM: compiled with Debian's cross compiler, its tests run under
// qemu-user on any host. Torch is not there for it, so the Trainer's tests are not part of this.
//
//   sudo apt-get install g++-aarch64-linux-gnu qemu-user
//   node test/arm.mjs [doctest's filters]      (default: what runs loops over vectors)
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync } from 'node:fs';
import { cpus } from 'node:os';
import { delimiter, resolve } from 'node:path';

const folder = 'build/arm';
const triple = 'aarch64-linux-gnu';
const emulator = 'qemu-aarch64';
const path = `${resolve('.cache/tools/bin')}${delimiter}${process.env.PATH}`;

function run(command, args) {
  process.stdout.write(`${command} ${args.join(' ')}\n`);
  const options = { stdio: 'inherit', env: { ...process.env, PATH: path } };
  const { status } = spawnSync(command, args, options);
  if (status !== 0) process.exit(status ?? 1);
}

for (const tool of [`${triple}-g++`, emulator]) {
  if (spawnSync(tool, ['--version'], { stdio: 'ignore' }).status === 0) continue;
  const packages = 'g++-aarch64-linux-gnu qemu-user';
  process.stderr.write(`${tool} is missing: sudo apt-get install ${packages}\n`);
  process.exit(69);
}

// doctest is one header, the host's serves; beside the host's others it would bring those along.
const doctests = ['.cache/doctest/usr/include', '/usr/include'];
const doctest = doctests.map((at) => resolve(at)).find((at) => existsSync(`${at}/doctest`));
if (doctest === undefined) {
  process.stderr.write('doctest is missing: sudo apt-get install doctest-dev\n');
  process.exit(69);
}
cpSync(`${doctest}/doctest`, `${folder}/include/doctest`, { recursive: true });
run('cmake', [
  ...['-G', 'Ninja', '-S', '.', '-B', folder, '-DGNND_ADDON=OFF', '-DGNND_TRAIN=OFF'],
  ...['-DGNND_TESTS=ON', '-DCMAKE_SYSTEM_NAME=Linux', '-DCMAKE_SYSTEM_PROCESSOR=aarch64'],
  ...[`-DCMAKE_CXX_COMPILER=${triple}-g++`, `-DCMAKE_C_COMPILER=${triple}-gcc`],
  `-DDOCTEST_INCLUDE=${resolve(folder, 'include')}`,
]);
run('ninja', ['-C', folder, `-j${cpus().length}`, 'gnnd_core_test']);
const rooms = ['vec', 'draw', 'sample', 'kernels'].map((room) => `*/test/core/${room}/*`);
const asked = process.argv.slice(2);
const filters = asked.length > 0 ? asked : [`--source-file=${rooms.join(',')}`];
run(emulator, ['-L', `/usr/${triple}`, `${folder}/gnnd_core_test`, ...filters]);
