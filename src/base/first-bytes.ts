import type { Socket } from 'node:net';

/**
 * What a peer says first, which tells its protocol. It stays to be read by whoever the connection
 * is handed on to, so that a port can say what it is to a client that wants another one.
 */
export function onFirstBytes(socket: Socket, take: (start: Buffer) => void): void {
  socket.once('data', (chunk: Buffer) => {
    socket.pause();
    socket.unshift(chunk);
    take(chunk);
  });
}

/** How every client of HTTP/2, and so of gRPC, begins. */
export function isHttp2(start: Buffer): boolean {
  return start.subarray(0, 6).toString('latin1') === 'PRI * ';
}

/** A request of a browser, of curl or of Prometheus. */
export function isHttp1(start: Buffer): boolean {
  return /^(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|CONNECT|TRACE) /.test(
    start.subarray(0, 8).toString('latin1'),
  );
}
