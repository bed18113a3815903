import type { Command } from 'commander';
import {
  type Job,
  type JobResult,
  JobSchema,
  JobState,
  JobStateSchema,
} from '../../api/gen/gnnd/v1/job_pb.ts';
import { gnnctlExit } from '../../base/exit-codes.ts';
import { numberOf, shortName, shortNames } from '../../spec/enum-names.ts';
import { metricText, metricTitle, testMetricsOf } from '../../spec/metrics.ts';
import { meantBy } from '../../spec/nearest.ts';
import { CliError, exitCodeOfJob, isTerminal } from '../session/exit.ts';
import { waitFor } from '../session/interrupt.ts';
import type { Run } from '../session/run.ts';
import type { Session } from '../session/session.ts';
import { printable } from '../session/terminal.ts';
import { idOf, reasonText, resourceName } from '../show/job-text.ts';
import { printOne } from '../show/output.ts';
import { type FollowView, followJob } from './follow.ts';

/** `gnnctl job watch` and `gnnctl job wait`. */
export function addJobWatch(job: Command, run: Run): void {
  job
    .command('watch')
    .description('show a job live until it ends')
    .argument('<job>')
    .action(run((session, given: string) => watch(session, resourceName('jobs', given))));
  job
    .command('wait')
    .description('wait until a job ends; the exit code says how')
    .argument('<job>')
    .option('--for <condition>', 'terminal, or state=STATE', 'terminal')
    .action(
      run((session, given: string, flags: { for: string }) =>
        waitForState(session, resourceName('jobs', given), flags.for),
      ),
    );
}

/** What goes on after Ctrl-C, and how to see it again. */
export function detachedFrom(name: string): readonly string[] {
  return [`the job goes on; watch it again with: gnnctl job watch ${idOf(name)}`];
}

async function watch(session: Session, name: string): Promise<number> {
  const job = await waitFor(session, { detached: detachedFrom(name) }, (signal) =>
    followJob(session, name, { view: dataView(session), output: session.io.stdout, signal }),
  );
  return exitCodeOfJob(job.state);
}

/** The view of a watch whose output is the data. */
function dataView(session: Session): FollowView {
  switch (session.format) {
    case 'table':
    case 'wide':
      return session.io.stdout.isTty ? 'live' : 'lines';
    case 'json':
    case 'jsonl':
      return 'jsonl';
    case 'plain':
      return 'lines';
    default:
      throw new CliError(
        gnnctlExit.USAGE,
        `-o ${session.format}: a watch is table, plain or jsonl`,
      );
  }
}

/** Waits for the end of a new job; with `follow` progress is shown. Prints the job at the end. */
export async function followToEnd(
  session: Session,
  name: string,
  mode: 'follow' | 'wait',
  detached: readonly string[] = detachedFrom(name),
): Promise<number> {
  const isForPeople = session.format === 'table' || session.format === 'wide';
  const isData = mode === 'follow' && (isForPeople || session.format === 'jsonl');
  const output = isData ? session.io.stdout : session.io.stderr;
  const job = await waitFor(session, { detached }, (signal) =>
    followJob(session, name, { view: viewOf(session, mode, isData), output, signal }),
  );
  if (!isData) printEnd(session, job);
  return exitCodeOfJob(job.state);
}

/**
 * Waits for the end of a new job and shows its progress; whatever comes of it is the caller's.
 * `elsewhere`: how, where that is no terminal.
 */
export async function endOf(
  session: Session,
  name: string,
  elsewhere: 'lines' | 'silent' = 'lines',
): Promise<{ readonly job: Job; readonly exitCode: number }> {
  const output = session.io.stderr;
  const chosen = viewOf(session, 'follow', false);
  const view = chosen === 'lines' ? elsewhere : chosen;
  const job = await waitFor(session, { detached: detachedFrom(name) }, (signal) =>
    followJob(session, name, { view, output, signal }),
  );
  return { job, exitCode: exitCodeOfJob(job.state) };
}

function viewOf(session: Session, mode: 'follow' | 'wait', isData: boolean): FollowView {
  if (isData) return dataView(session);
  if (session.isQuiet) return 'silent';
  return mode === 'follow' && session.io.stderr.isTty ? 'live' : 'lines';
}

async function waitForState(session: Session, name: string, condition: string): Promise<number> {
  const wanted = wantedState(condition);
  const output = session.io.stderr;
  const view = session.isQuiet ? 'silent' : 'lines';
  const until = (job: Job) => job.state === wanted;
  const job = await waitFor(session, { detached: detachedFrom(name) }, (signal) =>
    followJob(session, name, { view, output, signal, until }),
  );
  printEnd(session, job);
  if (wanted === null) return exitCodeOfJob(job.state);
  if (job.state === wanted) return gnnctlExit.OK;
  const ended = shortName(JobStateSchema, job.state);
  session.say(`${name} ended ${ended} without being ${shortName(JobStateSchema, wanted)}`);
  return exitCodeOfJob(job.state) || gnnctlExit.FAILURE;
}

/** Null: any terminal state. */
function wantedState(condition: string): JobState | null {
  if (condition === 'terminal') return null;
  const [key, text = ''] = condition.split('=');
  const state = key === 'state' ? numberOf(JobStateSchema, text) : null;
  if (state !== null) return state;
  const states = shortNames(JobStateSchema);
  const message = `--for ${JSON.stringify(condition)}: expected terminal or state=STATE`;
  throw new CliError(gnnctlExit.USAGE, message, [
    `states: ${states.join(', ')}${meantBy(text, states)}`,
  ]);
}

function printEnd(session: Session, job: Job): void {
  const state = shortName(JobStateSchema, job.state);
  printOne(session, {
    schema: JobSchema,
    message: job,
    name: job.name,
    facts: () => [
      ['Job', idOf(job.name), job.name],
      ['State', state],
      ['Reason', isTerminal(job.state) ? reasonText(job.reason) : ''],
      ['Message', job.state === JobState.SUCCEEDED ? '' : printable(job.message)],
      ...(job.result?.predictions === undefined
        ? []
        : [['Predictions', job.result.predictions.folder] as const]),
      ...(job.result === undefined || job.result.predictions !== undefined
        ? []
        : ([testFact(job.result), ['Checkpoint', job.result.checkpointDir]] as const)),
    ],
  });
}

function testFact(result: JobResult): readonly [string, string, string] {
  const { best } = testMetricsOf(result);
  if (best === undefined) return ['Test', 'no test nodes', ''];
  return [`Test ${metricTitle(best.name)}`, metricText(best), String(best.value)];
}
