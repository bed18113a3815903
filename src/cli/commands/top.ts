import type { Command } from 'commander';
import { stringify } from 'yaml';
import { HostService } from '../../api/gen/gnnd/v1/host_service_pb.ts';
import { type Job, JobState } from '../../api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../api/gen/gnnd/v1/job_service_pb.ts';
import { sleep } from '../../base/clock.ts';
import { gnnctlExit } from '../../base/exit-codes.ts';
import { ApiError } from '../session/client.ts';
import { CliError } from '../session/exit.ts';
import { waitFor } from '../session/interrupt.ts';
import type { Run } from '../session/run.ts';
import type { Session } from '../session/session.ts';
import { createLiveRegion } from '../session/terminal.ts';
import { parseDurationMs } from '../session/units.ts';
import { rowRatesOf, type TopJob, type TopSnapshot, topFrame, topJson } from '../show/top-frame.ts';

/** `gnnctl top`: all of a host, again and again. */
export function addTop(program: Command, run: Run): void {
  program
    .command('top')
    .description('show jobs, devices, and what executors do, live; once where nobody looks')
    .option('--once', 'one look, then end; so it is with -o json and where output is no terminal')
    .option('--interval <duration>', 'between two looks, at least 200ms', '1s')
    .action(run(top));
}

interface Flags {
  readonly once?: boolean;
  readonly interval: string;
}

const intervalMsMin = 200;

async function top(session: Session, flags: Flags): Promise<number> {
  const intervalMs = parseDurationMs(flags.interval);
  if (intervalMs === null || intervalMs < intervalMsMin) {
    const message = `--interval ${flags.interval}: expected a duration of at least 200ms`;
    throw new CliError(gnnctlExit.USAGE, message);
  }
  const { format } = session;
  if (format === 'name') {
    throw new CliError(gnnctlExit.USAGE, '-o name: expected table, plain, json, jsonl or yaml');
  }
  const isForPeople = format === 'table' || format === 'wide';
  const goesOn = flags.once !== true && (format === 'jsonl' || (isForPeople && isWatched(session)));
  if (!goesOn) print(session, await look(session));
  else await waitFor(session, { detached: [] }, (signal) => follow(session, intervalMs, signal));
  return gnnctlExit.OK;
}

function isWatched({ io }: Session): boolean {
  return io.stdout.isTty;
}

/** Jobs that are listed at most; the host's answer counts those that wait. */
const jobsMax = 500;
const states = [
  ...[JobState.RUNNING, JobState.PREPARING, JobState.CANCELLING, JobState.SUSPENDING],
  JobState.PENDING,
];

/** One look: the lists, and for each job that trains where its rows come from. */
async function look(session: Session, signal?: AbortSignal): Promise<TopSnapshot> {
  const { getHost, listDevices } = HostService.method;
  const [host, { devices }, { jobs }] = await Promise.all([
    session.call(getHost, {}, signal),
    session.call(listDevices, {}, signal),
    session.call(JobService.method.listJobs, { pageSize: jobsMax, states }, signal),
  ]);
  const ordered = [...jobs].sort((a, b) => states.indexOf(a.state) - states.indexOf(b.state));
  const rows = (job: Job) => rowsOf(session, job, signal);
  return {
    atMs: session.io.clock.wallMs(),
    host,
    devices,
    jobs: await Promise.all(
      ordered.map(async (job): Promise<TopJob> => ({ job, rows: await rows(job) })),
    ),
  };
}

async function rowsOf(session: Session, job: Job, signal?: AbortSignal): Promise<TopJob['rows']> {
  if (job.state !== JobState.RUNNING) return null;
  try {
    const { getJobTimeline } = JobService.method;
    return rowRatesOf(await session.call(getJobTimeline, { name: job.name }, signal));
  } catch (error) {
    // It was deleted since the list was made.
    if (error instanceof ApiError && error.reason === 'JOB_NOT_FOUND') return null;
    throw error;
  }
}

function print(session: Session, snapshot: TopSnapshot): void {
  switch (session.format) {
    case 'json':
      session.print(JSON.stringify(topJson(snapshot), null, 2));
      return;
    case 'jsonl':
      session.print(JSON.stringify(topJson(snapshot)));
      return;
    case 'yaml':
      session.print(stringify(topJson(snapshot)));
      return;
    default:
      session.print(frameOf(session, snapshot, null, Number.POSITIVE_INFINITY).join('\n'));
  }
}

function frameOf(session: Session, snapshot: TopSnapshot, notice: string | null, rows: number) {
  const { style, glyphs } = session;
  return topFrame(snapshot, { rows, style, glyphs, notice });
}

/** Until an interrupt; a daemon that was there and goes away is looked for. */
async function follow(session: Session, intervalMs: number, signal: AbortSignal): Promise<void> {
  const { stdout } = session.io;
  const region = session.format === 'jsonl' ? null : createLiveRegion(stdout);
  const draw = (snapshot: TopSnapshot, notice: string | null) => {
    if (region === null) print(session, snapshot);
    else region.draw(frameOf(session, snapshot, notice, stdout.rows()));
  };
  let seen = await look(session, signal);
  try {
    draw(seen, null);
    for (;;) {
      await sleep(intervalMs, signal);
      try {
        seen = await look(session, signal);
        draw(seen, null);
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        if (region === null) session.say(`no answer: ${error.message}`);
        else draw(seen, `no answer since the last look: ${error.message}`);
      }
    }
  } catch (error) {
    // After Ctrl-C nothing goes on that the user would have to be told of.
    if (!isInterrupt(error)) throw error;
  } finally {
    region?.close();
  }
}

function isInterrupt(error: unknown): boolean {
  return error instanceof CliError && error.exitCode === gnnctlExit.INTERRUPTED;
}
