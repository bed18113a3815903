import type { EpochReport } from '../../api/gen/gnnd/v1/epoch_report_pb.ts';
import type { JobResult } from '../../api/gen/gnnd/v1/job_pb.ts';
import type { JobPlan } from '../../api/gen/gnnd/v1/job_plan_pb.ts';
import { printable, wrap } from '../session/terminal.ts';
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
    `                 reference: ${referencePercent} (10 epochs, one process, S = 0)`,
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
    'The checkpoint in Python:',
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
  return [
    `Devices          ${devices.join(', ')}`,
    `                 T_s ${ns(plan.samplerBatchNs)}, T_t ${ns(plan.trainerBatchNs)} a batch, ` +
      `K = T_t / T_s = ${plan.k.toFixed(2)}`,
    ...ways,
    ...(measured === 0n ? [] : [`                 measured: ${ns(measured)} a batch`]),
    ...wrap(printable(plan.explanation), 83).map((line) => `                 ${line}`),
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

function switchesText(metrics: string): string {
  if (metrics === '') return 'unknown';
  const toStandby = sumOfSeries(metrics, 'gnnd_role_switches_total', { to: 'STANDBY' });
  const back = sumOfSeries(metrics, 'gnnd_role_switches_total', { to: 'SAMPLER' });
  const wakeups = sumOfSeries(metrics, 'gnnd_standby_wakeups_total', {});
  const useful = sumOfSeries(metrics, 'gnnd_standby_wakeups_total', { outcome: 'USEFUL' });
  return (
    `Sampler to standby Trainer ${toStandby}, back ${back}; ` +
    `${wakeups} wake-ups of a standby, ${useful} useful`
  );
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
    'from safetensors.torch import load_file',
    `weights = load_file(${JSON.stringify(path)})`,
    'print({name: tuple(tensor.shape) for name, tensor in weights.items()})',
  ];
}
