import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import {
  type CacheCell,
  type CacheReport,
  CacheReportSchema,
  DatasetService,
  type PolicyCacheReport,
  type SamplingCacheReport,
} from '../../api/gen/gnnd/v1/dataset_service_pb.ts';
import { CachePolicy, CachePolicySchema } from '../../api/gen/gnnd/v1/features_pb.ts';
import { gnnctlExit } from '../../base/exit-codes.ts';
import { formatCount } from '../../spec/counted.ts';
import { shortName } from '../../spec/enum-names.ts';
import { collect, integerOf, numbersOf, optional, samplingOf, seedOf } from '../read/flags.ts';
import type { Run } from '../session/run.ts';
import type { Session } from '../session/session.ts';
import { formatBytes, formatNs, formatPercent } from '../session/units.ts';
import { idOf, resourceName } from '../show/job-text.ts';
import { type Column, factLines, printOne, tableOf } from '../show/output.ts';
import { samplingName } from '../show/sampling-text.ts';
import { type Chart, svgOf } from '../show/svg.ts';

/** `gnnctl cache ...`. */
export function addCacheCommands(program: Command, run: Run): void {
  program
    .command('cache')
    .description('what devices keep of the features')
    .command('report')
    .description('say what caches of every policy and size would be worth')
    .argument('<dataset>')
    .option('--fanouts <list>', 'such as 10,10; give it again for another part', collect)
    .option('--sampling <yaml>', "such as '{algorithm: RANDOM_WALK}'; likewise", collect)
    .option('--batch-size <n>', 'seeds a batch (default 1024)')
    .option('--epochs <n>', 'epochs to measure (default 10)')
    .option('--presample-epochs <list>', 'each K to show, such as 1,2 (default 1)')
    .option('--ratios <list>', 'shares of the rows (default 0.05,0.1,0.15,0.2,0.25,0.3)')
    .option('--random-seed <n>', 'key of all randomness (default 0)')
    .option('--svg <file>', 'also draw hit rates into a file')
    .option('--dump-dir <folder>', "keep what was sampled, below the daemon's dumps_dir")
    .action(run(reportCache));
}

interface ReportFlags {
  readonly fanouts?: readonly string[];
  readonly sampling?: readonly string[];
  readonly batchSize?: string;
  readonly epochs?: string;
  readonly presampleEpochs?: string;
  readonly ratios?: string;
  readonly randomSeed?: string;
  readonly svg?: string;
  readonly dumpDir?: string;
}

/** Whole epochs are sampled; a graph of a hundred million edges takes minutes. */
const timeoutDefaultMs = 3_600_000;

async function reportCache(session: Session, given: string, flags: ReportFlags): Promise<number> {
  const name = resourceName('datasets', given);
  const report = await session.client.unary(
    DatasetService.method.reportCache,
    {
      name,
      samplings: [
        ...(flags.fanouts ?? []).map((list) => ({ fanouts: numbersOf('--fanouts', list) })),
        ...(flags.sampling ?? []).map(samplingOf),
      ],
      presampleEpochs: numbersOf('--presample-epochs', flags.presampleEpochs),
      ratios: numbersOf('--ratios', flags.ratios),
      dumpDir: flags.dumpDir === undefined ? '' : resolve(flags.dumpDir),
      ...optional('batchSize', integerOf('--batch-size', flags.batchSize)),
      ...optional('epochs', integerOf('--epochs', flags.epochs)),
      ...optional('randomSeed', seedOf(flags.randomSeed)),
    },
    { timeoutMs: session.timeoutMs ?? timeoutDefaultMs },
  );
  if (flags.svg !== undefined) {
    writeFileSync(flags.svg, svgOf(chartsOf(report)));
    session.say(`drawn into ${flags.svg}`);
  }
  printReport(session, report);
  return gnnctlExit.OK;
}

/** `PRESC#2`; as the paper writes it. */
function policyName({ policy, presampleEpochs }: PolicyCacheReport): string {
  const name = shortName(CachePolicySchema, policy);
  return presampleEpochs === 0 ? name : `${name}#${presampleEpochs}`;
}

interface Row {
  readonly sampling: SamplingCacheReport;
  readonly policy: PolicyCacheReport;
  readonly cell: CacheCell;
  /** Hit rate as a share of the oracle's. */
  readonly ofOptimal: number;
}

function rowsOf(sampling: SamplingCacheReport): readonly Row[] {
  const optimal = sampling.policies.find(({ policy }) => policy === CachePolicy.OPTIMAL);
  return sampling.policies.flatMap((policy) =>
    policy.cells.map((cell, i) => {
      const best = optimal?.cells[i]?.hitRate ?? 0;
      return { sampling, policy, cell, ofOptimal: best === 0 ? 1 : cell.hitRate / best };
    }),
  );
}

