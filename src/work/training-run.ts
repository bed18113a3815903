import { messageOf } from '../base/errors.ts';
import { featureNamesOf } from '../datasets/feature-names.ts';
import { writeCheckpoint } from '../files/checkpoint.ts';
import { readStartFile } from '../files/start-file.ts';
import type { SegmentSnapshot } from '../native/contract.ts';
import { isHistoryWarm, type JobLayout } from '../plan/plan.ts';
import type { JobProgress } from '../records/job-record.ts';
import { negativesOf } from '../spec/learnt.ts';
import { decidingMetric } from '../spec/metrics.ts';
import {
  CheckpointError,
  type EndedEpochs,
  type FinalWork,
  type Look,
  type ProgressFacts,
  type RunningCrew,
  type RunningWork,
  type Standing,
  standingOf,
  type Told,
  timingsOf,
} from '../supervisor/supervisor.ts';
import type { WorkContext } from './context.ts';
import { EpochReports, epochsAtOnce } from './epoch-reports.ts';
import { Images, resume } from './images.ts';
import type { JobCache } from './job-cache.ts';
import { accuracyIn, progressOf } from './progress.ts';

/** A crew that trains: epochs are reported, images written, and in the end the model. */

export interface TrainingRunOptions {
  readonly crew: RunningCrew;
  readonly layout: JobLayout;
  readonly cache: Pick<JobCache, 'plan' | 'seen' | 'read'>;
  /** Rejects where the dataset is not any more what it was as the job began. */
  readonly checkDataset: () => Promise<void>;
}

export class TrainingRun implements RunningWork {
  readonly phase = 'TRAINING';
  readonly #context: WorkContext;
  readonly #options: TrainingRunOptions;
  readonly #deviceNames: readonly string[];
  readonly #reports: EpochReports;
  readonly #images: Images;
  /** Batches that were committed when the attempt went on from an image. */
  #startedBatches = 0;

  constructor(context: WorkContext, options: TrainingRunOptions) {
    this.#context = context;
    this.#options = options;
    this.#deviceNames = context.input.devices.map(({ name }) => name);
    const { spec, dataset } = context.input;
    const decides = decidingMetric(spec, dataset.counts.task);
    const naming = { decides, negatives: negativesOf(spec) };
    this.#reports = new EpochReports(context.native, { deviceNames: this.#deviceNames, ...naming });
    this.#images = new Images(context, options.crew.segment);
  }

  get epochs(): EndedEpochs {
    return this.#reports;
  }

  /** Resumes from the newest image if there is one, else with the job's first parameters. */
  async resume(): Promise<void> {
    const { crew, layout } = this.#options;
    const { segment } = crew;
    const { native, input } = this.#context;
    if (input.scalesRecorded.length > 0) native.segmentRecordScales(segment, input.scalesRecorded);
    const resumed = await resume(this.#context, { segment, layout });
    if (resumed === null) {
      await this.#beginWithOther();
      return;
    }
    const { point, facts } = resumed;
    const epochs = Math.min(input.epochsReported, facts.epochs);
    this.#reports.resume(segment, epochs);
    this.#images.resume(facts);
    this.#startedBatches = facts.batches;
    this.#context.emit({ kind: 'resumed', point, epochs });
  }

  /** Begins with the parameters of another job, where the spec names one. */
  async #beginWithOther(): Promise<void> {
    const { native, input, log } = this.#context;
    const { crew, layout } = this.#options;
    const { startFrom, startParametersSha256: sha256 } = input.spec.training;
    if (sha256 === '') return;
    const parameters = await readStartFile(input.jobFolder, layout.manifest, sha256);
    native.segmentBeginWith(crew.segment, parameters);
    log.info('attempt.begins_with', { startFrom, sha256 });
  }

  begin(look: Look): void {
    this.#reports.start(look);
  }

  look(look: Look, hasBegun: boolean): Told {
    const { snapshot } = look;
    const { cache } = this.#options;
    if (cache.seen(snapshot.executors)) this.#tellCache();
    const againMs = this.#reportEpochs(look);
    if (hasBegun) this.#images.look(snapshot, this.#reports.count);
    return { all: this.#reports.count >= snapshot.epochsToTrain, againMs };
  }

  #tellCache(): void {
    this.#context.emit({ kind: 'cacheSeen', cache: this.#options.cache.plan });
  }

