import { status } from '@grpc/grpc-js';
import { DatasetService } from '../../api/gen/gnnd/v1/dataset_service_pb.ts';
import type { Operation, OperationError } from '../../api/gen/gnnd/v1/types_pb.ts';
import { sleep } from '../../base/clock.ts';
import { gnnctlExit } from '../../base/exit-codes.ts';
import { ApiError } from '../session/client.ts';
import { CliError, exitCodeOfStatus } from '../session/exit.ts';
import { waitFor } from '../session/interrupt.ts';
import type { Session } from '../session/session.ts';
import { printable } from '../session/terminal.ts';
import { createProgress } from '../show/progress.ts';

/** Waiting for long work of the daemon, with its progress on stderr. */

const pollTimeoutMs = 500;
const retryDelayMs = 1000;
const retryLimitMs = 60_000;

export interface OperationWait {
  /** What is going on, e.g. `importing npm`. */
  readonly title: string;
  /** After the end of our own patience: one line each. */
  readonly detached: readonly string[];
  /** Whether Ctrl-C ends the work, too; a second one leaves it to the daemon. */
  readonly cancels: boolean;
}

/** Resolves with the finished operation; throws a CliError with every problem when it failed. */
export async function waitForOperation(
  session: Session,
  operation: Operation,
  { title, detached, cancels }: OperationWait,
): Promise<Operation> {
  const progress = createProgress(session, title);
  const finished = await waitFor(session, { detached }, async (signal) => {
    try {
      let current = operation;
      let lostAtMs: number | null = null;
      while (!current.done) {
        progress.show(current.progress, current.message);
        signal.throwIfAborted();
        try {
          const request = { name: operation.name, timeoutMs: BigInt(pollTimeoutMs) };
          current = await session.call(DatasetService.method.waitOperation, request, signal);
          lostAtMs = null;
        } catch (error) {
          const nowMs = session.io.clock.monotonicMs();
          lostAtMs ??= nowMs;
          const isLost = error instanceof ApiError && error.code === status.UNAVAILABLE;
          if (!isLost || nowMs - lostAtMs >= retryLimitMs) throw error;
          progress.lost();
          await sleep(retryDelayMs, signal);
        }
      }
      progress.done(current.result.case === 'response');
      return current;
    } catch (error) {
      const isInterrupt = error instanceof CliError && error.exitCode === gnnctlExit.INTERRUPTED;
      if (!cancels || !isInterrupt) throw error;
      progress.show(0, 'cancelling');
      const { name } = operation;
      const ended = await session.call(DatasetService.method.cancelOperation, { name });
      const { result } = ended;
      const isOurs = result.case === 'error' && result.value.reason === 'OPERATION_CANCELLED';
      // It may have been done before that.
      if (!isOurs) return ended;
      throw new CliError(gnnctlExit.INTERRUPTED, `${title} was cancelled`);
    } finally {
      progress.close();
    }
  });
  const { result } = finished;
  if (result.case === 'error') throw operationFailure(title, result.value);
  return finished;
}

function operationFailure(title: string, error: OperationError): CliError {
  const details = error.problems.map(
    ({ path, description }) => `${printable(path)}: ${printable(description)}`,
  );
  const exitCode = exitCodeOfStatus(error.code) || gnnctlExit.FAILURE;
  const message = printable(error.message);
  const isSaid = details.length === 1 && details[0] === message;
  return new CliError(exitCode, `${title} failed: ${message}`, isSaid ? [] : details);
}
