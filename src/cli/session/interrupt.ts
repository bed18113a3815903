import { sleep } from '../../base/clock.ts';
import { gnnctlExit } from '../../base/exit-codes.ts';
import { CliError } from './exit.ts';
import type { Session } from './session.ts';
import { formatDuration } from './units.ts';

export interface WaitOptions {
  /** What goes on without us, and how to see it again: one line each. */
  readonly detached: readonly string[];
}

/**
 * Runs something that waits. Ctrl-C detaches: the wait ends with exit code 130 and says how to
 * attach again; a second one ends gnnctl at once. `--timeout` ends the wait with exit code 9.
 */
export async function waitFor<T>(
  session: Session,
  { detached }: WaitOptions,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const abort = new AbortController();
  const done = new AbortController();
  const unsubscribe = session.io.onInterrupt(() => {
    if (abort.signal.aborted) session.io.exitNow(gnnctlExit.INTERRUPTED);
    abort.abort(new CliError(gnnctlExit.INTERRUPTED, 'detached', detached));
  });
  const { timeoutMs } = session;
  if (timeoutMs !== null) {
    const message = `gave up waiting after ${formatDuration(timeoutMs)}`;
    sleep(timeoutMs, done.signal)
      .then(() => abort.abort(new CliError(gnnctlExit.DEADLINE, message, detached)))
      .catch(() => {});
  }
  try {
    return await work(abort.signal);
  } finally {
    unsubscribe();
    done.abort();
  }
}
