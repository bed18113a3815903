import type { SegmentSpec } from '../native/contract.ts';
import type { EvaluationPlan } from '../plan/evaluation-plan.ts';
import type { JobLayout, SegmentRequest } from '../plan/job-layout.ts';
import { infers } from '../spec/rules/inference.ts';
import type { AttemptContext } from './attempt-types.ts';
import { Crew, type CrewOptions } from './crew.ts';
import { noPrediction, openHiddenRows } from './inference.ts';
import type { Preparation } from './preparation.ts';

/** The crews of an attempt, which differ in their segment and in whether they evaluate. */

/** What a segment for so many executors is asked for. */
export function segmentRequestOf(
  { input: { spec, dataset, devices } }: AttemptContext,
  layout: JobLayout,
  executorCount: number,
): SegmentRequest {
  const { counts } = dataset;
  return { spec, counts, layout, deviceCount: devices.length, executorCount };
}

interface CrewParts extends Pick<CrewOptions, 'onUnkillable'> {
  readonly segment: SegmentSpec;
  readonly evaluation: EvaluationPlan | null;
}

/** `evaluation` is null for a trial: nothing is evaluated, and nobody tells orderly ends. */
export function crewOf(
  { input, native, log, clock, emit }: AttemptContext,
  { made, cache, inference }: Preparation,
  { segment, evaluation, onUnkillable }: CrewParts,
): Crew {
  const isInference = infers(input.spec);
  const hiddenBytes = isInference ? (evaluation?.scratchBytes ?? 0) : 0;
  const isTrial = evaluation === null;
  return new Crew({
    ...{ native, log, clock, segment, evaluation, onUnkillable },
    ...made,
    prediction: isInference ? inference.work.prediction : noPrediction,
    openHiddenRows: hiddenBytes > 0 ? () => openHiddenRows(input, hiddenBytes) : null,
    spec: input.spec,
    orderPath: cache.orderPath,
    favouredPath: cache.favouredPath,
    cache: cache.plan,
    placed: cache.placed,
    hostTierFd: cache.hostTierFd,
    devices: input.devices,
    logFolder: input.logFolder,
    onSpawned: (role) => emit({ kind: 'executorSpawned', role }),
    onReady: (executor) => {
      if (!isTrial) emit({ kind: 'executorReady', executor });
    },
    onExited: (executor, outcome, exit) => {
      // A trial's orderly ends are told by `calibrated`.
      if (isTrial && outcome.kind === 'DONE') return;
      emit({ kind: 'executorExited', executor, outcome, exit });
    },
  });
}
