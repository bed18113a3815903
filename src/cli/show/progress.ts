import type { Session } from '../session/session.ts';
import { bar, createLiveRegion, padStart, printable } from '../session/terminal.ts';
import { formatDuration, formatPercent } from '../session/units.ts';

/** Where long work is, on stderr: a bar on a terminal, else a line for each new message. */
export interface Progress {
  /** `share` is 0 to 1, `message` what is done now. */
  show(share: number, message: string): void;
  /** The work ended. */
  done(isSuccess: boolean): void;
  /** The daemon does not answer for now. */
  lost(): void;
  close(): void;
}

/** `title` is what is going on, e.g. `importing npm`. */
export function createProgress(session: Session, title: string): Progress {
  const { stderr, clock } = session.io;
  if (session.isQuiet) {
    return { show: () => {}, done: () => {}, lost: () => {}, close: () => {} };
  }
  if (!stderr.isTty) return createLines(session, title);
  const startMs = clock.monotonicMs();
  const region = createLiveRegion(stderr);
  const draw = (share: number, text: string) => {
    const width = Math.max(10, Math.min(30, stderr.columns() - 60));
    const spent = formatDuration(clock.monotonicMs() - startMs);
    const drawnBar = session.errorStyle.cyan(bar(share, width, session.glyphs));
    const percent = padStart(formatPercent(share, 0), 5);
    region.draw([`${title}  ${drawnBar} ${percent}  ${padStart(spent, 7)}  ${text}`]);
  };
  let shown = 0;
  return {
    show(share, message) {
      shown = share;
      draw(share, printable(message));
    },
    done(isSuccess) {
      if (isSuccess) shown = 1;
      draw(shown, '');
    },
    lost: () => draw(shown, 'connection lost; trying again'),
    close: () => region.close(),
  };
}

function createLines(session: Session, title: string): Progress {
  let shown = '';
  const say = (line: string) => {
    if (line !== shown) session.say(line);
    shown = line;
  };
  return {
    show(_, message) {
      if (message !== '') say(`${title}: ${printable(message)}`);
    },
    // What failed is said by the error that follows.
    done: (isSuccess) => {
      if (isSuccess) say(`${title}: done`);
    },
    lost: () => session.say('connection to the daemon lost; trying again'),
    close: () => {},
  };
}
