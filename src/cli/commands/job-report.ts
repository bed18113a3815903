import { type Command, Option } from 'commander';
import { stringify } from 'yaml';
import {
  CheckpointKindSchema,
  CheckpointService,
  PredictionNodesSchema,
} from '../../api/gen/gnnd/v1/checkpoint_service_pb.ts';
import { gnnctlExit } from '../../base/exit-codes.ts';
import { numberOf, shortNames } from '../../spec/enum-names.ts';
import { reportFiles, reportOfFiles } from '../../spec/job-report.ts';
import { waitFor } from '../session/interrupt.ts';
import type { Run } from '../session/run.ts';
import type { Session } from '../session/session.ts';
import { reportText } from '../show/job-report.ts';
import { idOf, resourceName } from '../show/job-text.ts';
import { createProgress } from '../show/progress.ts';

/** `gnnctl job report`: precision and recall of each class, and which are mixed up. */
export function addJobReport(job: Command, run: Run): void {
  job
    .command('report')
    .description("show precision, recall and F1 of each class of a job's test nodes")
    .argument('<job>')
    .addOption(
      new Option('--which <epoch>', 'whose parameters')
        .choices(shortNames(CheckpointKindSchema).map((name) => name.toLowerCase()))
        .default('best'),
    )
    .addOption(new Option('--nodes <nodes>', 'of which').choices(['test', 'val']).default('test'))
    .action(run(jobReport));
}

interface ReportFlags {
  readonly which: string;
  readonly nodes: string;
}

async function jobReport(session: Session, given: string, flags: ReportFlags): Promise<number> {
  const name = resourceName('jobs', given);
  const { epoch, report } = reportOfFiles(await exported(session, name, flags));
  const whole = { job: idOf(name), checkpoint: flags.which, epoch, nodes: flags.nodes, ...report };
  if (session.format === 'json') session.print(JSON.stringify(whole, null, 2));
  else if (session.format === 'jsonl') session.print(JSON.stringify(whole));
  else if (session.format === 'yaml') session.print(stringify(whole));
  else session.print(reportText(session, report));
  return gnnctlExit.OK;
}

/** The files of an export that a report is made of, by name. */
async function exported(
  session: Session,
  name: string,
  { which, nodes }: ReportFlags,
): Promise<ReadonlyMap<string, Uint8Array>> {
  const kind = numberOf(CheckpointKindSchema, which) ?? 0;
  const predictions = numberOf(PredictionNodesSchema, nodes) ?? 0;
  const pieces = new Map<string, Uint8Array[]>();
  const progress = createProgress(session, `predicting nodes of ${idOf(name)}`);
  const work = async (signal: AbortSignal) => {
    const method = CheckpointService.method.exportCheckpoint;
    let file: Uint8Array[] = [];
    const request = { name, kind, predictions, files: [...reportFiles] };
    for await (const { part } of session.client.stream(method, request, { signal })) {
      if (part.case === 'progress') progress.show(part.value.progress, part.value.message);
      else if (part.case === 'file') {
        file = [];
        pieces.set(part.value.name, file);
      } else if (part.case === 'data') file.push(part.value);
    }
    progress.done(true);
  };
  try {
    await waitFor(session, { detached: [] }, work);
  } finally {
    progress.close();
  }
  return new Map([...pieces].map(([file, parts]) => [file, Buffer.concat(parts)]));
}
