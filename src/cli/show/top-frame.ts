import { ExecutorRoleSchema, type ExecutorStatus } from '../../api/gen/gnnd/v1/executor_pb.ts';
import {
  type Device,
  DeviceState,
  DeviceStateSchema,
  type Host,
} from '../../api/gen/gnnd/v1/host_service_pb.ts';
import {
  type Job,
  JobPhaseSchema,
  JobState,
  JobStateSchema,
} from '../../api/gen/gnnd/v1/job_pb.ts';
import type { JobTimeline } from '../../api/gen/gnnd/v1/timeline_pb.ts';
import { counted } from '../../spec/counted.ts';
import { shortName } from '../../spec/enum-names.ts';
import { firstOf, metricLabel } from '../../spec/metrics.ts';
import { bar, type Glyphs, padEnd, padStart, printable, type Style } from '../session/terminal.ts';
import { formatDuration, formatPercent, formatRate } from '../session/units.ts';
import {
  evaluationShare,
  evaluationTitle,
  idOf,
  paintState,
  phaseText,
  reasonText,
  roleText,
  specOf,
  wallMs,
} from './job-text.ts';
import { epochText } from './kind-views.ts';

/** What `gnnctl top` shows: a host at one moment, as text for people and as JSON for programs. */

export interface TopSnapshot {
  readonly atMs: number;
  readonly host: Host;
  readonly devices: readonly Device[];
  /** That have not ended, those with devices first. */
  readonly jobs: readonly TopJob[];
}

export interface TopJob {
  readonly job: Job;
  /** Feature rows that batches read; null while nothing is known. */
  readonly rows: RowRates | null;
}

export interface RowRates {
  readonly perSecond: number;
  /** The share that caches had, 0 to 1; null where none was read. */
  readonly hitRate: number | null;
}

/** Stretches of a timeline that together are at least so long say what is so now. */
const recentNs = 5e9;

/** Rows of the last seconds; of an attempt's beginning, of what there is. */
export function rowRatesOf({ stretches }: JobTimeline): RowRates | null {
  let [lastingNs, cached, read] = [0, 0, 0];
  for (const { durationNs, executors } of [...stretches].reverse()) {
    if (lastingNs >= recentNs) break;
    lastingNs += Number(durationNs);
    for (const { cachedRows, readRows } of executors) {
      cached += Number(cachedRows);
      read += Number(readRows);
    }
  }
  if (lastingNs === 0) return null;
  const rows = cached + read;
  return { perSecond: rows / (lastingNs / 1e9), hitRate: rows === 0 ? null : cached / rows };
}

/** Trained batches per second, over the last seconds. */
export function batchesPerSecond(job: Job): number {
  const batchSize = specOf(job)?.training?.batchSize ?? 0;
  return batchSize === 0 ? 0 : (job.progress?.seedsPerSecond ?? 0) / batchSize;
}

export interface TopOptions {
  /** Rows of the screen; what does not fit is counted in a line of its own. */
  readonly rows: number;
  readonly style: Style;
  readonly glyphs: Glyphs;
  /** Something about the view itself, e.g. that the connection is lost. */
  readonly notice: string | null;
}

export function topFrame(snapshot: TopSnapshot, options: TopOptions): readonly string[] {
  const { style, notice } = options;
  const devices = deviceLines(snapshot, options);
  const jobs = jobLines(snapshot, options);
  const head = [
    ...headLines(snapshot, options),
    ...(notice === null ? [] : [style.yellow(notice)]),
  ];
  // Devices are few, jobs may be thousands: these give way, but for the first five.
  const room = Math.max(5, options.rows - head.length - devices.length - 5);
  const shown = jobs.slice(0, room + 1);
  const hidden = jobs.length - shown.length;
  const more = hidden > 0 ? [style.dim(`and ${hidden} more: gnnctl job list`)] : [];
  const none = jobs.length === 1 ? [style.dim('no job runs or waits')] : [];
  return [...head, '', ...(none.length > 0 ? none : shown), ...more, '', ...devices];
}

