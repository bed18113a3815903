import { create } from '@bufbuild/protobuf';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { EpochReportSchema } from '../../api/gen/gnnd/v1/epoch_report_pb.ts';
import { ExecutorRoleSchema } from '../../api/gen/gnnd/v1/executor_pb.ts';
import { type Job, JobSchema, JobStateSchema } from '../../api/gen/gnnd/v1/job_pb.ts';
import { JobPlanSchema } from '../../api/gen/gnnd/v1/job_plan_pb.ts';
import {
  JobService,
  ListEpochsResponseSchema,
  ListJobsResponseSchema,
  type StreamLogsResponse,
  StreamLogsResponseSchema,
} from '../../api/gen/gnnd/v1/job_service_pb.ts';
import { gnnctlExit } from '../../base/exit-codes.ts';
import { numberOf, shortName, shortNames } from '../../spec/enum-names.ts';
import { collectPages } from '../read/pages.ts';
import { CliError } from '../session/exit.ts';
import { waitFor } from '../session/interrupt.ts';
import type { Run } from '../session/run.ts';
import type { Session } from '../session/session.ts';
import { padEnd, printable } from '../session/terminal.ts';
import { idOf, resourceName } from '../show/job-text.ts';
import { epochColumnsOf, jobColumns, jobFacts, jobSections } from '../show/job-view.ts';
import { jsonOf, printList, printOne } from '../show/output.ts';
import { planFacts, planSections } from '../show/plan-view.ts';
import { addJobCreate } from './job-create.ts';
import { addJobDelete } from './job-delete.ts';
import { addJobHistory } from './job-history.ts';
import { addJobReport } from './job-report.ts';
import { addJobRun } from './job-run.ts';
import { addJobSuggest } from './job-suggest.ts';
import { addJobWatch } from './job-watch.ts';
import { addPredict } from './predict.ts';

/** `gnnctl job ...`. */
export function addJobCommands(program: Command, run: Run): void {
  const job = program.command('job').description('train, watch and end jobs');
  addPredict(program, job, run);
  addJobCreate(job, run);
  addJobRun(job, run);
  job
    .command('get')
    .description('show one job: state, epochs, result')
    .argument('<job>')
    .action(run(getJob));
  job
    .command('list')
    .alias('ls')
    .description('list jobs, newest first')
    .option('--state <states>', 'only these states, e.g. RUNNING,PENDING', statesOf, [])
    .option('--limit <count>', 'at most this many; 0: all', countOf, 50)
    .action(run(listJobs));
  addJobWatch(job, run);
  addJobDelete(job, run);
  addJobSuggest(job, run);
  job
    .command('epochs')
    .description('list the epochs of a job, oldest first')
    .argument('<job>')
    .option('--attempt <number>', 'of this attempt; default: the latest', countOf, 0)
    .option('--limit <count>', 'at most this many; 0: all', countOf, 0)
    .action(run(epochsOfJob));
  addJobHistory(job, run);
  addJobReport(job, run);
  job
    .command('suspend')
    .description('take an image of a job and free its devices until it is resumed')
    .argument('<job>')
    .action(run(suspendJob));
  job
    .command('resume')
    .description('let a suspended job go on from its image')
    .argument('<job>')
    .action(run(resumeJob));
  job
    .command('retry')
    .description('queue a failed or cancelled job again, from its newest image')
    .argument('<job>')
    .option('--from-beginning', 'remove its images first')
    .action(run(retryJob));
  job.command('cancel').description('end a job').argument('<job>').action(run(cancelJob));
  job
    .command('logs')
    .description('print what the executors of a job logged')
    .argument('<job>')
    .option('-f, --follow', 'go on until the job ends')
    .option('--attempt <number>', 'of this attempt; default: the latest', countOf, 0)
    .addOption(new Option('--role <role>', 'of this role').choices(roleChoices()))
    .option('--device <device>', 'of this device, e.g. cpu:0')
    .option('--tail <lines>', 'start this many lines before the end', countOf, 0)
    .action(run(logsOfJob));
  job
    .command('plan')
    .description('show how the devices of a job are split, and why')
    .argument('<job>')
    .action(run(planOfJob));
}

export function countOf(text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 0 && value < 2 ** 31) return value;
  throw new InvalidArgumentError('expected a whole number, 0 or more');
}

function statesOf(text: string): readonly number[] {
  return text.split(',').map((word) => {
    const state = numberOf(JobStateSchema, word);
    if (state !== null && state !== 0) return state;
    throw new InvalidArgumentError(`expected some of ${shortNames(JobStateSchema).join(', ')}`);
  });
}

function roleChoices(): readonly string[] {
  return shortNames(ExecutorRoleSchema).map((name) => name.toLowerCase());
}

async function getJob(session: Session, given: string): Promise<number> {
  const job = await session.call(JobService.method.getJob, { name: resourceName('jobs', given) });
  printOne(session, {
    schema: JobSchema,
    message: job,
    name: job.name,
    facts: () => jobFacts(session, job),
    sections: () => jobSections(session, job),
  });
  return gnnctlExit.OK;
}

