import { create } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { EpochReportSchema } from '../../../src/api/gen/gnnd/v1/epoch_report_pb.ts';
import { ExecutorRole } from '../../../src/api/gen/gnnd/v1/executor_pb.ts';
import { JobResultSchema } from '../../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobPlanSchema, PlanWay } from '../../../src/api/gen/gnnd/v1/job_plan_pb.ts';
import { demoReport, sumOfSeries } from '../../../src/cli/demo/demo-report.ts';

const metrics = [
  '# TYPE gnnd_role_switches_total counter',
  'gnnd_role_switches_total{job_slot="0",from="SAMPLER",to="STANDBY"} 9',
  'gnnd_role_switches_total{job_slot="0",from="STANDBY",to="SAMPLER"} 8',
  'gnnd_standby_wakeups_total{job_slot="0",outcome="USEFUL"} 7',
  'gnnd_standby_wakeups_total{job_slot="0",outcome="EMPTY"} 2',
].join('\n');

test('series are summed by their labels', () => {
  expect(sumOfSeries(metrics, 'gnnd_standby_wakeups_total', {})).toBe(9);
  expect(sumOfSeries(metrics, 'gnnd_standby_wakeups_total', { outcome: 'USEFUL' })).toBe(7);
  expect(sumOfSeries('gnnd_ready 1\n', 'gnnd_ready', {})).toBe(1);
  expect(sumOfSeries(metrics, 'gnnd_other_total', {})).toBe(0);
});

test('the report says what was reached, how devices were split, and where things are', () => {
  const lines = demoReport({
    result: create(JobResultSchema, {
      testAccuracyBest: 0.7131,
      testAccuracyLast: 0.7122,
      bestEpoch: 8,
    }),
    epochs: [1, 2].map(() =>
      create(EpochReportSchema, { batchesByDevice: { 'cpu:0': 4n, 'cpu:1': 30n } }),
    ),
    plan: create(JobPlanSchema, {
      executors: [
        { role: ExecutorRole.SAMPLER, device: 'cpu:0' },
        { role: ExecutorRole.TRAINER, device: 'cpu:1' },
        { role: ExecutorRole.STANDBY, device: 'cpu:0' },
      ],
      samplerBatchNs: 20_000_000n,
      trainerBatchNs: 130_000_000n,
      k: 6.5,
      ways: [
        { way: PlanWay.SWITCHING, samplers: 1, trainers: 1, batchNs: 75_000_000n },
        { way: PlanWay.SPLIT, samplers: 1, trainers: 1, batchNs: 130_000_000n },
      ],
      measurement: { batchNs: 77_000_000n, epochs: 9 },
      explanation: 'Both policies choose the same split.',
    }),
    metrics,
    trainingMs: 61_000,
    demoMs: 95_000,
    checkpointFolder: '.cache/demo/checkpoint',
    metricsFile: '.cache/demo/metrics.txt',
  });
  expect(lines).toEqual([
    'Test accuracy    71.31 % at the best validation (epoch 9), 71.22 % at the last epoch',
    '                 reference: 71.2 ± 0.3 % (10 epochs, one process)',
    '',
    'Devices          Sampler on cpu:0, Trainer on cpu:1, standby on cpu:0',
    '                 Samplers draw neighbours, Trainers train; standbys train beside a Sampler',
    '                 sampling a batch takes 20.0 ms, training it 130 ms',
    '                 split with switching predicted 75.0 ms a batch  <- followed',
    '                 split                predicted 130 ms a batch',
    '                 measured: 77.0 ms a batch',
    '',
    'Batches trained  8 on cpu:0, 60 on cpu:1',
    'Switches         9 times a Sampler was ahead, and its device trained in the meantime',
    'Wall time        training 1m 01s, whole demo 1m 35s',
    '',
    'Checkpoint       .cache/demo/checkpoint',
    'Metrics          .cache/demo/metrics.txt',
    '',
    'The checkpoint in Python, without any package (safetensors reads it, too):',
    '',
    '    import json',
    '    with open(".cache/demo/checkpoint/last.safetensors", "rb") as file:',
    '        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))',
    '    print({name: header[name]["shape"] for name in header if name != "__metadata__"})',
  ]);
});
