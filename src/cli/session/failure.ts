import { status } from '@grpc/grpc-js';
import { CommanderError } from 'commander';
import { messageOf } from '../../base/errors.ts';
import { gnnctlExit } from '../../base/exit-codes.ts';
import { ApiError } from './client.ts';
import { CliError, exitCodeOfStatus } from './exit.ts';
import type { Session } from './session.ts';
import { printable } from './terminal.ts';

/** What people read when a command failed, and what scripts see. */
export interface Failure {
  readonly exitCode: number;
  readonly message: string;
  /** One a line, below the message. */
  readonly details: readonly string[];
}

/** `session` is null when the flags themselves were wrong. */
export function failureOf(error: unknown, session: Session | null): Failure {
  if (error instanceof CommanderError) return { ...fromCommander(error), details: [] };
  if (error instanceof CliError) {
    return { exitCode: error.exitCode, message: error.message, details: error.details };
  }
  if (!(error instanceof ApiError) || session === null) {
    const where = error instanceof Error ? (error.stack ?? '').split('\n').slice(1, 4) : [];
    return {
      exitCode: gnnctlExit.FAILURE,
      message: messageOf(error),
      details: where.map((line) => line.trim()),
    };
  }
  if (error.code === status.UNAVAILABLE && error.reason === '') {
    return { exitCode: gnnctlExit.UNAVAILABLE, ...unreachable(error.message, session.address) };
  }
  const message = printable(error.message);
  const violations = error.violations
    .map(({ path, description }) => `${printable(path)}: ${printable(description)}`)
    .filter((violation) => violation !== message);
  const details = [...violations, ...adviceOf(error, session)];
  return { exitCode: exitCodeOfStatus(error.code), message, details };
}

/** Commander has written its own message; help and version are no failures. */
function fromCommander(error: CommanderError): { exitCode: number; message: string } {
  return { exitCode: error.exitCode === 0 ? gnnctlExit.OK : gnnctlExit.USAGE, message: '' };
}

function unreachable(why: string, address: string): { message: string; details: string[] } {
  if (why.includes('EACCES')) {
    return {
      message: `may not open the daemon's socket ${address}`,
      details: ['its group may: ask to be added to it, then log in again'],
    };
  }
  const cause = why.includes('ENOENT')
    ? 'there is no such socket'
    : why.includes('ECONNREFUSED')
      ? 'nobody listens there'
      : printable(why);
  const overTcp = address.startsWith('unix:')
    ? []
    : ['over TCP gnnd asks for TLS: gnnctl --tls-ca FILE, or --tls (docs/operating.md, "Access")'];
  return {
    message: `cannot reach gnnd at ${address}: ${cause}`,
    details: [
      ...overTcp,
      `start one:      npx gnnd serve --listen ${address}`,
      'or name one:    gnnctl --address ADDRESS, or GNND_ADDRESS',
    ],
  };
}

/** After these the effect of a call may exist: the same request id makes a repetition safe. */
const uncertain: ReadonlySet<status> = new Set([
  status.UNAVAILABLE,
  status.DEADLINE_EXCEEDED,
  status.INTERNAL,
  status.UNKNOWN,
]);

function adviceOf(error: ApiError, session: Session): readonly string[] {
  if (error.metadata['truncated'] === 'true') return ['(there are more; these come first)'];
  if (!uncertain.has(error.code)) return [];
  return [`request id ${session.requestId}: repeat safely with --request-id`];
}
