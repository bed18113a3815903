import type { FieldViolation } from '../base/errors.ts';
import type { JobSpec, JobSpecInput } from './job-spec.ts';
import {
  deviceNamesMax,
  idPattern,
  idRule,
  integerLimits,
  randomSeedMax,
  specDefaults,
} from './limits.ts';
import { resolveCache } from './resolve-cache.ts';
import { resolveEarlyStop } from './resolve-early-stop.ts';
import { resolveEvaluation } from './resolve-evaluation.ts';
import { resolveModel } from './resolve-model.ts';
import { resolveLrSchedule, resolveOptimizer } from './resolve-optimizer.ts';
import type { PluginLookup } from './resolve-plugin.ts';
import { resolveSampling } from './resolve-sampling.ts';
import { createSpecChecker, type SpecChecker, show } from './spec-checker.ts';

/** What the host and the dataset add to a spec. */
export interface ResolveContext {
  /** All devices of the host, for example `cpu:0`. */
  readonly deviceNames: readonly string[];
  /** Cores of the host's smallest device. */
  readonly smallestDeviceCores: number;
  /** Nodes of the dataset; null when the dataset is not known. */
  readonly numNodes: number | null;
  /** Training nodes, likewise. */
  readonly trainNodes: number | null;
  /** Validation nodes, likewise. */
  readonly valNodes: number | null;
  /** Whether the dataset has edge weights; null when the dataset is not known. */
  readonly hasEdgeWeights: boolean | null;
  /** Looks at files that the spec wants loaded. */
  readonly pluginFile: PluginLookup;
}

/** The spec with every default filled in, or everything that is wrong with it. */
export type Resolution =
  | { readonly ok: JobSpec }
  | { readonly violations: readonly FieldViolation[] };

/**
 * Fills in every default and checks every field and every rule between fields. A resolved spec
 * resolves to itself. Violation paths are those of `proto/gnnd/v1/job.proto`, from `spec`.
 */
export function resolveJobSpec(input: JobSpecInput, context: ResolveContext): Resolution {
  const check = createSpecChecker();
  const dataset = resolveDataset(check, input.dataset);
  const sampling = resolveSampling(check, input.sampling, context);
  const { pluginFile } = context;
  const model = resolveModel(check, input.model, { sampling, pluginFile });
  const features = {
    standardize: check.flag(
      'spec.features.standardize',
      input.features?.standardize,
      specDefaults.standardize,
    ),
  };
  const resources = resolveResources(check, input.resources, context.deviceNames);
  const training = resolveTraining(check, input.training, context);
  const ok: JobSpec = {
    dataset,
    model,
    sampling,
    features,
    cache: resolveCache(check, input.cache, sampling),
    training,
    evaluation: resolveEvaluation(check, input.evaluation, { model, sampling, training, context }),
    resources,
    placement: resolvePlacement(check, input.placement, resources.devices),
    queue: resolveQueue(check, input.queue, training.batchesPerStep),
    restart: resolveRestart(check, input.restart),
    timeouts: resolveTimeouts(check, input.timeouts),
    priority: check.integer(
      'spec.priority',
      input.priority,
      integerLimits.priority,
      specDefaults.priority,
    ),
  };
  if (model.type === 'TORCHSCRIPT' && training.optimizer.weightDecayScope === 'FIRST_LAYER') {
    const path = 'spec.training.optimizer.weight_decay_scope';
    check.violate(path, 'FIRST_LAYER: which parameters that is only models of gnnd tell');
  }
  return check.violations.length === 0 ? { ok } : { violations: check.violations };
}

function resolveDataset(check: SpecChecker, dataset: string | undefined): string {
  if (dataset === undefined || dataset === '') {
    check.violate('spec.dataset', 'required: the id of a READY dataset');
  } else if (!idPattern.test(dataset)) {
    check.violate('spec.dataset', `${show(dataset)}: expected an id: ${idRule}`);
  }
  return dataset ?? '';
}

function resolveResources(
  check: SpecChecker,
  resources: JobSpecInput['resources'],
  hostDevices: readonly string[],
): JobSpec['resources'] {
  // 0 is what a resolved spec says for "not set".
  const memory = (path: string, value: number | undefined) =>
    check.integer(path, value === 0 ? undefined : value, integerLimits.memoryBytes, 0);
  return {
    ...resolveDevices(check, resources, hostDevices),
    deviceMemoryBytes: memory('spec.resources.device_memory_bytes', resources?.deviceMemoryBytes),
    hostMemoryBytes: memory('spec.resources.host_memory_bytes', resources?.hostMemoryBytes),
  };
}

