import { formatCount } from '../../spec/counted.ts';
import type { Session } from '../session/session.ts';
import { printable } from '../session/terminal.ts';
import type { NumberArray } from './array.ts';
import { type Column, tableOf } from './output.ts';

/** How good a model is for each class, label or target, from what it predicts of known nodes. */

export interface ClassScore {
  readonly name: string;
  /** Share of the nodes said to be of the class that are; 0 where none is said to be. */
  readonly precision: number;
  /** Share of the class's nodes that are said to be; 0 where it has none. */
  readonly recall: number;
  readonly f1: number;
  /** Its nodes. */
  readonly support: number;
}

export interface TargetScore {
  readonly name: string;
  readonly mae: number;
  readonly rmse: number;
  /** Nodes whose target is known. */
  readonly support: number;
}

export type JobReport =
  | {
      readonly task: 'CLASSIFICATION';
      readonly accuracy: number;
      readonly classes: readonly ClassScore[];
      /** By the node's class, then by the predicted one. */
      readonly confusion: readonly (readonly number[])[];
    }
  | { readonly task: 'MULTI_LABEL'; readonly labels: readonly ClassScore[] }
  | { readonly task: 'REGRESSION'; readonly targets: readonly TargetScore[] };

/** What is predicted of nodes, beside what the dataset knows of them. */
export interface Compared {
  readonly task: JobReport['task'];
  readonly predictions: NumberArray;
  readonly labels: NumberArray;
  /** Number of classes, labels or targets. */
  readonly width: number;
  /** Null: they have none, and are numbered. */
  readonly names: readonly string[] | null;
}

export function reportOf(compared: Compared): JobReport {
  const { task, width, names } = compared;
  const nameOf = (at: number) => names?.[at] ?? String(at);
  const columns = Array.from({ length: width }, (_, at) => at);
  switch (task) {
    case 'CLASSIFICATION':
      return classReport(compared, nameOf);
    case 'MULTI_LABEL':
      return { task, labels: columns.map((at) => labelScore(compared, at, nameOf(at))) };
    case 'REGRESSION':
      return { task, targets: columns.map((at) => targetScore(compared, at, nameOf(at))) };
  }
}

function classReport(
  { predictions, labels, width }: Compared,
  nameOf: (at: number) => string,
): JobReport {
  const confusion = Array.from({ length: width }, () => new Array<number>(width).fill(0));
  for (let node = 0; node < labels.values.length; node += 1) {
    const row = confusion[labels.values[node] ?? -1];
    const predicted = predictions.values[node] ?? -1;
    // Nodes of no known class count nowhere.
    if (row !== undefined) row[predicted] = (row[predicted] ?? 0) + 1;
  }
  const predicted = (at: number) => confusion.reduce((sum, row) => sum + (row[at] ?? 0), 0);
  const classes = confusion.map((row, at) => {
    const counts = { right: row[at] ?? 0, said: predicted(at), support: sumOf(row) };
    return scoreOf(nameOf(at), counts);
  });
  const right = sumOf(confusion.map((row, at) => row[at] ?? 0));
  const accuracy = shareOf(right, sumOf(classes.map(({ support }) => support)));
  return { task: 'CLASSIFICATION', accuracy, classes, confusion };
}

/** Element `column` of each row of the predictions and of the labels. */
function pairsOf({ predictions, labels, width }: Compared, column: number) {
  const rows = Math.floor(labels.values.length / width);
  return Array.from({ length: rows }, (_, row) => {
    const at = row * width + column;
    return { predicted: predictions.values[at] ?? 0, known: labels.values[at] ?? 0 };
  });
}

function labelScore(compared: Compared, column: number, name: string): ClassScore {
  const counts = { right: 0, said: 0, support: 0 };
  for (const { predicted, known } of pairsOf(compared, column)) {
    // 255: whether the node has the label is not known.
    if (known > 1) continue;
    counts.right += predicted * known;
    counts.said += predicted;
    counts.support += known;
  }
  return scoreOf(name, counts);
}

function targetScore(compared: Compared, column: number, name: string): TargetScore {
  const errors = pairsOf(compared, column)
    .map(({ predicted, known }) => predicted - known)
    .filter((error) => !Number.isNaN(error));
  const support = errors.length;
  const mae = shareOf(sumOf(errors.map(Math.abs)), support);
  const rmse = Math.sqrt(shareOf(sumOf(errors.map((error) => error ** 2)), support));
  return { name, mae, rmse, support };
}

