import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { type Job, JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { PlacementPolicy, StandbyPolicy } from '../../src/api/gen/gnnd/v1/resources_pb.ts';
import { repository, TestDaemon } from '../support/daemon.ts';
import { skipped } from '../support/skipped.ts';
import { until } from '../support/until.ts';

/** What a scraper sees of a running job: numbers that move, and only promised series. */

let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await TestDaemon.start({ datasets: ['cora'] });
});

/** Eight devices, four slots, twelve buckets make some 3,500 series; more is a leak of labels. */
const seriesMax = 8000;
/** A rendering is shared by scrapes that come within this time. */
const renderingMaxAgeMs = 500;

class Scrape {
  readonly text: string;
  readonly #values = new Map<string, number>();

  constructor(text: string) {
    this.text = text;
    for (const line of text.split('\n')) {
      const sample = /^(\w+(?:\{.*\})?) (\S+)$/.exec(line);
      if (sample !== null) this.#values.set(sample[1] ?? '', Number(sample[2]));
    }
  }

  get series(): ReadonlyMap<string, number> {
    return this.#values;
  }

  /** Throws when there is no such series: a missing one is not 0. */
  value(series: string): number {
    const value = this.#values.get(series);
    if (value === undefined) throw new Error(`no series ${series}`);
    return value;
  }

