import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import { parse } from 'yaml';
import { makeFolder } from './base/atomic-file.ts';
import { systemClock } from './base/clock.ts';
import { isScarcity } from './base/descriptors.ts';
import { GnndError, messageOf } from './base/errors.ts';
import { daemonExit } from './base/exit-codes.ts';
import { fileProblem } from './base/file-problem.ts';
import { homeFolder } from './base/home-folder.ts';
import { createLog, type Log } from './base/log.ts';
import { writtenTo } from './base/log-sink.ts';
import { closeDebugger } from './base/no-debugger.ts';
import { isWheel, packageRoot } from './base/package-root.ts';
import { packageVersion } from './base/package-version.ts';
import { StartError } from './base/start-error.ts';
import { type RunFlags, withRunFlags } from './cli/commands/job-run.ts';
import { explainUsage } from './cli/read/usage.ts';
import {
  type ConfigName,
  type ConfigValues,
  configKeys,
  type DaemonConfig,
  resolveConfig,
} from './config/daemon-config.ts';
import { addToken, deleteToken, type Role, readTokens, roles } from './config/tokens.ts';
import { startDaemon } from './daemon.ts';
import { loadCore } from './native/load.ts';
import { streamSink } from './native/stream-sink.ts';
import { runOnce } from './run.ts';
import { loopLimits, watchLoop } from './service-manager.ts';
import { meantBy } from './spec/nearest.ts';
import { StoreOfAnotherVersion } from './store/schema.ts';

/** gnnd: reads argv and configuration, runs the daemon, maps signals to its end. */

const version = packageVersion();

type Flags = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;
type Origin = 'flag' | 'environment' | 'file' | 'default';

const standardOutput = 1;
const standardError = 2;

const camel = (name: string) => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
const kebab = (name: string) => name.replaceAll('_', '-');

/** Collects the values of a flag that may be given several times. */
function collected(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

function roleOf(value: string): Role {
  const role = roles.find((known) => known === value.toUpperCase());
  if (role === undefined) throw new InvalidArgumentError(`expected one of ${roles.join(', ')}`);
  return role;
}

function withConfigFlags(command: Command): Command {
  command.option('--config <file>', 'YAML file with the keys below in snake_case');
  for (const { name, help } of configKeys) {
    const flag = `--${kebab(name)}`;
    if (name === 'share_cores' || name === 'insecure_loopback') command.option(flag, help);
    else if (name === 'listen') command.option(`${flag} <value>`, help, collected);
    else command.option(`${flag} <value>`, help);
  }
  return command;
}

function fail(exitCode: number, message: string): never {
  writtenTo(standardError, `gnnd: ${message}\n`);
  process.exit(exitCode);
}

interface FileConfig {
  readonly values: ConfigValues;
  /** Keys that there are not. */
  readonly problems: readonly string[];
}

function readFileConfig(path: string): FileConfig {
  let values: unknown;
  try {
    values = parse(readFileSync(path, 'utf8')) ?? {};
  } catch (error) {
    fail(daemonExit.CONFIGURATION, `${path}: ${fileProblem(error)}`);
  }
  if (typeof values !== 'object' || values === null || Array.isArray(values)) {
    fail(daemonExit.CONFIGURATION, `${path}: expected keys and values`);
  }
  const known = configKeys.map(({ name }) => name as string);
  const unknown = Object.keys(values).filter((key) => !known.includes(key));
  const problems = unknown.map((key) => {
    const respelt = known.find((name) => camel(name) === key || kebab(name) === key);
    const hint = respelt === undefined ? meantBy(key, known) : `; did you mean ${respelt}?`;
    return `${path}: unknown key ${key}${hint}`;
  });
  return { values: values as ConfigValues, problems };
}

function mergedConfig(
  flags: Flags,
  defaults: ConfigValues = {},
): {
  readonly config: DaemonConfig;
  readonly origins: ReadonlyMap<ConfigName, Origin>;
} {
  const path = flags['config'] ?? process.env['GNND_CONFIG'];
  const file: FileConfig =
    typeof path === 'string' ? readFileConfig(path) : { values: {}, problems: [] };
  const values: Partial<Record<ConfigName, unknown>> = {};
  const origins = new Map<ConfigName, Origin>();
  for (const { name } of configKeys) {
    const sources: readonly [Origin, unknown][] = [
      ['flag', flags[camel(name)]],
      ['environment', process.env[`GNND_${name.toUpperCase()}`]],
      ['file', file.values[name]],
      ['default', defaults[name]],
    ];
    const [origin, value] = sources.find(([, candidate]) => candidate !== undefined) ?? ['default'];
    origins.set(name, origin);
    if (value !== undefined) values[name] = value;
  }
  const stateHome = process.env['XDG_STATE_HOME'] || join(homeFolder(), '.local', 'state');
  const runtime = process.env['XDG_RUNTIME_DIR'];
  const resolved = resolveConfig(values, {
    stateDir: join(stateHome, 'gnnd'),
    runDir: runtime === undefined || runtime === '' ? '/run/gnnd' : join(runtime, 'gnnd'),
  });
  if ('ok' in resolved && file.problems.length === 0) return { config: resolved.ok, origins };
  const problems = [...file.problems, ...('problems' in resolved ? resolved.problems : [])];
  fail(daemonExit.CONFIGURATION, problems.join('\n      '));
}

/** An uncaught error is a bug: executors die with us, the next daemon starts from the store. */
function dieOnBugs(log: Log): void {
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
    process.on(event, (error: unknown) => {
      const stack = error instanceof Error ? error.stack : undefined;
      log.error('daemon.bug', { event, error: messageOf(error), stack });
      process.exit(daemonExit.INTERNAL);
    });
  }
}

