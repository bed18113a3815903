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
] as const;
export type MetricName = (typeof metricNames)[number];

/** Metric that decides unless the spec says otherwise. */
export const usualMetric = {
  CLASSIFICATION: 'ACCURACY',
  MULTI_LABEL: 'MICRO_F1',
  REGRESSION: 'MAE',
} as const satisfies Readonly<Record<DatasetTask, DecidingMetric>>;

const ofClasses = ['MICRO_F1', 'MACRO_F1', 'ROC_AUC', 'AVERAGE_PRECISION'] as const;

/** Metric that decides on the best parameters and an early stop; specs once had none. */
export function decidingMetric({ evaluation }: JobSpec, task: DatasetTask): DecidingMetric {
  return evaluation.metric === 'AUTO' ? usualMetric[task] : evaluation.metric;
}

/** Metrics that evaluations of a task compute, and that may decide. */
export const metricsOfTask: Readonly<Record<DatasetTask, readonly DecidingMetric[]>> = {
  CLASSIFICATION: ['ACCURACY', ...ofClasses],
  MULTI_LABEL: ofClasses,
  REGRESSION: ['MAE', 'RMSE'],
};

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
  return titles[name] ?? name.replaceAll('_', ' ');
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
