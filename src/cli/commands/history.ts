import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { clone, create } from '@bufbuild/protobuf';
import type { Command } from 'commander';
import { stringify } from 'yaml';
import { HistorySpecSchema } from '../../api/gen/gnnd/v1/history_pb.ts';
import { type Job, JobState } from '../../api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../api/gen/gnnd/v1/job_service_pb.ts';
import { type JobSpec, JobSpecSchema } from '../../api/gen/gnnd/v1/job_spec_pb.ts';
import { TrainingSpecSchema } from '../../api/gen/gnnd/v1/training_pb.ts';
import { gnnctlExit } from '../../base/exit-codes.ts';
import { formatCount } from '../../spec/counted.ts';
import {
  isError,
  type Metric,
  metricPhrase,
  metricText,
  metricTitle,
  testMetricsOf,
} from '../../spec/metrics.ts';
import { numbersOf, usage } from '../read/flags.ts';
import { CliError } from '../session/exit.ts';
import type { Run } from '../session/run.ts';
import type { Session } from '../session/session.ts';
import { formatPercent } from '../session/units.ts';
import { givenUpRowsOf } from '../show/job-view.ts';
import { type Column, tableOf } from '../show/output.ts';
import { type Chart, type Range, svgOf } from '../show/svg.ts';
import { readSpecFile } from './job-create.ts';
import { endOf } from './job-watch.ts';

/** `gnnctl history ...`. */
export function addHistoryCommands(program: Command, run: Run): void {
  program
    .command('history')
    .description('embeddings that jobs keep and read again')
    .command('report')
    .description('train a job with and without history and compare what is read, and how well')
    .option('-f, --file <file>', 'spec in YAML or JSON; - reads stdin')
    .option(
      '--set <path=value>',
      'set a field over the file; again for more',
      (value: string, before: readonly string[]) => [...before, value],
      [],
    )
    .option('--gradient-shares <list>', 'each p_grad to try (default 0.5,0.9,1)')
    .option('--stale-steps <list>', 'each t_stale to try (default 10,50,200)')
    .option('--random-seeds <list>', 'one training each (default 0)')
    .option('--svg <file>', 'also draw into a file')
    .action(run(reportHistory));
}

interface ReportFlags {
  readonly file?: string;
  readonly set: readonly string[];
  readonly gradientShares?: string;
  readonly staleSteps?: string;
  readonly randomSeeds?: string;
  readonly svg?: string;
}

/** Means over random seeds. `gradientShare` 0 and `staleSteps` 0 are the job without history. */
export interface HistoryCell {
  readonly gradientShare: number;
  readonly staleSteps: number;
  /** The deciding metric of the test nodes at the best epoch. */
  readonly test: Metric;
  /** Feature rows that batches would read without a cache and without history. */
  readonly wantedRows: number;
  /** What was not read from the host's memory or disk, as a share of these. */
  readonly saving: number;
  /** Rows found, as a share of those looked for. */
  readonly hitRate: number;
  /**
   * For rows that were computed although an older embedding was there: their cosine similarity to
   * it, the share of which it is at least 0.8, and how many steps older it was. Null: there were
   * none.
   */
  readonly cosine: number | null;
  readonly similarShare: number | null;
  readonly lagSteps: number | null;
  /** Cached feature rows whose place embeddings took, of the cache that lost most. */
  readonly givenUpRows: number;
  /** Shares of Trainers' time in batches: look-up with pruning, and admission. */
  readonly pruneShare: number;
  readonly updateShare: number;
  /** Trainers' time in batches, beside that of the job without history. */
  readonly stepRatio: number;
}

const listOr = (option: string, given: string | undefined, otherwise: readonly number[]) =>
  given === undefined ? otherwise : numbersOf(option, given);

