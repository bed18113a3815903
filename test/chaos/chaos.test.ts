import { spawnSync } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { SpecInit } from '../support/crews.ts';
import { repository } from '../support/daemon.ts';
import { writeLargeGraph } from '../support/large-graph.ts';
import { checkHistory } from '../support/ledger-history.ts';
import { type Holdings, holdingsOf } from '../support/leftovers.ts';
import { cpuDevices, type Kind, kinds, simulated, trainedModel } from './catalogue.ts';
import { stepsOf, type Twin } from './expectations.ts';
import { drawKinds, planRound } from './plan.ts';
import { performRound } from './round.ts';
import { Tally } from './tally.ts';
import { soon, World } from './world.ts';

/**
 * Jobs of all kinds beside each other, under random kills, freezes, changes of mind and deaths of
 * the daemon: after all of them nothing acknowledged is lost (I1), nothing is left behind (I2),
 * every job has ended with a documented reason (I3), every batch was committed once and models are
 * those of undisturbed jobs (I4). `npm run chaos` runs it for long; GNND_SEED repeats its rounds.
 */

const minutes = Number(process.env['GNND_CHAOS_MINUTES'] ?? 1);
const seed = Number(process.env['GNND_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
/** Kinds of jobs. A short run has time for four of them, which follow from the seed. */
const names = (process.env['GNND_CHAOS_KINDS'] ?? '').split(',').filter((name) => name !== '');
const drawn =
  names.length > 0
    ? kinds.filter(({ name }) => names.includes(name))
    : drawKinds(seed, minutes < 5 ? 4 : kinds.length);
/** One daemon lives through all rounds, and holds at the end what it held at the beginning. */
const soaks = process.env['GNND_CHAOS_SOAK'] === '1';
/** Folder for the evidence of a round that violated something. */
const evidence = join(repository, '.cache', 'chaos');

const tally = new Tally();
const twins = new Map<string, Twin>();
let folder: string;
/** What executors do to segments (native/core/ledger/trace.h); of a daemon and those after it. */
let traces: string;
let world: World;
/** Holdings of a daemon that has run jobs and runs none. */
let baseline: Holdings | undefined;

beforeAll(async () => {
  process.stdout.write(`GNND_SEED=${seed} GNND_CHAOS_MINUTES=${minutes}\n`);
  folder = mkdtempSync(join(tmpdir(), 'gnnd-chaos-'));
  writeLargeGraph(join(folder, 'crowd'), { numNodes: 20_000, degree: 12, features: 64 });
  world = await prepared();
}, 3_600_000);

afterAll(async () => {
  process.stdout.write(`\n${tally.report()}`);
  await world.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** A daemon with what jobs need. */
async function prepared(): Promise<World> {
  const flags = ['--topology-idle-ms', '0', ...simulated];
  traces = mkdtempSync(join(folder, 'traces-'));
  const env = { GNND_LEDGER_TRACE: traces };
  const made = await World.start({ cpuDevices, datasets: ['cora'], flags, env });
  await made.daemon.import('crowd', join(folder, 'crowd'));
  await made.daemon.train(trainedModel.id, trainedModel.spec);
  return made;
}

/** Runs a job of each of these kinds undisturbed, once; what an idle daemon holds. */
async function prepareTwins(wanted: readonly Kind[]): Promise<Holdings> {
  for (const { name, spec, crews } of wanted) {
    if (twins.has(name)) continue;
    const [crew = {}] = crews;
    const resources = { ...spec.resources, ...crew.resources };
    const startMs = performance.now();
    const id = `twin-${name}`;
    const job = await world.daemon.train(id, { ...spec, ...crew, resources } as SpecInit);
    const tookMs = performance.now() - startMs;
    process.stdout.write(`${name}, undisturbed: ${(tookMs / 1000).toFixed(1)} s\n`);
    twins.set(name, { job, steps: stepsOf(job) });
  }
  baseline ??= holdingsOf(world.daemon.pid);
  return baseline;
}

/** What is needed to find out why, and a new daemon. */
async function keepEvidence(roundSeed: number): Promise<void> {
  const place = join(evidence, `seed-${roundSeed}`);
  mkdirSync(place, { recursive: true });
  writeFileSync(join(place, 'violations.txt'), tally.report());
  cpSync(join(world.daemon.folder, 'daemon.log'), join(place, 'daemon.log'));
  const jobs = join(world.daemon.folder, 'state', 'jobs');
  // Files that vanish meanwhile are left out.
  spawnSync('cp', ['-a', jobs, traces, place]);
  await world.stop();
  world = await prepared();
}

/** I4: each change of a segment's words since the last look obeys the rules of the segment. */
function checkTraces(round: number): void {
  for (const name of readdirSync(traces)) {
    const path = join(traces, name);
    const verdict = checkHistory(readFileSync(path));
    tally.history(verdict);
    const found = verdict.violations.map((text) => `I4: seed ${round}: segment ${name}: ${text}`);
    tally.violations.push(...found);
    if (found.length === 0) rmSync(path);
  }
}

/** Memory is told; threads and descriptors must be as few as they were. */
async function lookBack(): Promise<void> {
  if (!soaks || baseline === undefined) return;
  const { pid } = world.daemon;
  const { threads } = baseline;
  await soon(() => holdingsOf(pid).threads <= threads);
  const now = holdingsOf(pid);
  process.stdout.write(`${JSON.stringify({ before: baseline, after: now })}\n`);
  expect(now.threads).toBeLessThanOrEqual(threads);
  // A heap that was never collected in full; a leak of each job's would be more.
  expect(now.residentBytes - baseline.residentBytes).toBeLessThan(128 * 2 ** 20);
}

test(
  'whatever dies, nothing is lost, nothing stays, every job ends as if nothing had happened',
  async () => {
    const endsAt = Date.now() + minutes * 60_000;
    for (let round = 0; round === 0 || Date.now() < endsAt; round += 1) {
      const plan = planRound(seed + round, { jobs: 4, hits: 12, kinds: drawn, daemonDies: !soaks });
      const before = tally.violations.length;
      const idle = await prepareTwins(plan.scripts.map(({ kind }) => kind));
      await performRound(plan, { world, tally, twins, baseline: idle });
      checkTraces(seed + round);
      const mebibytes = Math.round(holdingsOf(world.daemon.pid).residentBytes / 2 ** 20);
      const held = soaks ? `, the daemon holds ${mebibytes} MiB` : '';
      process.stdout.write(
        `${seed + round}: ${tally.faults} faults, ${tally.kills} kills${held}\n`,
      );
      if (tally.violations.length === before) continue;
      process.stdout.write(`${tally.violations.slice(before).join('\n')}\n`);
      await keepEvidence(seed + round);
    }
    await lookBack();
    expect(tally.violations).toEqual([]);
    expect(tally.faults).toBeGreaterThan(tally.planned / 4);
  },
  minutes * 60_000 + 3_600_000,
);
