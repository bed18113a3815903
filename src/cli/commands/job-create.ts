import { readFile } from 'node:fs/promises';
import { status } from '@grpc/grpc-js';
import { type Command, Option } from 'commander';
import { type Job, JobSchema } from '../../api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../api/gen/gnnd/v1/job_service_pb.ts';
import { JobSpecSchema } from '../../api/gen/gnnd/v1/job_spec_pb.ts';
import { gnnctlExit } from '../../base/exit-codes.ts';
import { fileProblem } from '../../base/file-problem.ts';
import {
  type Place,
  placeOf,
  readSpec,
  type SpecFile,
  type SpecSource,
  showPlace,
} from '../read/spec-file.ts';
import { ApiError } from '../session/client.ts';
import { CliError } from '../session/exit.ts';
import type { Run } from '../session/run.ts';
import type { Session } from '../session/session.ts';
import { padEnd, printable } from '../session/terminal.ts';
import { idOf, resourceName, specOf } from '../show/job-text.ts';
import { viewOf } from '../show/kind-views.ts';
import { memoryLines } from '../show/memory-text.ts';
import { printOne, specYaml } from '../show/output.ts';
import { followToEnd } from './job-watch.ts';

interface CreateFlags {
  readonly file?: string;
  readonly id?: string;
  readonly set: readonly string[];
  readonly from?: string;
  readonly dryRun?: boolean;
  readonly wait?: boolean;
  readonly follow?: boolean;
}

/** `gnnctl job create`. */
export function addJobCreate(job: Command, run: Run): void {
  job
    .command('create')
    .description('create a job from a spec file')
    .option('-f, --file <file>', 'spec in YAML or JSON; - reads stdin')
    .option('--id <id>', 'id of the job; else metadata.name, else the server makes one')
    .option(
      '--set <path=value>',
      'set a field over the file, e.g. training.epochs=3; again for more',
      (value: string, before: readonly string[]) => [...before, value],
      [],
    )
    .option('--from <job@epoch>', "begin with another job's parameters: JOB@best, @last or @EPOCH")
    .option('--dry-run', 'check everything and show the full spec; create nothing')
    .addOption(new Option('--wait', 'wait for the end').conflicts('dryRun'))
    .addOption(new Option('--follow', 'wait for the end and show progress').conflicts('dryRun'))
    .action(run(createJob));
}

async function createJob(session: Session, flags: CreateFlags): Promise<number> {
  const { spec, jobId, places } = await readSpecFile(session, flags);
  const request = {
    jobId: flags.id ?? jobId,
    spec,
    validateOnly: flags.dryRun === true,
    requestId: session.requestId,
  };
  const created = await session
    .call(JobService.method.createJob, request)
    .catch((error: unknown) => {
      throw withPlaces(error, places);
    });
  for (const warning of created.warnings) {
    session.say(`${session.errorStyle.yellow('warning:')} ${printable(warning)}`);
  }
  if (flags.dryRun === true) {
    printDryRun(session, created);
    return gnnctlExit.OK;
  }
  const isAwaited = flags.wait === true || flags.follow === true;
  if (!isAwaited) {
    printCreated(session, created);
    session.say(`created: ${viewOf(specOf(created)).summary(specOf(created))}`);
    session.say(`watch it with: gnnctl job watch ${idOf(created.name)}`);
    return gnnctlExit.OK;
  }
  session.say(`created ${created.name}: ${viewOf(specOf(created)).summary(specOf(created))}`);
  return await followToEnd(session, created.name, flags.follow === true ? 'follow' : 'wait');
}

function printCreated(session: Session, job: Job): void {
  const isForPeople = session.format === 'table' || session.format === 'wide';
  if (isForPeople || session.format === 'plain') session.print(job.name);
  else printOne(session, { schema: JobSchema, message: job, name: job.name, facts: () => [] });
}

/** The full spec is itself a spec file. */
export function printDryRun(session: Session, job: Job): void {
  const isForPeople = session.format === 'table' || session.format === 'wide';
  if (isForPeople || session.format === 'plain') {
    if (job.effectiveSpec !== undefined) session.print(specYaml(JobSpecSchema, job.effectiveSpec));
    if (job.memory !== undefined) for (const line of memoryLines(job.memory)) session.say(line);
    session.say('valid; nothing was created');
  } else printOne(session, { schema: JobSchema, message: job, name: '', facts: () => [] });
}

