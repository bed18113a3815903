import { resolve } from 'node:path';
import { isLoopback } from '../base/address.ts';
import { type LinkRates, linkClasses } from '../base/link-classes.ts';
import type { LogLevel } from '../base/log.ts';
import { type RetentionLimits, retentionKeys, retentionLimitsOf } from './retention-limits.ts';

/** What `gnnd serve` needs to know. Precedence: flags, environment (GNND_...), file, default. */
export interface DaemonConfig {
  readonly stateDir: string;
  /** `unix:/path` or `host:port`. */
  readonly listen: readonly string[];
  /** Files of all TCP addresses; empty: there are none, or those of this host are open. */
  readonly tlsCert: string;
  readonly tlsKey: string;
  /** Empty: clients need no certificate. */
  readonly tlsClientCa: string;
  /** Lets in every user of this host where an address of it is TCP. */
  readonly insecureLoopback: boolean;
  /** Who may use the API over TCP, by the SHA-256 of their tokens. */
  readonly tokensFile: string;
  /** `host:port` of /metrics, /livez, /readyz; port 0 takes a free one. */
  readonly metricsListen: string;
  /** Empty: no traces. */
  readonly otlpEndpoint: string;
  /** Whether the page is served there; AUTO: where that is an address of this host alone. */
  readonly page: 'AUTO' | 'ON' | 'OFF';
  readonly datasetsDir: string;
  readonly cacheDir: string;
  /** Folder of samplers and models that jobs may load; empty: they may load none. */
  readonly pluginsDir: string;
  /** Sources of imports lie below it; empty: wherever the daemon may read. */
  readonly sourcesDir: string;
  /** Cache reports write samples below it. */
  readonly dumpsDir: string;
  /** CPU devices; null = one per core, at most 8. */
  readonly cpuDevices: number | null;
  /** Lets CPU devices share cores when there are more devices than cores. */
  readonly shareCores: boolean;
  /** GPUs: all that are fit, none, or these, by index or UUID; one named n times is n devices. */
  readonly cudaDevices: 'auto' | 'none' | readonly (number | string)[];
  /** GPUs that others use may be used. */
  readonly shareGpus: boolean;
  /** Simulated devices; a list of indices makes several of one, as for GPUs. */
  readonly simDevices: 'none' | readonly number[];
  /** Memory of each simulated device. */
  readonly simMemoryBytes: number;
  /** GB/s that devices read of the host's memory and over links: in place of what is measured. */
  readonly linkRates: Partial<LinkRates>;
  readonly maxQueued: number;
  /** How long a topology stays in memory after the last who used it; 0: not at all. */
  readonly topologyIdleMs: number;
  /** A daemon that was told to stop exits after so long, whatever still hangs. */
  readonly stopTimeoutMs: number;
  readonly retention: RetentionLimits;
  readonly logLevel: LogLevel;
}

/** A key of the configuration, as files, flags and the environment spell it. */
export interface ConfigKey {
  /** `state_dir` in a file, `--state-dir` as a flag, GNND_STATE_DIR in the environment. */
  readonly name: string;
  readonly help: string;
}

