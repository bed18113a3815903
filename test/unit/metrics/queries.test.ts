import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { stringify } from 'yaml';
import { createMetrics, type JobMetricsInput } from '../../../src/metrics/metrics.ts';
import { hostInput, jobInput, options } from './job-input.ts';

/**
 * The queries of docs/metrics.md and of deploy/monitoring, run by promtool over what two scrapes
 * show.
 */

const docs = readFileSync('docs/metrics.md', 'utf8');

/** All expressions of the table of questions, and the join above it. */
function documented(): readonly string[] {
  const rows = docs.slice(docs.indexOf('| question'), docs.indexOf('## Stages'));
  const cells = rows.split('\n').filter((line) => line.startsWith('| ') && line.includes('`'));
  const join = /^ {4}(gnnd_.*)$/m.exec(docs)?.[1] ?? '';
  return [
    join,
    ...cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, q]) => q ?? '')),
  ];
}

const devices = ['cpu:0', 'cpu:1'];
/** What a scraper adds to everything; a label of ours of that name would become exported_job. */
const scraped = { job: 'gnnd', instance: 'here:9464' };
const steps = 16;
const stepSeconds = 15;

/** 240 seconds of a job that trains; `late` as the job is at the end of them. */
async function recording(
  late: Partial<JobMetricsInput> = {},
): Promise<ReadonlyMap<string, string>> {
  const metrics = createMetrics(options);
  onTestFinished(() => metrics.close());
  metrics.updateHost(hostInput(devices));
  const input = { ...jobInput(0, devices), lastProgressAtMs: 200_000 };
  metrics.updateJob(input);
  const before = samplesOf(await metrics.render('PROMETHEUS'));
  const { queue, batches, stageSeconds, waitSeconds, standbyWakeups, switches } = input;
  metrics.executorExited({ role: 'TRAINER', outcome: 'crashed', reason: 'EXECUTOR_CRASHED' });
  metrics.jobTransitioned({
    to: 'FAILED',
    reason: 'RUN_TIMEOUT',
    pendingSeconds: null,
    durationSeconds: 1,
  });
  metrics.propagationsRun([0.25, 0.75]);
  metrics.propagationEnded({ outcome: 'FAILED', seconds: 1, hops: 0, deviceHops: 0, bytes: 0 });
  metrics.propagationEnded({
    outcome: 'COMPLETE',
    seconds: 3,
    hops: 3,
    deviceHops: 2,
    bytes: 4000,
  });
  metrics.observeStore({ op: 'EPOCH', seconds: 0.001, error: 'FULL' });
  metrics.updateJob({
    ...input,
    batches: { ...batches, COMMITTED: batches.COMMITTED + 960 },
    trainedSeeds: input.trainedSeeds + 2400,
    sampledEdges: input.sampledEdges + 24_000,
    evaluatedRows: input.evaluatedRows + 4800,
    stageSeconds: stageSeconds.map((stage) => ({ ...stage, seconds: stage.seconds + 120 })),
    waitSeconds: waitSeconds.map((wait) => ({ ...wait, seconds: wait.seconds + 30 })),
    queue: { ...queue, waits: { ...queue.waits, DEQUEUE: { ...queue.waits.DEQUEUE, sum: 27.5 } } },
    standbyWakeups: { ...standbyWakeups, USEFUL: standbyWakeups.USEFUL + 240 },
    switches: { ...switches, toStandby: switches.toStandby + 240 },
    ...late,
  });
  const after = samplesOf(await metrics.render('PROMETHEUS'));
  return new Map(
    [...after].map(([series, value]) => {
      const type = /_(total|sum|count|bucket)(\{|$)/.test(series);
      const from = type ? (before.get(series) ?? 0) : value;
      return [withScrapeLabels(series), `${from}+${(value - from) / steps}x${steps}`];
    }),
  );
}

function samplesOf(text: string): ReadonlyMap<string, number> {
  const lines = text.split('\n').filter((line) => line.startsWith('gnnd_'));
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
}

function withScrapeLabels(series: string): string {
  const [, name = '', own = ''] = /^(\w+)(?:\{(.*)\})?$/.exec(series) ?? [];
  const kept = own.replace(/(^|,)job="/, '$1exported_job="');
  const added = Object.entries(scraped).map(([label, value]) => `${label}="${value}"`);
  return `${name}{${[...(kept === '' ? [] : [kept]), ...added].join(',')}}`;
}

interface Asked {
  readonly expr: string;
  /** Values by labels without those of the scrape; with a star where the scrape's are gone. */
  readonly answer: Readonly<Record<string, number>>;
}

const job = 'job_slot="0"';
const per = (labels: string) => `${job},${labels}`;

/** Each question's answer, worked out by hand from the numbers above. */
const asked: readonly Asked[] = [
  {
    expr: 'gnnd_queue_depth_batches * on (instance, job_slot) group_left (gnnd_job) gnnd_job_info',
    answer: { [`${job},gnnd_job="job-0"`]: 2 },
  },
  {
    expr: 'rate(gnnd_batches_total{event="COMMITTED"}[1m])',
    answer: { [per('event="COMMITTED"')]: 4 },
  },
  { expr: 'rate(gnnd_trained_seeds_total[1m])', answer: { [job]: 10 } },
  { expr: 'gnnd_evaluation_done_ratio', answer: { [`gnnd_evaluation_done_ratio{${job}`]: 0.25 } },
  {
    expr: 'gnnd_evaluation_remaining_seconds',
    answer: { [`gnnd_evaluation_remaining_seconds{${job}`]: 12 },
  },
  { expr: 'gnnd_job_remaining_seconds', answer: { [`gnnd_job_remaining_seconds{${job}`]: 90 } },
  { expr: 'gnnd_epochs_total / gnnd_epochs_target', answer: { [job]: 0.3 } },
  {
    expr: 'gnnd_cache_given_up_rows / gnnd_cache_capacity_rows',
    answer: { [per('tier="DEVICE"')]: 20 / 270 },
  },
  { expr: 'rate(gnnd_sampled_edges_total[1m])', answer: { [job]: 100 } },
  {
    expr: 'sum by (device, stage) (rate(gnnd_stage_seconds_total[1m]))',
    answer: Object.fromEntries(
      devices.flatMap((device) =>
        [...'SMCPETAV'].map((stage) => [`*device="${device}",stage="${stage}"`, 0.5]),
      ),
    ),
  },
  {
    expr:
      '1 - rate(gnnd_wait_seconds_total{wait="EXTRACT"}[1m]) / ' +
      'ignoring (wait, stage) rate(gnnd_stage_seconds_total{stage="E"}[1m])',
    answer: { [per('device="cpu:0"')]: 0.75, [per('device="cpu:1"')]: 0.75 },
  },
  { expr: 'gnnd_locality_scale', answer: { [`gnnd_locality_scale{${job}`]: 2 } },
  { expr: 'gnnd_locality_extract_share', answer: { [`gnnd_locality_extract_share{${job}`]: 0.25 } },
  {
    expr: 'rate(gnnd_wait_seconds_total{wait="EXTRACT"}[1m])',
    answer: {
      [per('device="cpu:0",wait="EXTRACT"')]: 0.125,
      [per('device="cpu:1",wait="EXTRACT"')]: 0.125,
    },
  },
  {
    expr: 'rate(gnnd_queue_wait_seconds_sum[1m])',
    answer: { [per('side="DEQUEUE"')]: 0.1, [per('side="ENQUEUE"')]: 0 },
  },
  { expr: 'gnnd_queue_depth_batches / gnnd_queue_capacity_batches', answer: { [job]: 0.5 } },
  { expr: 'gnnd_placement_k', answer: { [`gnnd_placement_k{${job}`]: 2 } },
  {
    expr: 'gnnd_sampler_batch_seconds',
    answer: { [`gnnd_sampler_batch_seconds{${job}`]: 0.01 },
  },
  {
    expr: 'gnnd_trainer_batch_seconds',
    answer: { [`gnnd_trainer_batch_seconds{${job}`]: 0.02 },
  },
  {
    expr: 'gnnd_measured_batch_seconds',
    answer: { [`gnnd_measured_batch_seconds{${job}`]: 0.021 },
  },
  {
    expr: 'gnnd_predicted_batch_seconds',
    answer: { [`gnnd_predicted_batch_seconds{${job}`]: 0.02 },
  },
  {
    expr: 'rate(gnnd_role_switches_total[1m])',
    answer: {
      [per('from="SAMPLER",to="STANDBY"')]: 1,
      [per('from="STANDBY",to="SAMPLER"')]: 0,
    },
  },
  {
    expr: 'sum by (outcome) (rate(gnnd_standby_wakeups_total[1m]))',
    answer: { '*outcome="USEFUL"': 1, '*outcome="EMPTY"': 0 },
  },
  {
    expr: 'gnnd_standby_profit_seconds',
    answer: { [`gnnd_standby_profit_seconds{${job}`]: 0.375 },
  },
  {
    expr: 'increase(gnnd_executor_exits_total{outcome!="expected"}[10m]) > 0',
    answer: { 'role="TRAINER",outcome="crashed"': 1 },
  },
  {
    expr: 'increase(gnnd_executor_exit_reasons_total[10m]) > 0',
    answer: { 'reason="EXECUTOR_CRASHED"': 1 },
  },
  { expr: 'gnnd_executor_heartbeat_age_seconds > 30', answer: {} },
  {
    expr:
      'time() - gnnd_job_last_progress_timestamp_seconds and ' +
      'on (instance, job_slot) gnnd_job_phase{phase="TRAINING"} == 1',
    answer: { [job]: 40 },
  },
  {
    expr: 'sum by (reason) (increase(gnnd_job_ends_total{state="FAILED"}[1h])) > 0',
    answer: { '*reason="RUN_TIMEOUT"': 1 },
  },
  { expr: 'rate(gnnd_evaluated_rows_total[1m])', answer: { 'job_slot="0"': 20 } },
  { expr: 'gnnd_propagations_running', answer: { 'gnnd_propagations_running{': 2 } },
  { expr: 'gnnd_propagation_done_ratio', answer: { 'gnnd_propagation_done_ratio{': 0.5 } },
  {
    expr:
      'increase(gnnd_propagation_hops_total[1h]) / ' +
      'increase(gnnd_propagation_seconds_total[1h])',
    answer: { '': 0.75 },
  },
  { expr: 'increase(gnnd_propagation_bytes_total[1h])', answer: { '': 4000 } },
  { expr: 'increase(gnnd_propagation_device_hops_total[1h])', answer: { '': 2 } },
  {
    expr: 'increase(gnnd_propagation_ends_total{outcome="FAILED"}[1h]) > 0',
    answer: { 'outcome="FAILED"': 1 },
  },
  { expr: 'gnnd_ready', answer: { 'gnnd_ready{': 1 } },
  { expr: 'rate(gnnd_store_errors_total[5m]) > 0', answer: { 'code="FULL"': 1 / 300 } },
];

/** What promtool has to say, empty if every answer is as expected. */
function ask(series: ReadonlyMap<string, string>, questions: readonly Asked[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'gnnd-queries-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const rules = join(folder, 'rules.yaml');
  writeFileSync(rules, 'groups: []\n');
  const file = join(folder, 'test.yaml');
  const suite = {
    rule_files: [rules],
    evaluation_interval: `${stepSeconds}s`,
    tests: [
      {
        interval: `${stepSeconds}s`,
        input_series: [...series].map(([name, values]) => ({ series: name, values })),
        promql_expr_test: questions.map(({ expr, answer }) => ({
          expr,
          eval_time: `${(steps * stepSeconds) / 60}m`,
          exp_samples: Object.entries(answer).map(([labels, value]) => ({
            labels: fullLabels(labels),
            value,
          })),
        })),
      },
    ],
  };
  writeFileSync(file, stringify(suite, { lineWidth: 0 }));
  const { stdout, stderr, status } = spawnSync('promtool', ['test', 'rules', file], {
    encoding: 'utf8',
  });
  return status === 0 ? '' : `${stdout}${stderr}`;
}

function fullLabels(labels: string): string {
  if (labels.startsWith('*')) return `{${labels.slice(1)}}`;
  const [name, own] = labels.includes('{') ? labels.split('{') : ['', labels];
  const added = Object.entries(scraped).map(([label, value]) => `${label}="${value}"`);
  return `${name}{${[...(own === '' ? [] : [own]), ...added].join(',')}}`;
}

const promtool = spawnSync('promtool', ['--version']).error === undefined;
if (!promtool) process.stderr.write('SKIPPED: queries of docs/metrics.md (no promtool)\n');

describe('the queries of docs/metrics.md', () => {
  const delay = 'gnnd_event_loop_delay_seconds{quantile="0.99"}';

  test('are all tried here', () => {
    expect([...documented()].sort()).toEqual([...asked.map(({ expr }) => expr), delay].sort());
  });

  test.skipIf(!promtool)('answer what they are said to answer', async () => {
    expect(ask(await recording(), asked)).toBe('');
  });

  test.skipIf(!promtool)('find what the daemon measures of itself', async () => {
    const series = await recording();
    const [, value = ''] = [...series].find(([name]) => name.includes('quantile="0.99"')) ?? [];
    const labels = 'gnnd_event_loop_delay_seconds{quantile="0.99"';
    expect(ask(series, [{ expr: delay, answer: { [labels]: Number.parseFloat(value) } }])).toBe('');
  });

  test.skipIf(!promtool)('find an executor that hangs', async () => {
    const [sampler] = jobInput(0, ['cpu:0']).executors;
    if (sampler === undefined) throw new Error('a job has executors');
    const executors = [{ ...sampler, heartbeatAgeSeconds: 45 }];
    const expr = 'gnnd_executor_heartbeat_age_seconds > 30';
    const name = `gnnd_executor_heartbeat_age_seconds{${per('role="SAMPLER"')}`;
    expect(ask(await recording({ executors }), [{ expr, answer: { [name]: 45 } }])).toBe('');
  });

  test.skipIf(!promtool)('find nothing that hangs once a job has ended', async () => {
    const ended = { state: 'SUCCEEDED', phase: null, executors: [] } as const;
    const hangs = asked.filter(({ expr }) => /heartbeat_age|last_progress/.test(expr));
    expect(hangs).toHaveLength(2);
    const questions = hangs.map(({ expr }) => ({ expr, answer: {} }));
    expect(ask(await recording(ended), questions)).toBe('');
  });
});

describe('deploy/monitoring', () => {
  const folder = 'deploy/monitoring';

  test.skipIf(!promtool)('has alerts that fire when they should, and not before', () => {
    for (const args of [
      ['check', 'rules', `${folder}/alerts.yaml`],
      ['test', 'rules', `${folder}/alerts.test.yaml`],
    ]) {
      const { status, stdout, stderr } = spawnSync('promtool', args, { encoding: 'utf8' });
      expect(status, stdout + stderr).toBe(0);
    }
  });

  test('tries each of its alerts', () => {
    const named = (file: string) => readFileSync(`${folder}/${file}`, 'utf8');
    const alerts = [...named('alerts.yaml').matchAll(/- alert: (\w+)/g)].map(([, name]) => name);
    const lines = named('alerts.test.yaml').split('\n');
    const fire = lines.flatMap((line) => /^ {8}alertname: (\w+)$/.exec(line)?.[1] ?? []);
    const quiet = lines.flatMap((line) => /quiet.* alertname: (\w+)/.exec(line)?.[1] ?? []);
    expect([...fire].sort()).toEqual([...alerts].sort());
    expect([...quiet].sort()).toEqual([...alerts].sort());
  });

  test.skipIf(!promtool)('has a dashboard that shows something in each panel', async () => {
    const questions = shownBy(`${folder}/dashboard.mjs`).map((expr) => ({
      expr: `count(${expr}) > bool 0`,
      answer: { '*': 1 },
    }));
    expect(questions.length).toBeGreaterThan(20);
    expect(ask(await recording(), questions)).toBe('');
  });
});

/** All expressions of the dashboard that a program prints, of all hosts and jobs. */
function shownBy(path: string): readonly string[] {
  const { panels } = JSON.parse(execFileSync(process.execPath, [path], { encoding: 'utf8' }));
  const targets: readonly { readonly expr: string }[] = panels.flatMap(
    (panel: { readonly targets?: readonly { readonly expr: string }[] }) => panel.targets ?? [],
  );
  return targets.map(({ expr }) => expr.replace(/\$(instance|gnnd_job)/g, '.*'));
}
