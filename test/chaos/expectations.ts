import { type Job, JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { WatchType } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { Reason } from '../../src/api/gen/gnnd/v1/types_pb.ts';
import { canTransition } from '../../src/jobs/job-state.ts';
import type { JobState as StateName } from '../../src/records/job-record.ts';
import { evaluationsOf, modelsOf } from '../support/crews.ts';
import type { Kind } from './catalogue.ts';
import type { World } from './world.ts';

/** What must hold of a job, whatever met it: I1 and I4. Sentences say what does not. */

/** What an undisturbed job of a kind came to. */
export interface Twin {
  readonly job: Job;
  /** Committed steps of all epochs, or rows of an inference: what a hit's place is a share of. */
  readonly steps: number;
}

export function stepsOf(job: Job): number {
  return Number(job.epochs.at(-1)?.version ?? 0);
}

/** I4: each batch once, and the undisturbed model. */
export function differences(kind: Kind, job: Job, { job: twin }: Twin): readonly string[] {
  const found: string[] = [];
  const same = (what: string, here: unknown, there: unknown) => {
    const [a, b] = [JSON.stringify(here, plain), JSON.stringify(there, plain)];
    if (a !== b) found.push(`I4: ${what} is ${a}, of the undisturbed job ${b}`);
  };
  if (job.state !== JobState.SUCCEEDED) return [`I3: ended ${JobState[job.state]}`];
  const ofEpochs = (value: (epoch: Job['epochs'][number]) => unknown) =>
    [job, twin].map(({ epochs }) => epochs.map(value)) as [unknown, unknown];
  same('the order of epochs', ...ofEpochs(({ epoch }) => epoch));
  same('batches of epochs', ...ofEpochs(({ batches }) => batches));
  // The digest covers all commits, in their order.
  same('the ledger', ...ofEpochs(({ ledgerDigest }) => ledgerDigest));
  same('predictions', job.result?.predictions?.sha256, twin.result?.predictions?.sha256);
  if (kind.isRelaxed) return found;
  same('parameters of epochs', modelsOf(job), modelsOf(twin));
  same('evaluations', evaluationsOf(job), evaluationsOf(twin));
  same('final parameters', job.result?.parametersSha256, twin.result?.parametersSha256);
  return found;
}

const plain = (_: string, value: unknown) => (typeof value === 'bigint' ? Number(value) : value);

/** I3: errors in the daemon's log that no fault explains; `from` is where the last look ended. */
export function logged(log: string, from: number): readonly string[] {
  return log
    .slice(from)
    .split('\n')
    .filter((line) => line.includes('"lvl":"error"') && !line.includes('"msg":"attempt.failed"'))
    .map((line) => `I3: the log says ${line}`);
}

/** I1: what was acknowledged is there, in this daemon as in those before. */
export async function forgotten(world: World): Promise<readonly string[]> {
  const found: string[] = [];
  for (const [name, { uid, revision }] of world.acknowledged) {
    const job = await world.job(name.slice('jobs/'.length)).catch((error) => String(error));
    if (typeof job === 'string') found.push(`I1: ${name} was acknowledged: ${job}`);
    else if (job.uid !== uid) found.push(`I1: ${name} is ${job.uid}, was acknowledged as ${uid}`);
    else if (job.revision < revision) {
      found.push(`I1: ${name} is at revision ${job.revision}, ${revision} was acknowledged`);
    }
  }
  return found;
}

/** I1, I3: transitions are told without a gap, each may follow the one before, all say why. */
export async function oddHistory(world: World, job: Job, from: Job): Promise<readonly string[]> {
  const { name, attempts } = job;
  const found: string[] = [];
  let last = { state: stateOf(from), revision: from.revision };
  for (const { type, job: now, revision } of await world.history(job, from.revision)) {
    if (type !== WatchType.CHANGED || now === undefined) continue;
    const state = stateOf(now);
    const isReopened = ['FAILED', 'CANCELLED'].includes(last.state) && state === 'PENDING';
    if (state !== last.state && !isReopened && !canTransition(last.state, state)) {
      found.push(`I1: ${name} went from ${last.state} to ${state}`);
    }
    if (revision <= last.revision) {
      found.push(`I1: ${name} was told revision ${revision} after ${last.revision}`);
    }
    if (now.reason === Reason.INTERNAL) found.push(`I3: ${name} says INTERNAL: ${now.message}`);
    last = { state, revision };
  }
  if (last.state !== stateOf(job) || last.revision !== job.revision) {
    const is = `${stateOf(job)} at ${job.revision}`;
    found.push(`I1: ${name} is ${is}; told was ${last.state} at ${last.revision}`);
  }
  for (const { number, endReason, message } of attempts) {
    if (endReason !== Reason.INTERNAL) continue;
    found.push(`I3: attempt ${number} of ${name} ended INTERNAL: ${message}`);
  }
  return found;
}

const stateOf = ({ state }: Job) => JobState[state] as StateName;
