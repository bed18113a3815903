import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { promisify } from 'node:util';
import { create } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { DatasetService, DatasetState } from '../../api/gen/gnnd/v1/dataset_service_pb.ts';
import { Standardize } from '../../api/gen/gnnd/v1/features_pb.ts';
import { HostService } from '../../api/gen/gnnd/v1/host_service_pb.ts';
import { type Job, JobState } from '../../api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../api/gen/gnnd/v1/job_service_pb.ts';
import { type JobSpec, JobSpecSchema } from '../../api/gen/gnnd/v1/job_spec_pb.ts';
import { ModelType } from '../../api/gen/gnnd/v1/model_pb.ts';
import { Determinism } from '../../api/gen/gnnd/v1/training_pb.ts';
import { messageOf } from '../../base/errors.ts';
import { gnnctlExit } from '../../base/exit-codes.ts';
import { packageRoot } from '../../base/package-root.ts';
import { followJob } from '../commands/follow.ts';
import { waitForOperation } from '../commands/operations.ts';
import { ApiError } from '../session/client.ts';
import { CliError } from '../session/exit.ts';
import { failureOf } from '../session/failure.ts';
import { waitFor } from '../session/interrupt.ts';
import { processIo } from '../session/io.ts';
import { Session } from '../session/session.ts';
import { formatPercent } from '../session/units.ts';
import { specYaml } from '../show/output.ts';
import { compared, trainAgain } from './demo-again.ts';
import { startDemoDaemon } from './demo-daemon.ts';
import { accuracyFloor, demoReport, nextSteps } from './demo-report.ts';

/**
 * `npm run demo`: a daemon of its own trains GraphSAGE on the npm dependency graph of 2016. The
 * graph is kept in .cache/datasets, results in .cache/demo; the daemon and its state directory are
 * gone when this ends, however it ends.
 */

const datasetId = 'npm-deps-2016';
const cacheFolder = join(packageRoot, '.cache');
const resultFolder = join(cacheFolder, 'demo');
/** Kept: fetched once. */
const archive = join(cacheFolder, 'dependent-packages-2.2.2.tgz');
const converter = join(packageRoot, 'docs/examples/npm-deps/convert.mjs');
const interrupted = { detached: ['the demo stops its daemon; run it again at any time'] };

/** Same bits on every processor that has this; another one's are STRICT. */
const portable = new Set(['AVX2', 'AVX512']);

const specFor = (instructionSet: string): JobSpec =>
  create(JobSpecSchema, {
    dataset: datasetId,
    model: { type: ModelType.GRAPHSAGE, hiddenDim: 128, dropout: 0.3 },
    sampling: { fanouts: [10, 10] },
    features: { standardize: Standardize.ON },
    training: {
      // Twice the reference's 10 epochs: with S = 1 both devices train at once.
      epochs: 20,
      staleness: 1,
      batchSize: 1024,
      randomSeed: 1n,
      determinism: portable.has(instructionSet) ? Determinism.PORTABLE : Determinism.STRICT,
      optimizer: { learningRate: 0.003 },
    },
    resources: { devices: 2 },
  });

async function main(): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'gnnd-demo-'));
  const flags = { address: `unix:${join(folder, 'gnnd.sock')}`, output: 'table' } as const;
  const session = new Session(processIo(), { ...flags, headers: true, color: 'auto' });
  try {
    return await demo(session, folder);
  } catch (error) {
    const { exitCode, message, details } = failureOf(error, session);
    session.say(['', `demo: ${message}`, ...details.map((line) => `  ${line}`)].join('\n'));
    return exitCode;
  } finally {
    session.close();
    await rm(folder, { recursive: true, force: true });
  }
}

function step(session: Session, text: string): void {
  session.print(`\n${session.style.bold(text)}`);
}

async function demo(session: Session, folder: string): Promise<number> {
  const { clock } = session.io;
  const startMs = clock.monotonicMs();
  await rm(resultFolder, { recursive: true, force: true });
  await mkdir(resultFolder, { recursive: true });
  step(session, '1. A daemon in a temporary state directory');
  const daemon = await waitFor(session, interrupted, (signal) =>
    startDemoDaemon({
      script: join(packageRoot, 'dist', 'main.js'),
      args: daemonArgs(session, folder),
      logFile: join(resultFolder, 'gnnd.log'),
      signal,
    }),
  );
  session.print(`gRPC ${session.address}, metrics http://${daemon.metrics}/metrics`);
  try {
    step(session, `2. The dataset ${datasetId}`);
    await importGraph(session);
    const scraper = createScraper(daemon.metrics, () => clock.monotonicMs());
    const { instructionSet } = await session.call(HostService.method.getHost, {});
    const spec = specFor(instructionSet);
    const job = await train(session, spec, scraper);
    const exitCode = await conclude(session, { job, scraper, startMs });
    const isSame = await again(session, spec, job);
    session.print(['', ...nextSteps].join('\n'));
    if (session.io.stdout.isTty) await showPage(session);
    if (!isSame) return gnnctlExit.FAILURE;
    return exitCode;
  } finally {
    await daemon.stop();
  }
}

/** Leaves the daemon up for whoever wants to look, until Ctrl-C. */
async function showPage(session: Session): Promise<void> {
  const { address } = await session.call(HostService.method.createPageLink, {});
  step(session, '7. A page that shows all of it, while it is open (Ctrl-C ends it)');
  session.print(address);
  await new Promise<void>((resolve) => {
    session.io.onInterrupt(resolve);
  });
}

function daemonArgs({ address }: Session, folder: string): readonly string[] {
  const args = [
    ...['--state-dir', join(folder, 'state'), '--listen', address],
    ...['--metrics-listen', '127.0.0.1:0', '--datasets-dir', join(cacheFolder, 'datasets')],
  ];
  // The job asks for two devices, also on a machine with one core.
  return availableParallelism() < 2 ? [...args, '--cpu-devices', '2', '--share-cores'] : args;
}

