import { expect, test } from 'vitest';
import { JobService } from '../../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { startApi } from './server.ts';

const job = JobService.method;

test('a list tells of an ended job what its last epoch came to', async () => {
  const { client, jobs } = await startApi();
  const attempt = { number: 1, startAtMs: 1, endAtMs: 2, endReason: 'NONE' as const };
  const others = { message: '', executorRestarts: 0, exits: [], resumed: null };
  jobs.transition('FAILED', { attempts: [{ ...attempt, ...others }], endAtMs: 3 });
  jobs.endEpochs(5);
  const [listed] = (await client.call(job.listJobs, {})).jobs;
  const [last, ...more] = (await client.call(job.getJob, { name: 'jobs/mine' })).epochs.reverse();
  expect(more).toHaveLength(4);
  expect(last?.executorTimes).not.toEqual([]);
  expect(listed).toMatchObject({ numEpochs: 5, epochs: [{ ...last, executorTimes: [] }] });
  expect(jobs.epochsRead).toBe(1 + 5);
});
