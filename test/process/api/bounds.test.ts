import { fromBinary } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import type { ApiBackend } from '../../../src/api/api.ts';
import { DatasetService } from '../../../src/api/gen/gnnd/v1/dataset_service_pb.ts';
import type { JobState } from '../../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { failureOf } from './client.ts';
import { startApi as start } from './server.ts';

/** Bounds that hold before a handler looks at a request; counted in calls of the handlers. */

const job = JobService.method;
const dataset = DatasetService.method;

describe('long lists', () => {
  it('are refused before a handler sees them, each by its path and number', async () => {
    let calls = 0;
    const counting = new Proxy({} as ApiBackend['jobs'], {
      get: () => () => {
        calls += 1;
        throw new Error('a handler was asked');
      },
    });
    const report = () => {
      calls += 1;
      return Promise.reject(new Error('a handler was asked'));
    };
    const { client } = await start({ jobs: counting, cacheReports: { report } });
    const many = (count: number) => Array.from({ length: count }, () => 99);
    const refused = [
      [() => client.call(job.listJobs, { states: many(200_000) as JobState[] }), 'states', 200_000],
      [
        () =>
          client.call(dataset.reportCache, {
            name: 'datasets/cora',
            samplings: many(60_000).map(() => ({})),
          }),
        'samplings',
        60_000,
      ],
      [
        () =>
          client.call(dataset.reportCache, {
            name: 'datasets/cora',
            presampleEpochs: many(200_000),
          }),
        'presample_epochs',
        200_000,
      ],
      [
        () => client.call(job.createJob, { spec: { sampling: { fanouts: many(100_000) } } }),
        'spec.sampling.fanouts',
        100_000,
      ],
    ] as const;
    for (const [call, field, count] of refused) {
      const failure = await failureOf(call());
      expect(failure.code).toBe(status.INVALID_ARGUMENT);
      expect(failure.fields?.fieldViolations).toMatchObject([
        { field, description: `${count} given: expected at most 1024` },
      ]);
    }
    expect(calls).toBe(0);
  });

  it('of violations are told by the first few and their number', async () => {
    const { client } = await start();
    const states = Array.from({ length: 500 }, () => 99 as JobState);
    const failure = await failureOf(client.call(job.listJobs, { states }));
    expect(failure.message).toContain('states[0], states[1]');
    expect(failure.message).toMatch(/states\[4\] and 495 more$/);
    expect(failure.fields?.fieldViolations).toHaveLength(20);
    expect(failure.infos[0]?.metadata).toMatchObject({ truncated: 'true', violations: '500' });
  });

  it('of fields that nobody knows are passed over', async () => {
    const { client } = await start();
    const name = Buffer.from([0x0a, 9, ...Buffer.from('jobs/mine')]);
    const unknown = Buffer.alloc(200_000, Buffer.from([0x78, 1]));
    const answer = await client.callRaw(job.getJob, Buffer.concat([name, unknown]));
    expect(fromBinary(job.getJob.output, answer).name).toBe('jobs/mine');
  });
});
