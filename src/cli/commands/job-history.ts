import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Command, Option } from 'commander';
import type { EpochReport } from '../../api/gen/gnnd/v1/epoch_report_pb.ts';
import { JobService } from '../../api/gen/gnnd/v1/job_service_pb.ts';
import { gnnctlExit } from '../../base/exit-codes.ts';
import { counted } from '../../spec/counted.ts';
import { metricNames } from '../../spec/metrics.ts';
import { collectPages } from '../read/pages.ts';
import type { Run } from '../session/run.ts';
import type { Session } from '../session/session.ts';
import { idOf, resourceName } from '../show/job-text.ts';
import { tensorboardEvents } from '../show/tensorboard.ts';

/** `gnnctl job history`: every number of every epoch, for other programs. */
export function addJobHistory(job: Command, run: Run): void {
  job
    .command('history')
    .description('print the metrics of all epochs, or write them for TensorBoard')
    .argument('<job>')
    .addOption(
      new Option('--format <format>', 'of what is printed')
        .choices(['csv', 'jsonl'])
        .default('csv'),
    )
    .option('--tensorboard <folder>', 'write an event file into this folder instead')
    .action(run(jobHistory));
}

interface HistoryFlags {
  readonly format: 'csv' | 'jsonl';
  readonly tensorboard?: string;
}

async function jobHistory(session: Session, given: string, flags: HistoryFlags): Promise<number> {
  const name = resourceName('jobs', given);
  let attempt = 0;
  const { items } = await collectPages(0, async (pageSize, pageToken) => {
    const request = { name, attempt, pageSize, pageToken };
    const page = await session.call(JobService.method.listEpochs, request);
    attempt = page.attempt;
    return { items: page.epochs, nextToken: page.nextPageToken };
  });
  if (flags.tensorboard !== undefined) {
    const folder = join(flags.tensorboard, idOf(name));
    const wallSeconds = session.io.clock.wallMs() / 1000;
    mkdirSync(folder, { recursive: true });
    const path = join(folder, `events.out.tfevents.${Math.floor(wallSeconds)}.gnnd`);
    const others = otherMetrics(items);
    const steps = items.map((report) => ({
      step: report.epoch,
      values: metricsOf(report, others),
    }));
    writeFileSync(path, tensorboardEvents(steps, wallSeconds));
    session.say(
      `wrote ${counted(items.length, 'epoch')}: tensorboard --logdir ${flags.tensorboard}`,
    );
    return gnnctlExit.OK;
  }
  const others = otherMetrics(items);
  const columns = [...columnNames, ...others.map(valColumn)];
  const rows = items.map((report) => Object.fromEntries(columnsOf(report, others)));
  if (flags.format === 'csv') session.print(columns.join(','));
  for (const row of rows) {
    session.print(
      flags.format === 'jsonl'
        ? JSON.stringify(row)
        : columns.map((column) => row[column] ?? '').join(','),
    );
  }
  return gnnctlExit.OK;
}

/** The columns of `Job.records()` of the Python package; null where nothing was measured. */
function columnsOf(
  report: EpochReport,
  others: readonly string[],
): readonly (readonly [string, number | null])[] {
  const values = new Map(report.valMetrics.map(({ name, value }) => [name, value]));
  const isAccuracy = values.size === 0 || values.has('accuracy');
  return [
    ['epoch', report.epoch],
    ['loss', finite(report.loss)],
    // What regresses, or has several labels, has none.
    ['train_accuracy', isAccuracy ? finite(report.trainAccuracy) : null],
    ['val_accuracy', report.valAccuracy === undefined ? null : finite(report.valAccuracy)],
    ['seconds', Number(report.durationMs) / 1000],
    ['batches', Number(report.batches)],
    ['steps', Number(report.steps)],
    ['retries', Number(report.retries)],
    ['version', Number(report.version)],
    ...others.map((name) => [valColumn(name), finite(values.get(name) ?? Number.NaN)] as const),
  ];
}

/** Those beside accuracy that a job has, in the order in which they are shown. */
function otherMetrics(reports: readonly EpochReport[]): readonly string[] {
  const found = new Set(reports.flatMap(({ valMetrics }) => valMetrics.map(({ name }) => name)));
  return metricNames.filter((name) => name !== 'accuracy' && found.has(name));
}

function valColumn(name: string): string {
  return `val_${name}`;
}

const columnNames = [
  ...['epoch', 'loss', 'train_accuracy', 'val_accuracy', 'seconds'],
  ...['batches', 'steps', 'retries', 'version'],
];

function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}

/** What of an epoch is a metric: not its number. */
function metricsOf(
  report: EpochReport,
  others: readonly string[],
): readonly (readonly [string, number])[] {
  return columnsOf(report, others).filter(
    (entry): entry is readonly [string, number] => entry[0] !== 'epoch' && entry[1] !== null,
  );
}
