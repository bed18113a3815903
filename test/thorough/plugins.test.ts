import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { beforeAll, describe, expect, test } from 'vitest';
import { CachePolicy } from '../../src/api/gen/gnnd/v1/features_pb.ts';
import { type Job, JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { PlacementPolicy, StandbyPolicy } from '../../src/api/gen/gnnd/v1/resources_pb.ts';
import { SamplingAlgorithm } from '../../src/api/gen/gnnd/v1/sampling_pb.ts';
import { Reason } from '../../src/api/gen/gnnd/v1/types_pb.ts';
import { temporaryFolder } from '../support/at-end.ts';
import { pair, type SpecInit } from '../support/crews.ts';
import { repository, TestDaemon } from '../support/daemon.ts';
import { refusalOf } from '../support/refusal.ts';
import { compilePlugin, compileTutorialSampler } from '../support/tutorial.ts';

/** Code of users: the sampler of docs/plugins.md, and those that break their contract. */

const folder = temporaryFolder('gnnd-plugins-');
const pluginsDir = join(folder, 'plugins');
let daemon: TestDaemon;

beforeAll(async () => {
  mkdirSync(pluginsDir);
  compileTutorialSampler(pluginsDir);
  writeFileSync(join(folder, 'elsewhere.so'), '');
  for (const name of ['broken', 'escapes', 'exits', 'wrong_abi', 'no_symbol']) {
    const source = join(repository, 'native', 'test', 'plugins', `${name}.c`);
    compilePlugin(source, join(pluginsDir, `${name}.so`));
  }
  const env = { GNND_PLUGINS_DIR: pluginsDir };
  daemon = await TestDaemon.start({ cpuDevices: 4, datasets: ['cora'], env });
});

type Plugin = NonNullable<NonNullable<SpecInit['sampling']>['plugin']>;

function spec(file: string, plugin: Omit<Plugin, '$typeName'> = {}): SpecInit {
  return {
    dataset: 'cora',
    model: { type: ModelType.GRAPHSAGE, layers: 2, hiddenDim: 16 },
    sampling: {
      algorithm: SamplingAlgorithm.KHOP_PLUGIN,
      fanouts: [10, 5],
      plugin: { path: join(pluginsDir, file), ...plugin },
    },
    training: {
      // Enough to be caught in the middle.
      epochs: 12,
      batchSize: 10,
      staleness: 2,
      randomSeed: 5n,
      threadsPerTrainer: 1,
      optimizer: { learningRate: 0.01 },
    },
    timeouts: { stallMs: 10_000n },
    restart: { maxAttempts: 2, executorRestarts: 1 },
  };
}

/** How a job that cannot succeed ends. */
function failureOf(id: string): Promise<Job> {
  return daemon.until(id, ({ state }) => state === JobState.FAILED);
}

test('a sampler of the user learns', async () => {
  const hubs = { options: 'cap=4', weights: true };
  const job = await daemon.train('hubs', { ...spec('few_hubs.so', hubs), ...pair });
  // The largest of the seven classes has 30 % of the nodes.
  expect(job.result?.testAccuracyBest).toBeGreaterThan(0.5);
  expect(job.effectiveSpec?.sampling?.plugin).toMatchObject({
    ...hubs,
    sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
  });

  // The plug-in's options decide bits.
  await daemon.createJob('hubs-other', spec('few_hubs.so', { options: 'cap=5', weights: true }));
  const other = await daemon.succeeded('hubs-other');
  expect(other.result?.parametersSha256).not.toBe(job.result?.parametersSha256);
});

test('nodes are ranked for a cache by what the plug-in draws, which changes no bit', async () => {
  const plain = spec('few_hubs.so', { options: 'cap=4' });
  await daemon.createJob('plain', plain);
  await daemon.createJob('cached', { ...plain, cache: { ratio: 0.2 } });
  const [without, cached] = [await daemon.succeeded('plain'), await daemon.succeeded('cached')];
  expect(cached.effectiveSpec?.cache?.policy).toBe(CachePolicy.PRESC);
  expect(cached.result?.parametersSha256).toBe(without.result?.parametersSha256);
});

test('a sampler of the user starts nothing, reaches nobody, and outlives nobody', async () => {
  const answers = join(folder, 'answers');
  const job = await daemon.train('escapes', {
    ...spec('escapes.so', { options: answers }),
    ...pair,
  });
  const refused = [
    'socket',
    'unix',
    'exec',
    'fork',
    'kill',
    'ptrace',
    'outlive',
    'uring',
    'unshare',
  ];
  expect(readFileSync(answers, 'utf8').trim().split('\n')).toEqual([
    ...refused.map((call) => `${call} EPERM`),
    // Calls that concern only the process itself are allowed.
    'self done',
  ]);
  const attempt = join(daemon.folder, 'state', 'jobs', job.uid, 'attempts', '1', 'log');
  const logs = readdirSync(attempt).map((name) => readFileSync(join(attempt, name), 'utf8'));
  expect(logs.length).toBeGreaterThan(1);
  for (const log of logs) expect(log).toMatch(/"msg":"executor\.started".*"confined":true/);
});

describe('a plug-in that breaks its contract ends the job with a sentence', () => {
  test.each([
    ['no_symbol', '', /no_symbol\.so: exports no function gnnd_sampler_plugin_get/],
    ['wrong_abi', '', /wrong_abi\.so: was built for version 2/],
    ['broken', 'refuse', /broken\.so: create refused: no graph of 2708 nodes, please/],
    ['broken', 'position', /broken\.so: node \d+ at hop 0: position \d+ in a row of \d+/],
    ['broken', 'many', /broken\.so: node \d+ at hop 0: 11 picks, the fanout is 10/],
  ])('%s %s', async (name, options, message) => {
    const id = `${name.replace('_', '-')}-${options || 'none'}`;
    await daemon.createJob(id, spec(`${name}.so`, { options }));
    const job = await failureOf(id);
    expect(job.reason).toBe(Reason.PLUGIN_FAILED);
    expect(job.message).toMatch(message);
    expect(job.attempts).toHaveLength(1);
  });

  test('also where nodes are ranked before anything is trained', async () => {
    const wrong = { ...spec('broken.so', { options: 'negative' }), cache: { ratio: 0.2 } };
    await daemon.createJob('broken-rank', wrong);
    const job = await failureOf('broken-rank');
    expect(job.reason).toBe(Reason.PLUGIN_FAILED);
    expect(job.message).toMatch(/pick returned -7/);
  });
});

describe('a plug-in that calls exit(0) has crashed', () => {
  const fixed = { policy: PlacementPolicy.FIXED, samplers: 1, standby: StandbyPolicy.OFF };

  test('while the job runs its Sampler is replaced', async () => {
    const marker = join(folder, 'left-once');
    await daemon.createJob('exits-once', {
      ...spec('exits.so', { options: marker }),
      placement: fixed,
      resources: { devices: 2 },
    });
    const job = await daemon.succeeded('exits-once');
    expect(job.attempts).toHaveLength(1);
    expect(job.attempts[0]).toMatchObject({
      executorRestarts: 1,
      exits: [{ exitCode: 0, reason: Reason.EXECUTOR_CRASHED }],
    });
  });

  test('in the calibration it costs an attempt', async () => {
    await daemon.createJob('exits-at-once', spec('exits.so'));
    const job = await failureOf('exits-at-once');
    expect(job.reason).toBe(Reason.STARTUP_BUDGET_EXHAUSTED);
    expect(job.message).toContain('exited with 0 before its work was over');
  });
});

test('a plug-in that crashes ends executors, then the job, never the daemon', async () => {
  await daemon.createJob('crash', spec('broken.so', { options: 'crash' }));
  const job = await failureOf('crash');
  expect([Reason.RESTART_BUDGET_EXHAUSTED, Reason.STARTUP_BUDGET_EXHAUSTED]).toContain(job.reason);
  expect(job.message).toContain('SIGABRT');
  expect(daemon.process.exitCode).toBe(null);
});

test('a file that changed after the job was created is not loaded', async () => {
  copyFileSync(join(pluginsDir, 'few_hubs.so'), join(pluginsDir, 'changing.so'));
  const all = { resources: { devices: 4 }, placement: { policy: PlacementPolicy.AUTO } };
  const long = spec('few_hubs.so', { options: 'cap=4' });
  await daemon.createJob('holds', {
    ...long,
    ...all,
    training: { ...long.training, epochs: 10_000 },
  });
  await daemon.createJob('waits', { ...spec('changing.so', { options: 'cap=4' }), ...all });
  copyFileSync(join(pluginsDir, 'broken.so'), join(pluginsDir, 'changing.so'));
  await daemon.call(JobService.method.cancelJob, { name: 'jobs/holds' });
  const job = await failureOf('waits');
  expect(job.reason).toBe(Reason.PLUGIN_FAILED);
  expect(job.message).toMatch(
    /changing\.so: its SHA-256 is [0-9a-f]{64}; the job was created with/,
  );
});

describe('a plug-in that may not be loaded is refused with its field', () => {
  const path = 'spec.sampling.plugin.path';
  test.each([
    ['elsewhere', '../elsewhere.so', path, /is not in/],
    ['that is not there', 'none.so', path, /there is no such file/],
    ['that is a folder', '.', path, /is not in/],
  ])('one %s', async (_, file, field, problem) => {
    const { code, fields } = await refusalOf(daemon.createJob('wrong', spec(file)));
    expect(code).toBe(status.INVALID_ARGUMENT);
    expect(fields[field]).toMatch(problem);
  });

  test('another one than was meant', async () => {
    const wrong = spec('few_hubs.so', { sha256: '0'.repeat(64) });
    const { fields } = await refusalOf(daemon.createJob('wrong', wrong));
    expect(fields['spec.sampling.plugin.sha256']).toMatch(/the file has [0-9a-f]{64}/);
  });
});

test('a daemon without plugins_dir loads none', async () => {
  const other = await TestDaemon.start({ datasets: ['cora'] });
  const { fields } = await refusalOf(other.createJob('any', spec('few_hubs.so')));
  expect(fields['spec.sampling.plugin.path']).toMatch(/plugins_dir is not set/);
  await other.stop();
});
