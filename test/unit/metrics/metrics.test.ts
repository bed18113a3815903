import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { stageBounds, waitBounds } from '../../../src/metrics/families.ts';
import { createMetrics, type Metrics } from '../../../src/metrics/metrics.ts';
import { jobStates } from '../../../src/records/job-record.ts';
import type { StoreObservation } from '../../../src/store/store.ts';
import { deviceNames, hostInput, jobInput, options } from './job-input.ts';

function testMetrics(): Metrics {
  const metrics = createMetrics(options);
  onTestFinished(() => metrics.close());
  return metrics;
}

/** Value by series, as written; comments left out. */
async function scrape(metrics: Metrics): Promise<Map<string, string>> {
  const text = await metrics.render('PROMETHEUS');
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice(0, at), line.slice(at + 1)];
    }),
  );
}

function ofSlot(series: Map<string, string>, slot: number): string[] {
  return [...series.keys()].filter((name) => name.includes(`job_slot="${slot}"`));
}

describe('metrics of the daemon', () => {
  test('counters with listed labels are there at zero before anything happened', async () => {
    const series = await scrape(testMetrics());
    for (const to of jobStates) {
      expect(series.get(`gnnd_job_transitions_total{to="${to}"}`)).toBe('0');
    }
    expect(series.get('gnnd_job_ends_total{state="FAILED",reason="EXECUTOR_STALLED"}')).toBe('0');
    expect(series.get('gnnd_api_errors_total{reason="SPEC_INVALID"}')).toBe('0');
    expect(series.get('gnnd_executor_exits_total{role="SAMPLER",outcome="crashed"}')).toBe('0');
    const call = 'grpc_service="gnnd.v1.JobService",grpc_method="CreateJob",grpc_type="unary"';
    expect(series.get(`grpc_server_handled_total{${call},grpc_code="DataLoss"}`)).toBe('0');
    expect(series.get(`grpc_server_handling_seconds_count{${call}}`)).toBe('0');
    expect(ofSlot(series, 0)).toEqual([]);
  });

  test('what happened is counted where it belongs', async () => {
    const metrics = testMetrics();
    metrics.jobTransitioned({
      to: 'PREPARING',
      reason: 'NONE',
      pendingSeconds: 4,
      durationSeconds: null,
    });
    metrics.jobTransitioned({
      to: 'FAILED',
      reason: 'RUN_TIMEOUT',
      pendingSeconds: null,
      durationSeconds: 4000,
    });
    metrics.executorStarted('TRAINER');
    metrics.executorExited({ role: 'TRAINER', outcome: 'crashed', reason: 'EXECUTOR_CRASHED' });
    metrics.apiError('JOB_EXISTS');
    metrics.requestReplayed('CreateJob');
    metrics.checkpointTook(0.5);
    metrics.propagationsRun([0.5, 1]);
    metrics.propagationEnded({
      outcome: 'COMPLETE',
      seconds: 2,
      hops: 3,
      deviceHops: 2,
      bytes: 4096,
    });
    const observation: StoreObservation = { op: 'TRANSITION', seconds: 0.003, error: 'FULL' };
    metrics.observeStore(observation);
    const series = await scrape(metrics);
    const values = {
      'gnnd_job_transitions_total{to="FAILED"}': '1',
      'gnnd_job_ends_total{state="FAILED",reason="RUN_TIMEOUT"}': '1',
      'gnnd_job_pending_seconds_bucket{le="2.0"}': '0',
      'gnnd_job_pending_seconds_bucket{le="5.0"}': '1',
      gnnd_job_pending_seconds_sum: '4',
      'gnnd_job_duration_seconds_bucket{state="FAILED",le="3600.0"}': '0',
      'gnnd_job_duration_seconds_bucket{state="FAILED",le="+Inf"}': '1',
      'gnnd_executor_starts_total{role="TRAINER"}': '1',
      'gnnd_executor_exits_total{role="TRAINER",outcome="crashed"}': '1',
      'gnnd_executor_exit_reasons_total{reason="EXECUTOR_CRASHED"}': '1',
      'gnnd_api_errors_total{reason="JOB_EXISTS"}': '1',
      'gnnd_api_replayed_requests_total{method="CreateJob"}': '1',
      gnnd_checkpoint_duration_seconds_count: '1',
      gnnd_propagations_running: '2',
      gnnd_propagation_done_ratio: '0.75',
      'gnnd_propagation_ends_total{outcome="COMPLETE"}': '1',
      gnnd_propagation_seconds_total: '2',
      gnnd_propagation_hops_total: '3',
      gnnd_propagation_device_hops_total: '2',
      gnnd_propagation_bytes_total: '4096',
      'gnnd_store_transaction_duration_seconds_bucket{op="TRANSITION",le="0.0025"}': '0',
      'gnnd_store_transaction_duration_seconds_bucket{op="TRANSITION",le="0.005"}': '1',
      'gnnd_store_errors_total{code="FULL"}': '1',
    };
    for (const [name, value] of Object.entries(values))
      expect([name, series.get(name)]).toEqual([name, value]);
  });

  test('calls are counted by method and code, and only unary ones have a duration', async () => {
    const metrics = testMetrics();
    const unary = { service: 'gnnd.v1.JobService', method: 'CreateJob', type: 'unary' } as const;
    const stream = { ...unary, method: 'WatchJob', type: 'server_stream' } as const;
    metrics.observeGrpc({ ...unary, kind: 'started' });
    metrics.observeGrpc({ ...unary, kind: 'received' });
    metrics.observeGrpc({ ...unary, kind: 'handled', code: 'InvalidArgument', seconds: 0.002 });
    metrics.observeGrpc({ ...stream, kind: 'sent' });
    metrics.observeGrpc({ ...stream, kind: 'handled', code: 'OK', seconds: 60 });
    const series = await scrape(metrics);
    const create = 'grpc_service="gnnd.v1.JobService",grpc_method="CreateJob",grpc_type="unary"';
    const watch =
      'grpc_service="gnnd.v1.JobService",grpc_method="WatchJob",grpc_type="server_stream"';
    expect(series.get(`grpc_server_started_total{${create}}`)).toBe('1');
    expect(series.get(`grpc_server_msg_received_total{${create}}`)).toBe('1');
    expect(series.get(`grpc_server_handled_total{${create},grpc_code="InvalidArgument"}`)).toBe(
      '1',
    );
    expect(series.get(`grpc_server_handling_seconds_count{${create}}`)).toBe('1');
    expect(series.get(`grpc_server_msg_sent_total{${watch}}`)).toBe('1');
    expect(series.get(`grpc_server_handled_total{${watch},grpc_code="OK"}`)).toBe('1');
    expect(series.has(`grpc_server_handling_seconds_count{${watch}}`)).toBe(false);
  });

  test('the host is shown as it was last described', async () => {
    const metrics = testMetrics();
    metrics.updateHost(hostInput(['cpu:0']));
    metrics.updateHost({ ...hostInput(['cpu:0']), watches: 5 });
    const series = await scrape(metrics);
    expect(series.get('gnnd_ready')).toBe('1');
    expect(series.get('gnnd_watches')).toBe('5');
    expect(series.get('gnnd_jobs{state="SUCCEEDED"}')).toBe('3');
    expect(series.get('gnnd_shm_segments{kind="JOB"}')).toBe('2');
    expect(series.get('gnnd_shm_bytes{kind="JOB"}')).toBe('150');
    expect(series.get('gnnd_device_state{device="cpu:0",state="ALLOCATED"}')).toBe('1');
    expect(series.get('gnnd_device_state{device="cpu:0",state="FREE"}')).toBe('0');
    const info = [...series.keys()].find((name) => name.startsWith('gnnd_device_info'));
    expect(info).toContain('model="a \\"quoted\\" \\\\ model"');
  });

  test('scrape listeners run before each rendering; the caller hears what they throw', async () => {
    const metrics = testMetrics();
    let watches = 0;
    const stop = metrics.onScrape(() =>
      metrics.updateHost({ ...hostInput([]), watches: ++watches }),
    );
    await scrape(metrics);
    expect((await scrape(metrics)).get('gnnd_watches')).toBe('2');
    stop();
    metrics.onScrape(() => {
      throw new Error('no counters');
    });
    await expect(metrics.render('PROMETHEUS')).rejects.toThrow('no counters');
    expect(watches).toBe(2);
  });
});

