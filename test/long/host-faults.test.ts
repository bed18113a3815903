import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as later } from 'node:timers/promises';
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  onTestFinished,
  test,
} from 'vitest';
import { DeviceState } from '../../src/api/gen/gnnd/v1/host_service_pb.ts';
import { type Job, JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { Reason } from '../../src/api/gen/gnnd/v1/types_pb.ts';
import { daemonExit } from '../../src/base/exit-codes.ts';
import { modelsOf, pair, type SpecInit } from '../support/crews.ts';
import { type DaemonOptions, spawnDaemon, TestDaemon } from '../support/daemon.ts';
import { skipped } from '../support/skipped.ts';

/**
 * Faults that only root can bring about: disks of a daemon's own, in a mount namespace, that fill
 * up or turn read-only, and control groups (version 1) that freeze, or grant little.
 */

let folder: string;
let expected: readonly string[];

function spec(epochs: number): SpecInit {
  return {
    dataset: 'cora',
    model: { type: ModelType.GRAPHSAGE, hiddenDim: 16 },
    sampling: { fanouts: [10, 5] },
    training: { epochs, batchSize: 4, staleness: 1, batchesPerStep: 1, threadsPerTrainer: 1 },
    checkpoint: { everyEpochs: 1, keepLast: 2 },
    timeouts: { stallMs: 5000n },
    ...pair,
  };
}

const epochs = 60;
const inEpoch = (epoch: number) => (job: Job) => (job.progress?.epoch ?? 0) >= epoch;
const isIn = (state: JobState) => (job: Job) => job.state === state;

beforeAll(async () => {
  const daemon = await TestDaemon.start({ datasets: ['cora'] });
  expected = modelsOf(await daemon.train('undisturbed', spec(epochs)));
  await daemon.stop();
});

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gnnd-host-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const mayMount = spawnSync('unshare', ['-m', 'true']).status === 0;
const missing = 'mount namespaces are for root';

describe.skipIf(!mayMount && skipped('disks of a daemon', missing))('a state disk', () => {
  /** Starts a daemon whose state lies on a file system that its process alone sees. */
  async function onDisk(mountOptions: string): Promise<TestDaemon> {
    const state = join(folder, 'state');
    const mount = `mkdir ${state} && mount -t tmpfs -o ${mountOptions} disk ${state}`;
    const was = `${state}.was`;
    const before = `mv ${state} ${was} && ${mount} && cp -a ${was}/. ${state}`;
    return await TestDaemon.start({
      ...{ folder, datasets: ['cora'], within: ['unshare', '-m'], before },
    });
  }
  const seenFrom = (daemon: TestDaemon) => join(`/proc/${daemon.pid}/root`, folder, 'state');

  test.each([
    ['bytes', 'size=64m'],
    ['inodes', 'size=256m,nr_inodes=400'],
  ])('out of %s while a job trains: it trains on; then all goes on', async (what, options) => {
    const daemon = await onDisk(options);
    try {
      await daemon.createJob('trains', spec(epochs));
      await daemon.until('trains', inEpoch(3));
      const state = seenFrom(daemon);
      const filler = join(state, 'filler');
      mkdirSync(filler);
      fill(filler, what === 'bytes');
      // Whether a submission finds room in what the store's file has already is its luck.
      const refusals: string[] = [];
      for (let i = 0; i < 40 && refusals.length === 0; i += 1) {
        const made = daemon.call(JobService.method.createJob, {
          ...{ jobId: `extra-${i}`, spec: spec(1), validateOnly: false },
        });
        await made.catch((error: unknown) => refusals.push(String(error)));
        if (what === 'inodes') break;
      }
      if (what === 'bytes') expect(refusals[0]).toMatch(/STATE_DISK_FULL|disk|full/);
      const { progress } = await daemon.job('trains');
      await daemon.until('trains', inEpoch((progress?.epoch ?? 0) + 2));
      // The disk space kept back for the job lasts to its end.
      if (what === 'bytes') await daemon.succeeded('trains');
      rmSync(filler, { recursive: true });
      const job = await daemon.succeeded('trains');
      expect(modelsOf(job)).toEqual(expected);
      expect(job.attempts).toHaveLength(1);
    } finally {
      await daemon.stop(true);
    }
  });

  // A disk with open files cannot be turned read-only; kill.test.ts has writes that are refused.
  test('that is read-only is refused, in one line', async () => {
    const state = join(folder, 'state');
    mkdirSync(state);
    const before = `mount -t tmpfs disk ${state} && mount -o remount,ro ${state}`;
    const daemon = spawnDaemon(folder, { within: ['unshare', '-m'], before });
    let said = '';
    daemon.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
    const [code] = await once(daemon, 'close');
    expect(code).toBe(daemonExit.STATE_DIR);
    expect(said.trim().split('\n')).toEqual([expect.stringMatching(/^gnnd: .*read-only/i)]);
  });

  test('of /dev/shm that is full does not matter', async () => {
    const before =
      'mount -t tmpfs -o size=4k shm /dev/shm && head -c 4096 /dev/zero > /dev/shm/full';
    const options: DaemonOptions = {
      folder,
      datasets: ['cora'],
      within: ['unshare', '-m'],
      before,
    };
    const daemon = await TestDaemon.start(options);
    const job = await daemon.train('trains', spec(epochs));
    expect(modelsOf(job)).toEqual(expected);
    await daemon.stop(true);
  });
});

/** Fills a file system until nothing more fits. */
function fill(at: string, withBytes: boolean): void {
  const piece = Buffer.alloc(withBytes ? 2 ** 16 : 0);
  try {
    for (let i = 0; i < 100_000; i += 1) writeFileSync(join(at, `f${i}`), piece);
  } catch {
    // Less than a page is left.
    if (withBytes) return;
  }
}

const groups = '/sys/fs/cgroup';
const hasGroups = existsSync(join(groups, 'freezer', 'cgroup.procs')) && process.getuid?.() === 0;
const noGroups = 'control groups of version 1 are not there, or not ours';

describe.skipIf(!hasGroups && skipped('control groups', noGroups))('in a control group', () => {
  const made: string[] = [];

  function group(controller: string): string {
    const path = join(groups, controller, `gnnd-test-${process.pid}`);
    mkdirSync(path, { recursive: true });
    made.push(path);
    return path;
  }

  afterAll(async () => {
    for (const path of made) {
      for (let i = 0; i < 50 && existsSync(path); i += 1) {
        try {
          rmdirSync(path);
        } catch {
          await later(100);
        }
      }
    }
  });

  test('that is frozen an executor outlives SIGKILL; its job ends all the same', async () => {
    const frozen = group('freezer');
    const daemon = await TestDaemon.start({ folder, datasets: ['cora'], cpuDevices: 2 });
    try {
      await daemon.createJob('frozen', { ...spec(100_000), timeouts: { cancelGraceMs: 1000n } });
      const job = await daemon.until('frozen', inEpoch(2));
      const pid = job.progress?.executors[0]?.pid ?? 0;
      const device = job.progress?.executors[0]?.device ?? '';
      writeFileSync(join(frozen, 'cgroup.procs'), String(pid));
      writeFileSync(join(frozen, 'freezer.state'), 'FROZEN');
      await daemon.call(JobService.method.cancelJob, { name: 'jobs/frozen' });
      const ended = await daemon.until('frozen', isIn(JobState.CANCELLED));
      expect(ended.attempts[0]?.exits.map(({ reason }) => reason)).toContain(
        Reason.EXECUTOR_UNKILLABLE,
      );
      const { devices } = await daemon.devices();
      const states = devices.map(({ name, state }) => [name, state]);
      expect(states).toContainEqual([`devices/${device}`, DeviceState.QUARANTINED]);
      // The others are free for the next one.
      await daemon.train('alone', { ...spec(2), placement: {}, resources: { devices: 1 } });
      writeFileSync(join(frozen, 'freezer.state'), 'THAWED');
      await expect.poll(() => existsSync(`/proc/${pid}`), { timeout: 20_000 }).toBe(false);
    } finally {
      writeFileSync(join(frozen, 'freezer.state'), 'THAWED');
      await daemon.stop();
    }
  });

  test('with little memory an executor dies of it, and that is said', async () => {
    const small = group('memory');
    const limit = (value: string) => writeFileSync(join(small, 'memory.limit_in_bytes'), value);
    const before = `echo $$ > ${small}/cgroup.procs`;
    const daemon = await TestDaemon.start({ folder, datasets: ['cora'], before });
    try {
      await daemon.createJob('hungry', spec(epochs));
      await daemon.until('hungry', inEpoch(2));
      const spare = 32 * 2 ** 20;
      const usage = Number(readFileSync(join(small, 'memory.usage_in_bytes'), 'utf8'));
      limit(String(usage + spare));
      // Takes more than there is.
      const take = `import time; x = b'x' * ${5 * spare}; time.sleep(600)`;
      const command = `echo $$ > ${small}/cgroup.procs; exec python3 -c "${take}"`;
      const hog = spawn('bash', ['-c', command], { stdio: 'ignore' });
      onTestFinished(() => void hog.kill('SIGKILL'));
      const ended = await daemon.until('hungry', ({ attempts }) => attempts.length === 2);
      expect(Reason[ended.attempts[0]?.endReason ?? 0]).toBe('HOST_OUT_OF_MEMORY');
      expect(ended.attempts[0]?.message).toContain('memory ran out');
      limit('-1');
      hog.kill('SIGKILL');
      const job = await daemon.succeeded('hungry');
      expect(job.attempts[1]?.resumed?.epochs).toBeGreaterThanOrEqual(1);
      expect(modelsOf(job)).toEqual(expected);
    } finally {
      await daemon.stop();
    }
  });

  test('without room for processes a start waits for some', async () => {
    const few = group('pids');
    const before = `echo $$ > ${few}/cgroup.procs`;
    const daemon = await TestDaemon.start({ folder, datasets: ['cora'], before });
    try {
      const now = () => Number(readFileSync(join(few, 'pids.current'), 'utf8'));
      writeFileSync(join(few, 'pids.max'), String(now()));
      await daemon.createJob('waits', spec(epochs));
      await later(3000);
      expect((await daemon.job('waits')).state).toBe(JobState.PREPARING);
      writeFileSync(join(few, 'pids.max'), 'max');
      const job = await daemon.succeeded('waits');
      expect(job.attempts).toHaveLength(1);
      expect(modelsOf(job)).toEqual(expected);
    } finally {
      await daemon.stop();
    }
  });
});
