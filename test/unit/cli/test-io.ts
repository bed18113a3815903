import type { Clock } from '../../../src/base/clock.ts';
import { systemClock } from '../../../src/base/clock.ts';
import type { CliIo, CliOutput } from '../../../src/cli/session/io.ts';

/** The streams of a command, in memory. */
export interface TestIo {
  readonly io: CliIo;
  stdout(): string;
  stderr(): string;
  /** Interrupts the command as Ctrl-C does. */
  interrupt(): void;
  /** Codes given to exitNow. */
  readonly exits: readonly number[];
}

export interface TestIoOptions {
  readonly isTty?: boolean;
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  readonly clock?: Clock;
  readonly columns?: number;
  /** Called with everything that is written. */
  readonly onWrite?: (text: string) => void;
}

export function createTestIo(options: TestIoOptions = {}): TestIo {
  const written = { stdout: '', stderr: '' };
  const exits: number[] = [];
  const listeners = new Set<() => void>();
  const outputOf = (name: 'stdout' | 'stderr'): CliOutput => ({
    write(text) {
      written[name] += text;
      options.onWrite?.(text);
    },
    isTty: options.isTty === true,
    columns: () => options.columns ?? 100,
    rows: () => 40,
  });
  return {
    io: {
      stdout: outputOf('stdout'),
      stderr: outputOf('stderr'),
      env: { LANG: 'C.UTF-8', ...options.env },
      clock: options.clock ?? systemClock,
      readStdin: async () => options.stdin ?? '',
      onInterrupt(listener) {
        listeners.add(listener);
        return () => void listeners.delete(listener);
      },
      exitNow: (code) => void exits.push(code),
    },
    stdout: () => written.stdout,
    stderr: () => written.stderr,
    interrupt() {
      for (const listener of [...listeners]) listener();
    },
    exits,
  };
}

/** A clock that stands still. */
export function stoppedClock(wallMs: number): Clock {
  return { wallMs: () => wallMs, monotonicMs: () => 0 };
}
