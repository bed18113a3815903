import type { Seat } from '../devices/seat.ts';
import type { SegmentSnapshot } from '../native/contract.ts';
import { load, loadSegment, type PlanKind } from '../plan/plan.ts';
import type { CachePlan, JobProgress } from '../records/job-record.ts';
import type { ScheduledWork } from '../scheduler/request.ts';
import {
  type AttemptWork,
  type FinalWork,
  noEpochs,
  type ProgressFacts,
  type RunningCrew,
  type RunningWork,
  type Standing,
  type Told,
} from '../supervisor/supervisor.ts';
import { Blocks } from './blocks.ts';
import type { WorkContext } from './context.ts';
import { noPrediction } from './inference.ts';
import { JobCache } from './job-cache.ts';
import { Preparation, untried } from './preparation.ts';
import { progressOf } from './progress.ts';

export const loadSchedule: ScheduledWork = { finalizeMs: 60_000 };

/**
 * An attempt at lending batches to a process of the user's: Samplers draw them as for a training,
 * and the Trainer, a Lender, waits while its reader copies each.
 */
export class LoadAttempt implements AttemptWork {
  readonly #context: WorkContext;
  readonly #plan: PlanKind;
  readonly #preparation: Preparation;
  /** Caches nothing; the plan that people are shown says so. */
  readonly #cache: JobCache;

  constructor(context: WorkContext, plan: PlanKind = load) {
    const input = new Blocks(context);
    this.#context = context;
    this.#plan = plan;
    this.#cache = new JobCache(context, { input, batchesAtOnce: 1 });
    this.#preparation = new Preparation(context, plan, input);
  }

  get cachePlan(): CachePlan {
    return this.#cache.plan;
  }

  async prepare(isStopped: () => boolean): Promise<boolean> {
    const made = await this.#preparation.make(this.#preparation.begin(), null, isStopped);
    return made !== null && !isStopped();
  }

  trial(): never {
    return untried();
  }

  tried(): never {
    return untried();
  }

  launch(executors: readonly Seat[]): ReturnType<AttemptWork['launch']> {
    const { native, input } = this.#context;
    const { layout } = this.#preparation.made;
    const { linksFile, nodesFile, nodes, shuffle } = input.spec.load;
    const request = this.#preparation.request(executors.length);
    const numSlots = this.#plan.batches.queueSlots(native, request, 0);
    const shared = this.#preparation.shared(this.#cache);
    return {
      parts: {
        ...shared,
        segment: loadSegment(request, numSlots),
        evaluation: { chunks: 0, scratchBytes: 0, workBytes: 0, keptBytes: 0, scratchFolder: '' },
        prediction: noPrediction,
        seeds: { path: linksFile || nodesFile, count: nodes, shuffled: shuffle },
        lendsAt: socketOf(input.uid),
      },
      facts: {
        queueCapacity: numSlots,
        slotBytes: layout.slotBytes,
        parameterCount: 0,
        cache: shared.cache,
      },
    };
  }

  run(crew: RunningCrew): RunningWork {
    return new LoadRun(this.#context, crew, this.#preparation.made.layout.batchesPerEpoch);
  }

  async stop(): Promise<void> {
    await Promise.all([this.#preparation.stop(), this.#cache.stop()]);
  }

  close(): void {
    this.#cache.close();
    this.#preparation.close();
  }
}

/** Name of a job's socket in the abstract namespace, where readers find its Lender. */
function socketOf(uid: string): string {
  return `gnnd-${uid}`;
}

/** A crew that lends batches, until its reader has gone. */
class LoadRun implements RunningWork {
  readonly phase = 'TRAINING';
  readonly epochs = noEpochs;
  readonly #context: WorkContext;
  readonly #crew: RunningCrew;
  readonly #batchesPerEpoch: number;

  constructor(context: WorkContext, crew: RunningCrew, batchesPerEpoch: number) {
    this.#context = context;
    this.#crew = crew;
    this.#batchesPerEpoch = batchesPerEpoch;
  }

  async resume(): Promise<void> {}

  begin(): void {}

  look(): Told {
    return { all: true, againMs: null };
  }

  /** The Lender aborts the segment when its reader has gone: then the job is over. */
  standing({ complete, aborted, executors }: SegmentSnapshot): Standing {
    if (complete || aborted !== null) return 'COMPLETE';
    const lends = executors.some(({ role, stage }) => role === 'TRAINER' && stage === 'TRAIN');
    return lends ? 'AWAITS_USER' : 'WORKS';
  }

  done({ committedBatches }: SegmentSnapshot): number {
    return committedBatches;
  }

  progress(facts: ProgressFacts): JobProgress {
    const { native, input } = this.#context;
    const { segment, pids } = this.#crew;
    return progressOf({
      ...facts,
      deviceNames: input.devices.map(({ name }) => name),
      pids,
      epochs: input.spec.training.epochs,
      batchesPerEpoch: this.#batchesPerEpoch,
      current: native.segmentEpoch(segment, facts.now.snapshot.epoch),
      lastReport: null,
      valMetrics: [],
      startedBatches: 0,
    });
  }

  async final(): Promise<FinalWork> {
    const { epochsCommitted } = this.#crew.look();
    const nothing = {
      ...{ parametersSha256: '', checkpointDir: '', testAccuracyLast: 0, testAccuracyBest: 0 },
      ...{ bestEpoch: 0, bestValAccuracy: 0, bestValMetrics: [] },
      ...{ testMetricsLast: [], testMetricsBest: [], epochs: epochsCommitted },
    };
    return { bytes: 0, write: async () => nothing };
  }

  async keep(): Promise<void> {}

  async stop(): Promise<void> {}
}
