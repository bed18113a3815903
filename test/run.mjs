#!/usr/bin/env node
// Tests by what they need: native (C++), unit (pure), process (real executors), e2e (daemon and
// client: a job or two each); with --all also thorough (daemon and client: many jobs each, crews,
// kills, other libraries) and chaos (a minute of random kills). With --long those that take long:
// long (random crews and kills, accuracies), address and thread (the native core under sanitizers).
// With --ci what CI runs: all but the long ones, of thorough a sixth of the files (share: which
// sixth follows from the commit's content) and of the long ones a fixed part (fixed).
// `npm test -- unit` runs some; set-up has been done by then.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';

const everyTime = ['native', 'unit', 'process', 'e2e'];
const all = [...everyTime, 'thorough', 'chaos'];
const long = ['long', 'address', 'thread'];
const parts = ['share', 'fixed'];
const ci = [...everyTime, 'share', 'chaos', 'fixed'];
const shares = 6;
/**
 * What `fixed` draws: all that is random in it follows from these. Four models, both kinds of
 * evaluation, early stop, prediction, queues, caches, shared devices, three deaths of the daemon.
 */
const fixedDraws = { GNND_SEED: '46', GNND_CASES: '4' };
const words = process.argv.slice(2);
const tiers = { '--long': long, '--all': all, '--ci': ci }[words[0]] ?? everyTime;
const rest = tiers === everyTime ? words : words.slice(1);
const asked = rest.filter((word) => [...all, ...long, ...parts].includes(word));
const others = rest.filter((word) => !asked.includes(word));
// A file that is named lies in one tier.
const named = all.filter((tier) => others.some((word) => word.includes(`test/${tier}/`)));
const chosen = [asked, named, tiers].find((some) => some.length > 0);
const filters = others.length > 0 ? ['--passWithNoTests', ...others] : [];
const vitest = 'node_modules/.bin/vitest';
const failures = [];
/** What failed by name, for the end of a log of which only the end may be kept. */
const failed = [];
const times = [];
let skippedNative = false;

function run(name, command, args, env = {}, more = {}) {
  const shown = [...Object.entries(env).map((pair) => pair.join('=')), command, ...args];
  process.stdout.write(`\n== ${name}: ${shown.join(' ')}\n`);
  const startedMs = performance.now();
  const options = { stdio: 'inherit', env: { ...process.env, ...env }, ...more };
  const { status, signal, stdout } = spawnSync(command, args, options);
  times.push(`${name} ${((performance.now() - startedMs) / 1000).toFixed(0)} s`);
  if (status !== 0) failures.push(`${name} (${signal ?? `exit ${status}`})`);
  return stdout;
}

/** doctest names a test case that says something, and below it what failed there. */
function runNative(name, path) {
  const piped = { stdio: ['inherit', 'pipe', 'inherit'], encoding: 'utf8', maxBuffer: 2 ** 26 };
  const output = run(name, path, ['--no-colors'], {}, piped);
  process.stdout.write(output);
  let testCase = '';
  for (const line of output.split('\n')) {
    if (/^TEST CASE:/.test(line)) testCase = line;
    else if (/ ERROR:/.test(line)) failed.push(`${name} > ${testCase}\n    ${line}`);
  }
}

function runVitest(name, args, env = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'gnnd-tests-'));
  const report = join(folder, 'report.json');
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
  run(name, vitest, ['run', '--project', ...args, ...reporters], env);
  // A run that was killed leaves none.
  const { testResults } = existsSync(report) ? JSON.parse(readFileSync(report)) : {};
  for (const { name: file, message, assertionResults } of testResults ?? []) {
    const place = relative('.', file);
    if (message) failed.push(`${place}: ${message}`);
    for (const { status, fullName, failureMessages } of assertionResults) {
      if (status !== 'failed') continue;
      const why = failureMessages.join('\n').split('\n').slice(0, 4).join('\n    ');
      failed.push(`${place} > ${fullName}\n    ${why}`);
    }
  }
  rmSync(folder, { recursive: true });
}

/** Which share of thorough a commit's content draws, the same wherever it is run; from 1. */
function drawnShare() {
  const { stdout } = spawnSync('git', ['rev-parse', 'HEAD^{tree}'], { encoding: 'utf8' });
  return ((Number.parseInt(stdout.slice(0, 8), 16) || 0) % shares) + 1;
}

for (const tier of chosen) {
  if (tier === 'native') {
    for (const name of ['core', 'fault', 'cuda', 'device', 'train']) {
      const binary = `gnnd_${name}_test`;
      const path = `build/native/${binary}`;
      if (existsSync(path)) runNative(binary, path);
      else skippedNative = true;
    }
  } else if (tier === 'address' || tier === 'thread') {
    run(tier, process.execPath, ['test/sanitize.mjs', tier]);
  } else if (tier === 'share') {
    runVitest('share of thorough', ['thorough', `--shard=${drawnShare()}/${shares}`]);
  } else if (tier === 'fixed') {
    const random = 'test/long/random.test.ts';
    runVitest('fixed', ['long', random], fixedDraws);
    run('fixed', process.execPath, ['test/sanitize.mjs', 'thread', 'gnnd_fault_test']);
    // Products by the calls of a GPU's Trainer, on simulated devices.
    const devices = ['--no-colors', '--source-file=*/device_*'];
    run('fixed', 'build/native/gnnd_train_test', devices, { GNND_SIM_PRODUCTS: 'TORCH' });
  } else {
    runVitest(tier, [tier, ...filters]);
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
  process.stdout.write(`\nFAILED: ${failures.join(', ')}\n${failed.join('\n')}\n`);
  process.exit(1);
}
process.stdout.write('\nAll tests passed.\n');
