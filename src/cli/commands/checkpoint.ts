import { create } from '@bufbuild/protobuf';
import { type Command, Option } from 'commander';
import {
  type Checkpoint,
  CheckpointKindSchema,
  CheckpointSchema,
  CheckpointService,
  ListCheckpointsResponseSchema,
  PredictionNodesSchema,
} from '../../api/gen/gnnd/v1/checkpoint_service_pb.ts';
import { gnnctlExit } from '../../base/exit-codes.ts';
import { numberOf, shortName, shortNames } from '../../spec/enum-names.ts';
import { firstOf, type Metric, metricLabel } from '../../spec/metrics.ts';
import { CliError } from '../session/exit.ts';
import { waitFor } from '../session/interrupt.ts';
import type { Run } from '../session/run.ts';
import type { Session } from '../session/session.ts';
import { formatBytes, parseBytes } from '../session/units.ts';
import { idOf, resourceName } from '../show/job-text.ts';
import { type Column, type Fact, printList, printOne } from '../show/output.ts';
import { createProgress } from '../show/progress.ts';
import { openExportFolder } from './export-folder.ts';

/** `gnnctl checkpoint ...`. */
export function addCheckpointCommands(program: Command, run: Run): void {
  const checkpoint = program.command('checkpoint').description('take models away');
  checkpoint
    .command('list')
    .description("a job's checkpoints: best epoch and last one")
    .argument('<job>')
    .action(run(listCheckpoints));
  checkpoint
    .command('export')
    .description('write a model and what it predicts into a folder')
    .argument('<job>')
    .argument('<folder>', 'made when it is not there')
    .addOption(
      new Option('--which <epoch>', 'whose parameters')
        .choices(shortNames(CheckpointKindSchema).map((name) => name.toLowerCase()))
        .default('best'),
    )
    .addOption(
      new Option('--predictions <nodes>', 'which nodes to predict')
        .choices(shortNames(PredictionNodesSchema).map((name) => name.toLowerCase()))
        .default('all'),
    )
    .option('--memory <size>', 'bound on hidden rows; more is faster on large graphs (1GiB)')
    .option('--fold', 'let the first layer take features as they were imported')
    .option('--force', 'replace an earlier export')
    .action(run(exportCheckpoint));
}

async function listCheckpoints(session: Session, given: string): Promise<number> {
  const name = resourceName('jobs', given);
  const { checkpoints } = await session.call(CheckpointService.method.listCheckpoints, { name });
  printList(session, {
    schema: ListCheckpointsResponseSchema,
    message: create(ListCheckpointsResponseSchema, { checkpoints }),
    rowSchema: CheckpointSchema,
    rows: checkpoints,
    columns,
    nameOf: kindText,
  });
  return gnnctlExit.OK;
}

function kindText({ kind }: Checkpoint): string {
  return shortName(CheckpointKindSchema, kind).toLowerCase();
}

function decides(title: string, read: (row: Checkpoint) => Metric | undefined): Column<Checkpoint> {
  return {
    title,
    align: 'right',
    shown: (row) => {
      const metric = read(row);
      return metric === undefined ? '–' : metricLabel(metric);
    },
    plain: (row) => String(read(row)?.value ?? ''),
  };
}

const columns: readonly Column<Checkpoint>[] = [
  { title: 'CHECKPOINT', shown: kindText },
  // From 1, as wherever gnnctl names an epoch; messages count from 0.
  { title: 'EPOCH', align: 'right', shown: ({ epoch }) => String(epoch + 1) },
  decides('VALIDATION', ({ valMetrics, valAccuracy }) => firstOf(valMetrics, valAccuracy)),
  decides('TEST', ({ testMetrics, testAccuracy }) => firstOf(testMetrics, testAccuracy)),
  {
    title: 'SIZE',
    plainTitle: 'BYTES',
    align: 'right',
    shown: ({ bytes }) => formatBytes(Number(bytes)),
    plain: ({ bytes }) => String(bytes),
  },
  { title: 'PATH', isWide: true, shown: ({ path }) => path },
  { title: 'PARAMETERS SHA-256', isWide: true, shown: (row) => row.parametersSha256 },
];

interface ExportFlags {
  readonly which: string;
  readonly predictions: string;
  readonly memory?: string;
  readonly fold?: boolean;
  readonly force?: boolean;
}

async function exportCheckpoint(
  session: Session,
  given: string,
  folderGiven: string,
  flags: ExportFlags,
): Promise<number> {
  const request = {
    name: resourceName('jobs', given),
    kind: numberOf(CheckpointKindSchema, flags.which) ?? 0,
    predictions: numberOf(PredictionNodesSchema, flags.predictions) ?? 0,
    memoryBytes: BigInt(memoryBytesOf(flags.memory)),
    foldStandardization: flags.fold === true,
  };
  const folder = await openExportFolder(folderGiven, flags.force === true);
  const progress = createProgress(session, `exporting ${idOf(request.name)}`);
  let checkpoint = create(CheckpointSchema);
  const work = async (signal: AbortSignal) => {
    const method = CheckpointService.method.exportCheckpoint;
    for await (const { part } of session.client.stream(method, request, { signal })) {
      if (part.case === 'checkpoint') checkpoint = part.value;
      else if (part.case === 'progress') progress.show(part.value.progress, part.value.message);
      else if (part.case === 'file') await folder.begin(part.value.name, Number(part.value.bytes));
      else if (part.case === 'data') await folder.write(part.value);
    }
    await folder.commit();
    progress.done(true);
  };
  try {
    await waitFor(session, { detached: ['the export was stopped; nothing was written'] }, work);
  } finally {
    progress.close();
    await folder.close();
  }
  printOne(session, {
    schema: CheckpointSchema,
    message: checkpoint,
    name: folder.path,
    facts: () => [
      ['Job', idOf(checkpoint.job), checkpoint.job],
      [
        'Checkpoint',
        `${kindText(checkpoint)}, epoch ${checkpoint.epoch + 1}`,
        kindText(checkpoint),
      ],
      ...columns
        .slice(2, 4)
        .map(
          ({ title, shown, plain }): Fact => [
            title.charAt(0) + title.slice(1).toLowerCase(),
            shown(checkpoint),
            plain?.(checkpoint) ?? shown(checkpoint),
          ],
        ),
      ['Folder', folder.path],
      ...folder.files.map(({ name, bytes }): Fact => [name, formatBytes(bytes), String(bytes)]),
    ],
  });
  return gnnctlExit.OK;
}

function memoryBytesOf(text: string | undefined): number {
  if (text === undefined) return 0;
  const bytes = parseBytes(text);
  if (bytes !== null && bytes > 0) return bytes;
  const shown = JSON.stringify(text);
  throw new CliError(gnnctlExit.USAGE, `--memory ${shown}: expected a size such as 4GiB`);
}
