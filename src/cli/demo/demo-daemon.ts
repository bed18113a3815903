import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { sleep } from '../../base/clock.ts';

/** A daemon of the demo's own, as a child process that never outlives it. */
export interface DemoDaemon {
  /** host:port of /metrics. */
  readonly metrics: string;
  /** SIGTERM, and SIGKILL when it takes too long; idempotent. */
  stop(): Promise<void>;
}

export interface DemoDaemonOptions {
  /** dist/main.js. */
  readonly script: string;
  readonly args: readonly string[];
  /** Where its log goes. */
  readonly logFile: string;
  readonly signal: AbortSignal;
}

const startTimeoutMs = 60_000;
const stopTimeoutMs = 30_000;

/** Resolves when the daemon is ready; throws with the end of its log when it does not get there. */
export async function startDemoDaemon(options: DemoDaemonOptions): Promise<DemoDaemon> {
  const log = openSync(options.logFile, 'w');
  const args = [options.script, 'serve', ...options.args];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', log] });
  closeSync(log);
  const kill = () => void child.kill('SIGKILL');
  process.on('exit', kill);
  const exited = new Promise<void>((resolve) => {
    child.on('exit', () => resolve());
    child.on('error', () => resolve());
  });
  const stop = async () => {
    child.kill('SIGTERM');
    const given = new AbortController();
    const late = sleep(stopTimeoutMs, given.signal).then(kill, () => {});
    await exited;
    given.abort();
    await late;
    process.off('exit', kill);
  };
  try {
    const metrics = await readyOf(child, exited, options);
    return { metrics, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function readyOf(
  child: ChildProcess,
  exited: Promise<void>,
  { logFile, signal }: DemoDaemonOptions,
): Promise<string> {
  const done = new AbortController();
  const failed = (what: string) => {
    const tail = readFileSync(logFile, 'utf8').trimEnd().split('\n').slice(-30).join('\n');
    return new Error(`the daemon ${what}; the end of ${logFile}:\n${tail}`);
  };
  const ready = new Promise<string>((resolve, reject) => {
    if (child.stdout === null) throw new Error('the daemon has no stdout');
    createInterface({ input: child.stdout }).on('line', (line) => {
      const metrics = metricsOf(line);
      if (metrics !== null) resolve(metrics);
    });
    void exited.then(() => reject(failed('ended before it was ready')));
  });
  const either = AbortSignal.any([signal, done.signal]);
  const late = sleep(startTimeoutMs, either).then(() => {
    throw failed(`was not ready after ${startTimeoutMs / 1000} s`);
  });
  try {
    return await Promise.race([ready, late]);
  } finally {
    // Whichever lost the race ends unseen.
    late.catch(() => {});
    ready.catch(() => {});
    done.abort();
  }
}

/** The address in the line `{"msg":"daemon.ready","metrics":"127.0.0.1:PORT",...}`. */
function metricsOf(line: string): string | null {
  try {
    const event: unknown = JSON.parse(line);
    if (typeof event !== 'object' || event === null) return null;
    const isReady = 'msg' in event && event.msg === 'daemon.ready' && 'metrics' in event;
    return isReady ? String(event.metrics) : null;
  } catch {
    return null;
  }
}
