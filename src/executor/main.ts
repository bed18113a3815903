import '../base/no-debugger.ts';
import { constants, setPriority } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../base/clock.ts';
import { messageOf, unreachable } from '../base/errors.ts';
import { executorExit } from '../base/exit-codes.ts';
import { dieFirst } from '../base/host-memory.ts';
import { createLog } from '../base/log.ts';
import { closeDebugger } from '../base/no-debugger.ts';
import type { TaskWatch } from '../datasets/data-tasks.ts';
import type {
  CoreAddon,
  LoopEnd,
  NativeCode,
  PredictOptions,
  PropagateOptions,
  PropagateReport,
} from '../native/contract.ts';
import { loadCore, loadTrain, nativeCodeOf } from '../native/load.ts';
import { digestFiles } from './digest-files.ts';
import { propagationText } from './propagation-text.ts';
import {
  type EndMessage,
  type LoadOptions,
  type ProgressMessage,
  type StartMessage,
  startMessageOf,
  type TaskAnswer,
} from './protocol.ts';

/**
 * An executor: a child process with one role on one device, for life. Its JavaScript parses the
 * start message, starts the native loop and reports its end; no batch crosses into JavaScript.
 * argv: the daemon's process id.
 */

const exitCodes: Readonly<Record<NativeCode, number>> = {
  SPEC_INVALID: executorExit.SPEC,
  DATASET_NOT_FOUND: executorExit.DATASET,
  DATASET_CORRUPT: executorExit.DATASET,
  IO: executorExit.INTERNAL,
  DISK_FULL: executorExit.INTERNAL,
  SHM_ALLOCATION_FAILED: executorExit.SHM_CORRUPTED,
  SHM_CORRUPTED: executorExit.SHM_CORRUPTED,
  ABORTED: executorExit.OK,
  NUMERIC_DIVERGENCE: executorExit.NUMERIC_DIVERGENCE,
  PLUGIN_FAILED: executorExit.PLUGIN,
  DEVICE_UNAVAILABLE: executorExit.DEVICE_ERROR_STICKY,
  DEVICE_OUT_OF_MEMORY: executorExit.DEVICE_OUT_OF_MEMORY,
  DEVICE_FAILED: executorExit.DEVICE_ERROR_STICKY,
  DEVICE_LOST: executorExit.DEVICE_LOST,
  INTERNAL: executorExit.INTERNAL,
};

const log = createLog({ level: 'info' });
// What a terminal sends (Ctrl-C, its end) reaches the whole process group; the daemon stops its
// executors in order.
for (const signal of ['SIGINT', 'SIGHUP']) process.on(signal, () => {});

/** The answer to work that returns no value, once it is done. */
async function answered(
  role: 'AVERAGE' | 'FAVOUR' | 'HOST_TIER' | 'LOAD' | 'PREDICT' | 'STANDARDIZE',
  work: Promise<void>,
): Promise<EndMessage> {
  await work;
  return { kind: 'answered', answer: { role } };
}

type LoopStart = Extract<StartMessage, { role: 'SAMPLER' | 'TRAINER' | 'STANDBY' | 'LENDER' }>;

function runLoop(core: CoreAddon, start: LoopStart): Promise<LoopEnd> {
  switch (start.role) {
    case 'SAMPLER':
      return core.samplerRun(start.options);
    case 'LENDER':
      return core.lenderRun(start.options);
    default:
      return loadTrain().trainerRun(start.options);
  }
}

type InferenceTask = Extract<StartMessage, { role: 'TARGETS' | 'PAIRS' | 'PUBLISH' }>;

/** What an inference has done beside its Trainers. */
async function answerOfInference(start: InferenceTask): Promise<TaskAnswer> {
  switch (start.role) {
    case 'TARGETS': {
      const { listTargets } = await import('./list-targets.ts');
      return { role: start.role, value: await listTargets(start.options) };
    }
    case 'PAIRS': {
      const { listPairs } = await import('../datasets/list-pairs.ts');
      return { role: start.role, value: await listPairs(start.options, loadCore()) };
    }
    default: {
      const { publishPredictions } = await import('./publish-predictions.ts');
      const value = await publishPredictions(start.options, loadCore(), watchOf().progress);
      return { role: start.role, value };
    }
  }
}

async function runRole(start: StartMessage): Promise<EndMessage> {
  const core = loadCore();
  switch (start.role) {
    case 'SAMPLER':
    case 'TRAINER':
    case 'STANDBY':
    case 'LENDER':
      return { kind: 'ended', end: await runLoop(core, start) };
    case 'PROBE': {
      const value = await loadTrain().modelProbe(start.options);
      return { kind: 'answered', answer: { role: start.role, value } };
    }
    case 'RANK': {
      const value = await core.cacheRank(start.options);
      return { kind: 'answered', answer: { role: start.role, value } };
    }
    case 'FAVOUR':
      return answered(start.role, core.cacheFavour(start.options));
    case 'CACHE_REPORT': {
      const value = await core.cacheReport(start.options);
      return { kind: 'answered', answer: { role: start.role, value } };
    }
    case 'HOT_CURVE': {
      const value = await core.hotCurve(start.options);
      return { kind: 'answered', answer: { role: start.role, value } };
    }
    case 'PREDICT':
      return answered(start.role, predict(start.options));
    case 'HOST_TIER':
      return answered(start.role, core.hostTierFill(start.options));
    case 'LOAD':
      return answered(start.role, load(core, start.options));
    case 'AVERAGE':
      return answered(start.role, core.datasetAverage(start.options));
    case 'STANDARDIZE': {
      const { input, output } = start.options;
      return answered(start.role, core.datasetStandardize(input, output, ''));
    }
    case 'SPLIT_LINKS': {
      const { dataset, split, folder } = start.options;
      const value = await core.messageGraphMake(dataset, split, folder);
      return { kind: 'answered', answer: { role: start.role, value } };
    }
    case 'IMPORT': {
      const { outcomeOfImport } = await import('../datasets/data-tasks.ts');
      const tasks = await dataTasks();
      const value = await outcomeOfImport(tasks.importSource(start.options, watchOf()));
      return { kind: 'answered', answer: { role: start.role, value } };
    }
    case 'CHECK': {
      const value = await (await dataTasks()).check(start.options, watchOf());
      return { kind: 'answered', answer: { role: start.role, value } };
    }
    case 'PROPAGATE': {
      const value = await propagate(core, start.options);
      return { kind: 'answered', answer: { role: start.role, value } };
    }
    case 'DIGEST': {
      setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
      const value = await digestFiles(start.options, watchOf().progress);
      return { kind: 'answered', answer: { role: start.role, value } };
    }
    case 'TARGETS':
    case 'PAIRS':
    case 'PUBLISH':
      return { kind: 'answered', answer: await answerOfInference(start) };
    default:
      return unreachable(start);
  }
}

