import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { Piscina } from 'piscina';
import { GnndError, messageOf } from '../base/errors.ts';
import { createLine } from '../base/line.ts';
import { answerIn, type Call, type Outcome } from './outcome.ts';

/**
 * Threads for the daemon's own computing (decision 0002). The event loop answers calls and hands
 * work out; whatever takes longer than a millisecond and needs no state of the daemon runs here. A
 * task is an exported function of a module: its input and its answer are copied between threads.
 */
export interface Pool {
  /**
   * Resolves with what the task answers, and rejects with what it throws: a GnndError stays one. A
   * caller whose signal aborts is rejected with its reason, and the thread that works for it ends.
   * A thread that dies fails the one call that it worked for, as INTERNAL.
   */
  run<In, Out>(task: PoolTask<In, Out>, input: In, signal?: AbortSignal): Promise<Out>;
  /** Ends all threads; calls that are not answered yet are rejected with DAEMON_STOPPING. */
  close(): Promise<void>;
}

/** LONG tasks take seconds: they leave one thread to the SHORT ones. */
export type TaskLength = 'SHORT' | 'LONG';

export interface PoolTask<In, Out> {
  readonly module: string;
  readonly name: string;
  readonly length: TaskLength;
  /** Tells the types, and lets tests work without threads. */
  readonly run: (input: In) => Out | Promise<Out>;
}

/**
 * A task from the function that does it, which `module` exports by its name. `module` is a path
 * relative to the caller's `import.meta.url`.
 */
export function poolTask<In, Out>(
  caller: string,
  module: string,
  length: TaskLength,
  run: (input: In) => Out | Promise<Out>,
): PoolTask<In, Out> {
  return { module: builtUrl(module, caller), name: run.name, length, run };
}

/** Fewer than three would let two long tasks hold up all others, also on a host of one core. */
const threadsMin = 3;
/** Training needs the other cores. */
const threadsMax = 8;
const coresPerThread = 4;
/** A thread that nobody needs goes after so long; one stays. */
const idleTimeoutMs = 30_000;

export function createPool(): Pool {
  const wanted = Math.ceil(availableParallelism() / coresPerThread);
  const maxThreads = Math.min(threadsMax, Math.max(threadsMin, wanted));
  // Calls wait here, each until there is a thread for it or its caller goes, and none in piscina.
  const all = createLine(maxThreads);
  const long = createLine(maxThreads - 1);
  const threads = new Piscina({
    filename: workerPath(),
    name: 'runCall',
    minThreads: 1,
    maxThreads,
    idleTimeout: idleTimeoutMs,
  });
  const calls = new Set<(error: unknown) => void>();
  // A thread that died without a task: nobody knows which call was to be its first.
  threads.on('error', (error) => {
    for (const fail of calls) fail(error);
  });
  let isClosed = false;
  const onThread = (call: Call, signal: AbortSignal) => {
    if (isClosed) throw stopping();
    return new Promise<Outcome>((resolve, reject) => {
      calls.add(reject);
      threads
        .run(call, { signal })
        .then(resolve, reject)
        .finally(() => calls.delete(reject));
    }).catch((cause: unknown) => {
      signal.throwIfAborted();
      if (isClosed) throw stopping();
      const message = `the thread of ${call.name} failed: ${messageOf(cause)}`;
      throw new GnndError('INTERNAL', message, { cause });
    });
  };
  return {
    async run<In, Out>(
      { module, name, length }: PoolTask<In, Out>,
      input: In,
      signal = new AbortController().signal,
    ) {
      const leaveLong = length === 'LONG' ? await long.enter(signal) : () => {};
      try {
        const leave = await all.enter(signal);
        try {
          return answerIn(await onThread({ module, name, input }, signal)) as Out;
        } finally {
          leave();
        }
      } finally {
        leaveLong();
      }
    },
    async close() {
      isClosed = true;
      await threads.destroy();
    },
  };
}

function stopping(): GnndError {
  return new GnndError('DAEMON_STOPPING', 'the daemon is stopping and computes nothing any more');
}

/** Threads load plain JavaScript: run from the sources, as tests are, the built module is used. */
function builtUrl(module: string, caller: string): string {
  const { href } = new URL(module.replace(/\.ts$/, '.js'), caller);
  const at = caller.endsWith('.ts') ? href.lastIndexOf('/src/') : -1;
  return at < 0 ? href : `${href.slice(0, at)}/dist/${href.slice(at + '/src/'.length)}`;
}

function workerPath(): string {
  const path = fileURLToPath(builtUrl('./worker.ts', import.meta.url));
  if (!existsSync(path)) throw new Error(`${path} is missing; run: npm run build`);
  return path;
}