function headLines(snapshot: TopSnapshot, { style, glyphs }: TopOptions): readonly string[] {
  const { host, devices } = snapshot;
  const startMs = wallMs(host.startTime);
  const inUse = devices.filter(({ state }) => state === DeviceState.ALLOCATED).length;
  const countOf = (state: JobState) => Number(host.jobs[shortName(JobStateSchema, state)] ?? 0n);
  const parts = [
    style.bold(printable(host.hostname)),
    `gnnd ${host.version}`,
    startMs === null ? '' : `up ${formatDuration(Math.max(0, snapshot.atMs - startMs))}`,
    `${inUse} of ${counted(devices.length, 'device')} in use`,
    `${countOf(JobState.RUNNING)} running, ${countOf(JobState.PENDING)} waiting`,
    host.ready ? '' : style.yellow('takes no jobs now'),
  ];
  return [parts.filter((text) => text !== '').join(` ${glyphs.dot} `)];
}

type Cells = readonly string[];

/** Columns with two spaces between them; `right` are those of numbers. */
function columnsOf(rows: readonly Cells[], right: ReadonlySet<number>, style: Style) {
  const widths = (rows[0] ?? []).map((_, index) =>
    Math.max(...rows.map((cells) => (cells[index] ?? '').length)),
  );
  return rows.map((cells, row) => {
    const padded = cells.map((cell, index) =>
      (right.has(index) ? padStart : padEnd)(cell, widths[index] ?? 0),
    );
    const line = padded.join('  ').trimEnd();
    return row === 0 ? style.dim(line) : line;
  });
}

const jobTitles = [
  ...['job', 'state', 'epoch', 'done', 'batches/s', 'rows/s', 'hits', 'queue', 'loss'],
  ...['validation', 'left', ''],
];
const jobNumbers = new Set([2, 3, 4, 5, 6, 7, 8, 9, 10]);

function jobLines({ jobs }: TopSnapshot, { style }: TopOptions): readonly string[] {
  const lines = columnsOf([jobTitles, ...jobs.map(jobCells)], jobNumbers, style);
  return lines.map((line, index) => {
    const state = jobs[index - 1]?.job.state;
    // Painted last: colours have no width.
    const word = state === undefined ? '' : shortName(JobStateSchema, state);
    return state === undefined ? line : line.replace(word, paintState(state, style));
  });
}

function jobCells({ job, rows }: TopJob): Cells {
  const { progress } = job;
  const name = printable(idOf(job.name));
  const state = shortName(JobStateSchema, job.state);
  if (progress === undefined || job.state === JobState.PENDING) {
    const why = job.message === '' ? reasonText(job.reason) : printable(job.message);
    return [
      name,
      state,
      epochText(job),
      '',
      '',
      '',
      '',
      '',
      '',
      '',
      '',
      phaseText(job.phase) || why,
    ];
  }
  const trains = progress.batchesPerEpoch > 0n;
  const done = doneShare(job);
  const leftMs = Number(progress.remainingMs);
  return [
    ...[name, state, epochText(job), done === null ? '' : formatPercent(done, 0)],
    trains ? rateText(batchesPerSecond(job)) : '',
    rows === null ? '' : formatRate(rows.perSecond),
    rows?.hitRate == null ? '' : formatPercent(rows.hitRate),
    trains ? `${progress.queueDepth}/${progress.queueCapacity}` : '',
    progress.version > 0n ? progress.loss.toFixed(4) : '',
    valText(progress),
    leftMs > 0 ? formatDuration(leftMs) : '',
    activityText(job),
  ];
}

function valText({ valMetrics, valAccuracy }: NonNullable<Job['progress']>): string {
  const metric = firstOf(valMetrics, valAccuracy);
  return metric === undefined ? '' : metricLabel(metric);
}

function activityText({ phase, progress }: Job): string {
  const evaluation = progress?.evaluation;
  if (evaluation === undefined) return phaseText(phase);
  return `${evaluationTitle(evaluation)} ${formatPercent(evaluationShare(evaluation), 0)}`;
}

/** Batches are few per second where graphs are large. */
function rateText(value: number): string {
  return value < 100 ? value.toFixed(1) : formatRate(value);
}

