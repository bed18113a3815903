import { isScarcity } from './descriptors.ts';
import { messageOf } from './errors.ts';
import { daemonExit } from './exit-codes.ts';

/** A failure to start that has an exit code of its own. */
export class StartError extends Error {
  readonly exitCode: number;

  constructor(exitCode: number, message: string, cause?: unknown) {
    super(message, { cause });
    this.exitCode = exitCode;
  }
}

/** Serves at an address, or throws a StartError that says what is in the way there. */
export async function bound<T>(address: string, serveThere: () => Promise<T>): Promise<T> {
  try {
    return await serveThere();
  } catch (error) {
    const exitCode = listenExit(error);
    const isTaken = exitCode === daemonExit.OS_RESOURCE && !isScarcity(error);
    const remedy = isTaken ? `; ${whatToDo(address)}` : '';
    const message = `cannot listen on ${address}: ${messageOf(error)}${remedy}`;
    throw new StartError(exitCode, message, error);
  }
}

function whatToDo(address: string): string {
  return address.startsWith('metrics_listen')
    ? 'a second daemon on a host has one of its own: --metrics-listen 127.0.0.1:0 takes a free port'
    : 'a second daemon on a host has an address of its own: --listen';
}

/** An address that is in use, or not there yet, may be had at the next start; a wrong one never. */
function listenExit(error: unknown): number {
  for (let at = error; at instanceof Error; at = at.cause) {
    const code = 'code' in at ? at.code : null;
    if (code === 'EADDRINUSE' || code === 'EADDRNOTAVAIL' || isScarcity(at)) {
      return daemonExit.OS_RESOURCE;
    }
    if (code === 'EACCES' || code === 'EPERM') return daemonExit.PERMISSION;
  }
  return daemonExit.CONFIGURATION;
}
