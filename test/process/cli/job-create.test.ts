import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { EvaluationMethod } from '../../../src/api/gen/gnnd/v1/evaluation_pb.ts';
import { type Job, JobState } from '../../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { StalenessCompensation } from '../../../src/api/gen/gnnd/v1/training_pb.ts';
import { runCli } from '../../../src/cli/program.ts';
import { sampleJob } from '../../unit/cli/sample-job.ts';
import { createTestIo, type TestIoOptions } from '../../unit/cli/test-io.ts';
import { FakeDaemon, FakeError } from './fake-daemon.ts';

let daemon: FakeDaemon;

beforeEach(() => {
  daemon = new FakeDaemon();
});
afterEach(() => daemon.close());

async function gnnctl(args: readonly string[], options: TestIoOptions = {}) {
  const test = createTestIo(options);
  const exitCode = await runCli(['--address', daemon.address, ...args], test.io);
  return { exitCode, stdout: test.stdout(), stderr: test.stderr() };
}

const { createJob, getJob, listJobs, getJobPlan } = JobService.method;
const warning = 'training.staleness is 2, the default 0: it costs accuracy';

function staleJob(name: string): Job {
  return sampleJob({
    name,
    warnings: [warning],
    effectiveSpec: {
      dataset: 'npm',
      training: { epochs: 10, staleness: 2, stalenessCompensation: StalenessCompensation.PREDICT },
      evaluation: { everyEpochs: 2, method: EvaluationMethod.SAMPLED, fanouts: [15, -1] },
      resources: { devices: 2 },
    },
  });
}

test('a new job says in a line what it is and how stale its parameters may be', async () => {
  daemon.unary(createJob, ({ jobId }) => staleJob(`jobs/${jobId}`));
  await daemon.listen();
  const created = await gnnctl(['job', 'create', '--id', 'a', '--set', 'dataset=npm']);
  expect(created.stdout).toBe('jobs/a\n');
  expect(created.stderr.split('\n')).toEqual([
    `warning: ${warning}`,
    'created: GRAPHSAGE on npm; 10 epochs, 2 devices, S = 2, PREDICT',
    'watch it with: gnnctl job watch a',
    '',
  ]);
  const dry = await gnnctl(['job', 'create', '--set', 'dataset=npm', '--dry-run']);
  expect(dry.stderr).toContain(`warning: ${warning}\n`);
  expect(dry.stdout).toContain('  staleness: 2\n');
});

test('the doctor says what running jobs say of themselves', async () => {
  daemon
    .unary(listJobs, ({ states }) => ({
      jobs: states.includes(JobState.RUNNING) ? [sampleJob({ name: 'jobs/a' })] : [],
    }))
    .unary(getJob, ({ name }) => staleJob(name));
  await daemon.listen();
  const { stdout } = await gnnctl(['doctor', '-o', 'json']);
  expect(JSON.parse(stdout).findings).toContainEqual({
    ...{ what: 'Job a', verdict: 'advice', found: warning },
    command: 'gnnctl job plan a',
  });
});

test('what the daemon refuses because of a setting is not blamed on the file alone', async () => {
  daemon.unary(createJob, () => {
    throw new FakeError(status.INVALID_ARGUMENT, 'spec invalid', {
      reason: 'SPEC_INVALID',
      violations: [
        ['spec.model.layers', '3: expected 1, the number of sampling.fanouts'],
        ['spec.training.batch_size', '0: expected an integer from 1 to 1048576'],
      ],
    });
  });
  await daemon.listen();
  const stdin = 'dataset: a\nmodel: {layers: 3}\ntraining: {epochs: 1, batch_size: 8}\n';
  const settings = ['--set', 'sampling.fanouts=[5]', '--set', 'training.batchSize=0'];
  const { stderr } = await gnnctl(['job', 'create', '-f', '-', ...settings], { stdin });
  const lines = stderr.split('\n').map((line) => line.trim().replaceAll(/ {2,}/g, '  '));
  expect(lines.slice(1, 3)).toEqual([
    '<stdin>:2:9  spec.model.layers: 3: expected 1, the number of sampling.fanouts ' +
      '(--set sampling.fanouts=[5])',
    '--set training.batchSize=0  spec.training.batch_size: 0: expected an integer from 1 to 1048576',
  ]);
});

test('a job and a list of jobs show their staleness', async () => {
  daemon
    .unary(getJob, ({ name }) => staleJob(name))
    .unary(listJobs, () => ({ jobs: [staleJob('jobs/a')] }));
  await daemon.listen();
  const { stdout } = await gnnctl(['job', 'get', 'a', '-o', 'table']);
  expect(stdout).toMatch(/^Staleness +S = 2, PREDICT$/m);
  expect(stdout).toMatch(/^Evaluation +SAMPLED 15,all, every 2 epochs$/m);
  expect(stdout).toContain(warning);
  expect((await gnnctl(['job', 'get', 'a'])).stdout).toContain('\nstaleness\t2\n');
  const wide = await gnnctl(['job', 'list', '-o', 'wide']);
  const [head = '', row = ''] = wide.stdout.split('\n');
  expect(head).toMatch(/ S /);
  expect(row).toContain('2, PREDICT');
});

test('a plan says why, in lines that a terminal need not break within words', async () => {
  const explanation =
    '1 Sampler and 1 Trainer, predicted 5.72 ms per batch, as PAPER and MINMAX agree; standby ' +
    'Trainers armed: they take batches when that empties the queue sooner';
  daemon.unary(getJobPlan, ({ name }) => ({
    job: name,
    explanation,
    staleness: 2,
    stalenessCompensation: StalenessCompensation.NONE,
    warnings: [warning],
  }));
  await daemon.listen();
  const plan = async (options: TestIoOptions) =>
    (await gnnctl(['job', 'plan', 'a', '-o', 'table', '--color', 'never'], options)).stdout;
  const narrow = await plan({ isTty: true, columns: 80 });
  expect(Math.max(...narrow.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
  expect(narrow.replaceAll(/\n +/g, ' ')).toMatch(new RegExp(`^Why +${explanation}$`, 'm'));
  expect(narrow).toMatch(/^Staleness +S = 2, NONE$/m);
  expect(narrow).toContain('training.staleness is 2');
  expect(await plan({})).toContain(explanation);
  expect(await plan({ isTty: true, columns: 25 })).toContain(explanation);
});
