import { type Clock, systemClock } from './clock.ts';

/**
 * Structured logs: one JSON object a line, `msg` is a constant event name, everything variable is a
 * field. Goes to stderr, so that stdout stays for data.
 */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

export type LogFields = Readonly<Record<string, unknown>>;

export interface Log {
  debug(msg: string, fields?: LogFields): void;
  info(msg: string, fields?: LogFields): void;
  warn(msg: string, fields?: LogFields): void;
  error(msg: string, fields?: LogFields): void;
  /** A log whose lines all carry `fields`. */
  with(fields: LogFields): Log;
}

const levels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];

export interface LogOptions {
  readonly level: LogLevel;
  readonly write?: (line: string) => void;
  readonly clock?: Clock;
}

export function createLog(options: LogOptions, fixed: LogFields = {}): Log {
  const write = options.write ?? ((line: string) => void process.stderr.write(line));
  const clock = options.clock ?? systemClock;
  const emit = (level: LogLevel) => (msg: string, fields?: LogFields) => {
    if (levels.indexOf(level) < levels.indexOf(options.level)) return;
    const ts = new Date(clock.wallMs()).toISOString();
    write(`${JSON.stringify({ ts, lvl: level, msg, ...fixed, ...fields })}\n`);
  };
  return {
    debug: emit('debug'),
    info: emit('info'),
    warn: emit('warn'),
    error: emit('error'),
    with: (fields) => createLog(options, { ...fixed, ...fields }),
  };
}
