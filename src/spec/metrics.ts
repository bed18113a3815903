import type { DatasetTask, JobSpec } from './job-spec.ts';

/** Numbers that evaluations come to, by name, for whoever shows them. */

export type DecidingMetric = Exclude<JobSpec['evaluation']['metric'], 'AUTO'>;

export interface Metric {
  readonly name: string;
  readonly value: number;
}

/**
 * Metrics in the order in which they are shown, which is the native contract's, but for the one
 * that decides on the best parameters and when a job stops early: that one is first.
 */
export const metricNames = [
  'accuracy',
  'micro_f1',
  'macro_f1',
  'roc_auc',
  'average_precision',
  'mae',
  'rmse',
  'mrr',
  'hits_1',
  'hits_3',
  'hits_10',
  'hits_20',
  'hits_50',
  'hits_100',
] as const;
export type MetricName = (typeof metricNames)[number];

/** What a job learns: what its dataset knows of nodes, or links. */
export type LearntTask = DatasetTask | 'LINKS';

/** Metric that decides unless the spec says otherwise. */
export const usualMetric = {
  CLASSIFICATION: 'ACCURACY',
  MULTI_LABEL: 'MICRO_F1',
  REGRESSION: 'MAE',
  LINKS: 'MRR',
} as const satisfies Readonly<Record<LearntTask, DecidingMetric>>;

const ofLinks = [
  ...(['MRR', 'HITS_1', 'HITS_3', 'HITS_10', 'HITS_20', 'HITS_50', 'HITS_100'] as const),
  ...(['ROC_AUC', 'AVERAGE_PRECISION'] as const),
];
/** Of links that share a pool of negatives, among which none has a rank of its own. */
const ofPools = ofLinks.filter((name) => name !== 'MRR');
const ofClasses = ['MICRO_F1', 'MACRO_F1', 'ROC_AUC', 'AVERAGE_PRECISION'] as const;

/** What decides, and what may, where links share a pool of negatives. */
export const poolMetrics = { usual: 'HITS_50', known: ofPools } as const satisfies {
  readonly usual: DecidingMetric;
  readonly known: readonly DecidingMetric[];
};

/** Metric that decides on the best parameters and an early stop; specs once had none. */
export function decidingMetric({ evaluation }: JobSpec, task: DatasetTask): DecidingMetric {
  return evaluation.metric === 'AUTO' ? usualMetric[task] : evaluation.metric;
}

/** Metrics that evaluations of a task compute, and that may decide. */
export const metricsOfTask: Readonly<Record<LearntTask, readonly DecidingMetric[]>> = {
  CLASSIFICATION: ['ACCURACY', ...ofClasses],
  MULTI_LABEL: ofClasses,
  REGRESSION: ['MAE', 'RMSE'],
  LINKS: ofLinks,
};

const ranks: ReadonlySet<DecidingMetric> = new Set<DecidingMetric>(
  ofLinks.filter((name) => name === 'MRR' || name.startsWith('HITS_')),
);

/**
 * A metric's name for people and files: lower case, and of ranks with the number of negatives that
 * they are among, or all, or a pool. MRR is `mrr@1000` and HITS_10 `hits@10@1000`.
 */
export function nameOf(metric: DecidingMetric, negatives: string): string {
  const name = metric.toLowerCase();
  return ranks.has(metric) ? `${name.replace('_', '@')}@${negatives}` : name;
}

/** What its name is without negatives: `hits_10` of `hits@10@1000`. */
export function baseNameOf(name: string): string {
  const ranked = /^(mrr|hits@\d+)@/.exec(name);
  return ranked === null ? name : (ranked[1] ?? '').replace('@', '_');
}

/** Metrics of which less is better; they have the unit of the targets. */
const errorNames: ReadonlySet<string> = new Set<MetricName>(['mae', 'rmse']);

/** Titles for people: "micro F1". */
const titles: Readonly<Record<string, string>> = {
  micro_f1: 'micro F1',
  macro_f1: 'macro F1',
  roc_auc: 'ROC AUC',
  mae: 'MAE',
  rmse: 'RMSE',
};

export function metricTitle(name: string): string {
  return titles[name] ?? name.replaceAll('_', ' ').replace(/^mrr\b/, 'MRR');
}

/** Whether a larger value is a worse one. */
export function isError(name: string): boolean {
  return errorNames.has(name.toLowerCase());
}

/** An accuracy in percent, other shares and errors with four digits. */
export function metricText({ name, value }: Metric): string {
  if (name === 'accuracy') return `${(100 * value).toFixed(1)} %`;
  return isError(name) ? String(Number(value.toPrecision(4))) : value.toFixed(4);
}

/** "accuracy 72.1 %", "micro F1 0.8123". */
export function metricLabel(metric: Metric): string {
  return `${metricTitle(metric.name)} ${metricText(metric)}`;
}

/** "val micro F1 0.8123". */
export function metricPhrase(split: string, metric: Metric): string {
  return `${split} ${metricLabel(metric)}`;
}

/** Result of an evaluation in the API's terms; one from before metrics has an accuracy. */
interface Evaluated {
  readonly valMetrics: readonly Metric[];
  readonly valAccuracy?: number | undefined;
}
interface Tested {
  readonly testMetricsBest: readonly Metric[];
  readonly testAccuracyBest: number;
  readonly testMetricsLast: readonly Metric[];
  readonly testAccuracyLast: number;
}

/** The one that decides; undefined where nothing was evaluated. */
export function valMetricOf({ valMetrics, valAccuracy }: Evaluated): Metric | undefined {
  const [first] = valMetrics;
  if (first !== undefined) return first;
  return valAccuracy === undefined ? undefined : { name: 'accuracy', value: valAccuracy };
}

/** The same of test nodes, with the best parameters and with the last. */
export function testMetricsOf(result: Tested) {
  return {
    best: firstOf(result.testMetricsBest, result.testAccuracyBest),
    last: firstOf(result.testMetricsLast, result.testAccuracyLast),
  };
}

/** 0 stands for no accuracy: there were no such nodes, or the task has none. */
export function firstOf(metrics: readonly Metric[], accuracy: number): Metric | undefined {
  if (metrics[0] !== undefined || accuracy === 0) return metrics[0];
  return { name: 'accuracy', value: accuracy };
}

/** A job's progress and epochs, as the API says them. */
interface Trained {
  readonly progress?: { readonly version: bigint; readonly loss: number } | undefined;
  readonly epochs: readonly { readonly loss: number }[];
}

/** Loss of the epoch that runs, else of the last one; null before there was one. */
export function lossOf({ progress, epochs }: Trained): number | null {
  if (progress !== undefined && progress.version > 0n) return progress.loss;
  return epochs.at(-1)?.loss ?? null;
}
