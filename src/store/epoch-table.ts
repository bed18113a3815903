import type { EpochReport, FollowingScale } from '../records/job-record.ts';
import { type AttemptTable, refused } from './attempt-table.ts';
import { dictionary, float, fromJson, integer, nullable, object, text, toJson } from './codec.ts';
import type { Cell, Database, Row } from './database.ts';
import { epochWork, executorTimes, metrics, scale } from './shapes.ts';
import type { EpochPlace, StoredEpoch } from './store-types.ts';

/**
 * The reports of epochs: a job's history, read in pages and never as a part of the job. Each has a
 * revision, in the order of events: whoever saw a revision saw all epochs up to it.
 */
export interface EpochTable {
  /** Epochs from `first` on, at most `limit`. */
  list(jobSeq: number, attempt: number, first: number, limit: number): readonly StoredEpoch[];
  count(jobSeq: number, attempt: number): number;
  /** Number of epochs of the newest earlier attempt that has some. */
  countBefore(jobSeq: number, attempt: number): number;
  /**
   * Scales that followed the job's epochs, from the first on, where locality adapts: also those
   * whose reports were forgotten because they are trained again.
   */
  scales(jobSeq: number): readonly FollowingScale[];
  /** The place of the first epoch after `revision`; of the next one where there is none yet. */
  placeAfter(jobSeq: number, revision: number): EpochPlace;
  /**
   * Only inside a transaction. The reports of the newest earlier attempt that has some become this
   * attempt's up to the epoch `end`, with their revisions: nobody is told of them again. Those from
   * there on are forgotten, because their epochs are trained again.
   */
  takeOver(jobSeq: number, attempt: number, end: number): void;
  /**
   * Only inside a transaction; `advance` takes so many revisions and gives the first. Reports that
   * were recorded before, with the same content, change nothing.
   */
  record(
    jobSeq: number,
    attempt: number,
    reports: readonly EpochReport[],
    advance: (count: number) => number,
  ): void;
}

const batchesByDevice = dictionary(integer);
const epochRow = object({
  epoch: integer,
  batches: integer,
  steps: integer,
  retries: integer,
  loss: float,
  train_accuracy: float,
  val_accuracy: nullable(float),
  duration_ms: float,
  version: integer,
  parameters_sha256: text,
  ledger_digest: text,
  batches_by_device: fromJson(batchesByDevice),
  executor_times: fromJson(executorTimes),
  work: fromJson(epochWork),
  val_metrics: fromJson(metrics),
});

export function epochTable(database: Database, attempts: AttemptTable): EpochTable {
  const sql = statements(database);
  const count = (jobSeq: number, attempt: number): number => {
    const last = database.get(sql.last, jobSeq, attempt)?.['epoch'] ?? null;
    return last === null ? 0 : integer(last, 'epochs.epoch') + 1;
  };
  const revisionOf = (jobSeq: number, attempt: number, epoch: number): number =>
    integer(database.get(sql.revision, jobSeq, attempt, epoch)?.['revision'], 'epochs.revision');

  /** The first epoch of an attempt that is newer; revisions ascend with epochs. */
  const firstAfter = (jobSeq: number, attempt: number, revision: number): number => {
    let low = 0;
    let high = count(jobSeq, attempt);
    if (high === 0 || revisionOf(jobSeq, attempt, high - 1) <= revision) return high;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (revisionOf(jobSeq, attempt, middle) <= revision) low = middle + 1;
      else high = middle;
    }
    return low;
  };

  const newestWithEpochs = (jobSeq: number, before: number): number => {
    for (let attempt = before - 1; attempt > 0; attempt -= 1) {
      if (count(jobSeq, attempt) > 0) return attempt;
    }
    return 0;
  };

  const assertSame = (jobSeq: number, attempt: number, report: EpochReport): void => {
    const known = database.get(sql.one, jobSeq, attempt, report.epoch);
    const same = known !== null && epochCells(reportOf(known));
    if (JSON.stringify(same) === JSON.stringify(epochCells(report))) return;
    throw refused(`epoch ${report.epoch} was recorded with another content`);
  };

  return {
    count,
    countBefore: (jobSeq, attempt) => count(jobSeq, newestWithEpochs(jobSeq, attempt)),
    scales: (jobSeq) =>
      database.all(sql.scales, jobSeq).map(({ next }) => fromJson(scale)(next, 'scales.next')),
    list: (jobSeq, attempt, first, limit) =>
      database.all(sql.page, jobSeq, attempt, first, limit).map((row) => ({
        revision: integer(row['revision'], 'epochs.revision'),
        report: reportOf(row),
      })),
    placeAfter(jobSeq, revision) {
      const newest = Math.max(1, attempts.newest(jobSeq));
      let place = { attempt: newest, epoch: firstAfter(jobSeq, newest, revision) };
      // An earlier attempt may have some, too, when all of a later one are new.
      for (let attempt = newest - 1; attempt > 0 && place.epoch === 0; attempt -= 1) {
        const epochs = count(jobSeq, attempt);
        const epoch = firstAfter(jobSeq, attempt, revision);
        if (epoch < epochs) place = { attempt, epoch };
        else if (epochs > 0) break;
      }
      return place;
    },
    takeOver(jobSeq, attempt, end) {
      if (count(jobSeq, attempt) > 0) throw refused(`attempt ${attempt} has epochs already`);
      const from = newestWithEpochs(jobSeq, attempt);
      database.run(sql.forget, jobSeq, from, end);
      database.run(sql.takeOver, attempt, jobSeq, from);
    },
    record(jobSeq, attempt, reports, advance) {
      const recorded = count(jobSeq, attempt);
      const fresh = reports.filter((report) => report.epoch >= recorded);
      for (const report of reports) {
        if (report.epoch < recorded) assertSame(jobSeq, attempt, report);
      }
      if (fresh.length === 0) return;
      attempts.assertOpen(jobSeq, attempt);
      const revision = advance(fresh.length);
      for (const [index, report] of fresh.entries()) {
        const due = recorded + index;
        if (report.epoch !== due) {
          throw refused(`epoch ${report.epoch} came when epoch ${due} was due`);
        }
        database.run(sql.insert, jobSeq, attempt, ...epochCells(report), revision + index);
        const { next } = report.work;
        if (next === null) continue;
        database.run(sql.keepScale, jobSeq, report.epoch, toJson(next, scale, 'scale'));
      }
    },
  };
}

