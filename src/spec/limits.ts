/**
 * Every bound and default of a job spec, each bound with the reason for it. A value outside its
 * bounds is refused at creation, never corrected.
 */

/** Both ends are allowed. */
export interface Range {
  readonly min: number;
  readonly max: number;
}

/**
 * Ids of jobs and datasets: they name folders, appear in metrics and on command lines, so they are
 * DNS labels that start with a letter.
 */
export const idPattern = /^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/;
export const idRule =
  'lower-case letters, digits and hyphens, 1 to 63 characters, a letter first, no hyphen last';

/** A timer of Node holds 31 bits of milliseconds (24.8 days); a longer one fires at once. */
const timerMsMax = 2 ** 31 - 1;

export const integerLimits = {
  /** A record names its blocks in a fixed header, one per layer. */
  layers: { min: 1, max: 8 },
  /** A row of 4,096 floats is 16 KiB: two of them still fit a core's L1 and L2 caches. */
  hiddenDim: { min: 1, max: 4096 },
  /** A layer's output has up to heads times classes columns before they are averaged. */
  heads: { min: 1, max: 64 },
  /** As epochs: a step that never comes is no mistake. */
  stepEpochs: { min: 1, max: 1_000_000 },
  /** Fanouts: one per layer. Beyond 4,096 neighbours a node, "all" (-1) is what is meant. */
  fanout: { min: 1, max: 4096 },
  /** Walkers of one node go in lock-step; 64 are many times what PinSAGE uses. */
  walks: { min: 1, max: 64 },
  /** Far beyond where a walk with restart has ended. */
  walkLength: { min: 1, max: 64 },
  /** As fanouts; 0 neighbours would be no layer. */
  neighbors: { min: 1, max: 4096 },
  /** Batches that a random number lasts; beyond a few hundred an epoch repeats itself. */
  dependencyWindow: { min: 1, max: 65_536 },
  /** The batch key keeps 24 bits for the epoch; a million leaves room for reserved epochs. */
  epochs: { min: 1, max: 1_000_000 },
  /** As epochs: patience that never runs out is no mistake. */
  patienceEpochs: { min: 1, max: 1_000_000 },
  /** As epochs; 0 is "at the end only". */
  everyEpochs: { min: 0, max: 1_000_000 },
  /** A million seeds with one hop already make records of gigabytes. */
  batchSize: { min: 1, max: 2 ** 20 },
  /** The segment holds (S + 1) * G gradients; 64 * 9 of a large model are gigabytes. */
  batchesPerStep: { min: 1, max: 64 },
  /** The segment holds S + 2 parameter buffers; from 2 steps on a delay hurts accuracy. */
  staleness: { min: 0, max: 8 },
  /** More threads than any one device has cores. */
  threadsPerTrainer: { min: 1, max: 256 },
  /** Slots are virtual, but each has a directory entry; 65,536 are more than an epoch needs. */
  queueCapacity: { min: 1, max: 65_536 },
  /** Any budget works (the head group is exempt); 4 TiB is the largest segment that was tried. */
  queueMaxBytes: { min: 1, max: 2 ** 42 },
  /** Each costs an epoch of sampling; past a few, hit rates do not change any more. */
  presampleEpochs: { min: 1, max: 10 },
  /** The largest that was tried, as for queue.max_bytes; also of evaluation.max_bytes. */
  memoryBytes: { min: 1, max: 2 ** 42 },
  maxAttempts: { min: 1, max: 100 },
  /** Bounds the time a job that keeps crashing can take. */
  executorRestarts: { min: 0, max: 1000 },
  pendingMs: { min: 1, max: timerMsMax },
  startupMs: { min: 1, max: timerMsMax },
  /** Heartbeats are read a few times a second; under a second every pause would be a stall. */
  stallMs: { min: 1000, max: timerMsMax },
  /** 0 kills at once. */
  cancelGraceMs: { min: 0, max: timerMsMax },
  /** 0 is no limit. */
  runMs: { min: 0, max: timerMsMax },
  priority: { min: 0, max: 1000 },
} as const satisfies Readonly<Record<string, Range>>;

/** `cache.ratio` of a cache that takes the memory there is. */
export const automaticRatio = -1;

/** Random seeds are keys of 64 bits. */
export const randomSeedMax = 2n ** 64n - 1n;

/** More names than any host has devices; a longer list is refused without looking at it. */
export const deviceNamesMax = 1024;

/** A line of settings, in characters; a larger table belongs into the file itself. */
export const pluginOptionsMax = 4096;

export const specDefaults = {
  model: {
    type: 'GRAPHSAGE',
    hiddenDim: 256,
    dropout: 0.5,
    inputDropout: 0,
    heads: 4,
    activation: 'RELU',
    normalization: 'NONE',
    residual: false,
    attentionDropout: 0,
  },
  fanouts: [10, 10],
  sampling: { algorithm: 'KHOP_UNIFORM', replace: false, expansion: 'ALL' },
  /** Those of PinSAGE in the GNNLab paper, table 2. */
  walk: { walks: 4, length: 3, restartProb: 0.5, neighbors: 5, layers: 3 },
  labor: { dependencyWindow: 1 },
  standardize: false,
  cache: { policy: 'COMBINED', presampleEpochs: 1, prefetch: 'AUTO' },
  training: {
    batchSize: 1024,
    batchesPerStep: 1,
    /** docs/decisions/0022-staleness-default.md */
    staleness: 0,
    randomSeed: '0',
    determinism: 'STRICT',
  },
  earlyStop: { patienceEpochs: 0, minDelta: 0 },
  /** maxBytes: two hidden layers of 256 for up to 4.1 million nodes. */
  evaluation: { everyEpochs: 1, method: 'AUTO', maxBytes: 2 ** 33 },
  optimizer: {
    type: 'ADAM',
    learningRate: 0.003,
    beta1: 0.9,
    beta2: 0.999,
    epsilon: 1e-8,
    weightDecay: 0,
    weightDecayScope: 'ALL',
    momentum: 0,
    clipNorm: 0,
  },
  lrSchedule: { type: 'CONSTANT', stepEpochs: 10, gamma: 0.1, warmupEpochs: 0 },
  devices: 1,
  placement: { policy: 'AUTO', standby: 'AUTO' },
  /** capacity 0: the plan chooses. */
  queue: { capacity: 0, maxBytes: 2 ** 30 },
  restart: { maxAttempts: 3, executorRestarts: 10 },
  timeouts: {
    pendingMs: 24 * 3_600_000,
    startupMs: 10 * 60_000,
    stallMs: 120_000,
    cancelGraceMs: 5000,
    runMs: 0,
  },
  priority: 100,
} as const;
