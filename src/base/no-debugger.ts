import inspector from 'node:inspector';

/**
 * Imported before all else by whatever runs for long: nobody gets to debug this process, which
 * would be to run code as its user. Node opens its debugger on a port of this host, and asks for no
 * token, at SIGUSR1, which others mean as "open your logs again", and where the environment says so
 * (NODE_OPTIONS=--inspect). A listener takes the signal from Node; what is open already is closed.
 */
process.on('SIGUSR1', () => {});

let wasOpen = false;

/**
 * Whether one has been open. A signal that came before the listener is acted upon only later, so
 * who has loaded all that it needs asks once more.
 */
export function closeDebugger(): boolean {
  if (inspector.url() === undefined) return wasOpen;
  wasOpen = true;
  inspector.close();
  return true;
}

closeDebugger();
