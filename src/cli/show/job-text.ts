import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { ExecutorRole } from '../../api/gen/gnnd/v1/executor_pb.ts';
import { InferenceNodesSchema, InferenceOutput } from '../../api/gen/gnnd/v1/inference_pb.ts';
import {
  EvaluationKind,
  type EvaluationProgress,
  type Job,
  JobPhase,
  JobPhaseSchema,
  type JobPredictions,
  JobState,
  JobStateSchema,
} from '../../api/gen/gnnd/v1/job_pb.ts';
import type { JobSpec } from '../../api/gen/gnnd/v1/job_spec_pb.ts';
import { ModelTypeSchema } from '../../api/gen/gnnd/v1/model_pb.ts';
import { PropagationOperatorSchema } from '../../api/gen/gnnd/v1/propagation_pb.ts';
import { PlacementPolicySchema } from '../../api/gen/gnnd/v1/resources_pb.ts';
import { SamplingAlgorithmSchema } from '../../api/gen/gnnd/v1/sampling_pb.ts';
import { StalenessCompensationSchema } from '../../api/gen/gnnd/v1/training_pb.ts';
import { Reason, ReasonSchema } from '../../api/gen/gnnd/v1/types_pb.ts';
import { counted } from '../../spec/counted.ts';
import { shortName } from '../../spec/enum-names.ts';
import { printable, type Style } from '../session/terminal.ts';
import { formatDuration } from '../session/units.ts';

/** Words for jobs, the same in tables, in the live view and in messages. */

/** `jobs/mine` of `mine` or `jobs/mine`. */
export function resourceName(
  collection: 'jobs' | 'datasets' | 'propagations',
  given: string,
): string {
  return given.startsWith(`${collection}/`) ? given : `${collection}/${given}`;
}

/** `mine` of `jobs/mine`. */
export function idOf(name: string): string {
  return name.slice(name.indexOf('/') + 1);
}

export function paintState(state: JobState, style: Style): string {
  const text = shortName(JobStateSchema, state);
  switch (state) {
    case JobState.SUCCEEDED:
      return style.green(text);
    case JobState.FAILED:
      return style.red(text);
    case JobState.RUNNING:
      return style.cyan(text);
    default:
      return style.yellow(text);
  }
}

const phaseWords: Readonly<Partial<Record<JobPhase, string>>> = {
  [JobPhase.LOADING_DATASET]: 'loading the dataset',
  [JobPhase.CALIBRATING]: 'measuring trial batches',
  [JobPhase.STARTING]: 'starting executors',
  [JobPhase.TRAINING]: 'training',
  [JobPhase.EVALUATING]: 'evaluating',
  [JobPhase.FINALIZING]: 'writing results',
  [JobPhase.PREDICTING]: 'predicting',
};

/** Empty while a job neither prepares nor runs. */
export function phaseText(phase: JobPhase): string {
  if (phase === JobPhase.UNSPECIFIED) return '';
  return phaseWords[phase] ?? shortName(JobPhaseSchema, phase).toLowerCase();
}

/** Empty for "nothing to say". */
export function reasonText(reason: Reason): string {
  const isSilent = reason === Reason.UNSPECIFIED || reason === Reason.NONE;
  return isSilent ? '' : shortName(ReasonSchema, reason);
}

export function roleText(role: ExecutorRole): string {
  switch (role) {
    case ExecutorRole.SAMPLER:
      return 'Sampler';
    case ExecutorRole.TRAINER:
      return 'Trainer';
    case ExecutorRole.STANDBY:
      return 'standby';
    default:
      return '?';
  }
}

/** With defaults where the server has filled them in. */
export function specOf(job: Job): JobSpec | undefined {
  return job.effectiveSpec ?? job.spec;
}

/**
 * `GRAPHSAGE 128, fanouts 10,10`; `GRAPHSAGE 128, RANDOM_WALK`; `SIGN 512, 2 hops of ROW`;
 * `RSAGE 128 of paper, fanouts 10,10`.
 */
export function modelText(spec: JobSpec | undefined): string {
  if (spec === undefined) return '';
  const { model, sampling, propagation } = spec;
  const type = shortName(ModelTypeSchema, model?.type ?? 1);
  // 0: a TorchScript module says its widths itself.
  const width = (model?.hiddenDim ?? 0) === 0 ? '' : ` ${model?.hiddenDim}`;
  if (propagation !== undefined && (propagation.hops ?? 0) > 0) {
    const names = propagation.operators.map((each) => shortName(PropagationOperatorSchema, each));
    return `${type}${width}, ${counted(propagation.hops ?? 0, 'hop')} of ${names.join(', ')}`;
  }
  const algorithm = sampling?.algorithm ?? 0;
  const drawn = algorithm <= 1 ? '' : `, ${shortName(SamplingAlgorithmSchema, algorithm)}`;
  const fanouts = fanoutsText(sampling?.fanouts ?? []);
  const hops = fanouts === '' ? '' : `, fanouts ${fanouts}`;
  const target = spec.relations?.target ?? '';
  const of = target === '' ? '' : ` of ${printable(target)}`;
  return `${type}${width}${of}${drawn}${hops}`;
}