const rowColumns: readonly Column<Row>[] = [
  { title: 'SAMPLING', shown: ({ sampling }) => samplingName(sampling.sampling) },
  { title: 'POLICY', shown: ({ policy }) => policyName(policy) },
  {
    title: 'RATIO',
    align: 'right',
    shown: ({ cell }) => formatPercent(cell.ratio),
    plain: ({ cell }) => String(cell.ratio),
  },
  {
    title: 'ROWS',
    align: 'right',
    shown: ({ cell }) => formatCount(cell.rows),
    plain: ({ cell }) => String(cell.rows),
  },
  {
    title: 'HIT RATE',
    align: 'right',
    shown: ({ cell }) => formatPercent(cell.hitRate),
    plain: ({ cell }) => String(cell.hitRate),
  },
  {
    title: 'OF OPTIMAL',
    align: 'right',
    shown: ({ ofOptimal }) => formatPercent(ofOptimal),
    plain: ({ ofOptimal }) => String(ofOptimal),
  },
  {
    title: 'MOVED AN EPOCH',
    align: 'right',
    shown: ({ cell }) => formatBytes(cell.bytesMoved),
    plain: ({ cell }) => String(cell.bytesMoved),
  },
  {
    title: 'RANKING',
    align: 'right',
    shown: ({ policy }) => (policy.rankNs === 0n ? '' : formatNs(Number(policy.rankNs))),
    plain: ({ policy }) => String(policy.rankNs),
  },
];

function printReport(session: Session, report: CacheReport): void {
  if (session.format === 'plain') {
    const rows = report.samplings.flatMap(rowsOf);
    if (session.hasHeaders) session.print(rowColumns.map(({ title }) => title).join('\t'));
    for (const row of rows) {
      session.print(rowColumns.map(({ plain, shown }) => (plain ?? shown)(row)).join('\t'));
    }
    return;
  }
  printOne(session, {
    schema: CacheReportSchema,
    message: report,
    name: report.dataset,
    facts: () => [['Dataset', session.style.bold(idOf(report.dataset)), report.dataset]],
    sections: () => report.samplings.map((sampling) => sectionOf(session, sampling)),
  });
}

function sectionOf(session: Session, sampling: SamplingCacheReport): string {
  const presample = sampling.policies.find(
    ({ policy, presampleEpochs }) => policy === CachePolicy.PRESC && presampleEpochs === 1,
  );
  const epochs = Number(presample?.rankNs ?? 0n) / Number(sampling.epochNs || 1n);
  const facts = factLines(session, [
    ['Sampling', samplingName(sampling.sampling)],
    ['Batches', formatCount(sampling.batchesPerEpoch)],
    [
      'Input rows',
      `${formatCount(Math.round(sampling.inputRows))} an epoch, ` +
        formatBytes(sampling.inputBytes),
    ],
    ['Similarity', `${formatPercent(sampling.similarity)} between adjacent epochs`],
    ['Epoch', `${formatNs(Number(sampling.epochNs))} of sampling`],
    ['Pre-sampling', presample === undefined ? '' : `${epochs.toFixed(2)} epochs for PRESC#1`],
  ]);
  const columns = rowColumns.filter(({ title }) => title !== 'SAMPLING');
  return `${facts}\n\n${tableOf(session, columns, rowsOf(sampling))}`;
}

/** The paper's figure 10 (bars by policy at one ratio) and figure 11 (lines over ratios). */
function chartsOf(report: CacheReport): readonly Chart[] {
  const dataset = idOf(report.dataset);
  const ratios = report.samplings[0]?.policies[0]?.cells.map(({ ratio }) => ratio) ?? [];
  const tenth = ratios.reduce(
    (best, ratio, i) => (Math.abs(ratio - 0.1) < Math.abs((ratios[best] ?? 2) - 0.1) ? i : best),
    0,
  );
  const bars: Chart = {
    kind: 'bars',
    title: `${dataset}: hit rate of a cache of ${formatPercent(ratios[tenth] ?? 0)} of the rows`,
    groups: report.samplings.map((sampling) => ({
      name: samplingName(sampling.sampling),
      bars: sampling.policies.map((policy) => ({
        name: policyName(policy),
        y: 100 * (policy.cells[tenth]?.hitRate ?? 0),
      })),
    })),
  };
  const lines = report.samplings.map(
    (sampling): Chart => ({
      kind: 'lines',
      title: `${dataset}, ${samplingName(sampling.sampling)}: hit rate over cache size`,
      xTitle: 'cached share of the rows',
      series: sampling.policies.map((policy) => ({
        name: policyName(policy),
        points: policy.cells.map(({ ratio, hitRate }) => ({ x: 100 * ratio, y: 100 * hitRate })),
      })),
    }),
  );
  return [bars, ...lines];
}
