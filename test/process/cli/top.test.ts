import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ExecutorRole } from '../../../src/api/gen/gnnd/v1/executor_pb.ts';
import { DeviceState, HostService } from '../../../src/api/gen/gnnd/v1/host_service_pb.ts';
import { type Job, JobPhase, JobState } from '../../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { Reason } from '../../../src/api/gen/gnnd/v1/types_pb.ts';
import { runCli } from '../../../src/cli/program.ts';
import { sampleJob, startMs } from '../../unit/cli/sample-job.ts';
import { createTestIo, stoppedClock, type TestIoOptions } from '../../unit/cli/test-io.ts';
import { FakeDaemon, FakeError } from './fake-daemon.ts';

/** `gnnctl top` against a daemon that says what a test wants. */

let daemon: FakeDaemon;
/** Looks so far. */
let looks: number;

beforeEach(() => {
  daemon = new FakeDaemon();
  looks = 0;
});
afterEach(() => daemon.close());

const running = sampleJob();
if (running.effectiveSpec?.training !== undefined) running.effectiveSpec.training.batchSize = 1000;
const waiting = sampleJob({
  name: 'jobs/later',
  state: JobState.PENDING,
  phase: JobPhase.UNSPECIFIED,
  reason: Reason.WAITING_FOR_DEVICES,
  message: 'waits for 1 device',
  numEpochs: 0,
});
waiting.progress = undefined;

/** Ten seconds ago most rows were read; in the last five, caches had three of four. */
const stretches = [
  { durationNs: 5_000_000_000n, executors: [{ cachedRows: 0n, readRows: 900_000n }] },
  {
    durationNs: 5_000_000_000n,
    executors: [
      { role: ExecutorRole.TRAINER, device: 'cpu:1', cachedRows: 150_000n, readRows: 40_000n },
      { role: ExecutorRole.STANDBY, device: 'cpu:0', cachedRows: 0n, readRows: 10_000n },
    ],
  },
];

function serve(jobs: () => readonly Job[] = () => [waiting, running]): Promise<void> {
  const allocated = { state: DeviceState.ALLOCATED, job: 'jobs/npm-sage' };
  daemon
    .unary(HostService.method.getHost, () => {
      looks += 1;
      const jobs = { RUNNING: 1n, PENDING: 1n };
      const startTime = timestampFromMs(startMs - 3_600_000);
      return { hostname: 'box', version: '0.1.0', ready: true, startTime, jobs };
    })
    .unary(HostService.method.listDevices, () => ({
      devices: [
        { name: 'devices/cpu:0', ...allocated },
        { name: 'devices/cpu:1', ...allocated },
        { name: 'devices/cpu:2', state: DeviceState.FREE },
      ],
    }))
    .unary(JobService.method.listJobs, () => ({ jobs: [...jobs()] }))
    .unary(JobService.method.getJobTimeline, () => ({ attempt: 1, stretches }));
  return daemon.listen();
}

function start(args: readonly string[], options: TestIoOptions = {}) {
  const clock = stoppedClock(startMs);
  const io = createTestIo({ clock, columns: 160, ...options });
  return { io, done: runCli(['--address', daemon.address, 'top', ...args], io.io) };
}

test('one look tells jobs with their rates, and what each device does', async () => {
  await serve();
  const { io, done } = start([]);
  expect(await done).toBe(0);
  expect(io.stdout().trimEnd().split('\n')).toEqual([
    'box · gnnd 0.1.0 · up 1h 00m · 2 of 3 devices in use · 1 running, 1 waiting',
    '',
    'job       state    epoch  done  batches/s  rows/s    hits  queue    loss       validation    left',
    'npm-sage  RUNNING   4/10  34 %        6.6   40.0k  75.0 %    5/8  1.0234  accuracy 68.0 %  1m 12s  training',
    `later     PENDING   0/10${' '.repeat(75)}waits for 1 device`,
    '',
    'device  state      job       role     does    busy              batches  hits',
    'cpu:0   ALLOCATED  npm-sage  Sampler  sample  ████████▎░  82 %      123',
    '                             standby  wait    ░░░░░░░░░░   0 %        0',
    'cpu:1   ALLOCATED  npm-sage  Trainer  train   █████████▊  97 %      115',
    'cpu:2   FREE',
  ]);
  expect(looks).toBe(1);
});

test('-o json is one look with exact numbers and units in their names', async () => {
  await serve();
  const { io, done } = start(['-o', 'json']);
  expect(await done).toBe(0);
  const { jobs, devices, jobCounts } = JSON.parse(io.stdout());
  expect(jobCounts).toEqual({ RUNNING: 1, PENDING: 1 });
  expect(jobs[0]).toMatchObject({
    ...{ job: 'npm-sage', state: 'RUNNING', phase: 'TRAINING', epoch: 3, epochs: 10 },
    ...{ valAccuracy: 0.68, valMetric: { name: 'accuracy', value: 0.68 } },
    ...{ batchesPerSecond: 6.64, rowsPerSecond: 40_000, hitRate: 0.75, queueDepth: 5 },
  });
  expect(jobs[1]).toMatchObject({ job: 'later', batchesPerSecond: null });
  expect(devices[0].executors.map(({ role }: { role: string }) => role)).toEqual([
    'SAMPLER',
    'STANDBY',
  ]);
});

test('on a terminal it looks again, over failures, until Ctrl-C', async () => {
  let lists = 0;
  await serve(() => {
    lists += 1;
    if (lists === 2) throw new FakeError(status.UNKNOWN, 'the disk is gone');
    return [running];
  });
  let wasLost = false;
  const onWrite = (text: string) => {
    if (text.includes('no answer since the last look: ')) wasLost = true;
    else if (wasLost && text.includes('npm-sage')) io.interrupt();
  };
  const { io, done } = start(['--interval', '200ms'], { isTty: true, onWrite });
  expect(await done).toBe(0);
  expect(lists).toBe(3);
  expect(io.stdout()).toContain('\u001b[?25h');
  expect(io.stderr()).toBe('');
});

test('a wrong interval and a format that it has not are refused', async () => {
  await serve();
  for (const args of [
    ['--interval', 'soon'],
    ['--interval', '1ms'],
    ['-o', 'name'],
  ]) {
    const { io, done } = start(args);
    expect(await done).toBe(2);
    expect(io.stderr()).toMatch(/expected/);
  }
  expect(looks).toBe(0);
});
