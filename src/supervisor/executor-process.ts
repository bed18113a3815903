import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { makeFolder } from '../base/atomic-file.ts';
import { sleep } from '../base/clock.ts';
import { isScarcity } from '../base/descriptors.ts';
import { executorExit } from '../base/exit-codes.ts';
import {
  acceleratorEnvironment,
  acceleratorVariables,
} from '../devices/accelerator-environment.ts';
import type { Accelerator } from '../devices/seat.ts';
import {
  type EndMessage,
  endMessageOf,
  type ProgressMessage,
  progressOf,
  type StartMessage,
} from '../executor/protocol.ts';
import type { InstructionSet } from '../native/contract.ts';
import type { Determinism, MatrixLibrary } from '../spec/job-spec.ts';

/**
 * One child process: spawn, say start, hear its end, reap. Must be used from the main thread only:
 * an executor is killed when the thread that spawned it ends (PR_SET_PDEATHSIG).
 */

export interface SpawnOptions {
  readonly start: StartMessage;
  /** Receives stdout and stderr; a file, so that no slow reader can ever block an executor. */
  readonly logPath: string;
  /**
   * Become descriptors 3 and 4 of the child; stay the caller's. A task has no segment; OUTPUT gives
   * it a socket to write to. Few need a topology.
   */
  readonly segmentFd: number | 'OUTPUT' | null;
  readonly topologyFd: number | null;
  /** Becomes descriptor 5; null: there is none. */
  readonly scratchFd: number | null;
  /** Becomes descriptor 6; unset: there is none. */
  readonly hostTierFd?: number | null | undefined;
  readonly threads: number;
  readonly instructionSet: InstructionSet;
  /** Library that multiplies matrices; unset: no product decides bits. */
  readonly matrixLibrary?: MatrixLibrary;
  readonly determinism: Determinism;
  /** The device, where it is more than cores. */
  readonly accelerator?: Accelerator | undefined;
  /** Most that PyTorch's allocator may hold of its memory; unset: all of the device's budget. */
  readonly torchBytes?: number | undefined;
  /** Ends the wait for descriptors or processes that the host refuses for now. */
  readonly signal: AbortSignal;
  readonly onProgress?: (progress: ProgressMessage) => void;
}

export interface ExitStatus {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** The process's last message; null when it died without one. */
  readonly said: EndMessage | null;
  readonly logTail: string;
  /** The mapped file whose failed read killed the process; null otherwise. */
  readonly unreadable: string | null;
}

export interface ExecutorProcess {
  readonly pid: number;
  readonly logPath: string;
  /** Stream of what the process writes to its OUTPUT; null without one. */
  readonly output: Readable | null;
  /** Resolves when the process has been reaped; never rejects. */
  readonly exited: Promise<ExitStatus>;
  kill(): void;
  /** Sends SIGTERM, and SIGKILL when that is not enough. */
  end(): void;
}

const logTailBytes = 4096;
/** Time that a process has to end after SIGTERM. */
const termMs = 1000;

/** Two levels up both from src/supervisor/ and from dist/supervisor/: the built executor. */
const entry = fileURLToPath(new URL('../../dist/executor/main.js', import.meta.url));

/** A module that is loaded before the executor itself. */
const noDebugger = new URL('../../dist/base/no-debugger.js', import.meta.url).href;

const spawnRetryMs = 250;

/**
 * Spawns an executor. While the host refuses descriptors, processes or memory it waits, until the
 * signal aborts: that is no fault of the job. Throws when the process cannot be started at all.
 */
export async function spawnExecutor(options: SpawnOptions): Promise<ExecutorProcess> {
  for (;;) {
    try {
      return await spawnOnce(options);
    } catch (error) {
      if (!isScarcity(error)) throw error;
    }
    await sleep(spawnRetryMs, options.signal);
  }
}

async function spawnOnce(options: SpawnOptions): Promise<ExecutorProcess> {
  const log = openLog(options.logPath);
  const third = options.segmentFd === 'OUTPUT' ? 'pipe' : (options.segmentFd ?? 'ignore');
  const own = [options.topologyFd, options.scratchFd, options.hostTierFd];
  const args = ['--no-warnings', '--import', noDebugger, entry, String(process.pid)];
  const env = executorEnvironment(options);
  let child: ChildProcess;
  try {
    child = spawn(process.execPath, args, {
      stdio: ['ignore', log, log, third, ...own.map((fd) => fd ?? 'ignore'), 'ipc'],
      serialization: 'advanced',
      env,
    });
  } finally {
    closeSync(log);
  }
  return await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('spawn', () => {
      child.removeListener('error', reject);
      // A failed send is a dead child: its exit tells more.
      child.on('error', () => {});
      resolve(watch(child, options));
    });
  });
}

/** Opens a log; an executor works without one where it cannot be made or has no room. */
function openLog(path: string): number {
  try {
    makeFolder(dirname(path));
    return openSync(path, 'a', 0o640);
  } catch (error) {
    if (isScarcity(error)) throw error;
    return openSync('/dev/null', 'w');
  }
}