/** `S = 2, PREDICT`: the delay of the parameters, in steps, and what is done about it. */
export function stalenessText(spec: JobSpec | undefined): string {
  const { staleness, stalenessCompensation = 0 } = spec?.training ?? {};
  if (staleness === undefined) return '';
  if (staleness === 0 || stalenessCompensation === 0) return `S = ${staleness}`;
  return `S = ${staleness}, ${shortName(StalenessCompensationSchema, stalenessCompensation)}`;
}

const evaluationTitles: Readonly<Record<EvaluationKind, string>> = {
  [EvaluationKind.UNSPECIFIED]: 'evaluating',
  [EvaluationKind.VALIDATION]: 'evaluating validation nodes',
  [EvaluationKind.TEST_LAST]: 'evaluating test nodes, last epoch',
  [EvaluationKind.TEST_BEST]: 'evaluating test nodes, best epoch',
  [EvaluationKind.PREDICTION]: 'predicting',
};

/** What an evaluation that runs is about. */
export function evaluationTitle({ kind }: EvaluationProgress): string {
  return evaluationTitles[kind] ?? 'evaluating';
}

/** 0 to 1. */
export function evaluationShare({ rowsDone, rowsTotal }: EvaluationProgress): number {
  return rowsTotal === 0n ? 0 : Number(rowsDone) / Number(rowsTotal);
}

/** How long it will go on; '' while unknown. */
export function evaluationLeft({ remainingMs }: EvaluationProgress): string {
  return remainingMs === 0n ? '' : `${formatDuration(Number(remainingMs))} left`;
}

/**
 * `ALL nodes by job-1`, `10 nearest of ALL nodes by job-1`, `TEST nodes by /srv/exported`; empty
 * for a job that trains.
 */
export function inferenceText(spec: JobSpec | undefined): string {
  const { nodes = 0, job = '', path = '', k = 0 } = spec?.inference ?? {};
  const model = job === '' ? path : job;
  if (model === '') return '';
  if (isOfPairs(spec)) return `pairs by ${model}`;
  const nearest = k === 0 ? '' : `${k} nearest of `;
  return `${nearest}${shortName(InferenceNodesSchema, nodes)} nodes by ${model}`;
}

/** Whether an inference scores pairs, and not nodes. */
export function isOfPairs(spec: JobSpec | undefined): boolean {
  return spec?.inference?.outputs.includes(InferenceOutput.SCORES) === true;
}

/** `2449029 nodes in /var/lib/gnnd/jobs/…/predictions`. */
export function predictionsText(
  { nodes, folder }: JobPredictions,
  spec: JobSpec | undefined,
): string {
  const rows = counted(nodes, isOfPairs(spec) ? 'pair' : 'node');
  return `${rows} in ${printable(folder)}`;
}

export function fanoutsText(fanouts: readonly number[]): string {
  return fanouts.map((fanout) => (fanout === -1 ? 'all' : fanout)).join(',');
}

/** Which relations take part, and numbers of neighbours of their own; empty: there is one. */
export function relationsText(spec: JobSpec | undefined): string {
  const { target = '', reverse = false, only = [], fanouts = [] } = spec?.relations ?? {};
  if (target === '') return '';
  const some = only.length === 0 ? 'all' : only.map(printable).join(', ');
  const parts = [reverse ? some : `${some} but reverses`, ...fanouts.map(printable)];
  return parts.join('; ');
}

export function policyText(policy: number): string {
  return shortName(PlacementPolicySchema, policy);
}

export function wallMs(time: Timestamp | undefined): number | null {
  return time === undefined ? null : timestampMs(time);
}

/** RFC 3339, UTC; empty when unset. */
export function isoTime(time: Timestamp | undefined): string {
  const ms = wallMs(time);
  return ms === null ? '' : new Date(ms).toISOString();
}

/** From the first grant of devices to the end, or to now; null before. */
export function runMs(job: Job, nowMs: number): number | null {
  const startMs = wallMs(job.startTime);
  return startMs === null ? null : Math.max(0, (wallMs(job.endTime) ?? nowMs) - startMs);
}

export function runTimeText(job: Job, nowMs: number): string {
  const ms = runMs(job, nowMs);
  return ms === null ? '' : formatDuration(ms);
}
