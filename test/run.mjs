#!/usr/bin/env node
// All tests, by what they need: native (C++), unit (pure), process (real executors), e2e (daemon
// and client). `npm test -- unit` runs some of them; set-up has been done by then.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

const tiers = ['native', 'unit', 'process', 'e2e'];
const asked = process.argv.slice(2).filter((word) => tiers.includes(word));
const others = process.argv.slice(2).filter((word) => !tiers.includes(word));
const chosen = asked.length > 0 ? asked : tiers;
const failures = [];
let skippedNative = false;

function run(name, command, args) {
  process.stdout.write(`\n== ${name}: ${command} ${args.join(' ')}\n`);
  const { status, signal } = spawnSync(command, args, { stdio: 'inherit' });
  if (status !== 0) failures.push(`${name} (${signal ?? `exit ${status}`})`);
}

if (chosen.includes('native')) {
  for (const binary of ['gnnd_core_test', 'gnnd_fault_test', 'gnnd_train_test']) {
    const path = `build/native/${binary}`;
    if (existsSync(path)) run('native', path, []);
    else skippedNative = true;
  }
}
const folders = chosen.filter((tier) => tier !== 'native').map((tier) => `test/${tier}`);
if (folders.length > 0 || others.length > 0) {
  run('vitest', 'node_modules/.bin/vitest', ['run', ...folders, ...others]);
}
if (skippedNative) {
  process.stdout.write(
    '\nSKIPPED: native unit tests (no doctest: sudo apt-get install doctest-dev)\n',
  );
}
if (failures.length > 0) {
  process.stdout.write(`\nFAILED: ${failures.join(', ')}\n`);
  process.exit(1);
}
process.stdout.write('\nAll tests passed.\n');
