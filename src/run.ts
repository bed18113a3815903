import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeFolder } from './base/atomic-file.ts';
import { daemonExit } from './base/exit-codes.ts';
import { createLog, type Log } from './base/log.ts';
import { fileSink } from './base/log-sink.ts';
import { type RunFlags, runJob } from './cli/commands/job-run.ts';
import { failureOf } from './cli/session/failure.ts';
import { processIo } from './cli/session/io.ts';
import { Session } from './cli/session/session.ts';
import type { DaemonConfig } from './config/daemon-config.ts';
import { startDaemon } from './daemon.ts';
import { streamSink } from './native/stream-sink.ts';

/**
 * `gnnd run`: one job and the daemon for it in one process, for engines that start, stop and start
 * again what runs on a host. The exit code is the job's.
 */

export interface RunOptions {
  /** Config of the daemon; a socket of this run replaces its `listen`. */
  readonly config: DaemonConfig;
  readonly version: string;
  readonly flags: RunFlags;
  /** Called with the log, which uncaught errors go to, too. */
  readonly onLog: (log: Log) => void;
}

/**
 * Resolves with the exit code when nothing of ours runs any more. A signal takes an image of the
 * job and ends with INTERRUPTED: the same command goes on. Throws as startDaemon does.
 */
export async function runOnce(options: RunOptions): Promise<number> {
  const { version, flags } = options;
  const { stateDir, logLevel: level } = options.config;
  makeFolder(stateDir);
  const logFile = join(stateDir, 'gnnd.log');
  const log = createLog({ level, write: fileSink(logFile).write });
  options.onLog(log);
  const folder = mkdtempSync(join(tmpdir(), 'gnnd-run-'));
  const address = `unix:${join(folder, 'gnnd.sock')}`;
  const sinks = { stdout: streamSink(1, 'UNTOLD'), stderr: streamSink(2, 'UNTOLD') };
  const io = processIo({ stdout: sinks.stdout.write, stderr: sinks.stderr.write });
  // While the daemon starts and stops, too: who asks twice is not killed in mid-image.
  const unheed = io.onInterrupt(() => {});
  try {
    const config = { ...options.config, listen: [address] };
    const onFatal = () => void setImmediate(() => process.exit(daemonExit.STORE_IO));
    const daemon = await startDaemon({ config, log, version, onFatal });
    const session = new Session(io, { address, headers: true, color: 'auto' });
    session.say(`look with: gnnctl --address ${address} top`);
    session.say(`metrics http://${daemon.metrics}/metrics`);
    session.say(`state ${stateDir}, log ${logFile}`);
    try {
      const detached = (name: string) => [
        `${name} rests in ${stateDir}; the same command goes on with it`,
      ];
      return await runJob(session, flags, detached);
    } catch (error) {
      const { exitCode, message, details } = failureOf(error, session);
      session.say([`gnnd: ${message}`, ...details.map((line) => `  ${line}`)].join('\n'));
      return exitCode;
    } finally {
      session.close();
      await daemon.close();
    }
  } finally {
    unheed();
    rmSync(folder, { recursive: true, force: true });
  }
}
