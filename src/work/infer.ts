import { messageOf } from '../base/errors.ts';
import type { Seat } from '../devices/seat.ts';
import { parameterCountOf } from '../files/checkpoint.ts';
import { counters, type SegmentSnapshot } from '../native/contract.ts';
import { inferencePlanOf, inferenceSegment, type PlanKind } from '../plan/plan.ts';
import type { CachePlan, JobProgress } from '../records/job-record.ts';
import type { ScheduledWork } from '../scheduler/request.ts';
import {
  type AttemptWork,
  CheckpointError,
  type FinalWork,
  noEpochs,
  type ProgressFacts,
  type RunningCrew,
  type RunningWork,
  type Standing,
  standingOf,
  type Told,
  timed,
} from '../supervisor/supervisor.ts';
import type { WorkContext } from './context.ts';
import { openHiddenRows } from './inference.ts';
import { JobCache } from './job-cache.ts';
import { JobInference } from './job-inference.ts';
import { Preparation, untried, type WorkInput } from './preparation.ts';
import { inferenceProgressOf } from './progress.ts';

export const inferSchedule: ScheduledWork = {
  withoutSamplers: 'each predicts chunks of nodes, and nobody samples ahead',
  // Predictions of a whole graph are read once more for their digests, and perhaps written anew.
  finalizeMs: 24 * 60 * 60_000,
};

/** An attempt at predicting with a trained model, over blocks or over rows. */
export class InferAttempt implements AttemptWork {
  readonly #context: WorkContext;
  readonly #preparation: Preparation;
  readonly #inference: JobInference;
  /** Caches nothing; the plan that people are shown says so. */
  readonly #cache: JobCache;

  constructor(context: WorkContext, kind: PlanKind, input: WorkInput) {
    this.#context = context;
    this.#preparation = new Preparation(context, kind, input);
    this.#inference = new JobInference(context);
    this.#cache = new JobCache(context, { input, batchesAtOnce: context.input.devices.length });
  }

  get cachePlan(): CachePlan {
    return this.#cache.plan;
  }

  async prepare(isStopped: () => boolean): Promise<boolean> {
    const sizes = this.#preparation.begin();
    await this.#inference.readModel();
    const made = await this.#preparation.make(sizes, this.#inference, isStopped);
    if (made === null) return false;
    const begin = () => this.#inference.begin(made.layout);
    const isListed = this.#context.input.spec.inference.nodes === 'LISTED';
    await (isListed ? timed(this.#context, 'list nodes', begin) : begin());
    return !isStopped();
  }

  trial(): never {
    return untried();
  }

  tried(): never {
    return untried();
  }

  /** Launches one evaluation of the nodes to be predicted; there is no queue. */
  launch(executors: readonly Seat[]): ReturnType<AttemptWork['launch']> {
    const { native, input } = this.#context;
    const { layout } = this.#preparation.made;
    const { nodes, prediction } = this.#inference.work;
    const facts = { spec: input.spec, counts: input.dataset.counts, nodes };
    const evaluation = inferencePlanOf(native, layout, facts);
    const segment = inferenceSegment(this.#preparation.request(executors.length), evaluation);
    const { scratchBytes } = evaluation;
    const shared = this.#preparation.shared(this.#cache);
    return {
      parts: {
        ...shared,
        ...{ segment, evaluation, prediction },
        openHiddenRows: scratchBytes > 0 ? () => openHiddenRows(input, scratchBytes) : null,
      },
      facts: {
        queueCapacity: 0,
        slotBytes: layout.slotBytes,
        parameterCount: parameterCountOf(layout.manifest),
        cache: shared.cache,
      },
    };
  }

  run(crew: RunningCrew): RunningWork {
    this.#context.native.segmentBeginTrained(crew.segment, this.#inference.work.parameters);
    const checkDataset = () => this.#preparation.checkDataset();
    return new InferenceRun(this.#context, { crew, inference: this.#inference, checkDataset });
  }

  async stop(): Promise<void> {
    await Promise.all([this.#preparation.stop(), this.#inference.stop()]);
  }

  close(): void {
    this.#preparation.close();
  }
}

interface InferenceRunOptions {
  readonly crew: RunningCrew;
  readonly inference: Pick<JobInference, 'publish' | 'stop'>;
  /** Rejects where the dataset is not any more what it was as the job began. */
  readonly checkDataset: () => Promise<void>;
}

/** A crew that predicts: what it has done is in a journal of its own, so it goes on by itself. */
class InferenceRun implements RunningWork {
  readonly phase = 'PREDICTING';
  readonly epochs = noEpochs;
  readonly #context: WorkContext;
  readonly #options: InferenceRunOptions;

  constructor(context: WorkContext, options: InferenceRunOptions) {
    this.#context = context;
    this.#options = options;
  }

  async resume(): Promise<void> {}

  begin(): void {}

  look(): Told {
    return { all: true, againMs: null };
  }

  standing(snapshot: SegmentSnapshot): Standing {
    return standingOf(snapshot);
  }

  /** Rows, in place of batches. */
  done({ evaluation }: SegmentSnapshot): number {
    return evaluation?.done ?? 0;
  }

  progress(facts: ProgressFacts): JobProgress {
    const deviceNames = this.#context.input.devices.map(({ name }) => name);
    return inferenceProgressOf({ ...facts, deviceNames, pids: this.#options.crew.pids });
  }

  async final(): Promise<FinalWork> {
    const { crew, inference, checkDataset } = this.#options;
    await checkDataset();
    this.#context.log.info('inference.predicted', computedIn(crew.look()));
    const write = async () => {
      try {
        return await inference.publish();
      } catch (error) {
        throw new CheckpointError(`writing predictions: ${messageOf(error)}`, error);
      }
    };
    return { bytes: 0, write };
  }

  async keep(): Promise<void> {}

  stop(): Promise<void> {
    return this.#options.inference.stop();
  }
}

/** Chunks and rows that this attempt computed, without those of earlier attempts. */
function computedIn({ executors }: SegmentSnapshot) {
  const total = (counter: number) =>
    executors.reduce((sum, executor) => sum + (executor.counters[counter] ?? 0), 0);
  return { chunks: total(counters.evaluationChunks), rows: total(counters.evaluationRows) };
}