async function reportHistory(session: Session, flags: ReportFlags): Promise<number> {
  const { spec } = await readSpecFile(session, flags);
  const shares = listOr('--gradient-shares', flags.gradientShares, [0.5, 0.9, 1]);
  const ages = listOr('--stale-steps', flags.staleSteps, [10, 50, 200]);
  const seeds = listOr('--random-seeds', flags.randomSeeds, [0]);
  for (const age of ages) {
    if (!Number.isInteger(age) || age < 1) {
      throw usage('--stale-steps', flags.staleSteps ?? '', 'whole numbers above 0');
    }
  }
  const total = (1 + shares.length * ages.length) * seeds.length;
  let ended = 0;
  const train = async (gradientShare: number, staleSteps: number) => {
    const jobs: Job[] = [];
    for (const seed of seeds) {
      const wanted = clone(JobSpecSchema, create(JobSpecSchema, spec));
      wanted.history ??= create(HistorySpecSchema);
      wanted.history.gradientShare = gradientShare;
      wanted.history.staleSteps = BigInt(staleSteps);
      wanted.training ??= create(TrainingSpecSchema);
      wanted.training.randomSeed = BigInt(seed);
      const job = await trained(session, wanted);
      jobs.push(job);
      ended += 1;
      const history =
        staleSteps === 0 ? 'no history' : `p_grad ${gradientShare}, t_stale ${staleSteps}`;
      const what = `${history}, random seed ${seed}: ${metricPhrase('test', testOf([job]))}`;
      session.say(`job ${ended} of ${total}: ${what}`);
    }
    return sumsOf(jobs);
  };
  const plain = await train(0, 0);
  const cells = [cellOf({ gradientShare: 0, staleSteps: 0 }, plain, plain)];
  for (const gradientShare of shares) {
    for (const staleSteps of ages) {
      const sums = await train(gradientShare, staleSteps);
      cells.push(cellOf({ gradientShare, staleSteps }, sums, plain));
    }
  }
  if (flags.svg !== undefined) {
    writeFileSync(flags.svg, svgOf(historyCharts(spec.dataset ?? '', cells)));
    session.say(`drawn into ${flags.svg}`);
  }
  printCells(session, { dataset: spec.dataset ?? '', randomSeeds: seeds, cells });
  return gnnctlExit.OK;
}

async function trained(session: Session, spec: JobSpec): Promise<Job> {
  const requestId = randomUUID();
  const request = { jobId: '', spec, validateOnly: false, requestId };
  const created = await session.call(JobService.method.createJob, request);
  const { job } = await endOf(session, created.name, 'silent');
  if (job.state !== JobState.SUCCEEDED) {
    throw new CliError(gnnctlExit.JOB_FAILED, `${job.name} did not succeed: ${job.message}`);
  }
  return await session.call(JobService.method.getJob, { name: job.name });
}

interface Sums {
  readonly test: Metric;
  readonly cached: number;
  readonly read: number;
  readonly pruned: number;
  readonly lookups: number;
  readonly hits: number;
  readonly compared: number;
  readonly similar: number;
  readonly cosine: number;
  readonly lag: number;
  /** Mean over the jobs. */
  readonly givenUp: number;
  readonly pruneNs: number;
  readonly historyNs: number;
  readonly batchNs: number;
}

/** The mean over jobs of what decides; 0 where there are no test nodes. */
function testOf(jobs: readonly Job[]): Metric {
  const found = jobs.flatMap(({ result }) => (result && testMetricsOf(result).best) ?? []);
  return { name: found[0]?.name ?? 'accuracy', value: mean(found.map(({ value }) => value)) };
}

/** Sums over all epochs of the jobs; `test` and `givenUp` are means over the jobs. */
export function sumsOf(jobs: readonly Job[]): Sums {
  const times = jobs.flatMap(({ epochs }) => epochs.flatMap((epoch) => epoch.executorTimes));
  const sum = (of: (one: (typeof times)[number]) => bigint | number) =>
    times.reduce((total, one) => total + Number(of(one)), 0);
  return {
    test: testOf(jobs),
    cached: sum(({ cachedRows }) => cachedRows),
    read: sum(({ peerRows, readRows }) => peerRows + readRows),
    pruned: sum(({ prunedRows }) => prunedRows),
    lookups: sum(({ historyLookups }) => historyLookups),
    hits: sum(({ historyHits }) => historyHits),
    compared: sum(({ historyCompared }) => historyCompared),
    similar: sum(({ historySimilar }) => historySimilar),
    cosine: sum(({ historyCosine }) => historyCosine),
    lag: sum(({ historyLag }) => historyLag),
    givenUp: mean(jobs.map(({ epochs }) => Math.max(0, ...epochs.map(givenUpRowsOf)))),
    pruneNs: sum(({ pruneNs }) => pruneNs),
    historyNs: sum(({ historyNs }) => historyNs),
    batchNs: sum((one) => one.pruneNs + one.extractNs + one.trainNs),
  };
}

function mean(values: readonly number[]): number {
  return values.reduce((total, one) => total + one, 0) / Math.max(1, values.length);
}