function watch(child: ChildProcess, options: SpawnOptions): ExecutorProcess {
  let said: EndMessage | null = null;
  child.on('message', (value) => {
    const progress = said === null ? progressOf(value) : null;
    if (progress !== null) options.onProgress?.(progress);
    said ??= endMessageOf(value);
  });
  const exited = new Promise<ExitStatus>((resolve) => {
    child.once('exit', async (code, signal) => {
      await lastWords();
      const logTail = tailOf(options.logPath);
      const unreadable = code === executorExit.DATASET ? unreadableIn(logTail, child.pid) : null;
      resolve({ code, signal, said, logTail, unreadable });
    });
  });
  child.send(options.start, () => {});
  return {
    pid: child.pid ?? 0,
    logPath: options.logPath,
    output: options.segmentFd === 'OUTPUT' ? (child.stdio[3] as Readable) : null,
    exited,
    kill: () => void child.kill('SIGKILL'),
    end() {
      child.kill('SIGTERM');
      const kill = setTimeout(() => child.kill('SIGKILL'), termMs);
      void exited.then(() => clearTimeout(kill));
    },
  };
}

/**
 * What a dead process has said is in its channel, and has been heard after this. Whoever reaps one
 * child reaps all that have ended by then, also those whose channels this turn of the loop did not
 * look at: so a second turn is needed, and enough.
 */
async function lastWords(): Promise<void> {
  await setImmediate();
  await setImmediate();
}

/**
 * Thread counts and instruction sets decide bits, and their libraries read them when they load, so
 * they are set before the process starts. Nothing that would change them is inherited.
 */
export function executorEnvironment(options: SpawnOptions): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(
    ([name]) =>
      !/^(OMP_|MKL_|KMP_|GOMP_|OPENBLAS_|ONEDNN_|DNNL_)/.test(name) &&
      !/^(ATEN_|TORCH_|LD_PRELOAD)/.test(name) &&
      // Node's would load code, write files, or open a debugger.
      !/^NODE_/.test(name) &&
      // Only the daemon itself tells the service manager about the daemon.
      !/^(NOTIFY_SOCKET|WATCHDOG_)/.test(name) &&
      !acceleratorVariables.test(name),
  );
  const threads = String(options.threads);
  const isPortable = options.determinism === 'PORTABLE';
  const instructionSet = isPortable ? 'AVX2' : options.instructionSet;
  return {
    ...Object.fromEntries(kept),
    ...acceleratorEnvironment(
      options.accelerator,
      options.torchBytes ?? options.accelerator?.budgetBytes ?? 0,
    ),
    OMP_NUM_THREADS: threads,
    MKL_NUM_THREADS: threads,
    // Torch's threads, which users' scripts have. About 0.2 ms: a thread that sleeps at each of a
    // step's barriers costs a third of the step, one that spins on starves who shares the core.
    GOMP_SPINCOUNT: '20000',
    OMP_DYNAMIC: 'false',
    MKL_DYNAMIC: 'false',
    ...(options.determinism === 'RELAXED' ? {} : reproducibleMkl(instructionSet)),
    // The Trainer's matrix products (native/train/ops/product.h), on its own OpenMP threads.
    OPENBLAS_CORETYPE: openblasCores[instructionSet],
    OPENBLAS_NUM_THREADS: '1',
    ...oneDnnLimits[instructionSet],
    ...(isPortable ? { ATEN_CPU_CAPABILITY: 'avx2' } : {}),
    ...(options.matrixLibrary === undefined ? {} : { GNND_MATRIX_LIBRARY: options.matrixLibrary }),
  };
}

/** The faster library (docs/decisions/0038-threads-decide-no-bit.md). */
export function matrixLibraryOf(instructionSet: InstructionSet): MatrixLibrary {
  return instructionSet === 'AVX512' || instructionSet === 'AVX2' ? 'ONEDNN' : 'OPENBLAS';
}

/** OpenBLAS's names for the kernels of an instruction set, whoever made the processor. */
const openblasCores = {
  SCALAR: 'Nehalem',
  AVX2: 'Haswell',
  AVX512: 'SkylakeX',
  NEON: 'ARMV8',
} as const;

/** oneDNN's bfloat16 products use the processor's instructions unless vectors are narrower. */
const oneDnnLimits = {
  SCALAR: { ONEDNN_MAX_CPU_ISA: 'SSE41' },
  AVX2: { ONEDNN_MAX_CPU_ISA: 'AVX2' },
  AVX512: {},
  NEON: {},
} as const;

/** Without MKL_CBWR, MKL may split a sum differently for another layout or thread count. */
function reproducibleMkl(instructionSet: SpawnOptions['instructionSet']): { MKL_CBWR?: string } {
  if (instructionSet === 'NEON') return {}; // there is no MKL
  if (instructionSet === 'SCALAR') return { MKL_CBWR: 'COMPATIBLE' };
  return { MKL_CBWR: `${instructionSet},STRICT` };
}

/** native/core/base/bus_error.h */
function unreadableIn(logTail: string, pid: number | undefined): string | null {
  const line = new RegExp(`^gnnd\\.unreadable ${pid} (.+)$`, 'm').exec(logTail);
  return line?.[1] ?? null;
}

/** What it means that a mapped file could not be read. */
export function unreadableMessage(path: string): string {
  return `${path} cannot be read: it became shorter after it was opened, or its disk is damaged`;
}

function tailOf(path: string): string {
  try {
    const fd = openSync(path, 'r');
    try {
      const { size } = fstatSync(fd);
      const buffer = Buffer.alloc(Math.min(size, logTailBytes));
      readSync(fd, buffer, 0, buffer.length, size - buffer.length);
      return buffer.toString('utf8');
    } finally {
      closeSync(fd);
    }
  } catch {
    return '';
  }
}