function scoreOf(
  name: string,
  { right, said, support }: { right: number; said: number; support: number },
): ClassScore {
  const [precision, recall] = [shareOf(right, said), shareOf(right, support)];
  return { name, precision, recall, f1: shareOf(2 * right, said + support), support };
}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}

function shareOf(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole;
}

/** Wider matrices are for programs; people are told what is mixed up most. */
const matrixColumnsMax = 12;
const mixedUpShown = 10;

export function reportText(session: Session, report: JobReport): string {
  switch (report.task) {
    case 'CLASSIFICATION': {
      const scores = scoreTable(session, 'CLASS', report.classes);
      const accuracy = `accuracy ${report.accuracy.toFixed(4)}`;
      return [scores, accuracy, confusionText(session, report)].join('\n\n');
    }
    case 'MULTI_LABEL':
      return scoreTable(session, 'LABEL', report.labels);
    case 'REGRESSION':
      return tableOf(
        session,
        [
          { title: 'TARGET', shown: ({ name }) => printable(name) },
          { title: 'MAE', align: 'right', shown: ({ mae }) => mae.toPrecision(4) },
          { title: 'RMSE', align: 'right', shown: ({ rmse }) => rmse.toPrecision(4) },
          { title: 'NODES', align: 'right', shown: ({ support }) => formatCount(support) },
        ],
        report.targets,
      );
  }
}

function scoreTable(session: Session, title: string, scores: readonly ClassScore[]): string {
  const support = sumOf(scores.map((score) => score.support));
  const mean = (weightOf: (score: ClassScore) => number, name: string): ClassScore => {
    const meanOf = (read: (score: ClassScore) => number) =>
      shareOf(
        sumOf(scores.map((score) => weightOf(score) * read(score))),
        sumOf(scores.map(weightOf)),
      );
    const means = { precision: meanOf((score) => score.precision), f1: meanOf(({ f1 }) => f1) };
    return { name, ...means, recall: meanOf((score) => score.recall), support };
  };
  const rows = [...scores, mean(() => 1, 'mean'), mean((score) => score.support, 'by nodes')];
  const share = (name: string, read: (score: ClassScore) => number): Column<ClassScore> => ({
    ...{ title: name, align: 'right' },
    shown: (score) => read(score).toFixed(4),
  });
  return tableOf(
    session,
    [
      { title, shown: ({ name }) => printable(name) },
      share('PRECISION', ({ precision }) => precision),
      share('RECALL', ({ recall }) => recall),
      share('F1', ({ f1 }) => f1),
      { title: 'NODES', align: 'right', shown: (score) => formatCount(score.support) },
    ],
    rows,
  );
}

function confusionText(
  session: Session,
  { classes, confusion }: Extract<JobReport, { task: 'CLASSIFICATION' }>,
): string {
  if (classes.length <= matrixColumnsMax) {
    const columns: Column<number>[] = [
      { title: 'CLASS \\ PREDICTED', shown: (row) => printable(classes[row]?.name ?? '') },
      ...classes.map(
        ({ name }, at): Column<number> => ({
          title: printable(name),
          align: 'right',
          shown: (row) => formatCount(confusion[row]?.[at] ?? 0),
        }),
      ),
    ];
    return tableOf(session, columns, [...classes.keys()]);
  }
  const pairs = confusion.flatMap((row, known) =>
    row.map((count, predicted) => ({ known, predicted, count })),
  );
  const mixedUp = pairs
    .filter(({ known, predicted, count }) => known !== predicted && count > 0)
    .sort((a, b) => b.count - a.count)
    .slice(0, mixedUpShown);
  const nameOf = (at: number) => printable(classes[at]?.name ?? '');
  return tableOf(
    session,
    [
      { title: 'MOST MIXED UP', shown: ({ known }) => nameOf(known) },
      { title: 'PREDICTED', shown: ({ predicted }) => nameOf(predicted) },
      { title: 'NODES', align: 'right', shown: ({ count }) => formatCount(count) },
    ],
    mixedUp,
  );
}