function statements(database: Database) {
  return {
    page: database.prepare(
      'SELECT * FROM epochs WHERE job_seq = ? AND attempt = ? AND epoch >= ? ORDER BY epoch LIMIT ?',
    ),
    one: database.prepare('SELECT * FROM epochs WHERE job_seq = ? AND attempt = ? AND epoch = ?'),
    scales: database.prepare('SELECT next FROM scales WHERE job_seq = ? ORDER BY epoch'),
    keepScale: database.prepare(
      'INSERT OR REPLACE INTO scales (job_seq, epoch, next) VALUES (?, ?, ?)',
    ),
    // Uses the primary key: the number of reports is the last epoch and one.
    last: database.prepare(
      'SELECT max(epoch) AS epoch FROM epochs WHERE job_seq = ? AND attempt = ?',
    ),
    revision: database.prepare(
      'SELECT revision FROM epochs WHERE job_seq = ? AND attempt = ? AND epoch = ?',
    ),
    forget: database.prepare('DELETE FROM epochs WHERE job_seq = ? AND attempt = ? AND epoch >= ?'),
    takeOver: database.prepare('UPDATE epochs SET attempt = ? WHERE job_seq = ? AND attempt = ?'),
    insert: database.prepare(
      `INSERT INTO epochs (job_seq, attempt, epoch, batches, steps, retries, loss, train_accuracy,
         val_accuracy, duration_ms, version, parameters_sha256, ledger_digest,
         batches_by_device, executor_times, work, val_metrics, revision)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
  };
}

/** Cells of an epoch's row, in the order of the columns. */
function epochCells(report: EpochReport): Cell[] {
  const { parametersSha256, ledgerDigest } = report;
  return [
    ...[report.epoch, report.batches, report.steps, report.retries],
    // SQLite has no NaN: it stores NULL.
    ...[report.loss, report.trainAccuracy, report.valAccuracy].map(nanAsNull),
    ...[nanAsNull(report.durationMs), report.version, parametersSha256, ledgerDigest],
    toJson(sortedByKey(report.batchesByDevice), batchesByDevice, 'batches by device'),
    toJson(report.executorTimes, executorTimes, 'executor times'),
    toJson(report.work, epochWork, 'work'),
    toJson(report.valMetrics, metrics, 'metrics'),
  ];
}

function nanAsNull(value: number | null): number | null {
  return Number.isNaN(value) ? null : value;
}

function sortedByKey(counts: Readonly<Record<string, number>>): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(counts).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function reportOf(row: Row): EpochReport {
  const stored = epochRow(row, `epoch ${String(row['epoch'])} of job ${String(row['job_seq'])}`);
  return {
    epoch: stored.epoch,
    batches: stored.batches,
    steps: stored.steps,
    retries: stored.retries,
    loss: stored.loss,
    trainAccuracy: stored.train_accuracy,
    valAccuracy: stored.val_accuracy,
    durationMs: stored.duration_ms,
    version: stored.version,
    parametersSha256: stored.parameters_sha256,
    ledgerDigest: stored.ledger_digest,
    batchesByDevice: stored.batches_by_device,
    executorTimes: stored.executor_times,
    work: stored.work,
    valMetrics: stored.val_metrics,
  };
}
