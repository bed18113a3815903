import type { JobPlan, PlanMeasurement } from './job-record.ts';

/** A plan whose prediction turned out far off says so, with what it was predicted from. */

/** A time so many times longer or shorter than predicted is no noise of a busy machine. */
const surprisingTimes = 2;
/** A shorter time may be only the start of the processes. */
const momentNs = 1e9;

/** A sentence; null where epochs take what was predicted, or it is too early to tell. */
export function surpriseOf(plan: JobPlan, measured: PlanMeasurement | null): string | null {
  const predictedNs = plan.ways[0]?.batchNs ?? 0;
  if (measured === null || plan.estimated || predictedNs === 0 || measured.batchNs === 0) {
    return null;
  }
  if (measured.epochs * measured.epochNs < momentNs) return null;
  const times = timesOf(measured.batchNs, predictedNs);
  if (times === null) return null;
  const { epochs } = measured;
  const median = epochs === 1 ? 'in one epoch' : `in the median of ${epochs} epochs`;
  return (
    `a batch takes ${times} as long as predicted: ${milliseconds(measured.batchNs)} ` +
    `${median}, and not ${milliseconds(predictedNs)}, which follows from trial batches before ` +
    'the training; ' +
    causeOf(plan, measured)
  );
}

/** `35 times`, or `a fifth`; null for what is not far off. */
function timesOf(measuredNs: number, plannedNs: number): string | null {
  const share = measuredNs / plannedNs;
  if (share >= surprisingTimes) return `${Number(share.toPrecision(2))} times`;
  return share <= 1 / surprisingTimes ? `${Math.max(1, Math.round(100 * share))} %` : null;
}

function causeOf(plan: JobPlan, measured: PlanMeasurement): string {
  const kinds = [
    ['Samplers', plan.samplerBatchNs, measured.samplerBatchNs],
    ['Trainers', plan.trainerBatchNs, measured.trainerBatchNs],
    ['standby Trainers', plan.standbyBatchNs, measured.standbyBatchNs],
  ] as const;
  const off = kinds.flatMap(([who, planned, found]) => {
    if (planned === 0 || found === 0 || timesOf(found, planned) === null) return [];
    return [`${who} take ${milliseconds(found)} a batch, ${milliseconds(planned)} in the trial`];
  });
  if (off.length === 0) {
    return (
      'what executors do themselves takes what the trial said: they wait, for steps in their ' +
      'order, for each other or for processors that others use (gnnctl page shows it)'
    );
  }
  return (
    `${off.join('; ')}: other work on the same processors, memory that is swapped or features ` +
    'that come from the disk make such a difference; gnnctl page shows where the time goes'
  );
}

function milliseconds(ns: number): string {
  return `${Number((ns / 1e6).toPrecision(3))} ms`;
}
