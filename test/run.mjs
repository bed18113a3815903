#!/usr/bin/env node
// Tests by what they need: native (C++), unit (pure), process (real executors), e2e (daemon and
// client); and those that take long: long (random crews and kills, accuracies), address and thread
// (the native core under sanitizers). `npm test -- unit` runs some; set-up has been done by then.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

const everyTime = ['native', 'unit', 'process', 'e2e'];
const long = ['long', 'address', 'thread'];
const words = process.argv.slice(2);
const tiers = words[0] === '--long' ? long : everyTime;
const rest = words.filter((word) => word !== '--long');
const asked = rest.filter((word) => [...everyTime, ...long].includes(word));
const others = rest.filter((word) => !asked.includes(word));
const chosen = asked.length > 0 ? asked : tiers;
// A file that is named lies in one tier.
const filters = others.length > 0 ? ['--passWithNoTests', ...others] : [];
const failures = [];
const times = [];
let skippedNative = false;

function run(name, command, args) {
  process.stdout.write(`\n== ${name}: ${command} ${args.join(' ')}\n`);
  const startedMs = performance.now();
  const { status, signal } = spawnSync(command, args, { stdio: 'inherit' });
  times.push(`${name} ${((performance.now() - startedMs) / 1000).toFixed(0)} s`);
  if (status !== 0) failures.push(`${name} (${signal ?? `exit ${status}`})`);
}

for (const tier of chosen) {
  if (tier === 'native') {
    for (const binary of ['gnnd_core_test', 'gnnd_fault_test', 'gnnd_train_test']) {
      const path = `build/native/${binary}`;
      if (existsSync(path)) run(binary, path, []);
      else skippedNative = true;
    }
  } else if (tier === 'address' || tier === 'thread') {
    run(tier, process.execPath, ['test/sanitize.mjs', tier]);
  } else {
    run(tier, 'node_modules/.bin/vitest', ['run', '--project', tier, ...filters]);
  }
}
if (skippedNative) {
  process.stdout.write(
    '\nSKIPPED: native unit tests (no doctest: sudo apt-get install doctest-dev)\n',
  );
  if (process.env.GNND_NO_SKIPS === '1') failures.push('native (skipped)');
}
process.stdout.write(`\n${times.join(', ')}\n`);
if (failures.length > 0) {
  process.stdout.write(`\nFAILED: ${failures.join(', ')}\n`);
  process.exit(1);
}
process.stdout.write('\nAll tests passed.\n');