function resolveDevices(
  check: SpecChecker,
  resources: JobSpecInput['resources'],
  hostDevices: readonly string[],
): Pick<JobSpec['resources'], 'devices' | 'deviceNames'> {
  const names = resources?.deviceNames ?? [];
  const path = 'spec.resources.devices';
  if (names.length === 0) {
    if (hostDevices.length === 0) {
      check.violate(path, 'this host has no devices');
      return { devices: specDefaults.devices, deviceNames: [] };
    }
    const range = { min: 1, max: hostDevices.length };
    const devices = check.integer(path, resources?.devices, range, specDefaults.devices);
    return { devices, deviceNames: [] };
  }
  if (resources?.devices !== undefined && resources.devices !== names.length) {
    check.violate(
      path,
      `${show(resources.devices)}: expected to be unset beside device_names, ` +
        `or their number, ${names.length}`,
    );
  }
  checkDeviceNames(check, names, hostDevices);
  return { devices: names.length, deviceNames: names };
}

function checkDeviceNames(
  check: SpecChecker,
  names: readonly string[],
  hostDevices: readonly string[],
): void {
  const path = 'spec.resources.device_names';
  if (names.length > deviceNamesMax) {
    check.violate(path, `${names.length} names: expected at most ${deviceNamesMax}`);
    return;
  }
  const known = new Set(hostDevices);
  const seen = new Set<string>();
  names.forEach((name, index) => {
    if (seen.has(name)) check.violate(`${path}[${index}]`, `${show(name)}: named twice`);
    else if (!known.has(name)) {
      const devices = hostDevices.length === 0 ? 'no devices' : hostDevices.join(', ');
      check.violate(`${path}[${index}]`, `${show(name)}: unknown; this host has ${devices}`);
    }
    seen.add(name);
  });
}

function resolveTraining(
  check: SpecChecker,
  training: JobSpecInput['training'],
  context: ResolveContext,
): JobSpec['training'] {
  const limits = integerLimits;
  const defaults = specDefaults.training;
  const path = (field: string) => `spec.training.${field}`;
  if (training?.epochs === undefined) {
    const { min, max } = limits.epochs;
    check.violate(path('epochs'), `required: an integer from ${min} to ${max}`);
  }
  const batchSize = check.integer(
    path('batch_size'),
    training?.batchSize,
    limits.batchSize,
    defaults.batchSize,
  );
  const threadsDefault = Math.min(
    Math.max(context.smallestDeviceCores, limits.threadsPerTrainer.min),
    limits.threadsPerTrainer.max,
  );
  const epochs = check.integer(path('epochs'), training?.epochs, limits.epochs, limits.epochs.min);
  return {
    epochs,
    batchSize: Math.max(1, Math.min(batchSize, context.trainNodes ?? batchSize)),
    batchesPerStep: check.integer(
      path('batches_per_step'),
      training?.batchesPerStep,
      limits.batchesPerStep,
      defaults.batchesPerStep,
    ),
    ...resolveStaleness(check, training),
    randomSeed: resolveRandomSeed(check, training?.randomSeed),
    optimizer: resolveOptimizer(check, training?.optimizer),
    lrSchedule: resolveLrSchedule(check, training?.lrSchedule, epochs),
    threadsPerTrainer: check.integer(
      path('threads_per_trainer'),
      training?.threadsPerTrainer,
      limits.threadsPerTrainer,
      threadsDefault,
    ),
    earlyStop: resolveEarlyStop(check, training?.earlyStop, context),
    determinism: check.choice(
      path('determinism'),
      training?.determinism,
      ['STRICT', 'RELAXED'],
      defaults.determinism,
    ),
  };
}

function resolveStaleness(
  check: SpecChecker,
  training: JobSpecInput['training'],
): Pick<JobSpec['training'], 'staleness' | 'stalenessCompensation'> {
  const staleness = check.integer(
    'spec.training.staleness',
    training?.staleness,
    integerLimits.staleness,
    specDefaults.training.staleness,
  );
  const stalenessCompensation = check.choice(
    'spec.training.staleness_compensation',
    training?.stalenessCompensation,
    ['PREDICT', 'NONE'],
    staleness > 0 ? 'PREDICT' : 'NONE',
  );
  return { staleness, stalenessCompensation };
}

