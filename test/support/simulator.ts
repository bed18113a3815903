import { switchProfitNs } from './switch-profit.ts';

/**
 * One epoch of a factored system on a virtual clock: Samplers fill a queue, Trainers and standby
 * Trainers empty it (GNNLab §5.4), each on the parameter version that its batch must see, and
 * steps are applied in order by whoever is free. At equal times whatever ends does so first; then
 * Samplers claim, Trainers take, and standby Trainers last.
 */

export interface SimulatedEpoch {
  /** M. */
  readonly batches: number;
  /** T_s; T of a Trainer and T' of a standby Trainer, in integer ns. */
  readonly samplerBatchNs: number;
  readonly trainerBatchNs: number;
  readonly standbyBatchNs: number;
  /** N_s and N_t. */
  readonly samplers: number;
  readonly trainers: number;
  /** Whether each Sampler's device has a standby Trainer. */
  readonly standby: boolean;
  /** Batches that may be claimed and not yet trained; null: as many as the epoch has. */
  readonly slots: number | null;
  /** READY batches at or below which a waiting device samples again; unused without `slots`. */
  readonly lowWater: number;
  /** Null: no batch needs extraction, every batch is due at once and steps cost nothing. */
  readonly steps: SimulatedSteps | null;
}

export interface SimulatedSteps {
  /** E and E'. */
  readonly extractNs: number;
  readonly standbyExtractNs: number;
  /** A. */
  readonly applyNs: number;
  /** G and S. */
  readonly batchesPerStep: number;
  readonly staleness: number;
  /** Whether the next batch is extracted while one is computed (trainer_loop.cc, TakeAhead). */
  readonly prefetch: boolean;
}

/** One batch that a standby Trainer took, and why: P > 0. */
export interface StandbyTake {
  readonly atNs: number;
  /** M_r just before the take. */
  readonly readyBatches: number;
  readonly profitNs: number;
}

export interface SimulatedRun {
  readonly epochNs: number;
  readonly standbyTakes: readonly StandbyTake[];
  /** Times at which a standby Trainer had a batch before it and left it: P <= 0. */
  readonly declinedAtNs: readonly number[];
  /** How often each batch was trained, by index. */
  readonly timesTrained: readonly number[];
  /** How often a device went from training back to sampling. */
  readonly handBacks: number;
}

type Work =
  | { readonly kind: 'SAMPLE' | 'TRAIN'; readonly untilNs: number; readonly batch: number }
  | { readonly kind: 'APPLY'; readonly untilNs: number };

interface Held {
  readonly batch: number;
  /** When it is extracted. */
  readonly fromNs: number;
}

interface Worker {
  readonly kind: 'SAMPLER_DEVICE' | 'TRAINER';
  /** What it is busy with; null when idle, or while it waits with a batch in hand. */
  work: Work | null;
  held: Held | null;
  /** Whether its last work was standby training. */
  trainedLast: boolean;
}

const noSteps: SimulatedSteps = {
  extractNs: 0,
  standbyExtractNs: 0,
  applyNs: 0,
  batchesPerStep: 1,
  staleness: Number.MAX_SAFE_INTEGER,
  prefetch: false,
};

/** Throws when the epoch cannot end, for example with no Trainer of either kind. */
export function simulateEpoch(epoch: SimulatedEpoch): SimulatedRun {
  return new Simulation(epoch).run();
}

class Simulation {
  readonly #epoch: SimulatedEpoch;
  readonly #steps: SimulatedSteps;
  readonly #slots: number;
  readonly #samplerDevices: readonly Worker[];
  readonly #trainers: readonly Worker[];
  readonly #ready: number[] = [];
  readonly #timesTrained: number[];
  readonly #takes: StandbyTake[] = [];
  readonly #declinedAtNs = new Set<number>();
  #handBacks = 0;
  #claimed = 0;
  #applying = false;
  /** Steps applied. */
  #version = 0;
  #nowNs = 0;

  constructor(epoch: SimulatedEpoch) {
    this.#epoch = epoch;
    this.#steps = epoch.steps ?? noSteps;
    this.#slots = epoch.slots ?? epoch.batches;
    const workers = (count: number, kind: Worker['kind']) =>
      Array.from(
        { length: count },
        (): Worker => ({ kind, work: null, held: null, trainedLast: false }),
      );
    this.#samplerDevices = workers(epoch.samplers, 'SAMPLER_DEVICE');
    this.#trainers = workers(epoch.trainers, 'TRAINER');
    this.#timesTrained = new Array<number>(epoch.batches).fill(0);
  }

  run(): SimulatedRun {
    this.#assign();
    while (this.#committed < this.#epoch.batches) {
      this.#advance();
      this.#assign();
    }
    return {
      epochNs: this.#nowNs,
      standbyTakes: this.#takes,
      declinedAtNs: [...this.#declinedAtNs],
      timesTrained: this.#timesTrained,
      handBacks: this.#handBacks,
    };
  }

  get #workers(): readonly Worker[] {
    return [...this.#trainers, ...this.#samplerDevices];
  }

  /** Batches whose steps are applied. */
  get #committed(): number {
    return Math.min(this.#version * this.#steps.batchesPerStep, this.#epoch.batches);
  }

  #isDue(batch: number): boolean {
    const { batchesPerStep, staleness } = this.#steps;
    return Math.floor(batch / batchesPerStep) - staleness <= this.#version;
  }

