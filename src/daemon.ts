import { statfsSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { type ApiBackend, type ApiOptions, type ApiServer, rpcMethods, serve } from './api/api.ts';
import { deviceFacts } from './api/device-facts.ts';
import type { HostFacts } from './api/host-handlers.ts';
import { opennessOf } from './api/listen.ts';
import { type Page, pageSettings } from './api/page.ts';
import type { RpcEvent } from './api/rpc.ts';
import { createCacheReports } from './artifacts/cache-reports.ts';
import { createCheckpoints } from './artifacts/checkpoints.ts';
import {
  createPlacementSimulations,
  type PlacementSimulationsOptions,
} from './artifacts/placement-simulations.ts';
import { pluginFilesIn } from './artifacts/plugin-files.ts';
import {
  createPropagationRequests,
  type PropagationRequestsOptions,
} from './artifacts/propagation-requests.ts';
import { makeFolder, sweepTemporary } from './base/atomic-file.ts';
import { systemClock } from './base/clock.ts';
import { type ConnectionLimits, descriptorFacts, shareDescriptors } from './base/descriptors.ts';
import { messageOf } from './base/errors.ts';
import { daemonExit } from './base/exit-codes.ts';
import { hostMemoryBytes } from './base/host-memory.ts';
import type { Log } from './base/log.ts';
import { bound, StartError } from './base/start-error.ts';
import type { DaemonConfig } from './config/daemon-config.ts';
import { readTlsFiles } from './config/tls-files.ts';
import { createTokens } from './config/tokens.ts';
import { createDatasets, type Datasets, type DatasetsOptions } from './datasets/datasets.ts';
import { findDevices, type HostDevices } from './devices/host-devices.ts';
import { createDeletion } from './jobs/deletion.ts';
import { setDrained } from './jobs/drained-devices.ts';
import { hostLimits } from './jobs/host-limits.ts';
import { createJobMetrics } from './jobs/job-metrics.ts';
import { assertTransition, pendingSinceMs } from './jobs/job-state.ts';
import { createJobs } from './jobs/jobs.ts';
import { warnOfMissingStore } from './jobs/orphans.ts';
import { createRetention, type RetentionOptions } from './jobs/retention.ts';
import { Runner } from './jobs/runner.ts';
import type { RunnerObserver } from './jobs/runner-options.ts';
import { type HttpServer, serveHttp } from './metrics/http.ts';
import { createMetrics, type Metrics } from './metrics/metrics.ts';
import type { CoreAddon } from './native/contract.ts';
import { claimShared, claimState, type SharedFolders } from './native/folder-claims.ts';
import { loadCore } from './native/load.ts';
import { createPool, type Pool } from './pool/pool.ts';
import { DataWitness, type PropagationEnd, Propagations, Topologies } from './prepare/prepare.ts';
import { terminalStates } from './records/job-record.ts';
import { openStore, type Store } from './store/store.ts';
import { createPreparer } from './supervisor/supervisor.ts';
import { createJobTraces, type JobTraces } from './traces/job-traces.ts';

/**
 * The composition root: builds each part, wires it, starts and stops in order. Read this first.
 *
 *   start: lock, store, devices, datasets, runner, jobs, HTTP, gRPC, then jobs may run
 *   stop:  not ready, executors stopped, gRPC, HTTP, imports, store; the lock goes with the process
 */

export interface Daemon {
  /** gRPC addresses that are served. */
  readonly listen: readonly string[];
  /** `host:port` of the HTTP endpoint. */
  readonly metrics: string;
  /** Address of the page; empty: none is served. */
  readonly page: string;
  /** Idempotent; resolves when nothing of ours runs any more. */
  close(): Promise<void>;
}

export interface DaemonOptions {
  readonly config: DaemonConfig;
  readonly log: Log;
  readonly version: string;
  /** The store became unusable: the process must end, a restart reads what is on the disk. */
  readonly onFatal: () => void;
}

/** Open calls may finish for so long when the daemon stops. */
const apiDrainMs = 5000;
/** Epochs of some thousand, and what SQLite needs beside them. */
const stateReserveBytes = 8 * 2 ** 20;

export async function startDaemon(options: DaemonOptions): Promise<Daemon> {
  const { config, log, version } = options;
  const [clock, native, pool] = [systemClock, loadCore(), createPool()];
  const found = await devicesOf(native.hostCores(), config);
  const connections = connectionLimits(found.devices.length);
  const folders = await claimFolders(options, native);
  const metrics = metricsOf(version);
  const store = openStoreOf(options, pool, metrics);
  const { jobsFolder, featuresFolder, propagationsFolder: folder } = foldersOf(config);
  const datasets = datasetsOf(config, { store, log, clock }, { native, folders });
  const witness = new DataWitness(log);
  const ended = (end: PropagationEnd) => metrics.propagationEnded(end);
  const propagations = new Propagations({ folder, native, clock, witness, ended });
  const jobMetrics = createJobMetrics(metrics, (id) => store.getJob(id));
  const traces = createJobTraces(config.otlpEndpoint, options);
  let onStoreHealth = () => {};
  const topologies = new Topologies({ native, idleMs: config.topologyIdleMs });
  const shared = { store, native, topologies, propagations, witness };
  const runner = new Runner({
    ...shared,
    ...{ clock, log, jobsFolder },
    devices: found.devices,
    cacheFolder: featuresFolder,
    random: Math.random,
    observe: observerOf(metrics, jobMetrics, traces, () => onStoreHealth()),
  });
  const host = hostLimits(found.devices, native.hostInstructionSet(), config.pluginsDir);
  const { maxQueued, stateDir, sourcesDir } = config;
  const limits = { host, hostBytes: hostMemoryBytes(), jobsFolder, sourcesDir, maxQueued };
  const jobs = createJobs({ store, runner, native, clock, pool, ...limits });
  const { deletion, retention } = createKeepers(options, metrics, { ...shared, runner });
  const reports = reportsOf(config, { ...shared, pool, host });
  const checkpoints = createCheckpoints({ ...shared, pool, featuresFolder, stateDir });
  let isUp = false;
  const ready = () => isUp && !runner.storeIsFailing;
  const facts = { ...options, startAtMs: clock.wallMs(), isReady: ready, runner };
  const view = {
    host: () => hostFacts(facts, store, found, native.hostInstructionSet()),
    devices: () => deviceFacts(found, runner),
    setDrained: (change: Parameters<typeof setDrained>[2]) => setDrained(store, runner, change),
    collectGarbage: retention.collect,
    orphans: retention.orphans,
  };
  const asked = propagationsOf(config, { ...shared, datasets, devices: found.devices });
  const artifacts = { datasets, checkpoints, ...reports, propagations: asked };
  const backend = { jobs, deletion, ...artifacts, host: view };
  const { http, api } = await openServers(options, { backend, metrics, connections, ready });
  metrics.onScrape(() => {
    const sources = { store, found, runner, topologies, propagations, ready: ready(), stateDir };
    updateHost(metrics, { ...sources, watches: api.watchCount() });
    jobMetrics.update(clock.monotonicMs());
  });
  onStoreHealth = () => api.setServing(ready());
  runner.start();
  retention.start();
  isUp = true;
  api.setReady(true);

  let closing: Promise<void> | null = null;
  const close = async () => {
    isUp = false;
    api.setReady(false);
    await runner.drain();
    topologies.close();
    await api.close(apiDrainMs);
    await http.close();
    await Promise.all([datasets.close(), retention.close(), traces.close()]);
    metrics.close();
    store.close();
    await pool.close();
  };
  return {
    listen: api.addresses,
    metrics: `${http.host}:${http.port}`,
    page: api.pageAddress,
    close: () => {
      closing ??= close();
      return closing;
    },
  };
}

function metricsOf(version: string): Metrics {
  return createMetrics({
    build: { version, nodeVersion: process.versions.node },
    startAtMs: systemClock.wallMs(),
    grpcMethods: rpcMethods,
  });
}

interface Served {
  readonly backend: ApiBackend;
  readonly metrics: Metrics;
  readonly connections: ConnectionLimits;
  readonly ready: () => boolean;
}

/** HTTP first: whoever finds gRPC open can ask for health, too. */
async function openServers(
  { config, log, version }: DaemonOptions,
  { backend, metrics, connections, ready }: Served,
): Promise<{ readonly http: HttpServer; readonly api: ApiServer }> {
  const listen = config.metricsListen;
  const connectionsMax = connections.http;
  let page: Page = async () => false;
  let grpc = config.listen;
  const http = await bound(`metrics_listen ${listen}`, () =>
    serveHttp({
      ...{ listen, connectionsMax, metrics, live: () => true, ready, log },
      page: (...call) => page(...call),
      grpc: () => grpc,
    }),
  );
  const observe = (event: RpcEvent) => observeRpc(metrics, event);
  makeSocketFolders(config.listen);
  const api = await bound(config.listen.join(', '), () =>
    serve(backend, {
      listen: config.listen,
      ...accessOf(config),
      page: pageSettings(config, { ...http, connectionsMax }),
      connectionsMax: connections.grpc,
      ...{ log, clock: systemClock, version, observe },
    }),
  );
  page = api.page;
  grpc = api.addresses;
  return { http, api };
}

/** Creates the reports, which sample epochs of a dataset and predict what jobs would do. */
function reportsOf(
  { stateDir, dumpsDir }: DaemonConfig,
  {
    host,
    ...others
  }: Omit<PlacementSimulationsOptions, 'stateDir' | 'host'> & {
    readonly host: ReturnType<typeof hostLimits>;
  },
) {
  const pluginFile = pluginFilesIn(host.pluginsDir);
  const parts = { ...others, stateDir, host: { ...host, pluginFile } };
  return {
    cacheReports: createCacheReports({ ...parts, dumpsDir }),
    placements: createPlacementSimulations(parts),
  };
}

function foldersOf({ stateDir, cacheDir }: DaemonConfig) {
  return {
    jobsFolder: join(stateDir, 'jobs'),
    featuresFolder: join(cacheDir, 'features'),
    propagationsFolder: join(cacheDir, 'propagations'),
  };
}

/** Creates the parts that remove what was deleted and what is not kept any longer. */
function createKeepers(
  { config, log }: DaemonOptions,
  metrics: Metrics,
  parts: Pick<RetentionOptions, 'store' | 'propagations'> & { readonly runner: Runner },
) {
  const { jobsFolder, featuresFolder } = foldersOf(config);
  const deletion = createDeletion({ ...parts, jobsFolder, log });
  const retention = createRetention({
    ...{ ...parts, deletion, jobsFolder, log },
    limits: config.retention,
    derivedFolder: featuresFolder,
    tasksLogFolder: join(config.stateDir, 'log'),
    clock: systemClock,
    observe: (removed) => {
      for (const { kind, bytes } of removed) metrics.removed(kind, bytes);
    },
  });
  return { deletion, retention };
}

function openStoreOf({ config, log, onFatal }: DaemonOptions, pool: Pool, metrics: Metrics): Store {
  const path = join(config.stateDir, 'store', 'gnnd.db');
  warnOfMissingStore(config.stateDir, path, log);
  return openStore(path, {
    clock: systemClock,
    ...{ log, pool },
    reserveBytes: stateReserveBytes,
    assertTransition,
    observe: (observation) => metrics.observeStore(observation),
    onReplay: (method) => metrics.requestReplayed(method),
    onFatal,
  });
}

function datasetsOf(
  { datasetsDir: folder, sourcesDir, stateDir }: DaemonConfig,
  parts: Pick<DatasetsOptions, 'store' | 'log' | 'clock'>,
  { native, folders }: { readonly native: CoreAddon; readonly folders: SharedFolders },
): Datasets {
  const tasks = createPreparer({ native, stateDir });
  const isAlone = folders.isAlone(folder);
  const datasets = createDatasets({ folder, isAlone, sourcesDir, tasks, ...parts });
  // All that was left behind is removed by now.
  folders.share();
  return datasets;
}

function propagationsOf(
  config: DaemonConfig,
  parts: Omit<PropagationRequestsOptions, 'derivedFolder' | 'stateDir'>,
) {
  const { featuresFolder: derivedFolder } = foldersOf(config);
  return createPropagationRequests({ ...parts, derivedFolder, stateDir: config.stateDir });
}

async function claimFolders(
  { config, log }: DaemonOptions,
  native: CoreAddon,
): Promise<SharedFolders> {
  const { stateDir, datasetsDir, cacheDir } = config;
  const { jobsFolder, featuresFolder, propagationsFolder } = foldersOf(config);
  try {
    claimState(native, stateDir);
    const folders = await claimShared(native, stateDir, [datasetsDir, cacheDir]);
    const derived = folders.isAlone(cacheDir) ? [featuresFolder, propagationsFolder] : [];
    sweep([jobsFolder, ...derived], log);
    return folders;
  } catch (error) {
    throw new StartError(daemonExit.STATE_DIR, messageOf(error), error);
  }
}

/** Removes what killed writers left, where no others write. */
function sweep(folders: readonly string[], log: Log): void {
  const paths = folders.flatMap((folder) => sweepTemporary(folder, 2));
  if (paths.length > 0) log.warn('daemon.swept', { paths });
}

function observeRpc(metrics: Metrics, event: RpcEvent): void {
  metrics.observeGrpc(event);
  if (event.kind === 'handled' && event.reason !== null) metrics.apiError(event.reason);
}

function connectionLimits(devices: number): ConnectionLimits {
  try {
    return shareDescriptors({ ...descriptorFacts(), devices });
  } catch (error) {
    throw new StartError(daemonExit.OS_RESOURCE, messageOf(error), error);
  }
}

/** Certificates and tokens, which make TCP safe to listen on. */
function accessOf(config: DaemonConfig): Pick<ApiOptions, 'tls' | 'tokens'> {
  try {
    return { tls: readTlsFiles(config), tokens: createTokens(config.tokensFile) };
  } catch (error) {
    throw new StartError(daemonExit.CONFIGURATION, messageOf(error), error);
  }
}

/** Unix sockets live in folders that need not exist yet, as $XDG_RUNTIME_DIR/gnnd. */
function makeSocketFolders(listen: readonly string[]): void {
  for (const address of listen.filter((text) => text.startsWith('unix:'))) {
    const folder = dirname(address.slice('unix:'.length));
    try {
      makeFolder(folder);
    } catch (error) {
      const message = `cannot make the folder of ${address}: ${messageOf(error)}`;
      throw new StartError(daemonExit.CONFIGURATION, message, error);
    }
  }
}

async function devicesOf(cores: readonly number[], config: DaemonConfig): Promise<HostDevices> {
  try {
    return await findDevices(cores, config);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new StartError(daemonExit.CONFIGURATION, why, error);
  }
}

function observerOf(
  metrics: Metrics,
  jobMetrics: ReturnType<typeof createJobMetrics>,
  traces: JobTraces,
  onStoreHealth: () => void,
): RunnerObserver {
  return {
    storeFailing: onStoreHealth,
    attemptStarted: (attempt) => jobMetrics.started(attempt),
    attemptEnded: (attempt) => jobMetrics.ended(attempt),
    executorStarted: (role) => metrics.executorStarted(role),
    executorExited: ({ role, reason }) => {
      const outcome =
        reason === 'NONE'
          ? 'expected'
          : reason === 'EXECUTOR_STALLED'
            ? 'killed_watchdog'
            : reason === 'EXECUTOR_UNKILLABLE'
              ? 'unkillable'
              : 'crashed';
      metrics.executorExited({ role, outcome, reason });
    },
    partEnded: ({ input }, part, seconds) => traces.partEnded(input.uid, part, seconds),
    checkpointWritten: ({ input }, seconds) => {
      metrics.checkpointTook(seconds);
      traces.partEnded(input.uid, 'checkpoint', seconds);
    },
    epochEnded: (attempt, report) => {
      jobMetrics.epochEnded(attempt, report.durationMs / 1000);
      traces.epochEnded(attempt.input.uid, report);
    },
    transitioned: (before, after) => {
      traces.transitioned(before, after);
      if (before.state === after.state) return;
      const nowMs = systemClock.wallMs();
      const ended = terminalStates.has(after.state);
      metrics.jobTransitioned({
        to: after.state,
        reason: after.reason,
        pendingSeconds: before.state === 'PENDING' ? (nowMs - pendingSinceMs(before)) / 1000 : null,
        durationSeconds: ended ? (nowMs - after.createAtMs) / 1000 : null,
      });
    },
  };
}

interface HostInputs {
  readonly config: DaemonConfig;
  readonly startAtMs: number;
  readonly isReady: () => boolean;
  readonly runner: Runner;
}

function hostFacts(
  { config, startAtMs, isReady, runner }: HostInputs,
  store: Store,
  { devices, notes }: HostDevices,
  instructionSet: 'SCALAR' | 'AVX2' | 'AVX512' | 'NEON',
): HostFacts {
  return {
    hostname: hostname(),
    pid: process.pid,
    startAtMs,
    cores: new Set(devices.flatMap(({ cores }) => cores)).size,
    memoryBytes: hostMemoryBytes(),
    instructionSet,
    ready: isReady(),
    notes: [
      ...notes,
      ...(config.tlsCert === '' ? config.listen.map(opennessOf) : []).filter(
        (note) => note !== null,
      ),
      ...(runner.storeIsFailing ? ['the store refuses to write: is its disk full?'] : []),
    ],
    stateDir: config.stateDir,
    jobs: store.countJobs(),
  };
}

interface HostMetricsSources {
  readonly store: Store;
  readonly found: HostDevices;
  readonly runner: Runner;
  readonly topologies: Topologies;
  readonly propagations: Propagations;
  readonly ready: boolean;
  readonly stateDir: string;
  readonly watches: number;
}

function updateHost(metrics: Metrics, sources: HostMetricsSources): void {
  const { store, found, runner, topologies, propagations, ready, stateDir, watches } = sources;
  metrics.propagationsRun(propagations.shares());
  const disk = statfsSync(stateDir);
  const datasets = store.countDatasets();
  metrics.updateHost({
    ready,
    store: { revision: store.revision(), ...store.sizes() },
    stateDirFreeBytes: disk.bavail * disk.bsize,
    watches,
    jobs: store.countJobs(),
    datasets: datasets.byState,
    datasetBytes: datasets.bytes,
    segments: [
      ...[...runner.attempts.values()].map(
        // The bytes of its records: the segment itself is sparse.
        ({ seen }) => ({ kind: 'JOB', bytes: seen.snapshot?.queueBytes ?? 0 }) as const,
      ),
      ...topologies.resident.map(({ bytes }) => ({ kind: 'TOPOLOGY', bytes }) as const),
    ],
    devices: deviceFacts(found, runner).map(({ name, kind, state, uuid, product }) => ({
      ...{ device: name, kind, state, uuid, model: product },
      driver: '',
    })),
  });
}
