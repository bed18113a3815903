import { createServer, type Server, type Socket } from 'node:net';
import { isLoopback } from '../base/address.ts';
import { messageOf } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Door } from './access.ts';
import { bindSocket } from './unix-socket.ts';

/** Where clients connect: a unix socket or a TCP port. */
export interface Listener {
  /** As gRPC clients take it: `unix:/path` or `host:port`, with the port that was bound. */
  readonly address: string;
  /** Takes no more connections; those it has live on. Removes the socket's file. */
  close(): void;
}

/** The members of the socket's group are the API's users. */
const socketMode = 0o660;

/**
 * Connections that wait to be taken: a thousand clients may come at once, and a unix socket turns
 * away (EAGAIN) who finds no place. The kernel has a limit of its own (net.core.somaxconn).
 */
const backlog = 4096;

/**
 * Listens on `unix:/path` or `host:port` (port 0: any). A socket file that nobody listens on any
 * more is replaced. Throws an Error that names the address and what is wrong with it.
 */
export async function listen(
  { address, door, log }: { readonly address: string; readonly door: Door; readonly log: Log },
  onConnection: (socket: Socket) => void,
): Promise<Listener> {
  const server = createServer(onConnection);
  server.on('error', (error) => {
    // Before it listens this is reported by `bind`; afterwards a connection could not be taken,
    // for example for want of file descriptors, and the next one may be.
    if (server.listening) log.error('api.accept_failed', { address, error: messageOf(error) });
  });
  try {
    if (address.startsWith('unix:')) return await listenAt(server, address, log);
    const { host, port } = parseHostPort(address);
    await bind(server, { host, port });
    if (door === 'LOCAL') log.warn('api.open_to_others', { address, meaning: meaningOf(host) });
    return { address: boundAddress(server, host), close: () => void server.close() };
  } catch (cause) {
    server.close();
    throw new Error(`cannot listen on ${address}: ${messageOf(cause)}`, { cause });
  }
}

const lookMs = 10_000;

async function listenAt(server: Server, address: string, log: Log): Promise<Listener> {
  const socket = await bindSocket(address.slice('unix:'.length), socketMode);
  await bind(server, { fd: socket.fd });
  const timer = setInterval(() => {
    if (socket.isThere()) return;
    clearInterval(timer);
    const remedy = 'start the daemon again, once nothing else removes or replaces its socket';
    log.error('api.socket_gone', { address, remedy });
  }, lookMs).unref();
  return {
    address,
    close() {
      clearInterval(timer);
      // While it is listened on, so that nobody takes it for a stale one and replaces it meanwhile.
      socket.remove();
      server.close();
    },
  };
}

/** Who may use the API through `address`; null where the socket's mode says it. */
export function opennessOf(address: string): string | null {
  if (address.startsWith('unix:')) return null;
  return `gRPC on ${address}: ${meaningOf(parseHostPort(address).host)}`;
}

function meaningOf(host: string): string {
  const who = isLoopback(host)
    ? 'every user of this host'
    : 'everybody who reaches this port, without encryption';
  return (
    `${who} may use the API as you do: nobody is asked for a name; jobs read, write and load ` +
    "plug-ins as the daemon's user; unix:/path lets in the members of a group only"
  );
}

function bind(
  server: Server,
  where: { readonly fd: number } | { readonly host: string; readonly port: number },
): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ ...where, backlog }, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

function parseHostPort(address: string): { host: string; port: number } {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]+)):([0-9]{1,5})$/.exec(address);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (host === undefined || port > 65_535) throw new Error('expected unix:/path or host:port');
  return { host, port };
}

function boundAddress(server: Server, host: string): string {
  const bound = server.address();
  const port = bound !== null && typeof bound === 'object' ? bound.port : 0;
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