export const configKeys = [
  { name: 'state_dir', help: 'jobs, store, logs and checkpoints' },
  { name: 'listen', help: 'gRPC addresses, unix:/path or host:port; several with commas or flags' },
  { name: 'tls_cert', help: 'certificate (PEM) that TCP addresses show; with tls_key' },
  { name: 'tls_key', help: 'its key (PEM)' },
  { name: 'tls_client_ca', help: 'clients need a certificate that this one signed (PEM)' },
  { name: 'tokens_file', help: 'tokens of clients over TCP (default: STATE_DIR/tokens.json)' },
  { name: 'insecure_loopback', help: 'true: TCP addresses of this host need no TLS and no token' },
  { name: 'metrics_listen', help: 'host:port of /metrics, /livez and /readyz' },
  { name: 'otlp_endpoint', help: 'collector of traces, as http://127.0.0.1:4318 (default: none)' },
  { name: 'page', help: 'a page to look at, beside /metrics: auto (on loopback only), on or off' },
  { name: 'datasets_dir', help: 'imported datasets (default: STATE_DIR/datasets)' },
  { name: 'cache_dir', help: 'derived files (default: STATE_DIR/cache)' },
  { name: 'plugins_dir', help: 'samplers and models that jobs may load (default: none may)' },
  { name: 'sources_dir', help: 'sources of imports (default: any that the daemon may read)' },
  { name: 'dumps_dir', help: 'samples that cache reports keep (default: STATE_DIR/dumps)' },
  { name: 'cpu_devices', help: 'number of CPU devices (default: auto, one per core, at most 8)' },
  { name: 'share_cores', help: 'true: more CPU devices than cores may share them' },
  { name: 'cuda_devices', help: 'auto, none, or GPUs by index or UUID; twice: two devices on it' },
  { name: 'share_gpus', help: 'true: GPUs that other processes use may be used' },
  { name: 'sim_devices', help: 'simulated devices, for tests: how many, or a list as for GPUs' },
  { name: 'sim_memory_bytes', help: 'memory of each simulated device (default: 1 GiB)' },
  { name: 'link_rates', help: 'GB/s as HOST:10,NVLINK:50,PCIE:12,HOST_BUS:8; default: measured' },
  { name: 'max_queued', help: 'jobs that may wait or run' },
  { name: 'topology_idle_ms', help: 'how long a topology stays in memory after its last job' },
  { name: 'stop_timeout_ms', help: 'a daemon that stops exits after so long, whatever hangs' },
  ...retentionKeys,
  { name: 'log_level', help: 'debug, info, warn or error' },
] as const satisfies readonly ConfigKey[];

export type ConfigName = (typeof configKeys)[number]['name'];

/** Values as written, by key; from one source or merged. */
export type ConfigValues = Readonly<Partial<Record<ConfigName, unknown>>>;

export interface ConfigDefaults {
  readonly stateDir: string;
  readonly runDir: string;
}

/** The configuration, or every sentence about what is wrong with it. */
export function resolveConfig(
  values: ConfigValues,
  defaults: ConfigDefaults,
): { readonly ok: DaemonConfig } | { readonly problems: readonly string[] } {
  const problems: string[] = [];
  const text = (name: ConfigName, fallback: string): string => {
    const value = values[name];
    if (value === undefined) return fallback;
    if (typeof value === 'string' && value !== '') return value;
    problems.push(`${name} must be a non-empty string, not ${JSON.stringify(value)}`);
    return fallback;
  };
  // Paths are told to executors and clients, whose working directories are others.
  const folder = (name: ConfigName, fallback: string): string => {
    const path = text(name, fallback);
    if (/^~(\/|$)/.test(path)) problems.push(`${name}: ${JSON.stringify(path)} ${tilde}`);
    return path === '' ? '' : resolve(path);
  };
  const stateDir = folder('state_dir', defaults.stateDir);
  const listen = addresses(values['listen'], `unix:${defaults.runDir}/gnnd.sock`, problems);
  const config: DaemonConfig = {
    stateDir,
    listen,
    ...tlsOf(values, listen, problems),
    tokensFile: folder('tokens_file', `${stateDir}/tokens.json`),
    metricsListen: text('metrics_listen', '127.0.0.1:9464'),
    otlpEndpoint: otlpEndpointOf(values['otlp_endpoint'], problems),
    page: pageOf(values['page'], problems),
    datasetsDir: folder('datasets_dir', `${stateDir}/datasets`),
    cacheDir: folder('cache_dir', `${stateDir}/cache`),
    pluginsDir: folder('plugins_dir', ''),
    sourcesDir: folder('sources_dir', ''),
    dumpsDir: folder('dumps_dir', `${stateDir}/dumps`),
    cpuDevices:
      values['cpu_devices'] === undefined || values['cpu_devices'] === 'auto'
        ? null
        : integer('cpu_devices', values['cpu_devices'], { low: 1, high: 1024 }, problems),
    shareCores: flag('share_cores', values['share_cores'], problems),
    cudaDevices: cudaDevicesOf(values['cuda_devices'], problems),
    shareGpus: flag('share_gpus', values['share_gpus'], problems),
    simDevices: simDevicesOf(values['sim_devices'], problems),
    simMemoryBytes: integer(
      'sim_memory_bytes',
      values['sim_memory_bytes'] ?? 2 ** 30,
      { low: 2 ** 20, high: 2 ** 42 },
      problems,
    ),
    linkRates: linkRatesOf(values['link_rates'], problems),
    maxQueued: integer(
      'max_queued',
      values['max_queued'] ?? 10_000,
      { low: 1, high: 1e6 },
      problems,
    ),
    topologyIdleMs: integer(
      'topology_idle_ms',
      values['topology_idle_ms'] ?? 10_000,
      { low: 0, high: 3_600_000 },
      problems,
    ),
    stopTimeoutMs: integer(
      'stop_timeout_ms',
      values['stop_timeout_ms'] ?? 100_000,
      { low: 1000, high: 3_600_000 },
      problems,
    ),
    retention: retentionLimitsOf(values, problems),
    logLevel: level(values['log_level'], problems),
  };
  return problems.length === 0 ? { ok: config } : { problems };
}

