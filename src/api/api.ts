import type { Socket } from 'node:net';
import * as grpc from '@grpc/grpc-js';
import type { CacheReports } from '../artifacts/cache-reports.ts';
import type { Checkpoints } from '../artifacts/checkpoints.ts';
import type { PlacementSimulations } from '../artifacts/placement-simulations.ts';
import type { PropagationRequests } from '../artifacts/propagation-requests.ts';
import { type Clock, sleep as realSleep } from '../base/clock.ts';
import { GnndError } from '../base/errors.ts';
import { isHttp1, onFirstBytes } from '../base/first-bytes.ts';
import type { Log } from '../base/log.ts';
import type { TlsFiles } from '../config/tls-files.ts';
import type { Tokens } from '../config/tokens.ts';
import type { Datasets } from '../datasets/datasets.ts';
import type { Deletion } from '../jobs/deletion.ts';
import type { Jobs } from '../jobs/jobs.ts';
import { createAccess, type Door } from './access.ts';
import { requestBytesMax } from './bounds.ts';
import { checkpointHandlers } from './checkpoint-handlers.ts';
import { datasetHandlers } from './dataset-handlers.ts';
import {
  CheckpointService,
  file_gnnd_v1_checkpoint_service,
} from './gen/gnnd/v1/checkpoint_service_pb.ts';
import { DatasetService, file_gnnd_v1_dataset_service } from './gen/gnnd/v1/dataset_service_pb.ts';
import { file_gnnd_v1_host_service, HostService } from './gen/gnnd/v1/host_service_pb.ts';
import { file_gnnd_v1_job_service, JobService } from './gen/gnnd/v1/job_service_pb.ts';
import { file_google_rpc_error_details } from './gen/google/rpc/error_details_pb.ts';
import { file_grpc_health_v1_health, Health } from './gen/grpc/health/v1/health_pb.ts';
import {
  file_grpc_reflection_v1_reflection,
  ServerReflection,
} from './gen/grpc/reflection/v1/reflection_pb.ts';
import { createHealth } from './health.ts';
import { type HostView, hostHandlers } from './host-handlers.ts';
import { jobHandlers } from './job-handlers.ts';
import { type Listener, listen } from './listen.ts';
import { withMeant } from './meant.ts';
import { createPage, type Page, type PageOptions } from './page.ts';
import { createPageLinks, type PageLinks } from './page-links.ts';
import { createPageTokens } from './pages.ts';
import { createReflection, reflectionAlphaName } from './reflection.ts';
import {
  createRpcServer,
  type RpcEvent,
  type RpcMethod,
  type RpcServer,
  rpcMethod,
} from './rpc.ts';
import type { Sleep } from './wait.ts';

/** What the API shows and acts on. */
export interface ApiBackend {
  readonly jobs: Jobs;
  readonly deletion: Pick<Deletion, 'delete'>;
  readonly checkpoints: Checkpoints;
  readonly datasets: Datasets;
  readonly cacheReports: CacheReports;
  readonly placements: PlacementSimulations;
  readonly propagations: PropagationRequests;
  readonly host: HostView;
}

export interface ApiOptions {
  /** `unix:/path` or `host:port`; at least one. */
  readonly listen: readonly string[];
  /** Files of all TCP listeners; null: they are open to this host only, without encryption. */
  readonly tls: TlsFiles | null;
  readonly tokens: Tokens;
  /** Null: no page is served. */
  readonly page: Omit<PageOptions, 'rpc' | 'observe'> | null;
  /** Connections of all listeners together. */
  readonly connectionsMax: number;
  readonly log: Log;
  readonly clock: Clock;
  /** The daemon's version. */
  readonly version: string;
  /** Told of every call's start, messages and end. */
  readonly observe?: (event: RpcEvent) => void;
  /** For tests: time that does not pass by itself. */
  readonly sleep?: Sleep;
  /** For tests: a peer that says nothing is asked after so long, and has as long to answer. */
  readonly keepaliveMs?: number;
}

export interface ApiServer {
  /** As gRPC clients take them, in the order of `listen`, with the ports that were bound. */
  readonly addresses: readonly string[];
  /** What HTTP asks for the page's paths. */
  readonly page: Page;
  /** Empty: no page is served. */
  readonly pageAddress: string;
  /** Open connections of all listeners. */
  connectionCount(): number;
  /** Job watches in progress. */
  watchCount(): number;
  /**
   * False at first: health says NOT_SERVING and changes are refused with DAEMON_STARTING. False
   * after true: the same with DAEMON_STOPPING, while reads and watches go on.
   */
  setReady(ready: boolean): void;
  /** What health says while the daemon is up: NOT_SERVING while the store refuses writes. */
  setServing(serving: boolean): void;
  /**
   * Refuses changes with DAEMON_STOPPING, ends streams, gives calls `deadlineMs` to finish, then
   * cuts all connections. Idempotent; never rejects.
   */
  close(deadlineMs: number): Promise<void>;
}

