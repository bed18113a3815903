import type { SegmentSnapshot } from '../native/contract.ts';
import { type PlanKind, standbyRoomOf, trainBlocks, trialSegment } from '../plan/plan.ts';
import type { ScheduledWork } from '../scheduler/request.ts';
import { type Calibration, type CrewParts, timingsOf } from '../supervisor/supervisor.ts';
import { Blocks } from './blocks.ts';
import type { WorkContext } from './context.ts';
import { noPrediction } from './inference.ts';
import type { WorkInput } from './preparation.ts';
import { modelFinalizeMs, TrainingAttempt } from './training.ts';

export const trainBlocksSchedule: ScheduledWork = { finalizeMs: modelFinalizeMs };

/** An attempt at training on blocks: nodes are ranked for caches, and a trial measures batches. */
export class TrainBlocksAttempt extends TrainingAttempt {
  constructor(
    context: WorkContext,
    plan: PlanKind = trainBlocks,
    input: WorkInput = new Blocks(context),
  ) {
    super(context, plan, input);
  }

  override async prepare(isStopped: () => boolean): Promise<boolean> {
    const made = await this.preparation.make(this.preparation.begin(), null, isStopped);
    if (made === null) return false;
    const topologyFd = [...made.topologyFds.values()][0] ?? null;
    await this.cache.prepare({ ...made, topologyFd });
    return !isStopped();
  }

  trial(executorCount: number): CrewParts {
    const segment = trialSegment(this.preparation.request(executorCount));
    const shared = this.preparation.shared(this.cache);
    return { ...shared, segment, evaluation: null, prediction: noPrediction };
  }

  tried(snapshot: SegmentSnapshot, executorCount: number): Omit<Calibration, 'kind'> {
    const { native, input } = this.context;
    const { layout } = this.preparation.made;
    this.recordBytes = snapshot.largestRecordBytes;
    this.cache.measured(snapshot, layout);
    const { prefetch, reservedBytes } = this.cache.plan;
    const request = this.preparation.request(executorCount);
    const slots = this.kind.batches.queueSlots(native, request, this.recordBytes);
    return {
      timings: timingsOf(snapshot, prefetch),
      epoch: { batches: layout.batchesPerEpoch, slots },
      standbyRoom: standbyRoomOf(snapshot.executors, input.devices, reservedBytes),
      samplerSets: this.cache.samplerSets(),
    };
  }
}