function otlpEndpointOf(value: unknown, problems: string[]): string {
  if (value === undefined || value === '') return '';
  const isAddress = typeof value === 'string' && /^https?:$/.test(protocolOf(value));
  if (isAddress) return value;
  const example = 'http://127.0.0.1:4318';
  problems.push(
    `otlp_endpoint must be an address such as ${example}, not ${JSON.stringify(value)}`,
  );
  return '';
}

function protocolOf(address: string): string {
  return URL.canParse(address) ? new URL(address).protocol : '';
}

function pageOf(value: unknown, problems: string[]): DaemonConfig['page'] {
  // YAML reads on and off as words, true and false as what they are.
  if (value === undefined || value === 'auto') return 'AUTO';
  if (value === 'on' || value === true || value === 'true') return 'ON';
  if (value === 'off' || value === false || value === 'false') return 'OFF';
  problems.push(`page must be auto, on or off, not ${JSON.stringify(value)}`);
  return 'OFF';
}

const linkRateMax = 1e5;

function linkRatesOf(value: unknown, problems: string[]): Partial<LinkRates> {
  const rates: Partial<Record<keyof LinkRates, number>> = {};
  for (const part of value === undefined ? [] : partsOf(value)) {
    const [way = '', text = ''] = part.split(':');
    const known = (['HOST', ...linkClasses] as const).find((name) => name === way);
    const rate = text === '' ? Number.NaN : Number(text);
    if (known !== undefined && rate > 0 && rate <= linkRateMax) rates[known] = rate;
    else {
      const expected = `expected ${['HOST', ...linkClasses].join(', ')}, each with :GB/s`;
      problems.push(`link_rates: ${JSON.stringify(part)}: ${expected} up to ${linkRateMax}`);
    }
  }
  return rates;
}

const simDevicesMax = 64;

function cudaDevicesOf(value: unknown, problems: string[]): DaemonConfig['cudaDevices'] {
  if (value === undefined || value === 'auto') return 'auto';
  if (value === 'none') return 'none';
  return partsOf(value).map((part) => {
    if (/^\d{1,3}$/.test(part)) return Number(part);
    if (/^(GPU|MIG)-[\w-]+$/.test(part)) return part;
    const expected = 'expected auto, none, or indices and UUIDs (nvidia-smi -L)';
    problems.push(`cuda_devices: ${JSON.stringify(part)}: ${expected}`);
    return part;
  });
}

function simDevicesOf(value: unknown, problems: string[]): DaemonConfig['simDevices'] {
  if (value === undefined || value === 'none') return 'none';
  const parts = partsOf(value);
  const numbers = parts.map(Number);
  const most = Array.isArray(value) || parts.length > 1 ? simDevicesMax - 1 : simDevicesMax;
  if (numbers.some((number) => !Number.isInteger(number) || number < 0 || number > most)) {
    const expected = `expected a number up to ${simDevicesMax}, or a list of indices below it`;
    problems.push(`sim_devices: ${JSON.stringify(value)}: ${expected}`);
    return 'none';
  }
  const isList = Array.isArray(value) || parts.length > 1;
  const indices = isList ? numbers : Array.from({ length: numbers[0] ?? 0 }, (_, index) => index);
  return indices.length === 0 ? 'none' : indices;
}

