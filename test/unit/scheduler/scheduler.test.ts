import { describe, expect, test } from 'vitest';
import { compareJobs } from '../../../src/scheduler/queue.ts';
import { decide, initialState, planOf } from '../../../src/scheduler/scheduler.ts';
import {
  type Command,
  isActive,
  type Job,
  type SchedulerEvent,
  type SchedulerState,
} from '../../../src/scheduler/state.ts';
import { waitingFor } from '../../../src/scheduler/waiting.ts';
import { forAll, randomOf } from '../../support/random.ts';
import { jobsOf, plainRequest } from './script-language.ts';
import { liveThrough, type Story, type Turn } from './world.ts';

const stories = 60;

/** The commands of a story in order, with the turn that gave each. */
function commandsOf({ turns }: Story): readonly { turn: Turn; command: Command }[] {
  return turns.flatMap((turn) => turn.decision.commands.map((command) => ({ turn, command })));
}

function healthy(state: SchedulerState): readonly string[] {
  return state.devices.flatMap(({ name, quarantine }) => (quarantine === null ? [name] : []));
}

/** The healthy devices a job could use; empty when they are too few for it. */
function couldUse(state: SchedulerState, { request: { devices } }: Job): readonly string[] {
  if (devices.kind === 'count') {
    return devices.count > healthy(state).length ? [] : healthy(state);
  }
  const usable = healthy(state).filter((name) => devices.names.includes(name));
  return usable.length < devices.names.length ? [] : usable;
}

