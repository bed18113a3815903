import type { EpochReport } from '../../api/gen/gnnd/v1/epoch_report_pb.ts';
import type { ExecutorStatus } from '../../api/gen/gnnd/v1/executor_pb.ts';
import {
  type EvaluationProgress,
  type Job,
  type JobProgress,
  JobState,
} from '../../api/gen/gnnd/v1/job_pb.ts';
import { counted } from '../../spec/counted.ts';
import {
  firstOf,
  metricPhrase,
  metricText,
  metricTitle,
  testMetricsOf,
  valMetricOf,
} from '../../spec/metrics.ts';
import { isTerminal } from '../session/exit.ts';
import {
  bar,
  createStyle,
  type Glyphs,
  padEnd,
  padStart,
  printable,
  type Style,
  sparkline,
} from '../session/terminal.ts';
import { formatAge, formatDuration, formatPercent, formatRate } from '../session/units.ts';
import {
  evaluationLeft,
  evaluationShare,
  evaluationTitle,
  idOf,
  inferenceText,
  modelText,
  paintState,
  phaseText,
  predictionsText,
  reasonText,
  roleText,
  runTimeText,
  specOf,
  wallMs,
} from './job-text.ts';
import { decidingTitle, viewOf } from './kind-views.ts';

/** How the live view of a job looks: pure text of what is known. */
export interface FrameOptions {
  /** Wall time. */
  readonly nowMs: number;
  readonly columns: number;
  readonly style: Style;
  readonly glyphs: Glyphs;
  /** Something about the view itself, e.g. that the connection is lost. */
  readonly notice: string | null;
}

/** The lines of one frame, at least one; wide lines are cut by whoever draws them. */
export function renderFrame(job: Job, options: FrameOptions): readonly string[] {
  const { progress } = job;
  const hasWork = progress !== undefined && viewOf(specOf(job)).isUnderWay(progress);
  const isShown = hasWork && !isTerminal(job.state);
  const sections = [
    headLines(job, options),
    isShown ? progressLines(job, progress, options) : [],
    isShown ? executorLines(progress.executors, options) : [],
    curveLines(job, options),
    endLines(job, options),
    options.notice === null ? [] : [options.style.yellow(options.notice)],
  ];
  return sections
    .filter((lines) => lines.length > 0)
    .flatMap((lines) => ['', ...lines])
    .slice(1);
}

/** In which a job does nothing, and says why. */
const statesWithReason: ReadonlySet<JobState> = new Set([
  JobState.PENDING,
  JobState.CANCELLING,
  JobState.SUSPENDING,
  JobState.SUSPENDED,
]);

function headLines(job: Job, options: FrameOptions): readonly string[] {
  const { style, glyphs, nowMs } = options;
  const attempt = job.attempts.at(-1)?.number ?? 1;
  const parts = [
    [style.bold(idOf(job.name)), paintState(job.state, style), phaseText(job.phase)]
      .filter((text) => text !== '')
      .join('  '),
    runTimeText(job, nowMs),
    attempt > 1 ? style.yellow(`attempt ${attempt}`) : '',
  ];
  const spec = specOf(job);
  const lines = [
    parts.filter((text) => text !== '').join(` ${glyphs.dot} `),
    style.dim(
      [spec?.dataset ?? '', inferenceText(spec), modelText(spec)]
        .filter((text) => text !== '')
        .join(', '),
    ),
  ];
  if (statesWithReason.has(job.state)) {
    const sinceMs = wallMs(job.createTime);
    const since = sinceMs === null ? '' : ` (created ${formatAge(nowMs - sinceMs)} ago)`;
    const why = job.message === '' ? reasonText(job.reason) : printable(job.message);
    if (why !== '') lines.push(`${why}${since}`);
  }
  return lines.filter((line) => line !== '');
}