async function epochsOfJob(
  session: Session,
  given: string,
  flags: { readonly attempt: number; readonly limit: number },
): Promise<number> {
  const name = resourceName('jobs', given);
  let { attempt } = flags;
  const { items, hasMore } = await collectPages(flags.limit, async (pageSize, pageToken) => {
    const request = { name, attempt, pageSize, pageToken };
    const page = await session.call(JobService.method.listEpochs, request);
    // The latest of the first page stays the one that is listed.
    attempt = page.attempt;
    return { items: page.epochs, nextToken: page.nextPageToken };
  });
  printList(session, {
    schema: ListEpochsResponseSchema,
    message: create(ListEpochsResponseSchema, { attempt, epochs: items }),
    rowSchema: EpochReportSchema,
    rows: items,
    columns: epochColumnsOf(items),
    nameOf: ({ epoch }) => String(epoch),
  });
  if (hasMore) session.say(`the first ${items.length}; --limit 0 shows all`);
  return gnnctlExit.OK;
}

async function listJobs(
  session: Session,
  flags: { readonly state: readonly number[]; readonly limit: number },
): Promise<number> {
  const states = [...flags.state];
  const { items, hasMore } = await collectPages(flags.limit, async (pageSize, pageToken) => {
    const request = { pageSize, pageToken, states };
    const page = await session.call(JobService.method.listJobs, request);
    return { items: page.jobs, nextToken: page.nextPageToken };
  });
  printList(session, {
    schema: ListJobsResponseSchema,
    message: create(ListJobsResponseSchema, { jobs: items }),
    rowSchema: JobSchema,
    rows: items,
    columns: jobColumns(session),
    nameOf: ({ name }) => name,
  });
  if (items.length === 0) session.say('no jobs');
  if (hasMore) session.say(`the newest ${items.length}; --limit 0 shows all`);
  return gnnctlExit.OK;
}

async function cancelJob(session: Session, given: string): Promise<number> {
  const request = requestOf(session, given);
  return printChanged(session, await session.call(JobService.method.cancelJob, request));
}

async function suspendJob(session: Session, given: string): Promise<number> {
  const request = requestOf(session, given);
  return printChanged(session, await session.call(JobService.method.suspendJob, request));
}

async function resumeJob(session: Session, given: string): Promise<number> {
  const request = requestOf(session, given);
  return printChanged(session, await session.call(JobService.method.resumeJob, request));
}

async function retryJob(
  session: Session,
  given: string,
  flags: { readonly fromBeginning?: boolean },
): Promise<number> {
  const fromBeginning = flags.fromBeginning === true;
  const request = { ...requestOf(session, given), fromBeginning };
  return printChanged(session, await session.call(JobService.method.retryJob, request));
}

function requestOf(session: Session, given: string) {
  return { name: resourceName('jobs', given), requestId: session.requestId };
}

function printChanged(session: Session, job: Job): number {
  const state = shortName(JobStateSchema, job.state);
  printOne(session, {
    schema: JobSchema,
    message: job,
    name: job.name,
    facts: () => [
      ['Job', idOf(job.name), job.name],
      ['State', state],
      ['Message', printable(job.message)],
    ],
  });
  return gnnctlExit.OK;
}

interface LogFlags {
  readonly follow?: boolean;
  readonly attempt: number;
  readonly role?: string;
  readonly device?: string;
  readonly tail: number;
}

async function logsOfJob(session: Session, given: string, flags: LogFlags): Promise<number> {
  const name = resourceName('jobs', given);
  const request = {
    name,
    attempt: flags.attempt,
    role: numberOf(ExecutorRoleSchema, flags.role ?? '') ?? 0,
    device: flags.device ?? '',
    tailLines: flags.tail,
    follow: flags.follow === true,
  };
  const print = logPrinter(session);
  const detached = [`see them again with: gnnctl job logs -f ${idOf(name)}`];
  await waitFor(session, { detached }, async (signal) => {
    const chunks = session.client.stream(JobService.method.streamLogs, request, { signal });
    for await (const chunk of chunks) print(chunk);
  });
  return gnnctlExit.OK;
}

/** `trial-standby@cpu:10#1` fits. */
const logWidth = 22;

function logPrinter(session: Session): (chunk: StreamLogsResponse) => void {
  const { format, style } = session;
  if (format === 'yaml' || format === 'name') {
    throw new CliError(gnnctlExit.USAGE, `-o ${format}: logs are table, plain or jsonl`);
  }
  if (format === 'json' || format === 'jsonl') {
    return (chunk) => session.print(JSON.stringify(jsonOf(StreamLogsResponseSchema, chunk)));
  }
  return (chunk) => {
    const origin = padEnd(chunk.log, logWidth);
    for (const line of chunk.lines) {
      const text = format === 'plain' ? line : printable(line);
      session.print(format === 'plain' ? text : `${style.dim(`${origin} |`)} ${text}`);
    }
  };
}

async function planOfJob(session: Session, given: string): Promise<number> {
  const name = resourceName('jobs', given);
  const plan = await session.call(JobService.method.getJobPlan, { name });
  printOne(session, {
    schema: JobPlanSchema,
    message: plan,
    name: plan.job,
    facts: () => planFacts(session, plan),
    sections: () => planSections(session, plan),
  });
  return gnnctlExit.OK;
}