  /** Milliseconds after which more may be told, where these were as many as one look tells. */
  #reportEpochs(look: Look): number | null {
    const { cache, crew } = this.#options;
    const { clock, emit } = this.#context;
    const reports = this.#reports.take(crew.segment, look);
    if (reports.length === 0) return null;
    const timings = this.#isWarm() ? timingsOf(look.snapshot, cache.plan.prefetch) : null;
    emit({ kind: 'epochsEnded', reports, timings });
    if (cache.read(look.snapshot.executors)) this.#tellCache();
    // Others get as much time of the event loop first as these reports took.
    return reports.length < epochsAtOnce ? null : clock.monotonicMs() - look.atMs;
  }

  #isWarm(): boolean {
    const { spec } = this.#context.input;
    const { batchesPerEpoch } = this.#options.layout;
    const stepsPerEpoch = Math.ceil(batchesPerEpoch / spec.training.batchesPerStep);
    return isHistoryWarm(spec, { steps: this.#reports.count * stepsPerEpoch, stepsPerEpoch });
  }

  standing(snapshot: SegmentSnapshot): Standing {
    return standingOf(snapshot);
  }

  done({ committedBatches }: SegmentSnapshot): number {
    return committedBatches;
  }

  progress(facts: ProgressFacts): JobProgress {
    const { native, input } = this.#context;
    const { crew, layout } = this.#options;
    return progressOf({
      ...facts,
      deviceNames: this.#deviceNames,
      pids: crew.pids,
      epochs: input.spec.training.epochs,
      batchesPerEpoch: layout.batchesPerEpoch,
      current: native.segmentEpoch(crew.segment, facts.now.snapshot.epoch),
      lastReport: this.#reports.last,
      valMetrics: this.#reports.valMetrics,
      startedBatches: this.#startedBatches,
    });
  }

  /** The model of the last epoch and of the best one, whose dataset is still what it was. */
  async final(): Promise<FinalWork> {
    await this.#options.checkDataset();
    const { native, input } = this.#context;
    const { segment } = this.#options.crew;
    const { manifest, model } = this.#options.layout;
    const reports = this.#reports;
    const last = native.segmentParameters(segment, 'LAST');
    const best = native.segmentParameters(segment, 'BEST');
    const bestReport = reports.again(segment, best.at);
    if (bestReport === null) throw new Error('the job is complete, but its epochs are not');
    const testMetricsLast = reports.testMetricsOf(segment, reports.count - 1);
    const testMetricsBest = reports.testMetricsOf(segment, best.at);
    const metrics = { testMetricsLast, testMetricsBest, bestValMetrics: bestReport.valMetrics };
    const { jobId: job, uid, spec, datasetDigest, checkpointFolder } = input;
    const accuracies = {
      testAccuracyLast: accuracyIn(testMetricsLast) ?? 0,
      testAccuracyBest: accuracyIn(testMetricsBest) ?? 0,
      bestEpoch: best.at,
      bestValAccuracy: bestReport.valAccuracy ?? 0,
      epochs: reports.count,
    };
    const { task } = input.dataset.counts;
    const featureNames = featureNamesOf(input.dataset.folder);
    const what = { datasetDigest, task, featureNames, spec };
    const facts = { job, uid, ...what, ...accuracies, ...metrics };
    const files = { last: last.data, best: best.data, model, facts };
    const write = async () => {
      try {
        const digests = await writeCheckpoint(checkpointFolder, manifest, files);
        const { parametersSha256 } = digests.last;
        return { parametersSha256, checkpointDir: checkpointFolder, ...accuracies, ...metrics };
      } catch (error) {
        throw new CheckpointError(`writing ${checkpointFolder}: ${messageOf(error)}`, error);
      }
    };
    return { bytes: 2 * last.data.byteLength, write };
  }

  async keep(isWorthIt: boolean): Promise<void> {
    if (isWorthIt) await this.#images.writeLast(this.#options.crew.look());
    else await this.#images.settled();
  }

  async stop(): Promise<void> {}
}