export function cellOf(
  setting: Pick<HistoryCell, 'gradientShare' | 'staleSteps'>,
  sums: Sums,
  plain: Sums,
): HistoryCell {
  const { test, cached, read, pruned, lookups, hits, pruneNs, historyNs, batchNs } = sums;
  const share = (part: number, whole: number) => (whole === 0 ? 0 : part / whole);
  const ofCompared = (part: number) => (sums.compared === 0 ? null : part / sums.compared);
  const wantedRows = cached + read + pruned;
  return {
    ...setting,
    test,
    wantedRows,
    saving: share(wantedRows - read, wantedRows),
    hitRate: share(hits, lookups),
    cosine: ofCompared(sums.cosine),
    similarShare: ofCompared(sums.similar),
    lagSteps: ofCompared(sums.lag),
    givenUpRows: sums.givenUp,
    pruneShare: share(pruneNs, batchNs),
    updateShare: share(historyNs, batchNs),
    stepRatio: share(batchNs, plain.batchNs),
  };
}

function right(
  title: string,
  of: (cell: HistoryCell) => number | null,
  format: (value: number) => string = formatPercent,
): Column<HistoryCell> {
  return {
    title,
    align: 'right',
    shown: (cell) => {
      const value = of(cell);
      return value === null ? '-' : format(value);
    },
    plain: (cell) => String(of(cell) ?? ''),
  };
}

const columnsOf = (metric: string): readonly Column<HistoryCell>[] => [
  {
    title: 'P_GRAD',
    shown: ({ gradientShare }) => (gradientShare === 0 ? 'off' : String(gradientShare)),
  },
  right('T_STALE', ({ staleSteps }) => staleSteps, formatCount),
  right(
    metricTitle(metric).toUpperCase(),
    ({ test }) => test.value,
    (value) => metricText({ name: metric, value }),
  ),
  right('I/O SAVED', ({ saving }) => saving),
  right('HITS', ({ hitRate }) => hitRate),
  right('SIMILAR', ({ similarShare }) => similarShare),
  right(
    'LAG',
    ({ lagSteps }) => lagSteps,
    (steps) => steps.toFixed(1),
  ),
  right('GIVEN UP', ({ givenUpRows }) => Math.round(givenUpRows), formatCount),
  right('PRUNE', ({ pruneShare }) => pruneShare),
  right('UPDATE', ({ updateShare }) => updateShare),
  right('STEP', ({ stepRatio }) => stepRatio),
];

interface Report {
  readonly dataset: string;
  readonly randomSeeds: readonly number[];
  readonly cells: readonly HistoryCell[];
}

function printCells(session: Session, report: Report): void {
  const columns = columnsOf(report.cells[0]?.test.name ?? 'accuracy');
  if (session.format === 'json') session.print(JSON.stringify(report, null, 2));
  else if (session.format === 'jsonl') session.print(JSON.stringify(report));
  else if (session.format === 'yaml') session.print(stringify(report));
  else if (session.format === 'plain') {
    if (session.hasHeaders) session.print(columns.map(({ title }) => title).join('\t'));
    for (const cell of report.cells) {
      session.print(columns.map(({ plain, shown }) => (plain ?? shown)(cell)).join('\t'));
    }
  } else session.print(tableOf(session, columns, report.cells));
}

/**
 * Saving and what decides over t_stale, a line for each p_grad, as the paper's figure 13. Axes are
 * in percent: errors are not drawn.
 */
export function historyCharts(dataset: string, cells: readonly HistoryCell[]): readonly Chart[] {
  const shares = [...new Set(cells.map(({ gradientShare }) => gradientShare))];
  const ages = [...new Set(cells.map(({ staleSteps }) => staleSteps))].filter((age) => age > 0);
  const chart = (title: string, of: (cell: HistoryCell) => number, yRange?: Range): Chart => ({
    kind: 'lines',
    ...(yRange === undefined ? {} : { yRange }),
    title: `${dataset}: ${title}`,
    xTitle: 't_stale, in steps',
    xUnit: '',
    series: shares.map((share) => ({
      name: share === 0 ? 'without history' : `p_grad ${share}`,
      points: ages.flatMap((age) => {
        const cell = cells.find(
          ({ gradientShare, staleSteps }) =>
            gradientShare === share && (share === 0 || staleSteps === age),
        );
        return cell === undefined ? [] : [{ x: age, y: 100 * of(cell) }];
      }),
    })),
  });
  const metric = cells[0]?.test.name ?? 'accuracy';
  const title = `test ${metricTitle(metric)}`;
  return [
    chart('feature rows that were not read', ({ saving }) => saving),
    ...(isError(metric) ? [] : [chart(title, ({ test }) => test.value, around(cells))]),
  ];
}

/** Differences of accuracy are a point or two: an axis of whole fives around them. */
function around(cells: readonly HistoryCell[]): Range {
  const percents = cells.map(({ test }) => 100 * test.value);
  const low = Math.max(0, Math.floor(Math.min(...percents) / 5) * 5);
  return { low, high: Math.max(low + 5, Math.ceil(Math.max(...percents) / 5) * 5) };
}
