import { text } from 'node:stream/consumers';
import { type Clock, systemClock } from '../../base/clock.ts';

/** What a command sees of the world, so that tests can give it another one. */

export interface CliOutput {
  write(text: string): void;
  readonly isTty: boolean;
  /** Now: the window may have been resized. */
  columns(): number;
  rows(): number;
}

export interface CliIo {
  /** Data. */
  readonly stdout: CliOutput;
  /** Everything else. */
  readonly stderr: CliOutput;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readStdin(): Promise<string>;
  /** Calls `listener` at SIGINT, SIGTERM and SIGHUP until the answered function is called. */
  onInterrupt(listener: () => void): () => void;
  /** Ends the process at once. */
  exitNow(code: number): void;
}

type Write = CliOutput['write'];

function outputOf(stream: NodeJS.WriteStream, write: Write | undefined): CliOutput {
  return {
    write: write ?? ((chunk) => void stream.write(chunk)),
    get isTty() {
      return stream.isTTY === true;
    },
    columns: () => stream.columns ?? 80,
    rows: () => stream.rows ?? 24,
  };
}

const interrupts = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** `given` writes in the place of the process's own streams, which wait for who reads them. */
export function processIo(given: { readonly stdout?: Write; readonly stderr?: Write } = {}): CliIo {
  return {
    stdout: outputOf(process.stdout, given.stdout),
    stderr: outputOf(process.stderr, given.stderr),
    env: process.env,
    clock: systemClock,
    readStdin: () => text(process.stdin),
    onInterrupt(listener) {
      for (const name of interrupts) process.on(name, listener);
      return () => {
        for (const name of interrupts) process.off(name, listener);
      };
    },
    exitNow(code) {
      const showCursor = '\u001b[?25h';
      if (process.stdout.isTTY) process.stdout.write(showCursor);
      else if (process.stderr.isTTY) process.stderr.write(showCursor);
      process.exit(code);
    },
  };
}