function resolveRandomSeed(check: SpecChecker, seed: string | undefined): string {
  if (seed === undefined) return specDefaults.training.randomSeed;
  // The length is looked at first: BigInt takes quadratic time.
  if (/^[0-9]{1,20}$/.test(seed) && BigInt(seed) <= randomSeedMax) return BigInt(seed).toString();
  check.violate(
    'spec.training.random_seed',
    `${show(seed)}: expected an integer from 0 to ${randomSeedMax}`,
  );
  return specDefaults.training.randomSeed;
}

function resolvePlacement(
  check: SpecChecker,
  placement: JobSpecInput['placement'],
  devices: number,
): JobSpec['placement'] {
  const defaults = specDefaults.placement;
  const policy = check.choice(
    'spec.placement.policy',
    placement?.policy,
    ['AUTO', 'PAPER', 'MINMAX', 'FIXED'],
    defaults.policy,
  );
  const standby = check.choice(
    'spec.placement.standby',
    placement?.standby,
    ['AUTO', 'OFF', 'ALWAYS'],
    defaults.standby,
  );
  const samplers = resolveSamplers(check, policy, placement?.samplers, devices);
  return { policy, samplers, standby };
}

function resolveSamplers(
  check: SpecChecker,
  policy: JobSpec['placement']['policy'],
  samplers: number | undefined,
  devices: number,
): number {
  const path = 'spec.placement.samplers';
  if (policy !== 'FIXED') {
    if (samplers === undefined || samplers === 0 || check.failed('spec.placement.policy')) return 0;
    check.violate(path, `${show(samplers)}: only for policy FIXED, which was not asked for`);
    return 0;
  }
  if (check.failed('spec.resources')) return samplers ?? 0;
  if (devices < 2) {
    check.violate('spec.placement.policy', 'FIXED: expected at least 2 devices to split');
    return 0;
  }
  if (samplers === undefined) {
    check.violate(path, `required for policy FIXED: an integer from 1 to ${devices - 1}`);
    return 0;
  }
  return check.integer(path, samplers, { min: 1, max: devices - 1 }, 1);
}

function resolveQueue(
  check: SpecChecker,
  queue: JobSpecInput['queue'],
  batchesPerStep: number,
): JobSpec['queue'] {
  const defaults = specDefaults.queue;
  const path = 'spec.queue.capacity';
  // 0 is what a resolved spec says for "the plan chooses".
  const given = queue?.capacity === 0 ? undefined : queue?.capacity;
  const capacity = check.integer(path, given, integerLimits.queueCapacity, defaults.capacity);
  if (capacity !== 0 && capacity < batchesPerStep) {
    check.violate(
      path,
      `${capacity}: expected at least ${batchesPerStep}, training.batches_per_step, ` +
        'because a step needs all its batches at once',
    );
  }
  return {
    capacity,
    maxBytes: check.integer(
      'spec.queue.max_bytes',
      queue?.maxBytes,
      integerLimits.queueMaxBytes,
      defaults.maxBytes,
    ),
  };
}

function resolveRestart(check: SpecChecker, restart: JobSpecInput['restart']): JobSpec['restart'] {
  const defaults = specDefaults.restart;
  return {
    maxAttempts: check.integer(
      'spec.restart.max_attempts',
      restart?.maxAttempts,
      integerLimits.maxAttempts,
      defaults.maxAttempts,
    ),
    executorRestarts: check.integer(
      'spec.restart.executor_restarts',
      restart?.executorRestarts,
      integerLimits.executorRestarts,
      defaults.executorRestarts,
    ),
  };
}

function resolveTimeouts(
  check: SpecChecker,
  timeouts: JobSpecInput['timeouts'],
): JobSpec['timeouts'] {
  const defaults = specDefaults.timeouts;
  const limits = integerLimits;
  const path = (field: string) => `spec.timeouts.${field}`;
  return {
    pendingMs: check.integer(
      path('pending_ms'),
      timeouts?.pendingMs,
      limits.pendingMs,
      defaults.pendingMs,
    ),
    startupMs: check.integer(
      path('startup_ms'),
      timeouts?.startupMs,
      limits.startupMs,
      defaults.startupMs,
    ),
    stallMs: check.integer(path('stall_ms'), timeouts?.stallMs, limits.stallMs, defaults.stallMs),
    cancelGraceMs: check.integer(
      path('cancel_grace_ms'),
      timeouts?.cancelGraceMs,
      limits.cancelGraceMs,
      defaults.cancelGraceMs,
    ),
    runMs: check.integer(path('run_ms'), timeouts?.runMs, limits.runMs, defaults.runMs),
  };
}