/** Share that is done of all epochs, 0 to 1; for an inference, of its rows. */
function doneShare({ progress }: Job): number | null {
  if (progress === undefined) return null;
  const perEpoch = Number(progress.batchesPerEpoch);
  if (perEpoch === 0) {
    return progress.evaluation === undefined ? null : evaluationShare(progress.evaluation);
  }
  const done = progress.epoch * perEpoch + Math.min(perEpoch, Number(progress.batchesCommitted));
  return Math.min(1, done / (Math.max(1, progress.epochs) * perEpoch));
}

const deviceTitles = ['device', 'state', 'job', 'role', 'does', 'busy', 'batches', 'hits'];
const deviceNumbers = new Set([6, 7]);
const busyWidth = 10;

function deviceLines(snapshot: TopSnapshot, { style, glyphs }: TopOptions): readonly string[] {
  const rows = executorsByDevice(snapshot).flatMap(({ device, executors }): readonly Cells[] => {
    const id = printable(idOf(device.name));
    const state = shortName(DeviceStateSchema, device.state);
    const head = [id, state, printable(idOf(device.job))];
    if (executors.length === 0) return [[...head, '', '', '', '', '']];
    return executors.map(({ role, stage, busy, batches, cacheHitRate }, index) => [
      ...(index === 0 ? head : ['', '', '']),
      roleText(role),
      printable(stage).toLowerCase(),
      `${bar(busy, busyWidth, glyphs)} ${padStart(formatPercent(busy, 0), 5)}`,
      String(batches),
      cacheHitRate > 0 ? formatPercent(cacheHitRate) : '',
    ]);
  });
  return columnsOf([deviceTitles, ...rows], deviceNumbers, style);
}

interface DeviceRow {
  readonly device: Device;
  readonly executors: readonly ExecutorStatus[];
}

/** Executors call a device by its id; one that several jobs share has those of each. */
function executorsByDevice({ devices, jobs }: TopSnapshot): readonly DeviceRow[] {
  const all = jobs.flatMap(({ job }) => job.progress?.executors ?? []);
  return devices.map((device) => ({
    device,
    executors: all.filter((executor) => executor.device === idOf(device.name)),
  }));
}

/** The same for programs: exact numbers, units in names; null is what is not known. */
export function topJson(snapshot: TopSnapshot) {
  const { host } = snapshot;
  return {
    time: new Date(snapshot.atMs).toISOString(),
    hostname: host.hostname,
    version: host.version,
    ready: host.ready,
    jobCounts: Object.fromEntries(Object.entries(host.jobs).map(([k, n]) => [k, Number(n)])),
    jobs: snapshot.jobs.map(jobJson),
    devices: executorsByDevice(snapshot).map(({ device, executors }) => ({
      device: idOf(device.name),
      state: shortName(DeviceStateSchema, device.state),
      job: device.job === '' ? null : idOf(device.job),
      executors: executors.map((executor) => ({
        role: shortName(ExecutorRoleSchema, executor.role),
        pid: executor.pid,
        stage: executor.stage,
        busyShare: executor.busy,
        batches: Number(executor.batches),
        cacheHitRate: executor.cacheHitRate,
      })),
    })),
  };
}

function jobJson({ job, rows }: TopJob) {
  const { progress } = job;
  const metric = firstOf(progress?.valMetrics ?? [], progress?.valAccuracy ?? 0);
  return {
    job: idOf(job.name),
    state: shortName(JobStateSchema, job.state),
    phase: shortName(JobPhaseSchema, job.phase),
    reason: reasonText(job.reason),
    message: job.message,
    attempt: job.attempts.at(-1)?.number ?? null,
    epoch: progress?.epoch ?? null,
    epochs: progress?.epochs ?? null,
    doneShare: doneShare(job),
    batchesPerSecond: progress === undefined ? null : batchesPerSecond(job),
    seedsPerSecond: progress?.seedsPerSecond ?? null,
    edgesPerSecond: progress?.edgesPerSecond ?? null,
    rowsPerSecond: rows?.perSecond ?? null,
    hitRate: rows?.hitRate ?? null,
    queueDepth: progress?.queueDepth ?? null,
    queueCapacity: progress?.queueCapacity ?? null,
    loss: progress?.loss ?? null,
    valAccuracy: metric?.name === 'accuracy' ? metric.value : null,
    valMetric: metric === undefined ? null : { name: metric.name, value: metric.value },
    remainingMs: progress === undefined ? null : Number(progress.remainingMs) || null,
  };
}
