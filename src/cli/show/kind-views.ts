import {
  DecidingMetric,
  DecidingMetricSchema,
  EvaluationMethodSchema,
} from '../../api/gen/gnnd/v1/evaluation_pb.ts';
import { JobKind } from '../../api/gen/gnnd/v1/inference_pb.ts';
import { type Job, type JobProgress, JobState } from '../../api/gen/gnnd/v1/job_pb.ts';
import type { JobSpec } from '../../api/gen/gnnd/v1/job_spec_pb.ts';
import { counted } from '../../spec/counted.ts';
import { shortName } from '../../spec/enum-names.ts';
import { firstOf, isError, type Metric, metricTitle, valMetricOf } from '../../spec/metrics.ts';
import { fanoutsText, inferenceText, modelText, specOf, stalenessText } from './job-text.ts';

/** Words for what jobs of one kind have, and others have not. */
interface KindView {
  /** `GRAPHSAGE 256, fanouts 10,10 on npm; 10 epochs, 2 devices, S = 0`. */
  summary(spec: JobSpec | undefined): string;
  /** `every 2 epochs`; empty where nothing is evaluated while it trains. */
  whenEvaluated(everyEpochs: number): string;
  epochs(job: Job): string;
  bestValMetric(job: Job): Metric | null;
  /** Whether a progress tells of more than that there is one. */
  isUnderWay(progress: JobProgress): boolean;
}

const training: KindView = {
  summary(spec) {
    const rest = [
      counted(spec?.training?.epochs ?? 0, 'epoch'),
      counted(spec?.resources?.devices ?? 1, 'device'),
      stalenessText(spec),
    ];
    const what = `${modelText(spec)} on ${spec?.dataset ?? ''}`;
    return `${what}; ${rest.filter((text) => text !== '').join(', ')}`;
  },

  whenEvaluated(everyEpochs) {
    if (everyEpochs === 0) return 'at the end';
    return everyEpochs === 1 ? 'every epoch' : `every ${everyEpochs} epochs`;
  },

  epochs(job) {
    const epochs = job.progress?.epochs || specOf(job)?.training?.epochs || 0;
    if (epochs === 0) return '';
    if (job.state === JobState.SUCCEEDED) return `${job.result?.epochs ?? epochs}/${epochs}`;
    const finished = Math.max(job.numEpochs, job.progress?.epoch ?? 0);
    const current = job.state === JobState.RUNNING ? finished + 1 : finished;
    return `${Math.min(current, epochs)}/${epochs}`;
  },

  bestValMetric({ result, progress, epochs }) {
    if (result !== undefined) return firstOf(result.bestValMetrics, result.bestValAccuracy) ?? null;
    const evaluated = epochs.flatMap((report) => valMetricOf(report) ?? []);
    const best = evaluated.reduce<Metric | null>(
      (one, other) => (one === null || isBetter(other, one) ? other : one),
      null,
    );
    if (best !== null || progress === undefined) return best;
    return firstOf(progress.valMetrics, progress.valAccuracy) ?? null;
  },

  isUnderWay: ({ epochs }) => epochs > 0,
};

const predicting: KindView = {
  summary: (spec) => `${inferenceText(spec)} on ${spec?.dataset ?? ''}: ${modelText(spec)}`,
  whenEvaluated: () => '',
  epochs: () => '',
  bestValMetric: () => null,
  isUnderWay: () => true,
};

/** Batches for a loop of the user's, which ends when that wants no more. */
const lending: KindView = {
  summary(spec) {
    const drawn = [`batches of ${spec?.training?.batchSize ?? 0}`];
    const fanouts = fanoutsText(spec?.sampling?.fanouts ?? []);
    if (fanouts !== '') drawn.push(`fanouts ${fanouts}`);
    const lent = `${drawn.join(', ')} on ${spec?.dataset ?? ''}`;
    return `lends ${lent}; ${counted(spec?.placement?.samplers ?? 1, 'Sampler')}`;
  },
  whenEvaluated: () => '',
  epochs: ({ progress, result }) => String(result?.epochs ?? progress?.epoch ?? ''),
  bestValMetric: () => null,
  isUnderWay: ({ epochs }) => epochs > 0,
};

export function viewOf(spec: JobSpec | undefined): KindView {
  switch (spec?.kind) {
    case JobKind.INFERENCE:
      return predicting;
    case JobKind.LOAD:
      return lending;
    default:
      return training;
  }
}

/** `EXACT, every 2 epochs`; `SAMPLED 15,10,5, at the end`. */
export function evaluationText(spec: JobSpec | undefined): string {
  const evaluation = spec?.evaluation;
  if (evaluation === undefined) return '';
  const { everyEpochs = 1, method, fanouts } = evaluation;
  const how = [shortName(EvaluationMethodSchema, method), fanoutsText(fanouts)];
  const texts = [how.filter(isSaid).join(' '), viewOf(spec).whenEvaluated(everyEpochs)];
  return texts.filter(isSaid).join(', ');
}

const isSaid = (text: string) => text !== '';

/**
 * `3/10`; empty before the first epoch is known; `7/10` of a job that stopped early. Lists leave
 * out the reports of epochs.
 */
export function epochText(job: Job): string {
  return viewOf(specOf(job)).epochs(job);
}

/** Best result on the validation nodes that is known; null when nothing was evaluated. */
export function bestValMetric(job: Job): Metric | null {
  return viewOf(specOf(job)).bestValMetric(job);
}

/** "micro F1": what decides which parameters are the best, also before anything was evaluated. */
export function decidingTitle(job: Job): string {
  const found = bestValMetric(job);
  if (found !== null) return metricTitle(found.name);
  const { metric = 0 } = specOf(job)?.evaluation ?? {};
  // The daemon has decided by the dataset's task; specs from before it did are of classes.
  const isDecided = metric > DecidingMetric.AUTO;
  return isDecided
    ? metricTitle(shortName(DecidingMetricSchema, metric).toLowerCase())
    : 'accuracy';
}

function isBetter(one: Metric, other: Metric): boolean {
  return isError(one.name) ? one.value < other.value : one.value > other.value;
}
