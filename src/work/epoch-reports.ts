import type { CoreAddon, SegmentEpoch, SegmentHandle } from '../native/contract.ts';
import type { EpochReport } from '../records/job-record.ts';
import type { Metric } from '../spec/metrics.ts';
import { ExecutorTimer, type Look } from '../supervisor/supervisor.ts';
import { epochReportOf, metricsOf, type ReportedJob } from './progress.ts';

/** Epochs that one look reports at most: a job of tiny epochs must not hold up everybody else. */
export const epochsAtOnce = 200;

/**
 * The epochs of an attempt as they end. Only the last report is kept, whatever their number: the
 * segment has the others, and so has the store.
 */
export class EpochReports {
  readonly #native: Pick<CoreAddon, 'segmentEpoch'>;
  readonly #job: ReportedJob;
  readonly #timer: ExecutorTimer;
  #count = 0;
  /** The segment's record of the last one reported. */
  #previous: SegmentEpoch | null = null;
  #last: EpochReport | null = null;
  #valMetrics: readonly Metric[] = [];

  constructor(native: Pick<CoreAddon, 'segmentEpoch'>, job: ReportedJob) {
    this.#native = native;
    this.#job = job;
    this.#timer = new ExecutorTimer(job.deviceNames);
  }

  /** How many have been reported. */
  get count(): number {
    return this.#count;
  }

  get last(): EpochReport | null {
    return this.#last;
  }

  /** Metrics of the last evaluation; none before the first. */
  get valMetrics(): readonly Metric[] {
    return this.#valMetrics;
  }

  /** Executors' times count from here. */
  start(look: Look): void {
    this.#timer.start(look);
  }

  /** The first `count` were reported by an earlier attempt. */
  resume(segment: SegmentHandle, count: number): void {
    if (count === 0) return;
    this.#count = count;
    this.#previous = this.#native.segmentEpoch(segment, count - 1);
    this.#last = this.again(segment, count - 1);
    for (let epoch = count - 1; epoch >= 0 && this.#valMetrics.length === 0; epoch -= 1) {
      this.#valMetrics = this.again(segment, epoch)?.valMetrics ?? [];
    }
  }

  /** Reports epochs that ended since the last call, in order, at most `epochsAtOnce`. */
  take(segment: SegmentHandle, look: Look): readonly EpochReport[] {
    const reports: EpochReport[] = [];
    while (this.#count < look.snapshot.epochsToTrain && reports.length < epochsAtOnce) {
      const epoch = this.#native.segmentEpoch(segment, this.#count);
      if (!epoch.complete) break;
      const times = this.#timer.lap(look);
      const report = epochReportOf(epoch, this.#previous, this.#job, times);
      this.#count += 1;
      this.#previous = epoch;
      this.#last = report;
      if (report.valMetrics.length > 0) this.#valMetrics = report.valMetrics;
      reports.push(report);
    }
    return reports;
  }

  /** Repeats an earlier report, without the executors' times; null when there is none. */
  again(segment: SegmentHandle, epoch: number): EpochReport | null {
    if (epoch < 0 || epoch >= this.#count) return null;
    const found = this.#native.segmentEpoch(segment, epoch);
    const previous = epoch === 0 ? null : this.#native.segmentEpoch(segment, epoch - 1);
    return epochReportOf(found, previous, this.#job, []);
  }

  /** Metrics of the test nodes by the epoch's parameters; empty: they were not evaluated. */
  testMetricsOf(segment: SegmentHandle, epoch: number): readonly Metric[] {
    const { test } = this.#native.segmentEpoch(segment, epoch);
    return test === null ? [] : metricsOf(test.metrics, this.#job);
  }
}
