import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Job, JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { Reason } from '../../src/api/gen/gnnd/v1/types_pb.ts';
import { modelsOf, pair, type SpecInit } from '../support/crews.ts';
import { TestDaemon } from '../support/daemon.ts';
import { faultsLibrary } from '../support/faults.ts';
import { skipped } from '../support/skipped.ts';

/** A wall clock that steps, as faults.c makes it for the daemon: it decides nothing. */

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gnnd-clock-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const hourMs = 3_600_000;
const yearMs = 365.25 * 24 * hourMs;

/** The environment of a daemon whose wall clock is so far off, in ms, from when that is called. */
function clockOf(library: string) {
  const file = join(folder, 'offset');
  const step = (offsetMs: number) => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(BigInt(offsetMs) * 1_000_000n);
    const fd = openSync(file, 'r+');
    writeSync(fd, bytes, 0, 8, 0);
    closeSync(fd);
  };
  writeFileSync(file, Buffer.alloc(8));
  return { step, env: { LD_PRELOAD: library, GNND_FAULT_CLOCK: file } };
}

function spec(epochs: number): SpecInit {
  return {
    dataset: 'cora',
    model: { type: ModelType.GRAPHSAGE, hiddenDim: 16 },
    sampling: { fanouts: [10, 5] },
    training: { epochs, batchSize: 4, staleness: 1, threadsPerTrainer: 1 },
    timeouts: { stallMs: 5000n, runMs: 600_000n },
    ...pair,
  };
}

const inEpoch = (epoch: number) => (job: Job) => (job.progress?.epoch ?? 0) >= epoch;

test('steps of hours and years end no job, and turn no time negative', async () => {
  const library = faultsLibrary();
  if (library === null) {
    skipped('a clock that steps', 'there is no C compiler');
    return;
  }
  const { step, env } = clockOf(library);
  const daemon = await TestDaemon.start({ folder: join(folder, 'd'), datasets: ['cora'], env });
  try {
    const requestId = '6d1f7a52-8a3c-4b0a-9d0e-3c7c1f0e9b11';
    const request = { jobId: 'steps', requestId, spec: spec(100) };
    const created = await daemon.call(JobService.method.createJob, request);
    const offsets = [hourMs, -hourMs, 10 * yearMs, -10 * yearMs, 25 * hourMs, 0];
    for (const [index, offset] of offsets.entries()) {
      await daemon.until('steps', inEpoch(5 + 5 * index));
      step(offset);
      // A request is remembered for a day, and for as long as its job lives.
      const again = await daemon.call(JobService.method.createJob, request);
      expect(again.uid).toBe(created.uid);
    }
    const job = await daemon.succeeded('steps');
    expect(job.attempts).toHaveLength(1);
    expect(job.attempts[0]).toMatchObject({ exits: [], executorRestarts: 0 });
    const durations = job.epochs.map(({ durationMs }) => Number(durationMs));
    expect(Math.min(...durations)).toBeGreaterThanOrEqual(0);
    const negative = (await daemon.scrape())
      .split('\n')
      .filter((line) => /_(seconds|total|bytes)(_sum|_count|_bucket)?(\{.*\})? -/.test(line));
    expect(negative).toEqual([]);
    const undisturbed = await daemon.train('undisturbed', spec(100));
    expect(modelsOf(undisturbed)).toEqual(modelsOf(job));
  } finally {
    await daemon.stop();
  }
});

test('a back-off is no longer than it was meant, though the clock goes back a year', async () => {
  const library = faultsLibrary();
  if (library === null) {
    skipped('a clock that steps', 'there is no C compiler');
    return;
  }
  const { step, env } = clockOf(library);
  const first = await TestDaemon.start({ folder: join(folder, 'd'), datasets: ['cora'], env });
  const wanted = { ...spec(100), restart: { executorRestarts: 0, maxAttempts: 3 } };
  await first.createJob('backs-off', wanted);
  const running = await first.until('backs-off', inEpoch(3));
  process.kill(running.progress?.executors[0]?.pid ?? 0, 'SIGKILL');
  await first.until('backs-off', ({ reason }) => reason === Reason.BACKOFF);
  step(-yearMs);
  first.client.close();
  await first.kill('SIGKILL');
  const second = await TestDaemon.start({ folder: first.folder, env });
  try {
    const job = await second.succeeded('backs-off');
    expect(job.state).toBe(JobState.SUCCEEDED);
    expect(job.attempts.map(({ endReason }) => endReason)).toEqual([
      Reason.EXECUTOR_CRASHED,
      Reason.COMPLETED,
    ]);
  } finally {
    await second.stop();
  }
});
