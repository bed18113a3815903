import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { JobPhase, JobState } from '../../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService, WatchType } from '../../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { Reason } from '../../../src/api/gen/gnnd/v1/types_pb.ts';
import { runCli } from '../../../src/cli/program.ts';
import { sampleJob } from '../../unit/cli/sample-job.ts';
import { createTestIo, type TestIo, type TestIoOptions } from '../../unit/cli/test-io.ts';
import { FakeDaemon, FakeError } from './fake-daemon.ts';

let daemon: FakeDaemon;

beforeEach(() => {
  daemon = new FakeDaemon();
});
afterEach(() => daemon.close());

const { createJob, watchJob } = JobService.method;

function start(args: readonly string[], options: TestIoOptions = {}) {
  const test: TestIo = createTestIo(options);
  const done = runCli(['--address', daemon.address, ...args], test.io);
  return { test, done };
}

const succeeded = sampleJob({
  state: JobState.SUCCEEDED,
  phase: JobPhase.UNSPECIFIED,
  reason: Reason.COMPLETED,
  revision: 9n,
  result: { testAccuracyBest: 0.713, checkpointDir: '/state/checkpoint' },
});

const { epochs } = sampleJob();
const snapshot = {
  type: WatchType.SNAPSHOT,
  revision: 7n,
  job: sampleJob(),
  attempt: 1,
  epochs,
};
const end = { type: WatchType.CHANGED, revision: 9n, job: succeeded };

function watchThatEndsWith(state: JobState): void {
  daemon.stream(watchJob, async (_, { send }) => {
    send(snapshot);
    send({ type: WatchType.PROGRESS, revision: 7n, job: sampleJob() });
    send({ type: WatchType.BOOKMARK, revision: 8n });
    send({ ...end, job: sampleJob({ state, message: 'so it ended', progress: { epochs: 0 } }) });
  });
}

test('a piped watch prints one line for each change and each epoch', async () => {
  watchThatEndsWith(JobState.SUCCEEDED);
  await daemon.listen();
  const { test: io, done } = start(['job', 'watch', 'npm-sage']);
  expect(await done).toBe(0);
  const lines = io.stdout().trim().split('\n');
  expect(lines.map((line) => line.slice(10, 30))).toEqual([
    'npm-sage  epoch  1/1',
    'npm-sage  epoch  2/1',
    'npm-sage  epoch  3/1',
    'npm-sage  RUNNING, t',
    'npm-sage  SUCCEEDED,',
  ]);
});

test('on a terminal the frame is redrawn in place and the cursor comes back', async () => {
  watchThatEndsWith(JobState.SUCCEEDED);
  await daemon.listen();
  const { test: io, done } = start(['job', 'watch', 'npm-sage'], { isTty: true });
  expect(await done).toBe(0);
  expect(io.stdout()).toContain('\u001b[?25l');
  expect(io.stdout()).toContain('\u001b[14A\r');
  expect(io.stdout().endsWith('\u001b[?25h')).toBe(true);
});

test('as jsonl every event is proto JSON', async () => {
  watchThatEndsWith(JobState.SUCCEEDED);
  await daemon.listen();
  const { test: io, done } = start(['job', 'watch', 'npm-sage', '-o', 'jsonl']);
  expect(await done).toBe(0);
  const events = io
    .stdout()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(events.map(({ type }) => type)).toEqual([
    'WATCH_TYPE_SNAPSHOT',
    'WATCH_TYPE_PROGRESS',
    'WATCH_TYPE_BOOKMARK',
    'WATCH_TYPE_CHANGED',
  ]);
  expect(events[0].job.progress).toMatchObject({ epoch: 3, batchesCommitted: '13' });
});

test.each([
  [JobState.FAILED, 10],
  [JobState.CANCELLED, 11],
])('waiting for a job that ends in state %i ends with exit code %i', async (state, expected) => {
  watchThatEndsWith(state);
  await daemon.listen();
  const { test: io, done } = start(['job', 'wait', 'npm-sage']);
  expect(await done).toBe(expected);
  expect(io.stdout()).toContain('message\tso it ended\n');
});

test('waiting for a state ends when it is reached', async () => {
  daemon.stream(watchJob, async (_, { send, cancelled }) => {
    send({ ...snapshot, job: sampleJob({ state: JobState.PREPARING }) });
    send({ ...snapshot, revision: 8n });
    await cancelled;
  });
  await daemon.listen();
  expect(await start(['job', 'wait', 'npm-sage', '--for', 'state=RUNNING']).done).toBe(0);
});