describe('whatever happens', () => {
  test('no device is held twice, and none is granted that is quarantined', () => {
    forAll(stories, (random) => {
      const holder = new Map<string, string>();
      const quarantined = new Set<string>();
      for (const { command } of commandsOf(liveThrough(random))) {
        if (command.kind === 'quarantineDevice') quarantined.add(command.device);
        if (command.kind === 'prepare') {
          for (const device of command.devices) {
            expect(holder.get(device)).toBeUndefined();
            expect(quarantined.has(device)).toBe(false);
            holder.set(device, command.jobId);
          }
        }
        if (command.kind === 'releaseDevices') {
          for (const device of command.devices) {
            expect(holder.get(device)).toBe(command.jobId);
            holder.delete(device);
          }
        }
      }
      expect([...holder]).toEqual([]);
    });
  });

  test('every job gets exactly what it asks for', () => {
    forAll(stories, (random) => {
      for (const { turn, command } of commandsOf(liveThrough(random))) {
        if (command.kind !== 'prepare') continue;
        const job = jobsOf(turn.decision.state).find(
          ({ request }) => request.jobId === command.jobId,
        );
        const wanted = job?.request.devices;
        if (wanted?.kind === 'count') expect(command.devices).toHaveLength(wanted.count);
        else expect([...command.devices].sort()).toEqual([...(wanted?.names ?? [])].sort());
      }
    });
  });

  test('no job starts before an earlier one that wants the same devices', () => {
    forAll(stories, (random) => {
      for (const { turn, command } of commandsOf(liveThrough(random))) {
        if (command.kind !== 'prepare') continue;
        const { state } = turn.decision;
        const job = jobsOf(state).find(({ request }) => request.jobId === command.jobId);
        if (job === undefined) throw new Error(`${command.jobId} was granted and is unknown`);
        const passed = jobsOf(state).filter(
          (other) =>
            !isActive(other) &&
            other.stage.notBeforeMs === null &&
            compareJobs(other, job) < 0 &&
            couldUse(state, other).some((device) => command.devices.includes(device)),
        );
        expect(passed.map(({ request }) => request.jobId)).toEqual([]);
      }
    });
  });

  test('no device that the first waiting job could start on stays idle', () => {
    forAll(stories, (random) => {
      for (const { decision } of liveThrough(random).turns) {
        const { state } = decision;
        if (state.draining) continue;
        const first = jobsOf(state).find(
          (job) =>
            !isActive(job) && job.stage.notBeforeMs === null && couldUse(state, job).length > 0,
        );
        if (first === undefined) continue;
        const busy = new Set(state.running.flatMap(({ stage }) => stage.devices));
        const free = couldUse(state, first).filter((device) => !busy.has(device));
        const { devices } = first.request;
        const needed = devices.kind === 'count' ? devices.count : devices.names.length;
        expect(free.length).toBeLessThan(needed);
      }
    });
  });

  test('every job ends exactly once, unless the daemon stops first', () => {
    forAll(stories, (random) => {
      const story = liveThrough(random);
      const finished = commandsOf(story).flatMap(({ command }) =>
        command.kind === 'finish' && command.jobId !== 'misfit' ? [command.jobId] : [],
      );
      const left = jobsOf(story.state).map(({ request }) => request.jobId);
      expect([...finished, ...left].sort()).toEqual(story.jobs.map(({ jobId }) => jobId).sort());
      if (left.length > 0) expect(story.state.drained).toBe(true);
      expect(story.state.running).toEqual([]);
    });
  });

  test('attempts and respawns stay within their budgets', () => {
    forAll(stories, (random) => {
      const respawns = new Map<string, number>();
      /** What a suspension ends is charged to no budget. */
      const rests = new Map<string, number>();
      for (const { turn, command } of commandsOf(liveThrough(random))) {
        if (command.kind === 'prepare') {
          const { maxAttempts, startupFailures } = plainRequest.restart;
          const free = rests.get(command.jobId) ?? 0;
          expect(command.attempt).toBeLessThanOrEqual(maxAttempts + startupFailures + 1 + free);
        }
        const isRequeued =
          command.kind === 'requeue' &&
          ['USER_SUSPENDED', 'PREEMPTED'].includes(command.failure.reason);
        if (command.kind === 'suspend' || isRequeued) {
          rests.set(command.jobId, (rests.get(command.jobId) ?? 0) + 1);
        }
        if (command.kind !== 'respawn') continue;
        const job = jobsOf(turn.before).find(({ request }) => request.jobId === command.jobId);
        if (job === undefined || !isActive(job)) throw new Error('respawned in no attempt');
        const key = `${command.jobId}/${command.attempt}/${job.stage.committedBatches}`;
        respawns.set(key, (respawns.get(key) ?? 0) + 1);
        expect(respawns.get(key)).toBeLessThanOrEqual(job.request.restart.executorRestarts);
      }
    });
  });

  test('commands are only about jobs that were submitted, and end with `finish`', () => {
    forAll(stories, (random) => {
      const known = new Set<string>();
      for (const { event, decision } of liveThrough(random).turns) {
        if (event.kind === 'submitted') for (const { jobId } of event.jobs) known.add(jobId);
        for (const command of decision.commands) {
          if (!('jobId' in command)) continue;
          expect(known.has(command.jobId)).toBe(true);
          if (command.kind === 'finish') known.delete(command.jobId);
        }
      }
    });
  });

  test('every queued job can say what it waits for', () => {
    forAll(stories, (random) => {
      for (const { decision } of liveThrough(random).turns) {
        const { state } = decision;
        for (const job of jobsOf(state)) {
          const waiting = waitingFor(state, job.request.jobId);
          if (isActive(job)) expect(waiting).toBeNull();
          else expect(waiting?.message).toBeTruthy();
          expect(waiting?.ahead ?? 0).toBeLessThan(state.queue.length || 1);
        }
      }
    });
  });

  test('every job has a plan with a Sampler and someone who trains', () => {
    forAll(stories / 3, (random) => {
      for (const { decision } of liveThrough(random).turns) {
        for (const { request } of jobsOf(decision.state)) {
          const plan = planOf(decision.state, request.jobId);
          const roles = plan?.executors.map(({ role }) => role) ?? [];
          expect(roles.filter((role) => role === 'SAMPLER').length).toBe(plan?.samplers);
          expect(roles.some((role) => role === 'TRAINER' || role === 'STANDBY')).toBe(true);
        }
      }
    });
  });

  test('the same events lead to the same state, from stored states, too', () => {
    forAll(stories / 3, (random) => {
      let state: SchedulerState = initialState;
      for (const { event, decision } of liveThrough(random).turns) {
        const stored: SchedulerState = JSON.parse(JSON.stringify(state));
        const storedEvent: SchedulerEvent = JSON.parse(JSON.stringify(event));
        const again = decide(freeze(stored), freeze(storedEvent));
        expect(again).toEqual(decision);
        state = again.state;
      }
    });
  });
});

describe('the stories the properties are about', () => {
  test('contain every command and every way for a job to end', () => {
    const met = new Set<string>();
    for (let seed = 0; seed < stories; seed += 1) {
      for (const { command } of commandsOf(liveThrough(randomOf(seed)))) {
        met.add(command.kind === 'finish' ? command.reason : command.kind);
      }
    }
    expect([...met]).toEqual(
      expect.arrayContaining([
        'prepare',
        'calibrate',
        'launch',
        'begin',
        'respawn',
        'stopExecutors',
        'releaseDevices',
        'quarantineDevice',
        'requeue',
        'suspend',
        'drained',
        'COMPLETED',
        'USER_CANCELLED',
        'PENDING_TIMEOUT',
        'RUN_TIMEOUT',
        'NUMERIC_DIVERGENCE',
        'RESTART_BUDGET_EXHAUSTED',
        'STARTUP_BUDGET_EXHAUSTED',
      ]),
    );
  });
});

/** Freezes a value to its leaves, so that a decision that writes to its input throws. */
function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    for (const inner of Object.values(value)) freeze(inner);
    Object.freeze(value);
  }
  return value;
}
