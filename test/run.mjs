#!/usr/bin/env node
// Tests by what they need: native (C++), unit (pure), process (real executors), e2e (daemon and
// client); and those that take long: long (random crews and kills, accuracies), address and thread
// (the native core under sanitizers), fixed (the part of these that CI runs: the same each time).
// `npm test -- unit` runs some; set-up has been done by then.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

const everyTime = ['native', 'unit', 'process', 'e2e'];
const long = ['long', 'address', 'thread'];
const parts = ['fixed'];
/**
 * What `fixed` draws: all that is random in it follows from these. Four models, both kinds of
 * evaluation, early stop, prediction, queues, caches, shared devices, three deaths of the daemon.
 */
const fixedDraws = { GNND_SEED: '46', GNND_CASES: '4' };
const words = process.argv.slice(2);
const tiers = words[0] === '--long' ? long : everyTime;
const rest = words.filter((word) => word !== '--long');
const asked = rest.filter((word) => [...everyTime, ...long, ...parts].includes(word));
const others = rest.filter((word) => !asked.includes(word));
const chosen = asked.length > 0 ? asked : tiers;
// A file that is named lies in one tier.
const filters = others.length > 0 ? ['--passWithNoTests', ...others] : [];
const vitest = 'node_modules/.bin/vitest';
const failures = [];
const times = [];
let skippedNative = false;

function run(name, command, args, env = {}) {
  const shown = [...Object.entries(env).map((pair) => pair.join('=')), command, ...args];
  process.stdout.write(`\n== ${name}: ${shown.join(' ')}\n`);
  const startedMs = performance.now();
  const options = { stdio: 'inherit', env: { ...process.env, ...env } };
  const { status, signal } = spawnSync(command, args, options);
  times.push(`${name} ${((performance.now() - startedMs) / 1000).toFixed(0)} s`);
  if (status !== 0) failures.push(`${name} (${signal ?? `exit ${status}`})`);
}

for (const tier of chosen) {
  if (tier === 'native') {
    for (const name of ['core', 'fault', 'cuda', 'device', 'train']) {
      const binary = `gnnd_${name}_test`;
      const path = `build/native/${binary}`;
      if (existsSync(path)) run(binary, path, []);
      else skippedNative = true;
    }
  } else if (tier === 'address' || tier === 'thread') {
    run(tier, process.execPath, ['test/sanitize.mjs', tier]);
  } else if (tier === 'fixed') {
    const random = 'test/long/random.test.ts';
    run('fixed', vitest, ['run', '--project', 'long', random], fixedDraws);
    run('fixed', process.execPath, ['test/sanitize.mjs', 'thread', 'gnnd_fault_test']);
  } else {
    run(tier, vitest, ['run', '--project', tier, ...filters]);
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