function progressLines(
  job: Job,
  progress: JobProgress,
  { columns, style, glyphs }: FrameOptions,
): readonly string[] {
  // Nothing is shown of a training before its epochs are known.
  if (progress.epochs === 0) return evaluationLines(progress, { columns, style, glyphs });
  const perEpoch = Math.max(1, Number(progress.batchesPerEpoch));
  const inEpoch = Math.min(perEpoch, Number(progress.batchesCommitted));
  const epochs = Math.max(1, progress.epochs);
  const epoch = Math.min(progress.epoch, epochs - 1);
  const share = Math.min(1, (epoch * perEpoch + inEpoch) / (epochs * perEpoch));
  const remainingMs = Number(progress.remainingMs);
  const left = remainingMs > 0 ? `${formatDuration(remainingMs)} left` : '';
  const width = Math.max(10, Math.min(40, columns - 55));
  const hasLoss = progress.version > 0n || job.epochs.length > 0;
  const queueWidth = Math.min(10, Math.max(1, progress.queueCapacity));
  const queueShare = progress.queueDepth / Math.max(1, progress.queueCapacity);
  const facts = [
    ['loss', hasLoss ? progress.loss.toFixed(4) : '-'],
    valFact(job, progress),
    ['seeds/s', formatRate(progress.seedsPerSecond)],
    ['edges/s', formatRate(progress.edgesPerSecond)],
  ];
  return [
    [
      `epoch ${padStart(String(epoch + 1), String(epochs).length)}/${epochs}`,
      `${style.cyan(bar(share, width, glyphs))} ${padStart(formatPercent(share, 0), 5)}`,
      `batch ${padStart(String(inEpoch), String(perEpoch).length)}/${perEpoch}`,
      style.bold(left),
    ]
      .join('  ')
      .trimEnd(),
    ...evaluationLines(progress, { columns, style, glyphs }),
    facts.map(([title, text]) => `${style.dim(title ?? '')} ${text}`).join('   '),
    `${style.dim('queue')} ${bar(queueShare, queueWidth, glyphs)} ` +
      `${progress.queueDepth} of ${progress.queueCapacity} ready`,
  ];
}

/** The deciding metric of the last evaluation. */
function valFact(job: Job, { valMetrics, valAccuracy }: JobProgress): [string, string] {
  const metric = firstOf(valMetrics, valAccuracy);
  const isKnown = metric !== undefined && job.epochs.length > 0;
  return [`val ${decidingTitle(job)}`, isKnown ? metricText(metric) : '-'];
}

function evaluationLines(
  { evaluation }: JobProgress,
  { columns, style, glyphs }: Pick<FrameOptions, 'columns' | 'style' | 'glyphs'>,
): readonly string[] {
  if (evaluation === undefined) return [];
  const share = evaluationShare(evaluation);
  const width = Math.max(10, Math.min(40, columns - 55));
  const left = evaluationLeft(evaluation);
  const parts = [
    evaluationTitle(evaluation),
    `${style.cyan(bar(share, width, glyphs))} ${padStart(formatPercent(share, 0), 5)}`,
    style.bold(left),
  ];
  return [parts.filter((part) => part !== '').join('  ')];
}

function executorLines(
  executors: readonly ExecutorStatus[],
  { style, glyphs }: FrameOptions,
): readonly string[] {
  if (executors.length === 0) return [];
  const deviceWidth = Math.max(6, ...executors.map(({ device }) => device.length));
  const busyWidth = 10;
  const head = [
    padEnd('device', deviceWidth),
    padEnd('role', 7),
    padEnd('stage', 8),
    padEnd('busy', busyWidth + 6),
    padStart('batches', 8),
  ].join('  ');
  const rows = executors.map(({ device, role, stage, busy, batches }) =>
    [
      padEnd(printable(device), deviceWidth),
      padEnd(roleText(role), 7),
      padEnd(printable(stage).toLowerCase(), 8),
      `${bar(busy, busyWidth, glyphs)} ${padStart(formatPercent(busy, 0), 5)}`,
      padStart(String(batches), 8),
    ].join('  '),
  );
  return [style.dim(head), ...rows];
}

function curveLines(job: Job, { columns, style, glyphs }: FrameOptions): readonly string[] {
  const { epochs } = job;
  const [first, last] = [epochs[0], epochs.at(-1)];
  if (first === undefined || last === undefined || epochs.length < 2) return [];
  const width = Math.max(8, Math.min(30, columns - 45));
  const curve = (title: string, values: readonly number[], text: (value: number) => string) => {
    const line = sparkline(values, width, glyphs);
    const ends = `${text(values[0] ?? 0)} ${glyphs.arrow} ${text(values.at(-1) ?? 0)}`;
    return `${style.dim(padEnd(title, 12))}  ${style.cyan(line)}  ${ends}`;
  };
  const losses = epochs.map(({ loss }) => loss);
  const evaluated = epochs.flatMap((report) => valMetricOf(report) ?? []);
  const title = metricTitle(evaluated[0]?.name ?? 'accuracy');
  const text = (value: number) => metricText({ name: evaluated[0]?.name ?? 'accuracy', value });
  return [
    curve('loss', losses, (value) => value.toFixed(4)),
    ...(evaluated.length < 2
      ? []
      : [
          curve(
            `val ${title}`,
            evaluated.map(({ value }) => value),
            text,
          ),
        ]),
  ];
}

