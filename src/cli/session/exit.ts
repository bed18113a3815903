import { status } from '@grpc/grpc-js';
import { JobState } from '../../api/gen/gnnd/v1/job_pb.ts';
import { gnnctlExit } from '../../base/exit-codes.ts';

/** How gnnctl ends: one error type for what people must read, one table for the exit code. */

/** Ends the command with `exitCode`; `details` are printed below the message, one a line. */
export class CliError extends Error {
  readonly exitCode: number;
  readonly details: readonly string[];

  constructor(exitCode: number, message: string, details: readonly string[] = []) {
    super(message);
    this.name = 'CliError';
    this.exitCode = exitCode;
    this.details = details;
  }
}

const exitByStatus: Readonly<Partial<Record<status, number>>> = {
  [status.OK]: gnnctlExit.OK,
  [status.INVALID_ARGUMENT]: gnnctlExit.INVALID_ARGUMENT,
  [status.NOT_FOUND]: gnnctlExit.NOT_FOUND,
  [status.FAILED_PRECONDITION]: gnnctlExit.CONFLICT,
  [status.ABORTED]: gnnctlExit.CONFLICT,
  [status.ALREADY_EXISTS]: gnnctlExit.CONFLICT,
  [status.RESOURCE_EXHAUSTED]: gnnctlExit.RESOURCE_EXHAUSTED,
  [status.PERMISSION_DENIED]: gnnctlExit.PERMISSION,
  [status.UNAUTHENTICATED]: gnnctlExit.PERMISSION,
  [status.UNAVAILABLE]: gnnctlExit.UNAVAILABLE,
  [status.DEADLINE_EXCEEDED]: gnnctlExit.DEADLINE,
  [status.INTERNAL]: gnnctlExit.INTERNAL,
  [status.DATA_LOSS]: gnnctlExit.INTERNAL,
};

/** Codes that the table does not name are plain failures. */
export function exitCodeOfStatus(code: number): number {
  return new Map(Object.entries(exitByStatus)).get(String(code)) ?? gnnctlExit.FAILURE;
}

/** What waiting for the end of a job ends with. */
export function exitCodeOfJob(state: JobState): number {
  switch (state) {
    case JobState.SUCCEEDED:
      return gnnctlExit.OK;
    case JobState.FAILED:
      return gnnctlExit.JOB_FAILED;
    case JobState.CANCELLED:
      return gnnctlExit.JOB_CANCELLED;
    default:
      return gnnctlExit.FAILURE;
  }
}

export function isTerminal(state: JobState): boolean {
  return state === JobState.SUCCEEDED || state === JobState.FAILED || state === JobState.CANCELLED;
}