describe('metrics of a job', () => {
  test('the numbers of a job appear under its slot', async () => {
    const metrics = testMetrics();
    metrics.updateJob(jobInput(1, deviceNames(2)));
    metrics.epochEnded(1, 15);
    metrics.updateJob(jobInput(1, deviceNames(2)));
    const series = await scrape(metrics);
    const values = {
      'gnnd_job_info{job_slot="1",gnnd_job="job-1",uid="uid-1",dataset="cora",model="GRAPHSAGE"}':
        '1',
      'gnnd_job_state{job_slot="1",state="RUNNING"}': '1',
      'gnnd_job_state{job_slot="1",state="PENDING"}': '0',
      'gnnd_job_phase{job_slot="1",phase="TRAINING"}': '1',
      'gnnd_job_last_progress_timestamp_seconds{job_slot="1"}': '1700000001.5',
      'gnnd_batches_total{job_slot="1",event="REDELIVERED"}': '2',
      'gnnd_batches_total{job_slot="1",event="PREFETCHED"}': '12',
      'gnnd_wait_seconds_total{job_slot="1",device="cpu:0",wait="EXTRACT"}': '0.5',
      'gnnd_sampled_nodes_total{job_slot="1"}': '6789',
      'gnnd_stage_seconds_total{job_slot="1",device="cpu:1",stage="T"}': '1.25',
      'gnnd_epoch_duration_seconds_bucket{job_slot="1",le="20.0"}': '1',
      'gnnd_epoch_duration_seconds_count{job_slot="1"}': '1',
      'gnnd_eval_metric{job_slot="1",split="VAL",metric="ACCURACY"}': '0.5',
      'gnnd_eval_metric{job_slot="1",split="VAL",metric="MACRO_F1"}': '0.375',
      'gnnd_eval_metric{job_slot="1",split="TEST",metric="MAE"}': '1.25',
      'gnnd_queue_ops_total{job_slot="1",side="DEQUEUE",result="OK"}': '30',
      'gnnd_standby_profit_seconds{job_slot="1"}': '0.375',
      'gnnd_job_remaining_seconds{job_slot="1"}': '90',
      'gnnd_executors{job_slot="1",role="TRAINER"}': '1',
      'gnnd_executor_role{job_slot="1",device="cpu:0",role="STANDBY"}': '1',
      'gnnd_executor_role{job_slot="1",device="cpu:0",role="SAMPLER"}': '0',
      'gnnd_executor_heartbeat_age_seconds{job_slot="1",role="TRAINER"}': '1.5',
      'gnnd_executor_cpu_seconds_total{job_slot="1",role="STANDBY"}': '5',
      'gnnd_role_switches_total{job_slot="1",from="SAMPLER",to="STANDBY"}': '2',
      'gnnd_checkpoints_total{job_slot="1",result="OK",cause="FINAL"}': '1',
    };
    for (const [name, value] of Object.entries(values))
      expect([name, series.get(name)]).toEqual([name, value]);
  });

  test('counts of executors become cumulative, and a stage without any is at zero', async () => {
    const metrics = testMetrics();
    metrics.updateJob(jobInput(0, ['cpu:0']));
    const series = await scrape(metrics);
    const buckets = [...series]
      .filter(([name]) =>
        name.startsWith('gnnd_stage_duration_seconds_bucket{job_slot="0",stage="S"'),
      )
      .map(([, value]) => Number(value));
    expect(buckets).toEqual(Array.from({ length: stageBounds.length + 1 }, (_, i) => i + 1));
    expect(series.get('gnnd_stage_duration_seconds_sum{job_slot="0",stage="S"}')).toBe('3.5');
    expect(series.get('gnnd_stage_duration_seconds_count{job_slot="0",stage="S"}')).toBe('16');
    expect(series.get('gnnd_stage_duration_seconds_count{job_slot="0",stage="T"}')).toBe('0');
  });

  test('counts that do not fit the buckets are refused', () => {
    const input = jobInput(0, ['cpu:0']);
    const short = { ...input, stageDurations: { S: { counts: [1, 2], sum: 1 } } };
    expect(() => testMetrics().updateJob(short)).toThrow(/has 16 buckets, got 2 counts/);
  });

  test('what is not known yet has no series', async () => {
    const metrics = testMetrics();
    metrics.updateJob({
      ...jobInput(0, []),
      lastProgressAtMs: null,
      remainingSeconds: null,
      evaluation: null,
      loss: null,
      evaluated: {},
      placement: null,
    });
    const names = ofSlot(await scrape(metrics), 0);
    const absent = [
      'last_progress',
      'remaining_seconds',
      'gnnd_evaluation',
      'gnnd_loss',
      'gnnd_eval_metric',
      'gnnd_placement_k',
      'profit',
    ];
    for (const part of absent) expect(names.filter((name) => name.includes(part))).toEqual([]);
  });

  test('a device that a job no longer uses leaves no series', async () => {
    const metrics = testMetrics();
    metrics.updateJob(jobInput(0, ['cpu:0', 'cpu:1']));
    metrics.updateJob(jobInput(0, ['cpu:0']));
    const names = ofSlot(await scrape(metrics), 0);
    expect(names.filter((name) => name.includes('cpu:1'))).toEqual([]);
  });

  test('a released slot leaves no series, and its next job starts at zero', async () => {
    const metrics = testMetrics();
    metrics.updateJob(jobInput(0, ['cpu:0']));
    metrics.updateJob(jobInput(1, ['cpu:1']));
    metrics.epochEnded(0, 1);
    metrics.releaseSlot(0);
    const released = await scrape(metrics);
    expect(ofSlot(released, 0)).toEqual([]);
    expect(ofSlot(released, 1).length).toBeGreaterThan(100);
    metrics.updateJob(jobInput(0, ['cpu:0']));
    const again = await scrape(metrics);
    expect(again.get('gnnd_epoch_duration_seconds_count{job_slot="0"}')).toBe('0');
  });

  test('the number of series stays bounded with all slots and eight devices in use', async () => {
    const metrics = testMetrics();
    metrics.updateHost(hostInput(deviceNames(8)));
    // Each job on all devices: more than any plan gives.
    for (let slot = 0; slot < 4; slot++) metrics.updateJob(jobInput(slot, deviceNames(8)));
    expect((await scrape(metrics)).size).toBeLessThan(8000);
  });

  test('the buckets are those of the job segment', () => {
    const header = readFileSync('native/core/ledger/layout.h', 'utf8');
    const seconds = (constant: string) => {
      const list = new RegExp(`${constant}\\[\\] = \\{([^}]*)\\}`).exec(header)?.[1] ?? '';
      return list.split(',').map((ns) => Number(ns.replaceAll("'", '').trim()) / 1e9);
    };
    expect(seconds('kStageBoundsNs')).toEqual(stageBounds);
    expect(seconds('kWaitBoundsNs')).toEqual(waitBounds);
  });
});