test('create --wait ends as the job ends, with the job as data', async () => {
  daemon.unary(createJob, () => sampleJob());
  daemon.stream(watchJob, async (_, { send }) => send(end));
  await daemon.listen();
  const args = ['job', 'create', '--set', 'dataset=a', '--wait', '-o', 'json'];
  const { test: io, done } = start(args);
  expect(await done).toBe(0);
  expect(JSON.parse(io.stdout()).state).toBe('JOB_STATE_SUCCEEDED');
});

test('after a restart of the daemon the watch goes on from the revision it knows', async () => {
  daemon.stream(watchJob, async (_, { send, cancelled }) => {
    send(snapshot);
    await cancelled;
  });
  await daemon.listen();
  let isCrashed = false;
  const revisions: bigint[] = [];
  const onWrite = (text: string) => {
    if (isCrashed || !text.includes('RUNNING')) return;
    isCrashed = true;
    daemon.crash();
    daemon.stream(watchJob, async ({ startRevision }, { send }) => {
      revisions.push(startRevision);
      send(end);
    });
    void daemon.listen();
  };
  const { test: io, done } = start(['job', 'watch', 'npm-sage'], { onWrite });
  expect(await done).toBe(0);
  expect(revisions).toEqual([7n]);
  expect(io.stderr()).toContain('connection to the daemon lost; try 1 in 250 ms');
});

test('the epochs of an attempt that goes on are those before it and its own', async () => {
  const attempts = [{ number: 1 }, { number: 2 }];
  const resumed = [{ number: 1 }, { number: 2, resumed: { epochs: 2, image: 'epoch-2' } }];
  daemon.stream(watchJob, async (_, { send }) => {
    send(snapshot);
    send({ type: WatchType.CHANGED, revision: 8n, job: sampleJob({ attempts }) });
    send({ type: WatchType.CHANGED, revision: 9n, job: sampleJob({ attempts: resumed }) });
    send({ type: WatchType.EPOCHS, revision: 10n, attempt: 2, epochs: epochs.slice(2) });
    const job = sampleJob({ state: JobState.SUCCEEDED, attempts: resumed });
    send({ ...end, revision: 11n, job });
  });
  await daemon.listen();
  const { test: io, done } = start(['job', 'wait', 'npm-sage', '-o', 'json']);
  expect(await done).toBe(0);
  const shown = JSON.parse(io.stdout()).epochs as readonly { epoch?: number }[];
  expect(shown.map(({ epoch = 0 }) => epoch)).toEqual([0, 1, 2]);
});

test('a stream that the server ends early is opened again without a word', async () => {
  const revisions: bigint[] = [];
  daemon.stream(watchJob, async ({ startRevision }, { send }) => {
    revisions.push(startRevision);
    send(startRevision === 0n ? snapshot : end);
  });
  await daemon.listen();
  const { test: io, done } = start(['job', 'wait', 'npm-sage', '-q']);
  expect(await done).toBe(0);
  expect(revisions).toEqual([0n, 7n]);
  expect(io.stderr()).toBe('');
});

test('a watch whose past was compacted begins anew', async () => {
  const revisions: bigint[] = [];
  daemon.stream(watchJob, async ({ startRevision }, { send }) => {
    revisions.push(startRevision);
    if (revisions.length === 1) send(snapshot);
    else if (startRevision === 0n) send(end);
    else throw new FakeError(status.OUT_OF_RANGE, 'gone', { reason: 'REVISION_COMPACTED' });
  });
  await daemon.listen();
  expect(await start(['job', 'watch', 'npm-sage']).done).toBe(0);
  expect(revisions).toEqual([0n, 7n, 0n]);
});

test('a job that does not exist is no reason to try again', async () => {
  daemon.stream(watchJob, async () => {
    throw new FakeError(status.NOT_FOUND, 'no job jobs/none', { reason: 'JOB_NOT_FOUND' });
  });
  await daemon.listen();
  const { test: io, done } = start(['job', 'watch', 'none']);
  expect(await done).toBe(4);
  expect(io.stderr()).toBe('error: no job jobs/none\n');
});

test('Ctrl-C detaches and says how to attach again; a second one ends at once', async () => {
  daemon.stream(watchJob, async (_, { send, cancelled }) => {
    send(snapshot);
    await cancelled;
  });
  await daemon.listen();
  let press = () => {};
  const onWrite = (text: string) => {
    if (text.includes('RUNNING')) press();
  };
  const { test: io, done } = start(['job', 'wait', 'npm-sage'], { onWrite });
  press = () => {
    io.interrupt();
    io.interrupt();
  };
  expect(await done).toBe(130);
  expect(io.exits).toEqual([130]);
  expect(io.stderr()).toContain(
    'detached\n  the job goes on; watch it again with: gnnctl job watch npm-sage\n',
  );
});