/** The spec that a file and settings over it say; throws what is wrong with it. */
export async function readSpecFile(
  session: Session,
  flags: Pick<CreateFlags, 'file' | 'set' | 'from'>,
): Promise<SpecFile> {
  const { from } = flags;
  const isEmpty = flags.file === undefined && flags.set.length === 0;
  if (isEmpty && from === undefined) {
    throw new CliError(gnnctlExit.USAGE, 'nothing to create: name a spec file', [
      'gnnctl job create -f FILE',
      'gnnctl init DATASET writes one to begin with; gnnctl dataset list shows what there is',
    ]);
  }
  const source = await sourceOf(session, flags);
  const start = from === undefined ? [] : [`training.start_from=${withEpoch(from)}`];
  const reading = readSpec(source, [...start, ...flags.set]);
  if ('ok' in reading) return reading.ok;
  const { problems } = reading;
  const many = problems.length === 1 ? 'a problem' : `${problems.length} problems`;
  const rows = problems.map((problem) => [
    showPlace(problem),
    [problem.path, problem.description].filter((text) => text !== '').join(': '),
  ]);
  throw new CliError(gnnctlExit.INVALID_ARGUMENT, `the spec has ${many}; nothing was created`, [
    ...aligned(rows),
    'all fields: docs/job-spec.md',
  ]);
}

/** Without a file, a job that begins from another one has that one's spec. */
async function sourceOf(session: Session, { file, from }: CreateFlags): Promise<SpecSource | null> {
  if (file !== undefined) return await readSource(session, file);
  if (from === undefined) return null;
  const name = resourceName('jobs', withEpoch(from).replace(/@.*$/, ''));
  const { spec } = await session.call(JobService.method.getJob, { name });
  return spec === undefined ? null : { file: name, text: specYaml(JobSpecSchema, spec) };
}

/** Without an epoch its last parameters. */
function withEpoch(from: string): string {
  const text = from.replace(/^jobs\//, '');
  return text.includes('@') ? text : `${text}@last`;
}

async function readSource(session: Session, file: string): Promise<SpecSource> {
  if (file === '-') return { file: '<stdin>', text: await session.io.readStdin() };
  try {
    return { file, text: await readFile(file, 'utf8') };
  } catch (error) {
    throw new CliError(gnnctlExit.USAGE, `cannot read the spec ${file}: ${fileProblem(error)}`, [
      'gnnctl init DATASET writes one to begin with',
    ]);
  }
}

/** The server's violations beside the lines that they are about. */
export function withPlaces(error: unknown, places: ReadonlyMap<string, Place>): unknown {
  if (!(error instanceof ApiError) || error.code !== status.INVALID_ARGUMENT) return error;
  if (error.violations.length === 0) return error;
  const rows = error.violations.map(({ path, description }) => {
    const place = placeOf(places, path);
    const also = settingsNamedIn(description, places).filter((setting) => setting !== place?.file);
    const why = also.length === 0 ? '' : ` (${also.join(', ')})`;
    return [place === undefined ? '' : showPlace(place), `${path}: ${description}${why}`];
  });
  const more = error.metadata['truncated'] === 'true' ? ['(there are more; these come first)'] : [];
  return new CliError(gnnctlExit.INVALID_ARGUMENT, 'the daemon does not accept the spec', [
    ...aligned(rows),
    ...more,
  ]);
}

/** A field may be wrong because of another one: settings of those that a description names. */
function settingsNamedIn(
  description: string,
  places: ReadonlyMap<string, Place>,
): readonly string[] {
  const named = [...places].filter(
    ([path, { line }]) => line === 0 && description.includes(path.replace(/^spec\./, '')),
  );
  return [...new Set(named.map(([, place]) => place.file))];
}

function aligned(rows: readonly (readonly string[])[]): readonly string[] {
  const width = Math.max(...rows.map(([place = '']) => place.length));
  return rows.map(([place = '', text = '']) =>
    printable(width === 0 ? text : `${padEnd(place, width)}  ${text}`),
  );
}
