import { randomUUID } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import type { Command } from 'commander';
import { JobService } from '../../api/gen/gnnd/v1/job_service_pb.ts';
import { sleep } from '../../base/clock.ts';
import { gnnctlExit } from '../../base/exit-codes.ts';
import { ApiError } from '../session/client.ts';
import { waitFor } from '../session/interrupt.ts';
import type { Run } from '../session/run.ts';
import type { Session } from '../session/session.ts';
import { idOf, resourceName } from '../show/job-text.ts';

interface DeleteFlags {
  readonly force?: boolean;
  readonly keepCheckpoint?: boolean;
  readonly allowMissing?: boolean;
}

/** `gnnctl job delete ...`. */
export function addJobDelete(job: Command, run: Run): void {
  job
    .command('delete')
    .alias('rm')
    .description('delete ended jobs with their logs and checkpoints')
    .argument('<job...>')
    .option('--force', 'cancel a job that has not ended, then delete it')
    .option('--keep-checkpoint', 'leave the folder of the checkpoints where it is')
    .option('--allow-missing', 'no error when there is no such job')
    .action(run(deleteJobs));
}

async function deleteJobs(
  session: Session,
  given: readonly string[],
  flags: DeleteFlags,
): Promise<number> {
  const names = given.map((name) => resourceName('jobs', name));
  for (const name of names) {
    const requestId = names.length === 1 ? session.requestId : randomUUID();
    await deleteJob(session, name, { ...flags, requestId });
  }
  return gnnctlExit.OK;
}

async function deleteJob(
  session: Session,
  name: string,
  { requestId, ...flags }: DeleteFlags & { readonly requestId: string },
): Promise<void> {
  const request = {
    name,
    force: flags.force === true,
    keepCheckpoint: flags.keepCheckpoint === true,
    allowMissing: flags.allowMissing === true,
    requestId,
  };
  let answer = await session.call(JobService.method.deleteJob, request);
  if (answer.pending) {
    session.say(`${idOf(name)} is being cancelled first`);
    const detached = ['it goes on: the job is deleted when its executors have ended'];
    await waitFor(session, { detached }, (signal) => untilGone(session, name, signal));
    // The same request again: now it can say what was kept.
    answer = await session.call(JobService.method.deleteJob, request);
  }
  const kept = answer.keptCheckpoint === '' ? '' : `; checkpoints: ${answer.keptCheckpoint}`;
  session.say(`deleted ${name}${kept}`);
}

const firstPollMs = 50;
const pollMsMax = 1000;

async function untilGone(session: Session, name: string, signal: AbortSignal): Promise<void> {
  for (let delayMs = firstPollMs; ; delayMs = Math.min(2 * delayMs, pollMsMax)) {
    try {
      await session.call(JobService.method.getJob, { name }, signal);
    } catch (error) {
      if (error instanceof ApiError && error.code === status.NOT_FOUND) return;
      throw error;
    }
    await sleep(delayMs, signal);
  }
}
