import { createLogSink, type LogSink } from '../base/log-sink.ts';
import { loadCore } from './load.ts';

/** How long the last lines of a process wait for who reads them. */
const lastLinesMs = 1000;

/**
 * Of a stream that others read: whether they do, stall or go is nothing to this process. `losses`:
 * whether lines that nobody took are told of, as a log does.
 */
export function streamSink(descriptor: number, losses: 'TOLD' | 'UNTOLD'): LogSink {
  const core = loadCore();
  const sink = createLogSink({
    writeNow: (text, waitMs) => core.hostWriteNow(descriptor, text, waitMs),
    ...(losses === 'TOLD' ? {} : { lostLine: null }),
  });
  process.on('exit', () => sink.flush(lastLinesMs));
  return sink;
}