/**
 * Jobs come first: beside a busy one this gets a tenth of a core, not half. (The lowest priority
 * would get a seventieth.) Threads inherit it, so it is set before torch starts any.
 */
async function predict(options: PredictOptions): Promise<void> {
  setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  await loadTrain().modelPredict(options);
}

/** What executors share of a dataset. */
async function load(core: CoreAddon, options: LoadOptions): Promise<void> {
  const { location, standardize, momentsPath, topologyFd, topology } = options;
  const imported = join(location.folder, 'features.npy');
  if (standardize) await core.datasetStandardize(imported, location.featuresPath, momentsPath);
  if (topologyFd !== null) await core.topologyFill(topologyFd, location, topology);
}

/** Below jobs, as PREDICT; says where it is until it ends. */
async function propagate(core: CoreAddon, options: PropagateOptions): Promise<PropagateReport> {
  setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  const { progress } = watchOf();
  const handle = core.propagationOpen();
  const startMs = systemClock.monotonicMs();
  const tell = () => {
    const at = core.propagationProgress(handle);
    progress(...propagationText(at, options.plan, systemClock.monotonicMs() - startMs));
  };
  const timer = setInterval(tell, progressEveryMs);
  try {
    return await core.propagationRun(handle, options);
  } finally {
    clearInterval(timer);
  }
}

/** Loaded when wanted: most executors import nothing. */
async function dataTasks() {
  const { localTasks } = await import('../datasets/local-tasks.ts');
  return localTasks(loadCore());
}

const progressEveryMs = 100;

/** Tells the daemon how far a task is, not too often. To stop it, the daemon kills this process. */
function watchOf(): TaskWatch {
  let toldMs = Number.NEGATIVE_INFINITY;
  const progress = (share: number, message: string) => {
    const nowMs = systemClock.monotonicMs();
    if (nowMs - toldMs < progressEveryMs) return;
    toldMs = nowMs;
    const said: ProgressMessage = { kind: 'progress', share, message };
    // Nobody listens any more: then nothing matters.
    if (process.connected === true) process.send?.(said, () => {});
  };
  return { progress, signal: new AbortController().signal };
}

function finish(message: EndMessage, exitCode: number): void {
  const exit = () => process.exit(exitCode);
  if (process.connected === true) process.send?.(message, exit);
  else exit();
}

/**
 * Gives up what no executor needs (native/core/base/confine.h), before anything is read. True, or
 * why the kernel does not: jobs train all the same.
 */
function confine(role: StartMessage['role']): true | string {
  try {
    // A GPU's driver may talk to its services, and Trainers get each other's device memory so.
    const devices = ['CUDA_VISIBLE_DEVICES', 'GNND_SIM_VISIBLE'];
    const hasDevice = devices.some((name) => (process.env[name] ?? '') !== '');
    // Readers come to a Lender by a local socket; no code of a user's runs there.
    loadCore().hostConfine(hasDevice || role === 'LENDER');
    return true;
  } catch (error) {
    return messageOf(error);
  }
}

async function run(start: StartMessage): Promise<void> {
  const startedNs = process.hrtime.bigint();
  try {
    if (start.cores.length > 0) loadCore().hostPin(start.cores);
    const confined = confine(start.role);
    log.info('executor.started', { role: start.role, cores: start.cores, confined });
    const end = await runRole(start);
    const seconds = Number(process.hrtime.bigint() - startedNs) / 1e9;
    log.info('executor.ended', { ...end, seconds });
    finish(end, 0);
  } catch (error) {
    const code = nativeCodeOf(error);
    log.error('executor.failed', { code, error: messageOf(error) });
    finish({ kind: 'failed', code, message: messageOf(error) }, exitCodes[code] ?? 1);
  }
}

closeDebugger();
process.umask(0o027);
dieFirst();
loadCore().hostNoCoreFile();
loadCore().hostExplainBusErrors(executorExit.DATASET);
if (!loadCore().hostDieWithParent(Number(process.argv[2]))) process.exit(executorExit.PARENT_GONE);
process.once('message', (value) => {
  const start = startMessageOf(value);
  if (start === null) {
    log.error('executor.protocol', { message: 'the first message is not a start of this version' });
    process.exit(executorExit.PROTOCOL);
  }
  void run(start);
});