const ownServices = [JobService, CheckpointService, DatasetService, HostService] as const;

/** Every method that is served, for metrics that start at 0. */
export const rpcMethods: readonly RpcMethod[] = [
  ...[...ownServices, Health, ServerReflection].map(
    (service) => [service, service.typeName] as const,
  ),
  [ServerReflection, reflectionAlphaName] as const,
].flatMap(([service, name]) => service.methods.map((method) => rpcMethod(method, name)));

const responseBytesMax = 4 * 1024 * 1024;

const serverOptions: grpc.ServerOptions = {
  'grpc.max_receive_message_length': requestBytesMax,
  'grpc.max_send_message_length': responseBytesMax,
  // A peer that is gone without a word is noticed within 40 s.
  'grpc.keepalive_time_ms': 30_000,
  'grpc.keepalive_timeout_ms': 10_000,
  // Makes clients resume their watches now and then, so that resuming is known to work.
  'grpc.max_connection_age_ms': 30 * 60_000,
  'grpc.max_connection_age_grace_ms': 60_000,
  'grpc.max_concurrent_streams': 128,
  // MiB a connection may hold in buffers.
  'grpc-node.max_session_memory': 64,
  'grpc.enable_channelz': 0,
};

/**
 * Serves gnnd.v1, health and reflection. Throws an Error that says which address cannot be bound
 * and why; then nothing is bound.
 */
export async function serve(backend: ApiBackend, options: ApiOptions): Promise<ApiServer> {
  const sleep = options.sleep ?? realSleep;
  const doors = createDoors(options);
  const observe = options.observe ?? (() => {});
  const links = createPageLinks(options.page, options.clock);
  const rpc = createRpcServer(new Map([...doors].map(([door, { server }]) => [door, server])), {
    log: options.log,
    clock: options.clock,
    observe,
    access: createAccess(eitherOf(links, options.tokens), options.log),
    explain: (error) => withMeant(error, backend),
  });
  const gate = createGate();
  const pages = createPageTokens();
  const health = createHealth(
    ownServices.map((service) => service.typeName),
    sleep,
  );
  rpc.add(
    JobService,
    jobHandlers({
      jobs: backend.jobs,
      deletion: backend.deletion,
      pages,
      clock: options.clock,
      sleep,
      admit: gate.admit,
    }),
  );
  const { checkpoints } = backend;
  rpc.add(CheckpointService, checkpointHandlers({ checkpoints, admit: gate.admit }));
  rpc.add(
    DatasetService,
    datasetHandlers({
      datasets: backend.datasets,
      cacheReports: backend.cacheReports,
      placements: backend.placements,
      propagations: backend.propagations,
      pages,
      admit: gate.admit,
    }),
  );
  rpc.add(
    HostService,
    hostHandlers({ host: backend.host, links, version: options.version, admit: gate.admit }),
  );
  rpc.add(Health, health.handlers);
  addReflection(rpc);

  warnWithoutTokens(doors, options);
  const connections = createConnections(doors, options);
  const listeners = await listenAll(options, connections.add);
  let closing: Promise<void> | null = null;
  return {
    addresses: listeners.map((listener) => listener.address),
    pageAddress: options.page?.address ?? '',
    page: options.page === null ? async () => false : createPage({ ...options.page, rpc, observe }),
    connectionCount: connections.count,
    watchCount: () => rpc.count('WatchJob'),
    setReady(ready) {
      if (closing !== null) return;
      gate.setReady(ready);
      health.setServing(ready);
    },
    setServing(serving) {
      if (closing === null && gate.isOpen()) health.setServing(serving);
    },
    close(deadlineMs) {
      closing ??= closeInOrder(deadlineMs);
      return closing;
    },
  };

  async function closeInOrder(deadlineMs: number): Promise<void> {
    health.setServing(false);
    gate.stop();
    for (const listener of listeners) listener.close();
    rpc.abortAll(stoppingError());
    const servers = [...doors.values()].map(({ server }) => server);
    const drained = Promise.all(
      servers.map((server) => new Promise<void>((done) => server.tryShutdown(() => done()))),
    );
    const timer = new AbortController();
    await Promise.race([drained, sleep(deadlineMs, timer.signal).catch(() => {})]);
    timer.abort();
    // tryShutdown alone would wait for a client that never reads.
    for (const server of servers) server.forceShutdown();
    connections.destroyAll();
  }
}

function eitherOf(links: PageLinks, tokens: Tokens): Pick<Tokens, 'find'> {
  return { find: (text) => links.find(text) ?? tokens.find(text) };
}

function warnWithoutTokens(
  doors: ReadonlyMap<Door, DoorServer>,
  { tokens, log }: Pick<ApiOptions, 'tokens' | 'log'>,
): void {
  if (!doors.has('NETWORK') || !tokens.isEmpty()) return;
  const remedy = 'nobody may use the API over TCP yet: gnnd token create NAME --role ADMIN';
  log.warn('api.no_tokens', { remedy });
}

