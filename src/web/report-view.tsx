import { useEffect, useState } from 'preact/hooks';
import {
  CheckpointKind,
  CheckpointService,
  PredictionNodes,
} from '../api/gen/gnnd/v1/checkpoint_service_pb.ts';
import { type ClassScore, meansOf, reportFiles, reportOfFiles } from '../spec/job-report.ts';
import { stream } from './api.ts';
import { ConfusionView } from './confusion-view.tsx';
import { count, percent, sentence, short } from './format.ts';
import { Trouble } from './trouble.tsx';

type Found = ReturnType<typeof reportOfFiles>;

/** Classes of a job's nodes: computed for whoever opens it, as it takes a prediction of them. */
export function ReportView({ name }: { readonly name: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="logs report" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Report</summary>
      {isOpen && <Reported name={name} />}
    </details>
  );
}

const sets = { test: PredictionNodes.TEST, validation: PredictionNodes.VAL } as const;
type NodeSet = keyof typeof sets;

function Reported({ name }: { readonly name: string }) {
  const [nodes, setNodes] = useState<NodeSet>('test');
  const [found, setFound] = useState<Found | null>(null);
  const [doing, setDoing] = useState('');
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    setFound(null);
    setError(null);
    setDoing('predicting');
    reportFrom(name, sets[nodes], signal, setDoing).then(setFound, (problem: unknown) => {
      if (!signal.aborted) setError(problem);
    });
    return () => controller.abort();
  }, [name, nodes]);
  return (
    <>
      <label>
        Nodes{' '}
        <select value={nodes} onChange={(event) => setNodes(event.currentTarget.value as NodeSet)}>
          {Object.keys(sets).map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      </label>
      <Trouble error={error} />
      {found === null && error === null && (
        <p class="empty" role="status">
          {sentence(doing)} …
        </p>
      )}
      {found !== null && <Whole found={found} />}
    </>
  );
}

/** Rejects as calls do. */
async function reportFrom(
  name: string,
  predictions: PredictionNodes,
  signal: AbortSignal,
  tell: (doing: string) => void,
): Promise<Found> {
  const request = { name, kind: CheckpointKind.BEST, predictions, files: [...reportFiles] };
  const files = new Map<string, Uint8Array>();
  let file = new Uint8Array();
  let filled = 0;
  for await (const { part } of stream(CheckpointService.method.exportCheckpoint, request, signal)) {
    if (part.case === 'progress') {
      tell(`${part.value.message}, ${percent(part.value.progress, 0)}`);
    } else if (part.case === 'file') {
      file = new Uint8Array(Number(part.value.bytes));
      filled = 0;
      files.set(part.value.name, file);
    } else if (part.case === 'data') {
      file.set(part.value, filled);
      filled += part.value.length;
    }
  }
  return reportOfFiles(files);
}

function Whole({ found: { epoch, report } }: { readonly found: Found }) {
  const of = `Parameters of the best epoch, ${count(epoch + 1)}`;
  switch (report.task) {
    case 'CLASSIFICATION':
      return (
        <>
          <p>
            {of}; accuracy {percent(report.accuracy, 2)}
          </p>
          <Scores title="Class" scores={report.classes} />
          <ConfusionView report={report} />
        </>
      );
    case 'MULTI_LABEL':
      return (
        <>
          <p>{of}</p>
          <Scores title="Label" scores={report.labels} />
        </>
      );
    case 'REGRESSION':
      return (
        <>
          <p>{of}</p>
          <Table
            columns={['Target', 'MAE', 'RMSE', 'nodes']}
            rows={report.targets.map(({ name, mae, rmse, support }) => [
              ...[name, short(mae), short(rmse), count(support)],
            ])}
          />
        </>
      );
  }
}

interface ScoresProps {
  readonly title: string;
  readonly scores: readonly ClassScore[];
}

function Scores({ title, scores }: ScoresProps) {
  return (
    <Table
      columns={[title, 'precision', 'recall', 'F1', 'nodes']}
      rows={[...meansOf(scores), ...scores].map(({ name, precision, recall, f1, support }) => [
        name,
        ...[precision, recall, f1].map((share) => share.toFixed(4)),
        count(support),
      ])}
    />
  );
}

interface TableProps {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** As long as it is, it takes a part of the page and is scrolled. */
function Table({ columns, rows }: TableProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it is scrolled with arrow keys.
    <section class="wide long" tabIndex={0} aria-label={`Scores by ${columns[0]?.toLowerCase()}`}>
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <th scope="col" key={column}>
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(([name = '', ...cells], at) => (
            <tr key={at}>
              <th scope="row">{name}</th>
              {cells.map((cell, column) => (
                <td key={columns[column + 1]}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