function daemonLog({ logLevel: level }: DaemonConfig): Log {
  try {
    return createLog({ level, write: streamSink(standardError, 'TOLD').write });
  } catch (error) {
    failToStart(error);
  }
}

async function serveUntilSignal(flags: Flags): Promise<void> {
  const { config } = mergedConfig(flags);
  const log = daemonLog(config);
  if (closeDebugger()) log.warn('daemon.debugger_closed');
  dieOnBugs(log);
  // Before the first executor is spawned: a signal during the start is heeded after it.
  const signalled = new Promise<NodeJS.Signals>((resolve) => {
    // SIGHUP is a terminal that was closed: there is no configuration to read again.
    for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(name, resolve);
  });
  try {
    // Called from inside the failing call: let it return first.
    const onFatal = () => void setImmediate(() => process.exit(daemonExit.STORE_IO));
    const manager = watchLoop({ native: loadCore(), log, env: process.env, ...loopLimits });
    const daemon = await startDaemon({ config, log, version, onFatal });
    const { listen, metrics, page } = daemon;
    // One line on stdout for whoever started us; logs go to stderr.
    const line = JSON.stringify({ msg: 'daemon.ready', listen, metrics, page });
    streamSink(standardOutput, 'UNTOLD').write(`${line}\n`);
    log.info('daemon.ready', { listen, metrics, page, pid: process.pid });
    manager.ready();
    const signal = await signalled;
    log.info('daemon.stopping', { signal });
    manager.stopping();
    const { stopTimeoutMs: afterMs } = config;
    const overdue = JSON.stringify({ lvl: 'error', msg: 'daemon.stop_timeout', afterMs });
    loadCore().hostExitAfter(afterMs, daemonExit.STOP_TIMEOUT, overdue);
    await daemon.close();
    log.info('daemon.stopped');
    process.exit(daemonExit.OK);
  } catch (error) {
    failToStart(error);
  }
}

function failToStart(error: unknown): never {
  if (error instanceof StartError) fail(error.exitCode, error.message);
  if (error instanceof StoreOfAnotherVersion) fail(daemonExit.INCOMPATIBLE_DATA, error.message);
  if (error instanceof GnndError) fail(daemonExit.STORE_IO, error.message);
  if (isScarcity(error)) fail(daemonExit.OS_RESOURCE, messageOf(error));
  fail(daemonExit.INTERNAL, messageOf(error));
}

/** Cores given by an engine (Slurm) that counts cores but does not bind processes to them. */
function coresGiven(): number | undefined {
  const cores = Number(process.env['SLURM_CPUS_PER_TASK'] ?? process.env['SLURM_CPUS_ON_NODE']);
  return cores > 0 && cores < availableParallelism() ? cores : undefined;
}

