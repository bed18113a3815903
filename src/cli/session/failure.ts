import { existsSync, statSync } from 'node:fs';
import { status } from '@grpc/grpc-js';
import { CommanderError } from 'commander';
import { hostAndPort, isLoopback } from '../../base/address.ts';
import { serveCommand } from '../../base/advice.ts';
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
    // A long one is cut there.
    .filter((violation) => !message.startsWith(violation.replace(/\.\.\.$/, '')));
  const details = [...violations, ...adviceOf(error, session)];
  return { exitCode: exitCodeOfStatus(error.code), message, details };
}

/** Commander has written its own message; help and version are no failures. */
function fromCommander(error: CommanderError): { exitCode: number; message: string } {
  return { exitCode: error.exitCode === 0 ? gnnctlExit.OK : gnnctlExit.USAGE, message: '' };
}

/** What the transport says, and what that means to people. */
const causes: readonly (readonly [said: RegExp, cause: string])[] = [
  [/ENOENT/, 'there is no such socket'],
  [/ECONNREFUSED/, 'nobody listens there'],
  [/ENOTDIR/, 'a part of its path is a file'],
  [/EHOSTUNREACH|ENETUNREACH|ETIMEDOUT/, 'that host does not answer'],
  [/Name resolution failed|ENOTFOUND|EAI_AGAIN/, 'no host of that name is known'],
  [
    /Protocol error|Parse Error|HTTP\/1|unexpected (HTTP|content)/i,
    'what answers there does not speak gRPC; is it the metrics address of a daemon, or a web server?',
  ],
];

function unreachable(why: string, address: string): { message: string; details: string[] } {
  if (why.includes('EACCES')) {
    return {
      message: `may not open the daemon's socket ${address}`,
      details: ['its group may: ask to be added to it, then log in again'],
    };
  }
  const other = otherAt(address);
  const known = causes.find(([said]) => said.test(why));
  const isFree = other === null && /ENOENT|ECONNREFUSED|resolution failed|ENOTFOUND/.test(why);
  return {
    message: `cannot reach gnnd at ${address}: ${other ?? known?.[1] ?? printable(why)}`,
    details: [
      ...addressAdvice(address, isFree),
      ...(isFree ? startAdvice(address) : []),
      'or name one:    --address ADDRESS, or GNND_ADDRESS',
    ],
  };
}

/** What stands in the place of a socket; null: nothing, or a socket. */
function otherAt(address: string): string | null {
  if (!address.startsWith('unix:')) return null;
  const stats = statSync(address.slice('unix:'.length), { throwIfNoEntry: false });
  if (stats === undefined || stats.isSocket()) return null;
  return stats.isDirectory() ? 'that is a folder, no socket' : 'that is a file, no socket';
}

/** What is wrong with an address as it is written. */
function addressAdvice(address: string, isFree: boolean): string[] {
  if (address.startsWith('unix:')) return [];
  if (hostAndPort(address) === null) {
    const path = existsSync(address) ? [`did you mean unix:${address}?`] : [];
    return [`${address} is not an address: expected unix:PATH or HOST:PORT`, ...path];
  }
  if (isFree) return [];
  return ['over TCP gnnd asks for TLS: --tls-ca FILE, or --tls (docs/operating.md, "Access")'];
}

function startAdvice(address: string): string[] {
  const start = serveCommand(address);
  if (start === null) return [];
  const parts = hostAndPort(address);
  const isFar = parts !== null && !isLoopback(parts.host);
  return [`start one:      ${start}${isFar ? `   (on ${parts.host})` : ''}`];
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
