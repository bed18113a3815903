#!/usr/bin/env node
// How long after kill -9 of the daemon its executors live, and until the next daemon takes jobs.
//
//   node bench/recovery/run.mjs [--rounds 5]
//
// Cora on two devices, killed while a job trains. Goal: nothing is left after 2 seconds. One JSON
// line in build/bench/recovery.jsonl.
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Daemon } from '../daemon.mjs';
import { median, record } from '../record.mjs';

const { values: options } = parseArgs({ options: { rounds: { type: 'string', default: '5' } } });

const pause = (ms) => new Promise((resume) => setTimeout(resume, ms));

/** Pids of the job's executors, once they train. */
async function executorsOf(daemon, id) {
  for (;;) {
    const job = JSON.parse(daemon.gnnctl('job', 'get', id, '--output', 'json'));
    const pids = (job.progress?.executors ?? []).map(({ pid }) => Number(pid ?? 0));
    if ((job.progress?.epoch ?? 0) >= 1 && pids.length === 2 && !pids.includes(0)) return pids;
    await pause(50);
  }
}

async function round(folder, first) {
  const daemon = new Daemon();
  await daemon.start(folder);
  if (first) {
    daemon.gnnctl('dataset', 'import', '--id', 'cora', '--quiet', 'test/fixtures/cora.npz');
    const set = ['dataset=cora', 'training.epochs=1000000', 'resources.devices=2'];
    daemon.gnnctl(
      'job',
      'create',
      '--id',
      'endless',
      '--quiet',
      ...set.flatMap((x) => ['--set', x]),
    );
  }
  const pids = await executorsOf(daemon, 'endless');
  const killedMs = performance.now();
  daemon.child.process.kill('SIGKILL');
  while (pids.some((pid) => existsSync(`/proc/${pid}`))) await pause(1);
  const goneMs = performance.now() - killedMs;
  const next = new Daemon();
  const startedMs = performance.now();
  await next.start(folder);
  const readyMs = performance.now() - startedMs;
  await next.end();
  return { goneMs, readyMs };
}

async function main() {
  const folder = mkdtempSync(join(tmpdir(), 'gnnd-bench-recovery-'));
  const found = [];
  try {
    for (let i = 0; i < Number(options.rounds); i++) found.push(await round(folder, i === 0));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  const goneMs = found.map((each) => each.goneMs);
  const readyMs = found.map((each) => each.readyMs);
  const shown = (all) => `${median(all).toFixed(0)} ms, at most ${Math.max(...all).toFixed(0)} ms`;
  process.stdout.write(`load ${loadavg()[0].toFixed(1)}\n`);
  process.stdout.write(`executors are gone after   ${shown(goneMs)}\n`);
  process.stdout.write(`the next daemon is ready   ${shown(readyMs)}\n`);
  record('recovery', { goneMs, readyMs });
}

await main();