async function runUntilEnd(flags: Flags & RunFlags): Promise<void> {
  const cores = coresGiven();
  const { config } = mergedConfig(flags, {
    state_dir: 'gnnd-run',
    metrics_listen: '127.0.0.1:0',
    ...(cores === undefined ? {} : { cpu_devices: String(cores) }),
  });
  try {
    process.exit(await runOnce({ config, version, flags, onLog: dieOnBugs }));
  } catch (error) {
    failToStart(error);
  }
}

function printConfig(flags: Flags): void {
  const { config, origins } = mergedConfig(flags);
  for (const { name } of configKeys) {
    const value = config[camel(name) as keyof DaemonConfig] ?? 'auto';
    const text = Array.isArray(value) ? value.join(',') : String(value);
    process.stdout.write(`${name}: ${text}  # ${origins.get(name)}\n`);
  }
}

async function createToken(name: string, flags: Flags & { readonly role: Role }): Promise<void> {
  const { config } = mergedConfig(flags);
  try {
    makeFolder(dirname(config.tokensFile));
    const what = { name, role: flags.role, nowMs: systemClock.wallMs() };
    const text = await addToken(config.tokensFile, what);
    process.stderr.write(`${name} may call as a ${flags.role}; this is shown once:\n`);
    process.stdout.write(`${text}\n`);
  } catch (error) {
    fail(daemonExit.USAGE, messageOf(error));
  }
}

function listTokens(flags: Flags): void {
  const { config } = mergedConfig(flags);
  try {
    for (const { name, role, createAtMs } of readTokens(config.tokensFile)) {
      process.stdout.write(`${name}\t${role}\t${new Date(createAtMs).toISOString()}\n`);
    }
  } catch (error) {
    fail(daemonExit.CONFIGURATION, messageOf(error));
  }
}

async function removeToken(name: string, flags: Flags): Promise<void> {
  const { config } = mergedConfig(flags);
  try {
    if (await deleteToken(config.tokensFile, name)) return;
  } catch (error) {
    fail(daemonExit.CONFIGURATION, messageOf(error));
  }
  fail(daemonExit.USAGE, `${config.tokensFile} has no token of ${name}`);
}

export const program = new Command('gnnd')
  .showHelpAfterError('(--help shows how)')
  .description('trains graph neural networks on one machine; talk to it with gnnctl')
  .version(version, '-V, --version', 'print the version of gnnd')
  .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : daemonExit.USAGE));
withConfigFlags(program.command('serve').description('run the daemon in the foreground')).action(
  (flags: Flags) => serveUntilSignal(flags),
);
withConfigFlags(
  withRunFlags(
    program
      .command('run')
      .description('run one job with a daemon of its own; go on with it where it was interrupted'),
  ),
).action(runUntilEnd);
/** pip has set up a wheel. */
if (!isWheel) {
  program
    .command('setup')
    .description('get what gnnd needs here: PyTorch, native code; does nothing when it is there')
    .action(async () => {
      // The set-up script reads the command line itself.
      process.argv.length = 2;
      await import(join(packageRoot, 'deploy', 'setup.mjs'));
    });
}
const config = program.command('config').description('show or check the configuration');
withConfigFlags(config.command('print').description('every key, its value and its origin')).action(
  (flags: Flags) => printConfig(flags),
);
withConfigFlags(config.command('check').description('exit 78 when something is wrong')).action(
  (flags: Flags) => void mergedConfig(flags),
);
const token = program.command('token').description('who may use the API over TCP');
const role = new Option('--role <role>', 'VIEWER looks, SUBMITTER runs jobs, ADMIN also deletes');
withConfigFlags(
  token
    .command('create')
    .argument('<name>')
    .description('prints a token; a daemon takes it at once'),
)
  .addOption(role.argParser(roleOf).makeOptionMandatory())
  .action(createToken);
withConfigFlags(token.command('list').description('names, roles and when they were made')).action(
  listTokens,
);
withConfigFlags(
  token.command('delete').argument('<name>').description('its token is no good from now on'),
).action(removeToken);
explainUsage(program);
