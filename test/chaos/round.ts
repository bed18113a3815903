import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as later } from 'node:timers/promises';
import type { DescMethod } from '@bufbuild/protobuf';
import { DeviceState, HostService } from '../../src/api/gen/gnnd/v1/host_service_pb.ts';
import { type Job, JobIntent, JobPhase, JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { Reason } from '../../src/api/gen/gnnd/v1/types_pb.ts';
import type { SpecInit } from '../support/crews.ts';
import { executorPids, isTerminal } from '../support/daemon.ts';
import {
  type Holdings,
  holdingsOf,
  processesWithSegments,
  unlistedFiles,
} from '../support/leftovers.ts';
import { Patience } from '../support/until.ts';
import { differences, forgotten, logged, oddHistory, type Twin } from './expectations.ts';
import type { Blow, Hit, Role, Round, Script } from './plan.ts';
import type { Tally } from './tally.ts';
import { namesIn, soon, type World, whereIs } from './world.ts';

/** Performs a round: its jobs beside each other, each hit as its script says; then all checks. */

export interface RoundParts {
  readonly world: World;
  readonly tally: Tally;
  readonly twins: ReadonlyMap<string, Twin>;
  /** What the daemon held when nothing ran. */
  readonly baseline: Holdings;
}

/** I3: whoever is not at work for so long hangs; back-offs and starved machines do not take it. */
const hangMs = 240_000;
const lookMs = 15;

const { cancelJob, createJob, deleteJob, listEpochs, resumeJob, retryJob, suspendJob } =
  JobService.method;
const { drainDevice, undrainDevice, listDevices } = HostService.method;

export async function performRound(round: Round, parts: RoundParts): Promise<void> {
  const { tally, world } = parts;
  const before = tally.violations.length;
  const logEnd = world.daemon.logs.length;
  const scripts = round.scripts.map((script) => new Performance(script, parts));
  const ends = await Promise.allSettled(scripts.map((script) => script.perform()));
  for (const [index, end] of ends.entries()) {
    if (end.status === 'rejected') {
      tally.violations.push(`${round.scripts[index]?.id}: ${String(end.reason)}`);
    }
  }
  tally.violations.push(...(await forgotten(world)), ...(await leftBehind(parts)));
  tally.violations.push(...logged(world.daemon.logs, logEnd));
  for (const script of round.scripts) await remove(world, script.id);
  if (!(await soon(() => namesIn(join(stateOf(world), 'jobs')).length <= parts.twins.size + 1))) {
    tally.violations.push('I2: folders of deleted jobs stayed');
  }
  tally.rounds += 1;
  const seed = `seed ${round.seed}`;
  for (let at = before; at < tally.violations.length; at += 1) {
    tally.violations[at] = `${seed}: ${tally.violations[at]}`;
  }
}

const stateOf = ({ daemon }: World) => join(daemon.folder, 'state');

async function remove(world: World, id: string): Promise<void> {
  const request = { name: `jobs/${id}`, force: true, allowMissing: true };
  await world.call(deleteJob, request, randomUUID());
  world.acknowledged.delete(`jobs/${id}`);
}

/** I2, once all jobs have ended. */
async function leftBehind({ world, baseline }: RoundParts): Promise<readonly string[]> {
  const { pid } = world.daemon;
  const found: string[] = [];
  const expectSoon = async (what: string, list: () => readonly unknown[]) => {
    if (!(await soon(() => list().length === 0))) found.push(`I2: ${what}: ${list().join(', ')}`);
  };
  await expectSoon('processes', () => executorPids(pid));
  await expectSoon('memfds', () => (holdingsOf(pid).memory > 0 ? [holdingsOf(pid).memory] : []));
  await expectSoon('segments', () => processesWithSegments().filter((other) => isOurs(other, pid)));
  await expectSoon('descriptors', () => {
    const { all } = holdingsOf(pid);
    // A client may have made one connection anew.
    return all > baseline.all + 2 ? [`${all}, ${baseline.all} when it was idle`] : [];
  });
  await expectSoon('files', () => unlistedFiles(stateOf(world)));
  await expectSoon('/dev/shm', () => namesIn('/dev/shm').filter((name) => name.includes('gnnd')));
  const { devices } = await world.call(listDevices, {});
  const held = devices.filter(
    ({ state }) => state !== DeviceState.FREE && state !== DeviceState.UNUSED,
  );
  for (const { name, state, job } of held) {
    found.push(`I2: ${name} is ${DeviceState[state]} for ${job || 'nobody'}`);
  }
  return found;
}

/** Other daemons run beside this one. */
function isOurs(pid: number, daemonPid: number): boolean {
  return pid === daemonPid || executorPids(daemonPid).includes(pid);
}

/** One job, hit as its script says, until it has SUCCEEDED. */
class Performance {
  readonly #script: Script;
  readonly #world: World;
  readonly #tally: Tally;
  readonly #twin: Twin;
  /** The job as its submission was acknowledged; of its newest incarnation. */
  #accepted: Job | null = null;
  /** Faults and changes of this job: what excuses an attempt that failed. */
  #met = 0;

  constructor(script: Script, { world, tally, twins }: RoundParts) {
    this.#script = script;
    this.#world = world;
    this.#tally = tally;
    const twin = twins.get(script.kind.name);
    if (twin === undefined) throw new Error(`nobody ran ${script.kind.name} undisturbed`);
    this.#twin = twin;
  }

  get #name(): string {
    return `jobs/${this.#script.id}`;
  }

  async perform(): Promise<void> {
    const { id, kind, submitAfterMs, hits } = this.#script;
    await later(submitAfterMs);
    await this.#submit();
    this.#tally.planned += hits.length;
    for (const hit of hits) {
      if (!(await this.#hit(hit))) this.#tally.missed += 1;
    }
    const job = await this.#settled();
    this.#tally.job(kind.name);
    const whole = { ...job, epochs: await this.#epochs() };
    this.#tally.violations.push(
      ...differences(kind, whole, this.#twin).map((text) => `${id} (${kind.name}): ${text}`),
      ...(await oddHistory(this.#world, job, this.#accepted ?? job)),
    );
    if (!(await soon(() => namesIn(join(this.#folder(job), 'images')).length === 0))) {
      this.#tally.violations.push(`I2: ${id} SUCCEEDED, its images stayed`);
    }
  }

  async #look(): Promise<Job> {
    const job = await this.#world.look(this.#script.id);
    if (job === undefined) throw new Error(`I1: ${this.#name} is in no list`);
    return job;
  }

  #spec(): SpecInit {
    const { kind, crew, everyEpochs, everySteps, priority, isPreemptible } = this.#script;
    const { spec } = kind;
    const team = kind.crews[crew] ?? {};
    return {
      ...spec,
      ...team,
      resources: { ...spec.resources, ...team.resources },
      ...('training' in spec ? { training: { ...spec.training, threadsPerTrainer: 1 } } : {}),
      ...(kind.name === 'inference'
        ? {}
        : { checkpoint: { everyEpochs, everySteps: BigInt(everySteps), keepLast: 3 } }),
      timeouts: { stallMs: 3000n },
      restart: { executorRestarts: 1000, maxAttempts: 100 },
      priority,
      preemptible: isPreemptible,
    } as SpecInit;
  }

  async #submit(): Promise<void> {
    const request = { jobId: this.#script.id, spec: this.#spec() };
    const requestId = randomUUID();
    const job = await this.#world.call(createJob, request, requestId);
    this.#world.note(job);
    this.#accepted = job;
    if (!this.#script.isReplayed) return;
    const again = await this.#world.call(createJob, request, requestId);
    if (again.uid === job.uid) return;
    this.#tally.violations.push(`I1: ${job.name} was made twice: ${job.uid}, ${again.uid}`);
  }

  #folder({ uid }: Pick<Job, 'uid'>): string {
    return join(stateOf(this.#world), 'jobs', uid);
  }

  /** Waits for the hit's moment; false where the job's end came first, or nobody was there. */
  async #hit({ at, afterMs, blow, which }: Hit): Promise<boolean> {
    const patience = new Patience(hangMs);
    for (;;) {
      const job = await this.#look();
      if (isTerminal(job)) {
        if (job.state === JobState.SUCCEEDED) return false;
        await this.#goOn(job);
      } else if (isWantedNot(job)) {
        await this.#goOn(job);
      } else if (this.#isAt(job, at)) {
        await later(afterMs);
        if (await this.#strike(blow, which)) return true;
        if (at === null) return false;
        // Whoever was there had come to their end: the next ones.
        if (blow.kind !== 'KILL' && blow.kind !== 'STOP') return false;
      }
      if (patience.isOver()) throw new Error(`I3: ${sentenceOf(job)} does not get to its next hit`);
      await later(lookMs);
    }
  }

  #isAt(job: Job, at: number | null): boolean {
    if (job.state !== JobState.RUNNING && job.state !== JobState.PREPARING) return false;
    const here = this.#world.processes().some(({ uid }) => uid === job.uid);
    if (!here) return false;
    if (at === null) return true;
    if (job.state !== JobState.RUNNING) return false;
    const { version = 0n, evaluation } = job.progress ?? {};
    if (this.#script.kind.name === 'inference') {
      const { rowsDone = 0n, rowsTotal = 0n } = evaluation ?? {};
      return rowsTotal > 0n && Number(rowsDone) >= at * Number(rowsTotal);
    }
    return Number(version) >= at * this.#twin.steps;
  }

  async #strike(blow: Blow, which: number): Promise<boolean> {
    const job = await this.#look();
    if (isTerminal(job)) return false;
    const phase = whereIs(job);
    const met = await this.#perform(blow, which, job);
    if (met.length === 0) return false;
    this.#met += met.length;
    for (const fault of met) this.#tally.fault(fault, phase);
    return true;
  }

  /** The faults that there were, by name. */
  async #perform(blow: Blow, which: number, job: Job): Promise<readonly string[]> {
    switch (blow.kind) {
      case 'KILL':
        return this.#targets(job, blow.whom, which)
          .filter(({ pid }) => signalled(pid, blow.signal))
          .map(({ role }) => `${blow.signal} ${role}`);
      case 'STOP':
        return await this.#stopped(job, blow, which);
      case 'DAEMON':
        this.#tally.violations.push(...(await this.#world.replace(blow.signal)));
        this.#tally.violations.push(...(await forgotten(this.#world)));
        return [`daemon ${blow.signal}`];
      case 'FREEZE': {
        const { pid } = this.#world.daemon;
        if (!signalled(pid, 'SIGSTOP')) return [];
        await later(blow.forMs);
        signalled(pid, 'SIGCONT');
        return ['daemon frozen'];
      }
      case 'SUSPEND':
        return await this.#asked(suspendJob, 'suspend', blow.forMs);
      case 'CANCEL':
        return await this.#asked(cancelJob, 'cancel', blow.forMs, blow.fromBeginning);
      case 'DRAIN':
        return await this.#drained(job, which, blow.forMs);
      case 'DELETE':
        return await this.#deleted(blow.forMs);
      case 'DAMAGE':
        return this.#damaged(job);
      default:
        throw new Error('no such blow');
    }
  }

  #targets({ uid }: Job, whom: Role | 'ANY' | 'ALL', which: number) {
    const all = this.#world.processes().filter((process) => process.uid === uid);
    if (whom === 'ALL') return all;
    const meant = all.filter(({ role }) => role === whom);
    const could = meant.length > 0 ? meant : all;
    return could.slice(Math.floor(which * could.length)).slice(0, 1);
  }

  async #stopped(
    job: Job,
    { whom, forMs }: Extract<Blow, { kind: 'STOP' }>,
    which: number,
  ): Promise<readonly string[]> {
    const [target] = this.#targets(job, whom, which);
    if (target === undefined || !signalled(target.pid, 'SIGSTOP')) return [];
    if (forMs === null) {
      // The watchdog's turn; unless somebody else kills it, or lets it go on.
      const isOver = await soon(() => !isStopped(target.pid), hangMs);
      if (!isOver) throw new Error(`I3: ${target.role} ${target.pid} was stopped and stayed`);
      return [`stalled ${target.role}`];
    }
    await later(forMs);
    signalled(target.pid, 'SIGCONT');
    return [`stopped ${target.role}`];
  }

  /** A change that a job which has just ended refuses. */
  async #asked(
    method: DescMethod & { readonly output: typeof suspendJob.output },
    what: string,
    forMs: number,
    fromBeginning = false,
  ): Promise<readonly string[]> {
    try {
      await this.#world.change(method, { name: this.#name });
    } catch (error) {
      if (/JOB_STATE_CONFLICT|cannot be|SUCCEEDED|FAILED|CANCELL/.test(String(error))) return [];
      throw error;
    }
    await later(forMs);
    const job = await this.#world.job(this.#script.id);
    if (what === 'suspend') await this.#goOn(job);
    if (what === 'cancel') await this.#retried(fromBeginning);
    return [what];
  }

  /** Waits for the end of a cancelled job, and wants it again. */
  async #retried(fromBeginning: boolean): Promise<void> {
    const patience = new Patience(hangMs);
    for (;;) {
      const job = await this.#world.job(this.#script.id);
      if (job.state === JobState.SUCCEEDED) return;
      if (isTerminal(job)) {
        await this.#world.change(retryJob, { name: this.#name, fromBeginning });
        return;
      }
      if (patience.isOver()) throw new Error(`I3: ${sentenceOf(job)} was cancelled and stays`);
      await later(lookMs);
    }
  }

  async #drained(job: Job, which: number, forMs: number): Promise<readonly string[]> {
    const { devices } = await this.#world.call(listDevices, {});
    const its = devices.filter((device) => device.job === job.name);
    const device = its[Math.floor(which * its.length)];
    if (device === undefined) return [];
    await this.#world.call(drainDevice, { name: device.name });
    await later(forMs);
    await this.#world.call(undrainDevice, { name: device.name });
    return ['drain'];
  }

  /** Away with it, and the same id anew. */
  async #deleted(forMs: number): Promise<readonly string[]> {
    const request = { name: this.#name, force: true };
    this.#world.acknowledged.delete(this.#name);
    await this.#world.call(deleteJob, request, randomUUID());
    await later(forMs);
    const patience = new Patience(hangMs);
    for (;;) {
      const found = await this.#world.job(this.#script.id).catch((error) => String(error));
      if (typeof found === 'string') break;
      if (patience.isOver()) throw new Error(`I3: ${sentenceOf(found)} was deleted and stays`);
      await later(lookMs);
    }
    await this.#submit();
    return ['delete'];
  }

  #damaged(job: Job): readonly string[] {
    const folder = join(this.#folder(job), 'images');
    const newest = namesIn(folder)
      .filter((name) => name.endsWith('.image'))
      .sort()
      .at(-1);
    if (newest === undefined) return [];
    try {
      const bytes = readFileSync(join(folder, newest));
      bytes.fill(7, Math.floor(bytes.length / 2), Math.floor(bytes.length / 2) + 100);
      writeFileSync(join(folder, newest), bytes);
    } catch {
      return [];
    }
    return ['damaged image'];
  }

  /** What takes back what stands in its way. */
  async #goOn(job: Job): Promise<void> {
    const { state, reason, intent } = job;
    if (state === JobState.SUSPENDED || intent === JobIntent.SUSPEND) {
      await this.#world.change(resumeJob, { name: this.#name }).catch(unlessEnded);
      return;
    }
    if (state === JobState.CANCELLED) {
      await this.#world.change(retryJob, { name: this.#name });
      return;
    }
    if (state !== JobState.FAILED) return;
    const isExcused =
      this.#met > 0 &&
      (reason === Reason.STARTUP_BUDGET_EXHAUSTED || reason === Reason.RESTART_BUDGET_EXHAUSTED);
    if (!isExcused) this.#tally.violations.push(`I3: ${sentenceOf(job)} after ${this.#met} faults`);
    this.#tally.fault('budget exhausted', Reason[reason]);
    await this.#world.change(retryJob, { name: this.#name });
  }

  async #settled(): Promise<Job> {
    let seen = '';
    const patience = new Patience(hangMs);
    for (;;) {
      const job = await this.#look();
      if (job.state === JobState.SUCCEEDED) return await this.#world.job(this.#script.id);
      await this.#goOn(job);
      const { version, evaluation } = job.progress ?? {};
      const now = `${job.revision} ${job.phase} ${version} ${evaluation?.rowsDone}`;
      const waits = job.state === JobState.PENDING && job.reason !== Reason.NONE;
      if (now !== seen || waits) patience.renew();
      seen = now;
      if (patience.isOver()) throw new Error(`I3: ${sentenceOf(job)} hangs`);
      await later(lookMs);
    }
  }

  async #epochs(): Promise<Job['epochs']> {
    const epochs: Job['epochs'] = [];
    for (let pageToken = ''; ; ) {
      const page = await this.#world.call(listEpochs, {
        name: this.#name,
        pageSize: 500,
        pageToken,
      });
      epochs.push(...page.epochs);
      pageToken = page.nextPageToken;
      if (pageToken === '') return epochs;
    }
  }
}

const isWantedNot = ({ state, intent }: Job) =>
  state === JobState.SUSPENDED || intent === JobIntent.SUSPEND;

function isStopped(pid: number): boolean {
  try {
    return /^\d+ \(.*\) T/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

function signalled(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    // It had come to its end.
    return false;
  }
}

function unlessEnded(error: unknown): void {
  if (!/JOB_STATE_CONFLICT|cannot be|SUCCEEDED|FAILED|CANCELL/.test(String(error))) throw error;
}

export function sentenceOf({ name, state, phase, reason, message }: Job): string {
  return `${name} ${JobState[state]} ${JobPhase[phase]} ${Reason[reason]}: ${message}`;
}
