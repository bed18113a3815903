import { createServer, type Http2Server } from 'node:http2';

/** What gRPC numbers UNIMPLEMENTED: nobody should try again. */
const unimplemented = '12';

/**
 * Tells clients of gRPC that they have reached the port of metrics, and where gRPC is. It listens
 * nowhere: connections are handed to it.
 */
export function createGuide(meant: () => string): Http2Server {
  const guide = createServer();
  guide.on('stream', (stream) => {
    stream.on('error', () => {});
    stream.respond(
      {
        ':status': 200,
        'content-type': 'application/grpc',
        'grpc-status': unimplemented,
        'grpc-message': meant().replace(/[^\x20-\x24\x26-\x7e]/g, encodeURIComponent),
      },
      { endStream: true },
    );
    stream.session?.close();
  });
  // Whoever speaks neither has its connection ended.
  guide.on('sessionError', () => {});
  return guide;
}