  /** The labels of a family's series that are 1. */
  flags(family: string): readonly string[] {
    return [...this.#values]
      .filter(([series, value]) => series.startsWith(`${family}{`) && value === 1)
      .map(([series]) => series.slice(family.length + 1, -1).replace('job_slot="0",', ''))
      .sort();
  }
}

async function scrape(): Promise<Scrape> {
  return new Scrape(await daemon.scrape());
}

/** Scrapes until `holds`; a scrape asked for too soon would only repeat the one before. */
async function scrapeUntil(holds: (scrape: Scrape) => boolean) {
  const look = async () => {
    const seen = await scrape();
    return holds(seen) ? seen : null;
  };
  return until(look, { everyMs: renderingMaxAgeMs / 5 });
}

function spec(epochs: number, standby: StandbyPolicy) {
  return {
    dataset: 'cora',
    model: { type: ModelType.GRAPHSAGE, hiddenDim: 16 },
    sampling: { fanouts: [10, 5] },
    training: { epochs, batchSize: 4, threadsPerTrainer: 1 },
    resources: { devices: 2 },
    placement: { policy: PlacementPolicy.FIXED, samplers: 1, standby },
    // One slot makes Sampler and Trainer wait for each other at every batch, however fast they are.
    ...(standby === StandbyPolicy.OFF ? { queue: { capacity: 1 } } : {}),
  };
}

const endless = 1_000_000;

async function running(id: string, standby: StandbyPolicy): Promise<Job> {
  await daemon.createJob(id, spec(endless, standby));
  return daemon.until(
    id,
    ({ state, progress }) => state === JobState.RUNNING && (progress?.version ?? 0n) > 50n,
  );
}

async function cancelled(id: string): Promise<void> {
  await daemon.call(JobService.method.cancelJob, { name: `jobs/${id}` });
  await daemon.until(id, ({ state }) => state === JobState.CANCELLED);
}

describe('while a Sampler and a Trainer work', () => {
  let before: Scrape;
  let after: Scrape;

  beforeAll(async () => {
    await running('measured', StandbyPolicy.OFF);
    before = await scrape();
    const done = before.value(committed);
    after = await scrapeUntil((seen) => seen.value(committed) > done + 100);
  });

  afterAll(() => cancelled('measured'));

  const committed = 'gnnd_batches_total{job_slot="0",event="COMMITTED"}';

  test.each([
    'gnnd_batches_total{job_slot="0",event="SAMPLED"}',
    'gnnd_batches_total{job_slot="0",event="EXTRACTED"}',
    'gnnd_batches_total{job_slot="0",event="TRAINED"}',
    committed,
    'gnnd_steps_total{job_slot="0"}',
    'gnnd_epochs_total{job_slot="0"}',
    'gnnd_sampled_edges_total{job_slot="0"}',
    'gnnd_sampled_nodes_total{job_slot="0"}',
    'gnnd_trained_seeds_total{job_slot="0"}',
    'gnnd_stage_seconds_total{job_slot="0",device="cpu:0",stage="S"}',
    'gnnd_stage_seconds_total{job_slot="0",device="cpu:1",stage="E"}',
    'gnnd_stage_seconds_total{job_slot="0",device="cpu:1",stage="T"}',
    'gnnd_stage_seconds_total{job_slot="0",device="cpu:1",stage="A"}',
    'gnnd_stage_seconds_total{job_slot="0",device="cpu:1",stage="V"}',
    'gnnd_stage_duration_seconds_count{job_slot="0",stage="T"}',
    'gnnd_queue_ops_total{job_slot="0",side="ENQUEUE",result="OK"}',
    'gnnd_queue_ops_total{job_slot="0",side="DEQUEUE",result="OK"}',
    'gnnd_queue_wait_seconds_count{job_slot="0",side="ENQUEUE"}',
    'gnnd_queue_wait_seconds_sum{job_slot="0",side="ENQUEUE"}',
    'gnnd_queue_wait_seconds_count{job_slot="0",side="DEQUEUE"}',
    'gnnd_queue_wait_seconds_sum{job_slot="0",side="DEQUEUE"}',
  ])('%s grows', (series) => {
    expect(before.value(series)).toBeGreaterThan(0);
    expect(after.value(series)).toBeGreaterThan(before.value(series));
  });

  test('a Sampler spends no time training, a Trainer none sampling', () => {
    for (const series of ['device="cpu:0",stage="T"', 'device="cpu:1",stage="S"']) {
      expect(after.value(`gnnd_stage_seconds_total{job_slot="0",${series}}`)).toBe(0);
    }
  });

  test('the queue shows its depth within its capacity', () => {
    const capacity = after.value('gnnd_queue_capacity_batches{job_slot="0"}');
    expect(capacity).toBeGreaterThan(0);
    const depth = after.value('gnnd_queue_depth_batches{job_slot="0"}');
    expect(depth).toBeGreaterThanOrEqual(0);
    expect(depth).toBeLessThanOrEqual(capacity);
  });

  test('each device shows the one role it has', () => {
    expect(after.flags('gnnd_executor_role')).toEqual([
      'device="cpu:0",role="SAMPLER"',
      'device="cpu:1",role="TRAINER"',
    ]);
    expect(after.value('gnnd_executors{job_slot="0",role="SAMPLER"}')).toBe(1);
    expect(after.value('gnnd_executors{job_slot="0",role="TRAINER"}')).toBe(1);
    expect(after.value('gnnd_executors{job_slot="0",role="STANDBY"}')).toBe(0);
  });

  test('executors show the memory they hold and the processor time they took', () => {
    const mebibyte = 2 ** 20;
    for (const role of ['SAMPLER', 'TRAINER']) {
      const labels = `{job_slot="0",role="${role}"}`;
      expect(after.value(`gnnd_executor_resident_bytes${labels}`)).toBeGreaterThan(mebibyte);
      expect(after.value(`gnnd_executor_cpu_seconds_total${labels}`)).toBeGreaterThan(0);
    }
  });

  test('state, loss and accuracy are those of the job', () => {
    expect(after.flags('gnnd_job_state')).toEqual(['state="RUNNING"']);
    expect(after.flags('gnnd_job_info')).toEqual([expect.stringContaining('gnnd_job="measured"')]);
    expect(after.value('gnnd_loss{job_slot="0"}')).toBeGreaterThan(0);
    const accuracy = after.value('gnnd_eval_metric{job_slot="0",split="VAL",metric="ACCURACY"}');
    expect(accuracy).toBeGreaterThan(0);
    expect(accuracy).toBeLessThanOrEqual(1);
  });

  test('counters never go backwards and series are bounded', () => {
    const backwards = [...before.series].filter(
      ([series, value]) =>
        /_(total|count|sum|bucket)(\{|$)/.test(series) && after.value(series) < value,
    );
    expect(backwards).toEqual([]);
    expect(after.series.size).toBeLessThan(seriesMax);
  });

  test('every family is a promised one', () => {
    const contract = parse(
      readFileSync(join(repository, 'proto', 'contract', 'metrics.yaml'), 'utf8'),
    );
    const promised = [...Object.keys(contract.families), ...Object.keys(contract.process)];
    const shown = [...after.text.matchAll(/^# TYPE (\w+) /gm)].map(([, family]) => family ?? '');
    expect(shown.length).toBeGreaterThan(80);
    expect(shown.filter((family) => !promised.includes(family))).toEqual([]);
  });

  const isMissing = spawnSync('promtool', ['--version']).error !== undefined;
  test.skipIf(isMissing && skipped('promtool check metrics', 'no promtool'))(
    'promtool check metrics has nothing to say',
    () => {
      const options = { input: after.text, encoding: 'utf8' } as const;
      const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], options);
      expect(`${stdout}${stderr}`).toBe('');
      expect(status).toBe(0);
    },
  );
});

test('a device that a Sampler and a standby Trainer share changes its role', async () => {
  await running('shared', StandbyPolicy.ALWAYS);
  try {
    const switches = 'gnnd_role_switches_total{job_slot="0",from="SAMPLER",to="STANDBY"}';
    const first = await scrape();
    // Next to training, drawing a sample takes no time: most scrapes find the standby Trainer.
    const last = await scrapeUntil((now) => {
      const roles = now.flags('gnnd_executor_role').filter((labels) => labels.includes('cpu:0'));
      expect(roles).toHaveLength(1);
      const isStandby = roles.includes('device="cpu:0",role="STANDBY"');
      return isStandby && now.value(switches) > first.value(switches);
    });
    expect(last.value('gnnd_executors{job_slot="0",role="STANDBY"}')).toBe(1);
  } finally {
    await cancelled('shared');
  }
});

test("a job's last numbers stay until the next job takes its slot", async () => {
  const epochs = 3;
  await daemon.createJob('first', spec(epochs, StandbyPolicy.OFF));
  const first = await daemon.succeeded('first');
  const batches = first.epochs.reduce((sum, epoch) => sum + Number(epoch.batches), 0);
  const committed = 'gnnd_batches_total{job_slot="0",event="COMMITTED"}';
  const ended = await scrapeUntil((seen) => seen.text.includes(`uid="${first.uid}"`));
  expect(ended.value(committed)).toBe(batches);
  expect(ended.value('gnnd_epochs_total{job_slot="0"}')).toBe(epochs);
  expect(ended.flags('gnnd_job_state')).toEqual(['state="SUCCEEDED"']);
  expect(ended.value('gnnd_jobs{state="SUCCEEDED"}')).toBe(1);
  expect(ended.value('gnnd_executors{job_slot="0",role="TRAINER"}')).toBe(0);
  expect(ended.flags('gnnd_executor_role')).toEqual([]);
  expect(ended.value('gnnd_checkpoints_total{job_slot="0",result="OK",cause="FINAL"}')).toBe(1);

  await running('second', StandbyPolicy.OFF);
  try {
    const next = await scrapeUntil((seen) => seen.text.includes('gnnd_job="second"'));
    expect(next.text.includes(`uid="${first.uid}"`)).toBe(false);
  } finally {
    await cancelled('second');
  }
});

test('a job that ended before the first scrape is shown', async () => {
  const unseen = await TestDaemon.start({ datasets: ['cora'] });
  try {
    await unseen.createJob('unseen', spec(1, StandbyPolicy.OFF));
    const { uid } = await unseen.succeeded('unseen');
    expect((await unseen.scrape()).includes(`uid="${uid}"`)).toBe(true);
  } finally {
    await unseen.stop();
  }
});

test.each(['livez', 'readyz'])('/%s answers 200 while the daemon works', async (path) => {
  const response = await fetch(`http://${daemon.metrics}/${path}`);
  expect([response.status, await response.text()]).toEqual([200, 'ok\n']);
});