function shown(path: string): string {
  return relative(resolve('.'), path) || path;
}

/** As a user would: a script makes a folder of arrays, which is imported. */
async function runConverter(args: readonly string[], signal: AbortSignal): Promise<void> {
  try {
    await promisify(execFile)(process.execPath, args, { signal });
  } catch (error) {
    signal.throwIfAborted();
    const said = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : '';
    throw new Error(said === '' ? messageOf(error) : said, { cause: error });
  }
}

async function importGraph(session: Session): Promise<void> {
  const name = `datasets/${datasetId}`;
  const known = await session
    .call(DatasetService.method.getDataset, { name })
    .catch((error: unknown) => {
      if (error instanceof ApiError && error.code === status.NOT_FOUND) return null;
      throw error;
    });
  if (known?.state === DatasetState.READY) {
    session.print(`imported before: ${known.numNodes} nodes, ${known.numEdges} edges`);
    return;
  }
  const source = await mkdtemp(join(cacheFolder, 'npm-deps-'));
  try {
    session.print(`converting ${shown(archive)} to .npy files (${shown(converter)})`);
    const convert = [converter, archive, source];
    await waitFor(session, interrupted, (signal) => runConverter(convert, signal));
    const operation = await session.call(DatasetService.method.importDataset, {
      datasetId,
      source,
      requestId: session.requestId,
    });
    await waitForOperation(session, operation, {
      title: 'importing',
      cancels: false,
      ...interrupted,
    });
  } finally {
    await rm(source, { recursive: true, force: true });
  }
  const { numNodes, numEdges } = await session.call(DatasetService.method.getDataset, { name });
  session.print(`imported: ${numNodes} nodes, ${numEdges} edges`);
}

async function train(session: Session, spec: JobSpec, scraper: Scraper): Promise<Job> {
  step(session, '3. The job: gnnctl job create -f FILE');
  session.print(specYaml(JobSpecSchema, spec));
  const { name } = await session.call(JobService.method.createJob, { jobId: 'demo', spec });
  step(session, '4. Training: gnnctl job watch demo');
  const { stdout } = session.io;
  const view = stdout.isTty ? 'live' : 'lines';
  const onJob = () => scraper.scrape();
  const job = await waitFor(session, interrupted, (signal) =>
    followJob(session, name, { view, output: stdout, signal, onJob }),
  );
  if (job.state === JobState.SUCCEEDED && job.result !== undefined) return job;
  const details = [`the daemon's log: ${shown(join(resultFolder, 'gnnd.log'))}`];
  throw new CliError(gnnctlExit.JOB_FAILED, `the job did not succeed: ${job.message}`, details);
}

/** Whether another crew, and a kill, leave all parameters as they were. */
async function again(session: Session, spec: JobSpec, first: Job): Promise<boolean> {
  step(session, '6. The same job on another crew, whose Trainer is killed');
  const outcome = await waitFor(session, interrupted, (signal) =>
    trainAgain(session, spec, signal),
  );
  const { isSame, lines } = compared(first, outcome);
  session.print(lines.join('\n'));
  return isSame;
}

interface Conclusion {
  readonly job: Job;
  readonly scraper: Scraper;
  readonly startMs: number;
}

async function conclude(session: Session, { job, scraper, startMs }: Conclusion): Promise<number> {
  const { result } = job;
  if (result === undefined) throw new Error('a SUCCEEDED job has a result');
  const plan = await session.call(JobService.method.getJobPlan, { name: job.name });
  const checkpointFolder = join(resultFolder, 'checkpoint');
  await cp(result.checkpointDir, checkpointFolder, { recursive: true });
  const metrics = await scraper.last();
  const metricsFile = join(resultFolder, 'metrics.txt');
  await writeFile(metricsFile, metrics);
  step(session, '5. What came out');
  const trainingMs = job.epochs.reduce((sum, { durationMs }) => sum + Number(durationMs), 0);
  const demoMs = session.io.clock.monotonicMs() - startMs;
  const lines = demoReport({
    ...{ result, epochs: job.epochs, plan, metrics, trainingMs, demoMs },
    checkpointFolder: shown(checkpointFolder),
    metricsFile: shown(metricsFile),
  });
  session.print(lines.join('\n'));
  if (result.testAccuracyBest >= accuracyFloor) return gnnctlExit.OK;
  const floor = formatPercent(accuracyFloor);
  session.say(`demo: FAILED: test accuracy is below ${floor}, the reference less 1.5 points`);
  return gnnctlExit.FAILURE;
}

/** Keeps the newest metrics that tell of the job: its series go when its slot is released. */
interface Scraper {
  /** Begins a scrape unless one is on its way or was just made. */
  scrape(): void;
  last(): Promise<string>;
}

const scrapePeriodMs = 1000;

function createScraper(address: string, nowMs: () => number): Scraper {
  let newest = '';
  let running: Promise<void> = Promise.resolve();
  let scrapedAtMs = Number.NEGATIVE_INFINITY;
  const scrapeOnce = async () => {
    const response = await fetch(`http://${address}/metrics`);
    const text = await response.text();
    if (/^gnnd_role_switches_total\{/m.test(text)) newest = text;
  };
  return {
    scrape() {
      if (nowMs() - scrapedAtMs < scrapePeriodMs) return;
      scrapedAtMs = nowMs();
      // A scrape that fails leaves the one before; the report says when there was none.
      running = running.then(scrapeOnce).catch(() => {});
    },
    async last() {
      await running;
      await scrapeOnce().catch(() => {});
      return newest;
    },
  };
}

process.exitCode = await main();
