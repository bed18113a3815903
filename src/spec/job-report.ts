import { arrayOf, type NumberArray } from './npy-array.ts';

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

/** Files of an export that a report is made of (docs/formats/checkpoint.md). */
export const reportFiles = ['predictions.npy', 'labels.npy', 'export.json'] as const;

/** What export.json says that a report needs. */
interface ExportFacts {
  readonly epoch: number;
  readonly task: Compared['task'];
  readonly model: { readonly out_dim: number };
  readonly predictions: { readonly class_names: readonly string[] | null };
}

/** The report of an export's files, by name, and the epoch of its parameters. */
export function reportOfFiles(files: ReadonlyMap<string, Uint8Array>): {
  readonly epoch: number;
  readonly report: JobReport;
} {
  const [predictions, labels, summary] = reportFiles.map((name) => {
    const file = files.get(name);
    if (file === undefined) throw new Error(`the export has no ${name}`);
    return file;
  }) as [Uint8Array, Uint8Array, Uint8Array];
  const facts: ExportFacts = JSON.parse(new TextDecoder().decode(summary));
  const report = reportOf({
    task: facts.task,
    predictions: arrayOf(predictions),
    labels: arrayOf(labels),
    width: facts.model.out_dim,
    names: facts.predictions.class_names,
  });
  return { epoch: facts.epoch, report };
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

/** Of all classes or labels: the mean, and the mean weighted by their nodes. */
export function meansOf(scores: readonly ClassScore[]): readonly [ClassScore, ClassScore] {
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
  return [mean(() => 1, 'mean'), mean((score) => score.support, 'by nodes')];
}

export interface MixedUp {
  readonly known: number;
  readonly predicted: number;
  /** Nodes. */
  readonly count: number;
}

/** Pairs of classes of which one is taken for the other, the most frequent first. */
export function mixedUpOf(
  confusion: readonly (readonly number[])[],
  most: number,
): readonly MixedUp[] {
  return confusion
    .flatMap((row, known) => row.map((count, predicted) => ({ known, predicted, count })))
    .filter(({ known, predicted, count }) => known !== predicted && count > 0)
    .sort((a, b) => b.count - a.count)
    .slice(0, most);
}
