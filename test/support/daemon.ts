import { type ChildProcess, spawn } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import {
  create,
  type DescMessage,
  type DescMethod,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import { Client, credentials, type ServiceError } from '@grpc/grpc-js';
import { DatasetService, type FeatureDtype } from '../../src/api/gen/gnnd/v1/dataset_service_pb.ts';
import type { EpochReport } from '../../src/api/gen/gnnd/v1/epoch_report_pb.ts';
import { HostService } from '../../src/api/gen/gnnd/v1/host_service_pb.ts';
import { JobKind } from '../../src/api/gen/gnnd/v1/inference_pb.ts';
import { type Job, JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { Precision } from '../../src/api/gen/gnnd/v1/training_pb.ts';
import type { Operation } from '../../src/api/gen/gnnd/v1/types_pb.ts';
import { atEnd } from './at-end.ts';
import { hangMs, Patience } from './until.ts';

/**
 * A real daemon with real executors in a temporary folder, and a client of it. Those that still
 * run after the tests of a file are stopped then.
 */

export const repository = fileURLToPath(new URL('../../', import.meta.url));
const entry = join(repository, 'dist', 'main.js');

/** Where test/support/imported.ts leaves what it imported, for all workers. */
export const importedVariable = 'GNND_TEST_DATASETS';

export interface DaemonOptions {
  readonly cpuDevices?: number;
  /** It adopts copies of these; imported.ts imported them once for all tests of a run. */
  readonly datasets?: readonly ('cora' | 'citeseer')[];
  /** Also listen for gRPC on a free TCP port of loopback. */
  readonly tcp?: boolean;
  /** Kept between daemons of one test; made anew when left out. */
  readonly folder?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** What a shell does before it becomes the daemon: `ulimit -n 256`. */
  readonly before?: string;
  /** A program that runs the shell, and becomes it: `unshare -m`. */
  readonly within?: readonly string[];
  /** Further flags of `gnnd serve`. */
  readonly flags?: readonly string[];
}

export class TestDaemon {
  readonly folder: string;
  readonly process: ChildProcess;
  readonly address: string;
  /** `host:port`; empty unless asked for. */
  readonly tcpAddress: string;
  readonly metrics: string;
  readonly client: Client;

  private constructor(folder: string, process: ChildProcess, ready: ReadyLine) {
    this.folder = folder;
    this.process = process;
    this.address = ready.listen[0] ?? '';
    this.tcpAddress = ready.listen[1] ?? '';
    this.metrics = ready.metrics;
    this.client = new Client(this.address, credentials.createInsecure());
  }

  static async start(options: DaemonOptions = {}): Promise<TestDaemon> {
    const folder = options.folder ?? mkdtempSync(join(tmpdir(), 'gnnd-e2e-'));
    mkdirSync(folder, { recursive: true });
    for (const id of options.datasets ?? []) copyImported(id, folder);
    const process = spawnDaemon(folder, options);
    const daemon = new TestDaemon(folder, process, await readyOf(process, folder));
    // Unless a test has stopped it: of a folder that was given, who gave it removes it.
    atEnd(() => daemon.stop(options.folder !== undefined));
    return daemon;
  }

  get pid(): number {
    return this.process.pid ?? 0;
  }

  get logs(): string {
    return readFileSync(join(this.folder, 'daemon.log'), 'utf8');
  }

  /** One unary call; rejects with grpc-js's ServiceError. */
  call<I extends DescMessage, O extends DescMessage>(
    method: DescMethod & { readonly input: I; readonly output: O },
    request: MessageInitShape<I>,
  ): Promise<MessageShape<O>> {
    return new Promise((resolve, reject) => {
      this.client.makeUnaryRequest<MessageShape<I>, MessageShape<O>>(
        `/${method.parent.typeName}/${method.name}`,
        (value) => Buffer.from(toBinary(method.input, value)),
        (bytes) => fromBinary(method.output, bytes),
        create(method.input, request),
        { deadline: Date.now() + hangMs },
        (error: ServiceError | null, response) => {
          if (error !== null) reject(error);
          else if (response === undefined) reject(new Error('no response'));
          else resolve(response);
        },
      );
    });
  }

  async import(
    datasetId: string,
    source: string,
    more: { readonly featureDtype?: FeatureDtype } = {},
  ): Promise<void> {
    const { importDataset } = DatasetService.method;
    const { result } = await this.ended(
      await this.call(importDataset, { datasetId, source, ...more }),
    );
    if (result.case === 'error') {
      throw new Error(`import of ${source}: ${JSON.stringify(result.value)}`);
    }
  }

  /** Waits until an operation is done, however long that takes. */
  async ended(started: Operation): Promise<Operation> {
    const { waitOperation } = DatasetService.method;
    let operation = started;
    while (!operation.done) {
      operation = await this.call(waitOperation, { name: operation.name, timeoutMs: 10_000n });
    }
    return operation;
  }

  job(id: string): Promise<Job> {
    return this.call(JobService.method.getJob, { name: `jobs/${id}` });
  }

  createJob(
    jobId: string,
    spec: MessageInitShape<typeof JobService.method.createJob.input>['spec'],
  ) {
    // What AUTO comes to depends on the processor, and with it every bit.
    const precision = spec?.training?.precision ?? Precision.FLOAT32;
    const pinned = { ...spec, training: { ...spec?.training, precision } };
    const isTraining = (spec?.kind ?? JobKind.TRAINING) === JobKind.TRAINING;
    return this.call(JobService.method.createJob, { jobId, spec: isTraining ? pinned : spec });
  }

  /** Creates a job and waits until it SUCCEEDED. */
  async train(id: string, spec: Parameters<TestDaemon['createJob']>[1]): Promise<Job> {
    await this.createJob(id, spec);
    return this.succeeded(id);
  }

  /** Looks until `done` holds; throws with the job and the logs after `timeoutMs`. */
  async until(id: string, done: (job: Job) => boolean, timeoutMs = hangMs): Promise<Job> {
    const patience = new Patience(timeoutMs);
    for (;;) {
      const job = await this.job(id);
      if (done(job)) return job;
      if (isTerminal(job) || patience.isOver()) {
        throw new Error(`${describe(job)}\n${this.logs.slice(-4000)}\n${this.executorLogs(job)}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** Waits for SUCCEEDED; the job has all its epochs. */
  async succeeded(id: string, timeoutMs = hangMs): Promise<Job> {
    const job = await this.until(id, ({ state }) => state === JobState.SUCCEEDED, timeoutMs);
    if (job.numEpochs === job.epochs.length) return job;
    return { ...job, epochs: await this.epochs(id) };
  }

  /** All of the latest attempt. */
  async epochs(id: string): Promise<EpochReport[]> {
    const { listEpochs } = JobService.method;
    const epochs: EpochReport[] = [];
    let pageToken = '';
    do {
      const page = await this.call(listEpochs, { name: `jobs/${id}`, pageSize: 500, pageToken });
      epochs.push(...page.epochs);
      pageToken = page.nextPageToken;
    } while (pageToken !== '');
    return epochs;
  }

  devices() {
    return this.call(HostService.method.listDevices, {});
  }

  async scrape(): Promise<string> {
    const response = await fetch(`http://${this.metrics}/metrics`);
    return response.text();
  }

  executorLogs(job: Job): string {
    const folder = join(this.folder, 'state', 'jobs', job.uid);
    try {
      return readdirSync(folder, { recursive: true })
        .map(String)
        .filter((name) => name.endsWith('.log'))
        .map((name) => `--- ${name}\n${readFileSync(join(folder, name), 'utf8').slice(-1500)}`)
        .join('\n');
    } catch {
      return '(no executor logs)';
    }
  }

  kill(signal: NodeJS.Signals): Promise<number | null> {
    return new Promise((resolve) => {
      if (this.process.exitCode !== null || this.process.signalCode !== null) {
        resolve(this.process.exitCode);
        return;
      }
      this.process.once('exit', (code) => resolve(code));
      this.process.kill(signal);
    });
  }

  /** SIGTERM; removes the folder unless it is to be `keep`t. Resolves to the exit code. */
  async stop(keep = false): Promise<number | null> {
    this.client.close();
    const code = await this.kill('SIGTERM');
    if (!keep) rmSync(this.folder, { recursive: true, force: true });
    return code;
  }
}

interface ReadyLine {
  readonly listen: readonly string[];
  readonly metrics: string;
}

function copyImported(id: string, folder: string): void {
  const imported = process.env[importedVariable];
  if (imported === undefined) throw new Error('datasets are imported for the tiers e2e and long');
  const place = join(folder, 'state', 'datasets', id);
  cpSync(join(imported, id), place, { recursive: true, preserveTimestamps: true });
}

/** Starts `gnnd serve` without waiting for it. */
export function spawnDaemon(folder: string, options: DaemonOptions = {}): ChildProcess {
  const listen = [`unix:${join(folder, 'gnnd.sock')}`, ...(options.tcp ? ['127.0.0.1:0'] : [])];
  const args = [
    ...['serve', '--state-dir', join(folder, 'state')],
    ...['--listen', listen.join(','), '--metrics-listen', '127.0.0.1:0'],
    ...(options.tcp ? ['--insecure-loopback'] : []),
    ...['--cpu-devices', String(options.cpuDevices ?? 2), '--share-cores'],
    // Tests that want GPUs say so: of the others none depends on the machine.
    ...(options.flags?.includes('--cuda-devices') ? [] : ['--cuda-devices', 'none']),
    ...(options.flags ?? []),
  ];
  const { before, within = [] } = options;
  const shell = ['bash', '-c', `${before === undefined ? '' : `${before} && `}exec "$@"`, 'bash'];
  // The shell becomes the daemon: it has the child's pid.
  const [program = '', ...words] = [...within, ...shell, process.execPath, entry, ...args];
  return spawn(program, words, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...options.env },
  });
}

function readyOf(child: ChildProcess, folder: string): Promise<ReadyLine> {
  return new Promise((resolve, reject) => {
    let errors = '';
    const log = join(folder, 'daemon.log');
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      errors += text;
      appendLog(log, text);
    });
    child.once('exit', (code) => reject(new Error(`the daemon exited with ${code}: ${errors}`)));
    if (child.stdout === null) return;
    createInterface({ input: child.stdout }).once('line', (line) => resolve(JSON.parse(line)));
  });
}

function appendLog(path: string, text: string): void {
  try {
    appendFileSync(path, text);
  } catch {
    // The folder was removed by a test's end.
  }
}

export function isTerminal(job: Job): boolean {
  return [JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED].includes(job.state);
}

function describe(job: Job): string {
  const facts = {
    state: JobState[job.state],
    reason: job.reason,
    message: job.message,
    attempts: job.attempts.map(({ message, exits }) => ({
      message,
      exits: exits.map(({ device, signal, logTail }) => ({ device, signal, logTail })),
    })),
  };
  return `job ${job.name}: ${JSON.stringify(facts, null, 1)}`;
}

/** Pids of living executors of a daemon, from /proc; zombies do not count. */
export function executorPids(daemonPid: number): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => isExecutorOf(pid, daemonPid));
}

function isExecutorOf(pid: number, daemonPid: number): boolean {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    const isOurs = words.some((word) => word.endsWith('executor/main.js'));
    const state = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /, '')[0];
    return isOurs && words.includes(String(daemonPid)) && state !== 'Z';
  } catch {
    return false;
  }
}
