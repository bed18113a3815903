import { switchProfitNs } from '../../src/scheduler/switching.ts';

/**
 * One epoch of a factored system on a virtual clock: Samplers fill a queue, Trainers and standby
 * Trainers empty it (GNNLab §5.4). No prefetching, no gradient exchange. At equal times whatever
 * ends does so first; then Samplers claim, Trainers take, and standby Trainers last.
 */

export interface SimulatedEpoch {
  /** M. */
  readonly batches: number;
  /** T_s, T_t, T_t' in integer ns. */
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

interface Worker {
  readonly kind: 'SAMPLER_DEVICE' | 'TRAINER';
  /** What it is busy with, and until when; null when idle. */
  work: { readonly untilNs: number; readonly batch: number; readonly trains: boolean } | null;
  /** Whether its last work was standby training. */
  trainedLast: boolean;
}

/** Throws when the epoch cannot end, for example with no Trainer of either kind. */
export function simulateEpoch(epoch: SimulatedEpoch): SimulatedRun {
  return new Simulation(epoch).run();
}

class Simulation {
  readonly #epoch: SimulatedEpoch;
  readonly #slots: number;
  readonly #samplerDevices: readonly Worker[];
  readonly #trainers: readonly Worker[];
  readonly #ready: number[] = [];
  readonly #timesTrained: number[];
  readonly #takes: StandbyTake[] = [];
  readonly #declinedAtNs = new Set<number>();
  #handBacks = 0;
  #claimed = 0;
  #trained = 0;
  #nowNs = 0;

  constructor(epoch: SimulatedEpoch) {
    this.#epoch = epoch;
    this.#slots = epoch.slots ?? epoch.batches;
    const workers = (count: number, kind: Worker['kind']) =>
      Array.from({ length: count }, (): Worker => ({ kind, work: null, trainedLast: false }));
    this.#samplerDevices = workers(epoch.samplers, 'SAMPLER_DEVICE');
    this.#trainers = workers(epoch.trainers, 'TRAINER');
    this.#timesTrained = new Array<number>(epoch.batches).fill(0);
  }

  run(): SimulatedRun {
    this.#assign();
    while (this.#trained < this.#epoch.batches) {
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

  /** Moves the clock to the next end of work and ends all that end then. */
  #advance(): void {
    const workers = [...this.#samplerDevices, ...this.#trainers];
    const ends = workers.flatMap(({ work }) => (work === null ? [] : [work.untilNs]));
    if (ends.length === 0) throw new Error(`the epoch is stuck at ${this.#nowNs} ns`);
    this.#nowNs = Math.min(...ends);
    for (const worker of workers) {
      const { work } = worker;
      if (work === null || work.untilNs > this.#nowNs) continue;
      worker.work = null;
      if (work.trains) {
        this.#trained += 1;
        this.#timesTrained[work.batch] = (this.#timesTrained[work.batch] ?? 0) + 1;
      } else {
        this.#ready.push(work.batch);
      }
    }
    this.#ready.sort((left, right) => left - right);
  }

  #assign(): void {
    for (const device of this.#samplerDevices) if (device.work === null) this.#sample(device);
    for (const trainer of this.#trainers) {
      if (trainer.work === null) this.#train(trainer, this.#epoch.trainerBatchNs);
    }
    for (const device of this.#samplerDevices) if (device.work === null) this.#standby(device);
  }

  #sample(device: Worker): void {
    const { batches, samplerBatchNs, lowWater } = this.#epoch;
    const claimable = this.#claimed < Math.min(batches, this.#trained + this.#slots);
    // A device that trains keeps on until the queue is low, or it would turn at every batch.
    if (!claimable || (device.trainedLast && this.#ready.length > lowWater)) return;
    if (device.trainedLast) this.#handBacks += 1;
    device.trainedLast = false;
    device.work = { untilNs: this.#nowNs + samplerBatchNs, batch: this.#claimed, trains: false };
    this.#claimed += 1;
  }

  #standby(device: Worker): void {
    const { standby, trainerBatchNs, trainers, standbyBatchNs } = this.#epoch;
    const readyBatches = this.#ready.length;
    if (!standby || readyBatches === 0) return;
    const profitNs = switchProfitNs({ readyBatches, trainerBatchNs, trainers, standbyBatchNs });
    if (profitNs <= 0) {
      this.#declinedAtNs.add(this.#nowNs);
      return;
    }
    this.#takes.push({ atNs: this.#nowNs, readyBatches, profitNs });
    device.trainedLast = true;
    this.#train(device, standbyBatchNs);
  }

  #train(worker: Worker, durationNs: number): void {
    const batch = this.#ready.shift();
    if (batch === undefined) return;
    worker.work = { untilNs: this.#nowNs + durationNs, batch, trains: true };
  }
}
