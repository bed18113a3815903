import type { EpochReport } from '../../api/gen/gnnd/v1/epoch_report_pb.ts';
import type { JobResult } from '../../api/gen/gnnd/v1/job_pb.ts';
import type { JobPlan } from '../../api/gen/gnnd/v1/job_plan_pb.ts';
import { formatDuration, formatNs, formatPercent } from '../session/units.ts';
import { roleText } from '../show/job-text.ts';
import { wayText } from '../show/plan-view.ts';

/** What the demo says at its end; pure text of what was measured. */
export interface DemoOutcome {
  readonly result: JobResult;
  readonly epochs: readonly EpochReport[];
  readonly plan: JobPlan;
  /** In the format of Prometheus; empty when no scrape succeeded. */
  readonly metrics: string;
  readonly trainingMs: number;
  readonly demoMs: number;
  readonly checkpointFolder: string;
  readonly metricsFile: string;
}

/** Sampled GraphSAGE on this graph, by an independent implementation: mean and deviation. */
const referencePercent = '71.2 ± 0.3 %';
/** The reference less 1.5 points. */
export const accuracyFloor = 0.697;

export function demoReport(outcome: DemoOutcome): readonly string[] {
  const { result, plan, metrics } = outcome;
  const percent = (share: number) => formatPercent(share, 2);
  return [
    `Test accuracy    ${percent(result.testAccuracyBest)} at the best validation ` +
      `(epoch ${result.bestEpoch + 1}), ${percent(result.testAccuracyLast)} at the last epoch`,
    `                 reference: ${referencePercent} (10 epochs, one process)`,
    '',
    ...splitLines(plan),
    '',
    `Batches trained  ${batchesText(outcome.epochs)}`,
    `Switches         ${switchesText(metrics)}`,
    `Wall time        training ${formatDuration(outcome.trainingMs)}, ` +
      `whole demo ${formatDuration(outcome.demoMs)}`,
    '',
    `Checkpoint       ${outcome.checkpointFolder}`,
    `Metrics          ${metrics === '' ? 'none: no scrape succeeded' : outcome.metricsFile}`,
    '',
    'The checkpoint in Python, without any package (safetensors reads it, too):',
    '',
    ...pythonSnippet(`${outcome.checkpointFolder}/last.safetensors`).map((line) => `    ${line}`),
  ];
}

function splitLines(plan: JobPlan): readonly string[] {
  const ns = (value: bigint) => (value === 0n ? 'unknown' : formatNs(Number(value)));
  const devices = plan.executors.map(({ role, device }) => `${roleText(role)} on ${device}`);
  const ways = plan.ways.map(({ way, batchNs }, index) => {
    const mark = index === 0 ? '  <- followed' : '';
    return `                 ${wayText(way).padEnd(20)} predicted ${ns(batchNs)} a batch${mark}`;
  });
  const measured = plan.measurement?.batchNs ?? 0n;
  const sampling = `sampling a batch takes ${ns(plan.samplerBatchNs)}`;
  return [
    `Devices          ${devices.join(', ')}`,
    '                 Samplers draw neighbours, Trainers train; standbys train beside a Sampler',
    `                 ${sampling}, training it ${ns(plan.trainerBatchNs)}`,
    ...ways,
    ...(measured === 0n ? [] : [`                 measured: ${ns(measured)} a batch`]),
  ];
}

function batchesText(epochs: readonly EpochReport[]): string {
  const sums = new Map<string, bigint>();
  for (const { batchesByDevice } of epochs) {
    for (const [device, batches] of Object.entries(batchesByDevice)) {
      sums.set(device, (sums.get(device) ?? 0n) + batches);
    }
  }
  return [...sums].map(([device, batches]) => `${batches} on ${device}`).join(', ') || 'unknown';
}

/** A standby trains on a Sampler's device while that one is ahead. */
function switchesText(metrics: string): string {
  if (metrics === '') return 'unknown';
  const times = sumOfSeries(metrics, 'gnnd_role_switches_total', { to: 'STANDBY' });
  return `${times} times a Sampler was ahead, and its device trained in the meantime`;
}

/** The sum of all series of a family that carry `labels`. */
export function sumOfSeries(
  metrics: string,
  family: string,
  labels: Readonly<Record<string, string>>,
): number {
  let sum = 0;
  for (const line of metrics.split('\n')) {
    const [, name, labelText = '', value] = /^([a-z_]+)(?:\{(.*)\})? (\S+)/.exec(line) ?? [];
    const fits = Object.entries(labels).every(([key, text]) =>
      labelText.split(',').includes(`${key}="${text}"`),
    );
    if (name === family && fits) sum += Number(value);
  }
  return sum;
}

function pythonSnippet(path: string): readonly string[] {
  return [
    'import json',
    `with open(${JSON.stringify(path)}, "rb") as file:`,
    '    header = json.loads(file.read(int.from_bytes(file.read(8), "little")))',
    'print({name: header[name]["shape"] for name in header if name != "__metadata__"})',
  ];
}

/** What to type after the demo, in the clone that it ran in. */
export const nextSteps: readonly string[] = [
  'What to type next:',
  '',
  '    npx gnnctl doctor                     # what this machine has and lacks',
  '    npx gnnd serve &                      # a daemon that stays',
  '    npx gnnctl dataset import FOLDER      # a graph of yours: docs/datasets.md',
  '    npx gnnctl init DATASET               # writes job.yaml, to be changed: docs/job-spec.md',
  '    npx gnnctl job create -f job.yaml',
  '    npx gnnctl page                       # all of it, in a browser',
  '',
  'From Python: docs/first-minutes.md.',
];
