import type { Seat } from '../devices/seat.ts';
import { parameterCountOf } from '../files/checkpoint.ts';
import type { SegmentSnapshot } from '../native/contract.ts';
import { evaluationPlanOf, jobSegment, type PlanKind } from '../plan/plan.ts';
import type { CachePlan } from '../records/job-record.ts';
import type {
  AttemptWork,
  Calibration,
  CrewParts,
  RunningCrew,
  RunningWork,
} from '../supervisor/supervisor.ts';
import type { WorkContext } from './context.ts';
import { noPrediction } from './inference.ts';
import { JobCache } from './job-cache.ts';
import { Preparation, type WorkInput } from './preparation.ts';
import { TrainingRun } from './training-run.ts';

/** Longer than the time for which writing a checkpoint is tried (supervisor/finalize.ts). */
export const modelFinalizeMs = 15 * 60_000;

/** An attempt at training, whatever its batches are. */
export abstract class TrainingAttempt implements AttemptWork {
  protected readonly context: WorkContext;
  protected readonly kind: PlanKind;
  protected readonly cache: JobCache;
  protected readonly preparation: Preparation;
  /** Bytes of the largest record of a trial; 0: nothing was tried. */
  protected recordBytes = 0;

  constructor(context: WorkContext, kind: PlanKind, input: WorkInput) {
    this.context = context;
    this.kind = kind;
    const { staleness, batchesPerStep } = context.input.spec.training;
    this.cache = new JobCache(context, { input, batchesAtOnce: (staleness + 1) * batchesPerStep });
    this.preparation = new Preparation(context, kind, input);
  }

  get cachePlan(): CachePlan {
    return this.cache.plan;
  }

  async prepare(isStopped: () => boolean): Promise<boolean> {
    const made = await this.preparation.make(this.preparation.begin(), null, isStopped);
    return made !== null && !isStopped();
  }

  abstract trial(executorCount: number): CrewParts;

  abstract tried(snapshot: SegmentSnapshot, executorCount: number): Omit<Calibration, 'kind'>;

  launch(executors: readonly Seat[]): ReturnType<AttemptWork['launch']> {
    const { native, input } = this.context;
    const { layout } = this.preparation.made;
    const trainers = executors.filter(({ role }) => role === 'TRAINER');
    this.cache.place(new Set(trainers.map(({ device }) => device)), layout);
    const request = this.preparation.request(executors.length);
    const { recordBytes } = this;
    const { batches } = this.kind;
    const numSlots = batches.queueSlots(native, request, recordBytes);
    const evaluation = evaluationPlanOf(native, layout, input);
    const cached = this.cache.sharedRows;
    const sizes = { numSlots, recordBytes, evaluation, cached };
    const segment = jobSegment(batches, request, sizes);
    const shared = this.preparation.shared(this.cache);
    return {
      parts: { ...shared, segment, evaluation, prediction: noPrediction },
      facts: {
        queueCapacity: numSlots,
        slotBytes: layout.slotBytes,
        parameterCount: parameterCountOf(layout.manifest),
        cache: shared.cache,
      },
    };
  }

  run(crew: RunningCrew): RunningWork {
    const { layout } = this.preparation.made;
    const checkDataset = () => this.preparation.checkDataset();
    return new TrainingRun(this.context, { crew, layout, cache: this.cache, checkDataset });
  }

  async stop(): Promise<void> {
    await Promise.all([this.preparation.stop(), this.cache.stop()]);
  }

  close(): void {
    this.cache.close();
    this.preparation.close();
  }
}
