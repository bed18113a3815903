import { JobState } from '../../api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../api/gen/gnnd/v1/job_service_pb.ts';
import type { Session } from '../session/session.ts';
import { printable } from '../session/terminal.ts';
import { idOf } from '../show/job-text.ts';
import type { Finding } from './gpu-findings.ts';

const jobsShown = 20;
const answerMs = 3000;

/** What running jobs say of themselves: Trainers that wait, plans that turned out far off. */
export async function jobFindings(session: Session): Promise<readonly Finding[]> {
  const { client } = session;
  const options = { timeoutMs: session.timeoutMs ?? answerMs };
  try {
    const request = { pageSize: jobsShown, states: [JobState.RUNNING] };
    const { jobs } = await client.unary(JobService.method.listJobs, request, options);
    const whole = await Promise.all(
      jobs.map(({ name }) => client.unary(JobService.method.getJob, { name }, options)),
    );
    return whole.flatMap(({ name, warnings }) =>
      warnings.map((warning) => ({
        ...{ what: `Job ${idOf(name)}`, verdict: 'advice' as const, found: printable(warning) },
        command: `gnnctl job plan ${idOf(name)}`,
      })),
    );
  } catch {
    // Whether the daemon answers is a finding of its own, and a job may be gone by now.
    return [];
  }
}