  /** Moves the clock to the next end of work and ends all that end then. */
  #advance(): void {
    const ends = this.#workers.flatMap(({ work, held }) => [
      ...(work === null ? [] : [work.untilNs]),
      ...(held === null || held.fromNs <= this.#nowNs ? [] : [held.fromNs]),
    ]);
    if (ends.length === 0) throw new Error(`the epoch is stuck at ${this.#nowNs} ns`);
    this.#nowNs = Math.min(...ends);
    for (const worker of this.#workers) {
      const { work } = worker;
      if (work === null || work.untilNs > this.#nowNs) continue;
      worker.work = null;
      if (work.kind === 'SAMPLE') this.#ready.push(work.batch);
      if (work.kind === 'TRAIN') {
        this.#timesTrained[work.batch] = (this.#timesTrained[work.batch] ?? 0) + 1;
      }
      if (work.kind === 'APPLY') {
        this.#applying = false;
        this.#version += 1;
      }
    }
    this.#ready.sort((left, right) => left - right);
  }

  #assign(): void {
    // One start may make another possible: a step is applied, then its successor is due.
    for (let before = -1; before !== this.#version; ) {
      before = this.#version;
      this.#apply();
      for (const worker of this.#workers) this.#compute(worker);
      for (const device of this.#samplerDevices) if (isIdle(device)) this.#sample(device);
      for (const trainer of this.#trainers) if (isIdle(trainer)) this.#take(trainer);
      for (const device of this.#samplerDevices) if (isIdle(device)) this.#standby(device);
    }
  }

  /** The head step, once its batches are trained, by a Trainer that computes nothing. */
  #apply(): void {
    const { batchesPerStep, applyNs } = this.#steps;
    const first = this.#version * batchesPerStep;
    const step = this.#timesTrained.slice(first, first + batchesPerStep);
    if (this.#applying || step.length === 0 || step.includes(0)) return;
    if (applyNs === 0) {
      this.#version += 1;
      this.#apply();
      return;
    }
    const free = this.#workers.find(
      ({ work, kind, trainedLast }) => work === null && (kind === 'TRAINER' || trainedLast),
    );
    if (free === undefined) return;
    free.work = { kind: 'APPLY', untilNs: this.#nowNs + applyNs };
    this.#applying = true;
  }

  #sample(device: Worker): void {
    const { batches, samplerBatchNs, lowWater } = this.#epoch;
    const claimable = this.#claimed < Math.min(batches, this.#committed + this.#slots);
    // A device that trains keeps on until the queue is low, or it would turn at every batch.
    if (!claimable || (device.trainedLast && this.#ready.length > lowWater)) return;
    if (device.trainedLast) this.#handBacks += 1;
    device.trainedLast = false;
    const untilNs = this.#nowNs + samplerBatchNs;
    device.work = { kind: 'SAMPLE', untilNs, batch: this.#claimed };
    this.#claimed += 1;
  }

  #standby(device: Worker): void {
    const { standby, trainers, standbyBatchNs, trainerBatchNs } = this.#epoch;
    const { extractNs, standbyExtractNs, prefetch } = this.#steps;
    const readyBatches = this.#ready.length;
    if (!standby || readyBatches === 0) return;
    const trainerNs = prefetch ? Math.max(extractNs, trainerBatchNs) : extractNs + trainerBatchNs;
    const standbyNs = standbyExtractNs + standbyBatchNs;
    const profitNs = switchProfitNs({
      readyBatches,
      trainerBatchNs: trainerNs,
      trainers,
      standbyBatchNs: standbyNs,
    });
    if (profitNs <= 0) {
      this.#declinedAtNs.add(this.#nowNs);
      return;
    }
    this.#takes.push({ atNs: this.#nowNs, readyBatches, profitNs });
    device.trainedLast = true;
    this.#take(device);
  }

  #take(worker: Worker): void {
    const { extractNs, standbyExtractNs } = this.#steps;
    const batch = this.#ready.shift();
    if (batch === undefined) return;
    const ownNs = worker.kind === 'TRAINER' ? extractNs : standbyExtractNs;
    worker.held = { batch, fromNs: this.#nowNs + ownNs };
    this.#compute(worker);
  }

  /** Computes what is held, once it is extracted and due; meanwhile the next one is extracted. */
  #compute(worker: Worker): void {
    const { held, work } = worker;
    if (work !== null || held === null) return;
    if (held.fromNs > this.#nowNs || !this.#isDue(held.batch)) return;
    const { trainerBatchNs, standbyBatchNs, trainers } = this.#epoch;
    const ownNs = worker.kind === 'TRAINER' ? trainerBatchNs : standbyBatchNs;
    worker.work = { kind: 'TRAIN', untilNs: this.#nowNs + ownNs, batch: held.batch };
    worker.held = null;
    const mayTakeAhead = worker.kind === 'TRAINER' || trainers === 0;
    if (!this.#steps.prefetch || !mayTakeAhead) return;
    if (this.#ready.length >= Math.max(1, trainers)) this.#take(worker);
  }
}

function isIdle({ work, held }: Worker): boolean {
  return work === null && held === null;
}
