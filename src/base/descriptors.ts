import { readdirSync, readFileSync } from 'node:fs';

/**
 * File descriptors are shared out once, at the start: executors, the store and imports come first,
 * connections get what is left. So no number of clients can end a job.
 */

/** Below it not even the modules of gnnd can be loaded. */
export const filesToLoad = 128;

export interface DescriptorFacts {
  /** RLIMIT_NOFILE; Node raises the soft one to the hard one when it starts. */
  readonly limit: number;
  readonly inUse: number;
  readonly devices: number;
}

export interface ConnectionLimits {
  readonly grpc: number;
  readonly http: number;
}

/** Store, lock, listeners, an import and its threads, the logs and files that calls read. */
const ownReserve = 64;
/** Two executors, their channels, segment, topology, and what spawning them takes for a moment. */
const deviceReserve = 16;
const grpcRange = { min: 16, max: 1024 } as const;
const httpRange = { min: 8, max: 64 } as const;

/** Throws a sentence that says how many descriptors are missing. */
export function shareDescriptors({ limit, inUse, devices }: DescriptorFacts): ConnectionLimits {
  const reserved = inUse + ownReserve + deviceReserve * devices;
  const left = limit - reserved;
  if (left < grpcRange.min + httpRange.min) {
    const needed = reserved + grpcRange.min + httpRange.min;
    throw new Error(
      `at most ${limit} files may be open, and with ${devices} devices gnnd needs ${needed}: ` +
        'raise the limit (ulimit -n; LimitNOFILE of a systemd unit)',
    );
  }
  const http = Math.min(httpRange.max, Math.max(httpRange.min, Math.floor(left / 4)));
  return { http, grpc: Math.min(grpcRange.max, left - http) };
}

/** This process's limit of descriptors, and how many it has open. */
export function descriptorFacts(): Omit<DescriptorFacts, 'devices'> {
  const soft = /^Max open files\s+(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8'));
  const limit = soft?.[1] === 'unlimited' ? Number.MAX_SAFE_INTEGER : Number(soft?.[1] ?? 1024);
  return { limit, inUse: readdirSync('/proc/self/fd').length };
}

/** Whether the host refuses descriptors, processes or memory for now. */
export function isScarcity(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : null;
  return code === 'EMFILE' || code === 'ENFILE' || code === 'EAGAIN' || code === 'ENOMEM';
}
