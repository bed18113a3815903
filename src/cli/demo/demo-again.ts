import { clone, create } from '@bufbuild/protobuf';
import { ExecutorRole } from '../../api/gen/gnnd/v1/executor_pb.ts';
import { type Job, JobState } from '../../api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../api/gen/gnnd/v1/job_service_pb.ts';
import { type JobSpec, JobSpecSchema } from '../../api/gen/gnnd/v1/job_spec_pb.ts';
import {
  PlacementPolicy,
  PlacementSpecSchema,
  StandbyPolicy,
} from '../../api/gen/gnnd/v1/resources_pb.ts';
import { Determinism } from '../../api/gen/gnnd/v1/training_pb.ts';
import { followJob } from '../commands/follow.ts';
import type { Session } from '../session/session.ts';

/** The demo's job on another crew, whose Trainer is killed on the way. */
export interface Again {
  readonly job: Job;
  /** The process that was killed, and the epoch it trained; null where the job was too quick. */
  readonly killed: { readonly pid: number; readonly epoch: number } | null;
}

/** Of the demo's parameters with PORTABLE: on every processor, and in README. */
export const everybodysSha256 = 'e357e6082a3cabd613e011215278df2b0f69978b027c5e4e4744af48c0e9e238';

/** Epochs that are whole before the kill. */
const epochsBefore = 3;

/** One Sampler and one Trainer, of which neither helps the other. */
export async function trainAgain(
  session: Session,
  spec: JobSpec,
  signal: AbortSignal,
): Promise<Again> {
  const other = clone(JobSpecSchema, spec);
  const [policy, standby] = [PlacementPolicy.FIXED, StandbyPolicy.OFF];
  other.placement = create(PlacementSpecSchema, { policy, samplers: 1, standby });
  const { name } = await session.call(JobService.method.createJob, { jobId: 'again', spec: other });
  let killed: Again['killed'] = null;
  const onJob = ({ epochs, progress }: Job) => {
    const trainer = progress?.executors.find(({ role }) => role === ExecutorRole.TRAINER);
    if (killed !== null || trainer === undefined || epochs.length < epochsBefore) return;
    killed = { pid: trainer.pid, epoch: epochs.length + 1 };
    process.kill(trainer.pid, 'SIGKILL');
  };
  const { stdout } = session.io;
  const job = await followJob(session, name, { view: 'silent', output: stdout, signal, onJob });
  return { job, killed };
}

/** What came out, beside the first job's; `isSame` where both ended with the same parameters. */
export function compared(
  first: Job,
  { job, killed }: Again,
): { readonly isSame: boolean; readonly lines: readonly string[] } {
  const shaOf = ({ result }: Job) => result?.parametersSha256 ?? '';
  const isEqual = job.state === JobState.SUCCEEDED && shaOf(job) === shaOf(first);
  const isPortable = first.effectiveSpec?.training?.determinism === Determinism.PORTABLE;
  const isSame = isEqual && (!isPortable || shaOf(job) === everybodysSha256);
  const decides = `who computes, ${isPortable ? 'where, ' : ''}and what`;
  const death =
    killed === null
      ? 'end came too soon'
      : `process ${killed.pid} was killed in epoch ${killed.epoch}`;
  return {
    isSame,
    lines: [
      `First            SHA-256 of the parameters ${shaOf(first)}`,
      `Again            SHA-256 of the parameters ${shaOf(job) || `none: ${job.message}`}`,
      `                 by one Sampler and one Trainer, whose ${death}`,
      ...(isPortable ? [`In README        SHA-256 of the parameters ${everybodysSha256}`] : []),
      isSame ? `The same SHA-256: ${decides} is killed, changes no bit.` : 'The SHA-256 differ.',
    ],
  };
}
