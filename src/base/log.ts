import { type Clock, systemClock } from './clock.ts';
import { messageOf } from './errors.ts';
import { descriptorSink } from './log-sink.ts';

/**
 * Structured logs: one JSON object a line, `msg` is a constant event name, everything variable is a
 * field. Goes to stderr, so that stdout stays for data. No call of a log throws.
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

const standardError = 2;

export function createLog(options: LogOptions, fixed: LogFields = {}): Log {
  const write = options.write ?? descriptorSink(standardError).write;
  const clock = options.clock ?? systemClock;
  const emit = (level: LogLevel) => (msg: string, fields?: LogFields) => {
    if (levels.indexOf(level) < levels.indexOf(options.level)) return;
    const ts = new Date(clock.wallMs()).toISOString();
    write(`${textOf({ ts, lvl: level, msg, ...fixed, ...fields })}\n`);
  };
  return {
    debug: emit('debug'),
    info: emit('info'),
    warn: emit('warn'),
    error: emit('error'),
    with: (fields) => createLog({ ...options, write }, { ...fixed, ...fields }),
  };
}

/** Also of fields that are no JSON, such as a value that holds itself. */
function textOf(line: LogFields): string {
  try {
    return JSON.stringify(line);
  } catch (error) {
    const { ts, lvl, msg } = line;
    return JSON.stringify({ ts, lvl, msg, unshown: messageOf(error) });
  }
}