function endLines(job: Job, { style, glyphs }: FrameOptions): readonly string[] {
  if (!isTerminal(job.state)) return [];
  const { result } = job;
  if (job.state === JobState.SUCCEEDED && result?.predictions !== undefined) {
    return [
      `${style.green(glyphs.check)} predicted ${predictionsText(result.predictions, specOf(job))}`,
    ];
  }
  if (job.state === JobState.SUCCEEDED && result !== undefined) {
    const { best, last } = testMetricsOf(result);
    const at = `at the best validation (epoch ${result.bestEpoch + 1})`;
    const tested =
      best === undefined || last === undefined
        ? `trained ${counted(result.epochs, 'epoch')}; there are no test nodes`
        : `test ${metricTitle(best.name)} ${style.bold(metricText(best))} ${at}, ` +
          `${metricText(last)} at the last`;
    return [
      `${style.green(glyphs.check)} ${tested}`,
      ...(job.message === '' ? [] : [`  ${printable(job.message)}`]),
      `  checkpoint ${printable(result.checkpointDir)}`,
    ];
  }
  const reason = reasonText(job.reason);
  const message = printable(job.message);
  const why = [reason, message].filter((text) => text !== '').join(': ');
  const exit = job.attempts.at(-1)?.exits.at(-1);
  const tail = job.state === JobState.FAILED ? (exit?.logTail.trimEnd().split('\n') ?? []) : [];
  return [
    `${style.red(glyphs.cross)} ${why === '' ? 'ended' : why}`,
    ...tail.slice(-5).map((line) => style.dim(`  ${printable(line)}`)),
  ];
}

/** What a change is, for views that print a line for each. */
export function changeKey(job: Job): string {
  return [job.state, job.phase, job.reason, job.attempts.length].join(' ');
}

/** One line of a log of changes. */
export function changeLine(job: Job, nowMs: number): string {
  const state = [paintState(job.state, createStyle(false)), phaseText(job.phase)];
  const parts = [timeOf(nowMs), idOf(job.name), state.filter((text) => text !== '').join(', ')];
  if (job.state === JobState.SUCCEEDED && job.result?.predictions !== undefined) {
    parts.push(predictionsText(job.result.predictions, specOf(job)));
  } else if (job.state === JobState.SUCCEEDED && job.result !== undefined) {
    const { best } = testMetricsOf(job.result);
    const tested = best === undefined ? 'no test nodes' : metricPhrase('test', best);
    parts.push(tested, printable(job.message));
  } else if (job.state !== JobState.RUNNING) {
    parts.push(reasonText(job.reason), printable(job.message));
  }
  return parts.filter((part) => part !== '').join('  ');
}

/** One line of the same log, for a finished epoch. */
export function epochLine(job: Job, report: EpochReport, nowMs: number): string {
  const epochs = job.progress?.epochs || specOf(job)?.training?.epochs || job.epochs.length;
  const metric = valMetricOf(report);
  return [
    timeOf(nowMs),
    idOf(job.name),
    `epoch ${padStart(String(report.epoch + 1), String(epochs).length)}/${epochs}`,
    padStart(formatDuration(Number(report.durationMs)), 7),
    `loss ${report.loss.toFixed(4)}`,
    ...(metric === undefined ? [] : [metricPhrase('val', metric)]),
  ].join('  ');
}

/** One line of the same log, for an evaluation that has been running for a while. */
export function evaluationLine(job: Job, evaluation: EvaluationProgress, nowMs: number): string {
  const share = formatPercent(evaluationShare(evaluation), 0);
  const parts = [evaluationTitle(evaluation), share, evaluationLeft(evaluation)];
  const text = parts.filter((part) => part !== '').join(', ');
  return [timeOf(nowMs), idOf(job.name), text].join('  ');
}

function timeOf(nowMs: number): string {
  return new Date(nowMs).toISOString().slice(11, 19);
}