/** A list, or a text with commas. */
function partsOf(value: unknown): readonly string[] {
  const list: readonly unknown[] = Array.isArray(value) ? value : String(value).split(',');
  return list.map((part) => String(part).trim());
}

const tilde = 'begins with ~, which only shells replace: write the path in full';

function addresses(value: unknown, fallback: string, problems: string[]): readonly string[] {
  if (value === undefined) return [fallback];
  const list: readonly unknown[] = Array.isArray(value) ? value : [value];
  const texts = list.flatMap((item) =>
    String(item)
      .split(',')
      .map((address) => address.trim()),
  );
  for (const address of texts) {
    if (address.startsWith('unix:~')) {
      problems.push(`listen: ${JSON.stringify(address)} ${tilde}`);
    }
    if (!/^unix:.+|^\[?[\w.:-]+\]?:\d{1,5}$/.test(address)) {
      const meant = address.startsWith('/') ? `; did you mean unix:${address}?` : '';
      problems.push(
        `listen: ${JSON.stringify(address)} is neither unix:/path nor host:port${meant}`,
      );
    }
  }
  return texts;
}

type TlsConfig = Pick<DaemonConfig, 'tlsCert' | 'tlsKey' | 'tlsClientCa' | 'insecureLoopback'>;

/** What TCP addresses need: encryption, or to be of this host and knowingly open. */
function tlsOf(values: ConfigValues, listen: readonly string[], problems: string[]): TlsConfig {
  const path = (name: 'tls_cert' | 'tls_key' | 'tls_client_ca') => {
    const value = values[name] ?? '';
    return value === '' ? '' : resolve(String(value));
  };
  const tls: TlsConfig = {
    tlsCert: path('tls_cert'),
    tlsKey: path('tls_key'),
    tlsClientCa: path('tls_client_ca'),
    insecureLoopback: flag('insecure_loopback', values['insecure_loopback'], problems),
  };
  const hasCert = tls.tlsCert !== '';
  if (hasCert !== (tls.tlsKey !== '')) {
    problems.push('tls_cert and tls_key: expected both or neither');
  }
  if (!hasCert && tls.tlsClientCa !== '') {
    problems.push('tls_client_ca: expected tls_cert and tls_key beside it');
  }
  if (hasCert && tls.insecureLoopback) {
    problems.push('insecure_loopback: expected to be unset beside tls_cert');
  }
  const open = hasCert ? [] : listen.filter((text) => /^[^/]+:\d+$/.test(text));
  const remedy = 'set tls_cert and tls_key and make tokens (gnnd token create NAME --role ADMIN)';
  for (const address of open) {
    if (!isLoopback(address.replace(/:\d+$/, ''))) {
      problems.push(`listen: ${address} is open to the network without encryption: ${remedy}`);
    } else if (!tls.insecureLoopback) {
      const otherwise = 'or insecure_loopback to let in every user of this host';
      problems.push(`listen: ${address} is TCP without encryption: ${remedy}, ${otherwise}`);
    }
  }
  return tls;
}

function integer(
  name: string,
  value: unknown,
  { low, high }: { readonly low: number; readonly high: number },
  problems: string[],
): number {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  if (typeof number === 'number' && Number.isInteger(number) && number >= low && number <= high) {
    return number;
  }
  problems.push(`${name} must be an integer in ${low}..${high}, not ${JSON.stringify(value)}`);
  return low;
}

function flag(name: string, value: unknown, problems: string[]): boolean {
  if (value === undefined || value === false || value === 'false') return false;
  if (value === true || value === 'true') return true;
  problems.push(`${name} must be true or false, not ${JSON.stringify(value)}`);
  return false;
}

function level(value: unknown, problems: string[]): LogLevel {
  switch (value ?? 'info') {
    case 'debug':
      return 'debug';
    case 'info':
      return 'info';
    case 'warn':
      return 'warn';
    case 'error':
      return 'error';
    default:
      problems.push(`log_level must be debug, info, warn or error, not ${JSON.stringify(value)}`);
      return 'info';
  }
}
