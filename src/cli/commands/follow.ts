import type { Job } from '../../api/gen/gnnd/v1/job_pb.ts';
import {
  type WatchJobResponse,
  WatchJobResponseSchema,
  WatchType,
} from '../../api/gen/gnnd/v1/job_service_pb.ts';
import { sleep } from '../../base/clock.ts';
import { gnnctlExit } from '../../base/exit-codes.ts';
import { watchJob } from '../read/watch-stream.ts';
import { CliError, isTerminal } from '../session/exit.ts';
import type { CliOutput } from '../session/io.ts';
import type { Session } from '../session/session.ts';
import { createLiveRegion } from '../session/terminal.ts';
import { formatDuration } from '../session/units.ts';
import { jsonOf } from '../show/output.ts';
import {
  changeKey,
  changeLine,
  epochLine,
  evaluationLine,
  renderFrame,
} from '../show/watch-frame.ts';

/** Following a job to its end, shown in one of several ways. */

/** `live` redraws in place, `lines` prints a line for each change, `jsonl` every event. */
export type FollowView = 'live' | 'lines' | 'jsonl' | 'silent';

export interface FollowOptions {
  readonly view: FollowView;
  /** Where the view goes. */
  readonly output: CliOutput;
  readonly signal: AbortSignal;
  /** Ends the following early; unset: at the terminal state. */
  readonly until?: (job: Job) => boolean;
  /** Called with every state of the job, before it is shown. */
  readonly onJob?: (job: Job) => void;
}

interface Display {
  event(response: WatchJobResponse, job: Job | null): void;
  lost(notice: string): void;
  close(): Promise<void>;
}

/** Resolves with the job as it was when `until` held, or at its end. */
export async function followJob(
  session: Session,
  name: string,
  options: FollowOptions,
): Promise<Job> {
  const display = displayOf(session, options);
  const nowMs = () => session.io.clock.monotonicMs();
  try {
    const updates = watchJob(session.client, name, { signal: options.signal, nowMs });
    for await (const update of updates) {
      if (update.kind === 'lost') {
        const delay = formatDuration(update.retryDelayMs);
        display.lost(`connection to the daemon lost; try ${update.attempt} in ${delay}`);
        continue;
      }
      if (update.job !== null) options.onJob?.(update.job);
      display.event(update.response, update.job);
      if (update.response.type === WatchType.DELETED) session.say(`${name} was deleted`);
      const { job } = update;
      if (job !== null && (isTerminal(job.state) || options.until?.(job) === true)) return job;
    }
  } finally {
    await display.close();
  }
  throw new CliError(gnnctlExit.FAILURE, `the watch of ${name} ended before the job did`);
}

function displayOf(session: Session, { view, output }: FollowOptions): Display {
  switch (view) {
    case 'live':
      return liveDisplay(session, output);
    case 'lines':
      return lineDisplay(session, output);
    case 'jsonl':
      return {
        event: (response) => {
          output.write(`${JSON.stringify(jsonOf(WatchJobResponseSchema, response))}\n`);
        },
        lost: (notice) => session.say(notice),
        close: async () => {},
      };
    case 'silent':
      return {
        event: () => {},
        lost: (notice) => session.say(notice),
        close: async () => {},
      };
  }
}

/** Between two lines about one evaluation. */
const evaluationLineMs = 10_000;

/** A line for each change of state and each finished epoch, and now and then for an evaluation. */
function lineDisplay(session: Session, output: CliOutput): Display {
  let shownKey = '';
  let evaluationAtMs: number | null = null;
  return {
    event({ epochs }, job) {
      if (job === null) return;
      const nowMs = session.io.clock.wallMs();
      for (const report of epochs) output.write(`${epochLine(job, report, nowMs)}\n`);
      // The first line comes once an evaluation has run for a while: most are over by then.
      const evaluation = job.progress?.evaluation;
      if (evaluation === undefined) evaluationAtMs = null;
      else if (evaluationAtMs === null) evaluationAtMs = nowMs;
      else if (nowMs - evaluationAtMs >= evaluationLineMs) {
        evaluationAtMs = nowMs;
        output.write(`${evaluationLine(job, evaluation, nowMs)}\n`);
      }
      if (changeKey(job) === shownKey) return;
      shownKey = changeKey(job);
      output.write(`${changeLine(job, nowMs)}\n`);
    },
    lost: (notice) => session.say(notice),
    close: async () => {},
  };
}

/** Times move on between events. */
const tickMs = 500;

function liveDisplay(session: Session, output: CliOutput): Display {
  const region = createLiveRegion(output);
  const closed = new AbortController();
  let shown: Job | null = null;
  let notice: string | null = null;
  const draw = () => {
    if (shown === null) return;
    region.draw(
      renderFrame(shown, {
        nowMs: session.io.clock.wallMs(),
        columns: output.columns(),
        style: output === session.io.stdout ? session.style : session.errorStyle,
        glyphs: session.glyphs,
        notice,
      }),
    );
  };
  const tick = async () => {
    for (;;) {
      await sleep(tickMs, closed.signal);
      draw();
    }
  };
  const ticking = tick().catch(() => {});
  return {
    event(_, job) {
      shown = job ?? shown;
      notice = null;
      draw();
    },
    lost(text) {
      notice = text;
      draw();
    },
    async close() {
      closed.abort();
      await ticking;
      region.close();
    },
  };
}
