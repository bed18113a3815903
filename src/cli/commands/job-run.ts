import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { equals } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import type { Command } from 'commander';
import { DatasetService, DatasetState } from '../../api/gen/gnnd/v1/dataset_service_pb.ts';
import { type Job, JobState } from '../../api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../api/gen/gnnd/v1/job_service_pb.ts';
import { JobSpecSchema } from '../../api/gen/gnnd/v1/job_spec_pb.ts';
import { gnnctlExit } from '../../base/exit-codes.ts';
import { ApiError } from '../session/client.ts';
import { CliError } from '../session/exit.ts';
import type { Run } from '../session/run.ts';
import type { Session } from '../session/session.ts';
import { printable } from '../session/terminal.ts';
import { noticesOf } from '../show/dataset-text.ts';
import { idOf, resourceName } from '../show/job-text.ts';
import { readSpecFile, withPlaces } from './job-create.ts';
import { detachedFrom, followToEnd } from './job-watch.ts';
import { waitForOperation } from './operations.ts';

export interface RunFlags {
  readonly file?: string;
  readonly id?: string;
  readonly set: readonly string[];
  readonly import?: string;
}

/** Adds the options that `gnnctl job run` and `gnnd run` share. */
export function withRunFlags(command: Command): Command {
  return command
    .requiredOption('-f, --file <file>', 'spec in YAML or JSON; - reads stdin')
    .option('--id <id>', 'id of the job; else metadata.name, else "run"')
    .option(
      '--set <path=value>',
      'set a field over the file, e.g. training.epochs=3; again for more',
      (value: string, before: readonly string[]) => [...before, value],
      [],
    )
    .option('--import <source>', "import the spec's dataset from here where it is not there yet");
}

/** `gnnctl job run`. */
export function addJobRun(job: Command, run: Run): void {
  const command = job
    .command('run')
    .description('create a job, or go on with it if it is there; wait for its end');
  withRunFlags(command).action(
    run((session, flags: RunFlags) => runJob(session, flags, detachedFrom)),
  );
}

/**
 * The job with its end as exit code, whoever created it: what is called again after an interruption
 * goes on. A job of another spec is left alone.
 */
export async function runJob(
  session: Session,
  flags: RunFlags,
  detached: (name: string) => readonly string[],
): Promise<number> {
  const { spec, jobId, places } = await readSpecFile(session, flags);
  const id = flags.id ?? (jobId === '' ? 'run' : jobId);
  const name = resourceName('jobs', id);
  const known = await orNull(session.call(JobService.method.getJob, { name }));
  if (known === null) {
    const { dataset = '' } = spec;
    const source = dataset === '' ? undefined : flags.import;
    if (source !== undefined) await ensureDataset(session, dataset, source, detached(name));
    else if (dataset !== '') await requireDataset(session, dataset);
    const request = { jobId: id, spec, requestId: session.requestId };
    await session.call(JobService.method.createJob, request).catch((error: unknown) => {
      throw withPlaces(error, places);
    });
    session.say(`created ${name}`);
  } else {
    requireSame(known, spec);
    session.say(`${name} is there: it goes on`);
    if (known.state === JobState.SUSPENDED) {
      await session.call(JobService.method.resumeJob, { name, requestId: session.requestId });
    }
  }
  return await followToEnd(session, name, 'follow', detached(name));
}

function requireSame(job: Job, spec: NonNullable<Job['spec']>): void {
  if (job.spec !== undefined && equals(JobSpecSchema, job.spec, spec)) return;
  throw new CliError(gnnctlExit.CONFLICT, `${job.name} was created from another spec`, [
    'another --id is another job; so is the same one in another state directory',
    `gnnctl job get ${idOf(job.name)} -o yaml shows what it was`,
  ]);
}

async function requireDataset(session: Session, datasetId: string): Promise<void> {
  const name = resourceName('datasets', datasetId);
  if ((await orNull(session.call(DatasetService.method.getDataset, { name }))) !== null) return;
  throw new CliError(gnnctlExit.NOT_FOUND, `there is no dataset ${datasetId}`, [
    '--import PATH brings it in first; it is kept for the next run',
  ]);
}

async function ensureDataset(
  session: Session,
  datasetId: string,
  source: string,
  detached: readonly string[],
): Promise<void> {
  const name = resourceName('datasets', datasetId);
  const known = await orNull(session.call(DatasetService.method.getDataset, { name }));
  if (known?.state === DatasetState.READY) return;
  if (known?.state === DatasetState.FAILED) {
    await session.call(DatasetService.method.deleteDataset, { name });
  }
  const from = existsSync(source) ? resolve(source) : source;
  const operation = await session.call(DatasetService.method.importDataset, {
    ...{ datasetId, source: from },
    // Arrays as they are need no copy for each state directory.
    link: existsSync(join(from, 'indptr.npy')),
  });
  const title = `importing ${datasetId}`;
  await waitForOperation(session, operation, { title, detached, cancels: false });
  const made = await session.call(DatasetService.method.getDataset, { name });
  for (const notice of noticesOf(made)) session.say(`notice: ${printable(notice)}`);
}

async function orNull<T>(call: Promise<T>): Promise<T | null> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof ApiError && error.code === status.NOT_FOUND) return null;
    throw error;
  }
}
