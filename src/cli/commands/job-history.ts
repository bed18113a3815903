import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { type Command, Option } from 'commander';
import { type EpochReport, EpochReportSchema } from '../../api/gen/gnnd/v1/epoch_report_pb.ts';
import { JobService } from '../../api/gen/gnnd/v1/job_service_pb.ts';
import { makeFolder } from '../../base/atomic-file.ts';
import { gnnctlExit } from '../../base/exit-codes.ts';
import { counted } from '../../spec/counted.ts';
import { baseNameOf, metricNames } from '../../spec/metrics.ts';
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
    makeFolder(folder, 0o777);
    const path = join(folder, `events.out.tfevents.${Math.floor(wallSeconds)}.gnnd`);
    const metrics = metricsIn(items);
    const steps = items.map((report) => ({
      step: report.epoch,
      values: pointsOf(report, metrics),
    }));
    writeFileSync(path, tensorboardEvents(steps, wallSeconds));
    session.say(
      `wrote ${counted(items.length, 'epoch')}: tensorboard --logdir ${flags.tensorboard}`,
    );
    return gnnctlExit.OK;
  }
  const metrics = metricsIn(items);
  const rows = items.map((report) => Object.fromEntries(columnsOf(report, metrics)));
  const columns = columnsOf(create(EpochReportSchema), metrics).map(([column]) => column);
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
  { isAccuracy, others }: Metrics,
): readonly (readonly [string, number | null])[] {
  const values = new Map(report.valMetrics.map(({ name, value }) => [name, value]));
  const accuracies = [
    ['train_accuracy', finite(report.trainAccuracy)],
    ['val_accuracy', report.valAccuracy === undefined ? null : finite(report.valAccuracy)],
  ] as const;
  return [
    ['epoch', report.epoch],
    ['loss', finite(report.loss)],
    ...(isAccuracy ? accuracies : []),
    ['seconds', Number(report.durationMs) / 1000],
    ['batches', Number(report.batches)],
    ['steps', Number(report.steps)],
    ['retries', Number(report.retries)],
    ['version', Number(report.version)],
    ...others.map((name) => [`val_${name}`, finite(values.get(name) ?? Number.NaN)] as const),
  ];
}

/** What a job's epochs were measured by. */
interface Metrics {
  /** False for jobs that regress or have several labels: they have no accuracy. */
  readonly isAccuracy: boolean;
  /** Beside accuracy, in the order in which they are shown. */
  readonly others: readonly string[];
}

const names: readonly string[] = metricNames;

function metricsIn(reports: readonly EpochReport[]): Metrics {
  const found = new Set(reports.flatMap(({ valMetrics }) => valMetrics.map(({ name }) => name)));
  const placeOf = (name: string) => names.indexOf(baseNameOf(name));
  const others = [...found]
    .filter((name) => name !== 'accuracy')
    .sort((one, other) => placeOf(one) - placeOf(other));
  return { isAccuracy: found.size === 0 || found.has('accuracy'), others };
}

function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}

/** What of an epoch is a point of a curve: not its number. */
function pointsOf(report: EpochReport, metrics: Metrics): readonly (readonly [string, number])[] {
  return columnsOf(report, metrics).filter(
    (entry): entry is readonly [string, number] => entry[0] !== 'epoch' && entry[1] !== null,
  );
}