describe('the text of metrics', () => {
  function fullMetrics(): Metrics {
    const metrics = testMetrics();
    metrics.updateHost(hostInput(deviceNames(2)));
    metrics.updateJob(jobInput(0, deviceNames(2)));
    return metrics;
  }

  const promtool = spawnSync('promtool', ['--version']).error === undefined;
  test.skipIf(!promtool)(
    `promtool accepts it${promtool ? '' : ' (SKIPPED: promtool is not installed)'}`,
    async () => {
      const input = await fullMetrics().render('PROMETHEUS');
      const checked = spawnSync('promtool', ['check', 'metrics'], { input, encoding: 'utf8' });
      expect(checked.stdout + checked.stderr).toBe('');
      expect(checked.status).toBe(0);
    },
  );

  test('OpenMetrics names families of counters without suffix and ends with EOF', async () => {
    const text = await fullMetrics().render('OPENMETRICS');
    expect(text).toContain('# TYPE gnnd_steps counter\n');
    expect(text).toContain('\ngnnd_steps_total{job_slot="0"} 29\n');
    expect(text).toContain('# TYPE process_cpu_seconds counter\n');
    expect(text.endsWith('\n# EOF\n')).toBe(true);
    expect(text).not.toContain('\n\n');
    // The same counters still have their suffix in the other format afterwards.
    expect(await fullMetrics().render('PROMETHEUS')).toContain('# TYPE gnnd_steps_total counter');
  });

  test('every sample belongs to the family above it, and no series comes twice', async () => {
    const text = await fullMetrics().render('PROMETHEUS');
    const seen = new Set<string>();
    let family = '';
    for (const line of text.trimEnd().split('\n')) {
      const type = /^# TYPE (\S+) \S+$/.exec(line);
      if (type !== null) family = type[1] ?? '';
      if (line.startsWith('#')) continue;
      const series = /^([a-z0-9_]+(?:\{.*\})?) (?:[0-9.e+-]+|NaN|[+-]Inf)$/.exec(line)?.[1] ?? '';
      expect(series.startsWith(family), line).toBe(true);
      expect(seen.has(series), line).toBe(false);
      seen.add(series);
    }
    expect(seen.size).toBeGreaterThan(500);
  });
});
