import { type Command, Option } from 'commander';
import { stringify } from 'yaml';
import {
  CheckpointKindSchema,
  CheckpointService,
  PredictionNodesSchema,
} from '../../api/gen/gnnd/v1/checkpoint_service_pb.ts';
import { gnnctlExit } from '../../base/exit-codes.ts';
import { numberOf, shortNames } from '../../spec/enum-names.ts';
import { waitFor } from '../session/interrupt.ts';
import type { Run } from '../session/run.ts';
import type { Session } from '../session/session.ts';
import { arrayOf } from '../show/array.ts';
import { type Compared, reportOf, reportText } from '../show/job-report.ts';
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

/** What export.json says that a report needs (docs/formats/checkpoint.md). */
interface ExportFacts {
  readonly epoch: number;
  readonly task: Compared['task'];
  readonly model: { readonly out_dim: number };
  readonly predictions: { readonly class_names: readonly string[] | null };
}

async function jobReport(session: Session, given: string, flags: ReportFlags): Promise<number> {
  const name = resourceName('jobs', given);
  const files = await exported(session, name, flags);
  const [predictions, labels, summary] = ['predictions.npy', 'labels.npy', 'export.json'].map(
    (file) => files.get(file) ?? new Uint8Array(),
  );
  const {
    epoch,
    task,
    model,
    predictions: predicted,
  }: ExportFacts = JSON.parse(Buffer.from(summary ?? []).toString('utf8'));
  const report = reportOf({
    task,
    predictions: arrayOf(predictions ?? new Uint8Array()),
    labels: arrayOf(labels ?? new Uint8Array()),
    width: model.out_dim,
    names: predicted.class_names,
  });
  const whole = { job: idOf(name), checkpoint: flags.which, epoch, nodes: flags.nodes, ...report };
  if (session.format === 'json') session.print(JSON.stringify(whole, null, 2));
  else if (session.format === 'jsonl') session.print(JSON.stringify(whole));
  else if (session.format === 'yaml') session.print(stringify(whole));
  else session.print(reportText(session, report));
  return gnnctlExit.OK;
}

/** The small files of an export of the predicted nodes, by name; the model is passed over. */
async function exported(
  session: Session,
  name: string,
  { which, nodes }: ReportFlags,
): Promise<ReadonlyMap<string, Uint8Array>> {
  const kind = numberOf(CheckpointKindSchema, which) ?? 0;
  const predictions = numberOf(PredictionNodesSchema, nodes) ?? 0;
  const passedOver = ['model.safetensors', 'logits.npy', 'nodes.npy'];
  const pieces = new Map<string, Uint8Array[]>();
  const progress = createProgress(session, `predicting nodes of ${idOf(name)}`);
  const work = async (signal: AbortSignal) => {
    const method = CheckpointService.method.exportCheckpoint;
    let file: Uint8Array[] | null = null;
    const request = { name, kind, predictions };
    for await (const { part } of session.client.stream(method, request, { signal })) {
      if (part.case === 'progress') progress.show(part.value.progress, part.value.message);
      else if (part.case === 'file') {
        file = passedOver.includes(part.value.name) ? null : [];
        if (file !== null) pieces.set(part.value.name, file);
      } else if (part.case === 'data') file?.push(part.value);
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