/** Whether changes are taken: not before the daemon is ready, and not when it no longer is. */
function createGate() {
  let state: 'STARTING' | 'OPEN' | 'STOPPING' = 'STARTING';
  return {
    isOpen: () => state === 'OPEN',
    admit() {
      if (state === 'STARTING') {
        throw new GnndError('DAEMON_STARTING', 'the daemon is starting; try again in a moment');
      }
      if (state === 'STOPPING') throw stoppingError();
    },
    setReady(ready: boolean) {
      if (ready) state = 'OPEN';
      else if (state === 'OPEN') state = 'STOPPING';
    },
    stop() {
      state = 'STOPPING';
    },
  };
}

function stoppingError(): GnndError {
  return new GnndError('DAEMON_STOPPING', 'the daemon is stopping; jobs go on when it is back');
}

function addReflection(rpc: RpcServer): void {
  const handlers = createReflection([
    file_gnnd_v1_job_service,
    file_gnnd_v1_checkpoint_service,
    file_gnnd_v1_dataset_service,
    file_gnnd_v1_host_service,
    file_grpc_health_v1_health,
    file_grpc_reflection_v1_reflection,
    // Not a service's import: clients look these up to read the details of an error.
    file_google_rpc_error_details,
  ]);
  rpc.add(ServerReflection, handlers);
  rpc.add(ServerReflection, handlers, reflectionAlphaName);
}

interface DoorServer {
  readonly server: grpc.Server;
  readonly credentials: grpc.ServerCredentials;
}

function createDoors({ tls, keepaliveMs }: ApiOptions): ReadonlyMap<Door, DoorServer> {
  const shorter = {
    'grpc.keepalive_time_ms': keepaliveMs,
    'grpc.keepalive_timeout_ms': keepaliveMs,
  };
  const options = keepaliveMs === undefined ? serverOptions : { ...serverOptions, ...shorter };
  const door = (credentials: grpc.ServerCredentials): DoorServer => ({
    server: new grpc.Server(options as grpc.ServerOptions),
    credentials,
  });
  const doors = new Map<Door, DoorServer>([
    ['LOCAL', door(grpc.ServerCredentials.createInsecure())],
  ]);
  if (tls === null) return doors;
  const { cert, key, clientCa } = tls;
  const pairs = [{ cert_chain: cert, private_key: key }];
  const credentials = grpc.ServerCredentials.createSsl(clientCa, pairs, clientCa !== null);
  return doors.set('NETWORK', door(credentials));
}

interface Connections {
  add(socket: Socket, door: Door): void;
  count(): number;
  destroyAll(): void;
}

/** To browsers, curl and Prometheus, also where clients of gRPC would be asked for TLS. */
const notHttp = [
  'HTTP/1.1 400 Bad Request',
  'content-type: text/plain; charset=utf-8',
  'connection: close',
  '',
  "this is gnnd's listen, for gRPC; metrics and the page are at its metrics_listen\n",
].join('\r\n');

/** The sockets are ours, so that their number is known and none outlives the server. */
function createConnections(
  doors: ReadonlyMap<Door, DoorServer>,
  { connectionsMax, log }: Pick<ApiOptions, 'connectionsMax' | 'log'>,
): Connections {
  const injectors = new Map(
    [...doors].map(([door, { server, credentials }]) => [
      door,
      server.createConnectionInjector(credentials),
    ]),
  );
  const sockets = new Set<Socket>();
  /** Makes room for one more: whoever has never said a word goes first, the oldest of them. */
  const hasRoom = () => {
    if (sockets.size < connectionsMax) return true;
    const silent = [...sockets].find(({ bytesRead }) => bytesRead === 0);
    if (silent === undefined) return false;
    sockets.delete(silent);
    silent.destroy();
    return true;
  };
  return {
    add(socket, door) {
      if (!hasRoom()) {
        log.warn('api.connection_refused', { connectionsMax });
        socket.destroy();
        return;
      }
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
      // Until it is somebody's.
      socket.on('error', () => {});
      onFirstBytes(socket, (start) => {
        if (isHttp1(start)) socket.end(notHttp);
        else injectors.get(door)?.injectConnection(socket);
      });
    },
    count: () => sockets.size,
    destroyAll() {
      for (const socket of sockets) socket.destroy();
    },
  };
}

async function listenAll(
  options: ApiOptions,
  onConnection: (socket: Socket, door: Door) => void,
): Promise<readonly Listener[]> {
  const listeners: Listener[] = [];
  try {
    for (const address of options.listen) {
      const door = address.startsWith('unix:') || options.tls === null ? 'LOCAL' : 'NETWORK';
      const take = (socket: Socket) => onConnection(socket, door);
      listeners.push(await listen({ address, door, log: options.log }, take));
    }
    return listeners;
  } catch (error) {
    for (const listener of listeners) listener.close();
    throw error;
  }
}
