import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { decide, initialState, nextWakeMs, planOf } from '../../../src/scheduler/scheduler.ts';
import type { SchedulerState } from '../../../src/scheduler/state.ts';
import { waitingFor } from '../../../src/scheduler/waiting.ts';
import { formatCommand, parseEvents } from './script-language.ts';

/**
 * Each file of script/ is a play: a line of an event, indented below it what the scheduler orders.
 * A line may begin with the time (`12s`); `waiting`, `plan`, `wake` ask instead of telling.
 * UPDATE_GOLDEN=1 rewrites the indented lines; the diff is the review.
 */
const folder = new URL('script/', import.meta.url);

describe('the scheduler acts as in', () => {
  for (const name of readdirSync(folder).sort()) {
    test(name, () => {
      const file = new URL(name, folder);
      const written = readFileSync(file, 'utf8');
      const played = play(written);
      if (process.env['UPDATE_GOLDEN'] === '1') writeFileSync(file, played);
      else expect(played).toBe(written);
    });
  }
});

/** Plays the events of a script; answers the script with what was really ordered. */
function play(script: string): string {
  const lines: string[] = [];
  let state = initialState;
  let nowMs = 0;
  for (const line of script.trimEnd().split('\n')) {
    if (line.startsWith('  ')) continue;
    lines.push(line);
    if (line === '' || line.startsWith('#')) continue;
    const timed = /^([\d.]+)s\s+(.*)$/.exec(line);
    if (timed?.[1] !== undefined) nowMs = Number(timed[1]) * 1000;
    const turn = take(state, timed?.[2] ?? line, nowMs);
    state = turn.state;
    lines.push(...turn.answers.map((answer) => `  ${answer}`));
  }
  return `${lines.join('\n')}\n`;
}

interface Turn {
  readonly state: SchedulerState;
  readonly answers: readonly string[];
}

function take(before: SchedulerState, line: string, nowMs: number): Turn {
  const [verb, jobId = ''] = line.split(' ');
  if (verb === 'waiting') {
    const waiting = waitingFor(before, jobId);
    const answer = waiting === null ? 'nothing' : `${waiting.reason}: ${waiting.message}`;
    return { state: before, answers: [answer] };
  }
  if (verb === 'wake') {
    const wakeMs = nextWakeMs(before);
    return { state: before, answers: [wakeMs === null ? 'never' : `at ${wakeMs / 1000}s`] };
  }
  if (verb === 'plan') return { state: before, answers: describePlan(before, jobId) };
  let state = before;
  const answers: string[] = [];
  for (const event of parseEvents(line, nowMs, state)) {
    const decision = decide(state, event);
    if (decision.state === state && decision.commands.length === 0) answers.push('(ignored)');
    answers.push(...decision.commands.map(formatCommand));
    state = decision.state;
  }
  return { state, answers: answers.length === 0 ? ['(noted)'] : answers };
}

function describePlan(state: SchedulerState, jobId: string): readonly string[] {
  const plan = planOf(state, jobId);
  if (plan === null) return ['none'];
  const { recommendation } = plan;
  return [
    `${plan.estimated ? 'estimated' : 'decided'}: ${plan.explanation}`,
    plan.executors.map(({ role, device }) => `${role} ${device}`).join(', '),
    ...plan.choices.map(
      ({ policy, samplers, trainers, batchNs }) =>
        `${policy}: ${samplers} + ${trainers}, ${batchNs / 1e6} ms`,
    ),
    ...plan.ways.map(
      ({ way, samplers, trainers, batchNs }) =>
        `${way}: ${samplers} + ${trainers}, ${batchNs / 1e6} ms`,
    ),
    ...(recommendation === null
      ? []
      : [
          `recommended since epoch ${recommendation.sinceEpoch}: ${recommendation.samplers} + ` +
            `${recommendation.trainers}, ${recommendation.batchNs / 1e6} ms`,
        ]),
  ];
}
