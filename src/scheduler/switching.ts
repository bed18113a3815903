import type { StandbyPolicy } from '../spec/job-spec.ts';

/**
 * When a standby Trainer works (GNNLab §5.4). The decision of each take is made natively, under
 * the queue's own order; this twin of the rule serves plan, status and simulator. TypeScript
 * itself only arms and disarms.
 */

export interface SwitchInputs {
  /** M_r: batches READY in the queue at this instant. */
  readonly readyBatches: number;
  /** T_t in integer ns. */
  readonly trainerBatchNs: number;
  /** N_t: normal Trainers only. */
  readonly trainers: number;
  /** T_t' in integer ns. */
  readonly standbyBatchNs: number;
}

/**
 * P = M_r * T_t / N_t - T_t': how much sooner the standby Trainer would finish one batch than the
 * normal Trainers would drain the queue. In ns, exact and rounded up, so that the rule's sign is
 * kept: P > 0 exactly when the returned value is > 0. Infinity when N_t = 0.
 */
export function switchProfitNs(inputs: SwitchInputs): number {
  if (inputs.trainers === 0) return Infinity;
  const trainers = BigInt(inputs.trainers);
  const scaled =
    BigInt(inputs.readyBatches) * BigInt(inputs.trainerBatchNs) -
    BigInt(inputs.standbyBatchNs) * trainers;
  const truncated = scaled / trainers;
  // Division truncates toward zero, which already is up for negative values.
  return Number(scaled > 0n && scaled % trainers !== 0n ? truncated + 1n : truncated);
}

/** Whether an armed standby Trainer takes a batch now: there is one, and P > 0 strictly. */
export function standbyTakes(inputs: SwitchInputs): boolean {
  return inputs.readyBatches > 0 && switchProfitNs(inputs) > 0;
}

/** Room for a standby Trainer beside the Sampler of one device, as calibration measured it. */
export interface StandbyRoom {
  readonly device: string;
  readonly freeBytes: number;
  /** Peak of a standby Trainer's work on that device. */
  readonly neededBytes: number;
}

/** The first of these devices without room for a standby Trainer. */
export function shortRoom(
  room: readonly StandbyRoom[],
  devices: readonly string[],
): StandbyRoom | undefined {
  return room.find(
    ({ device, freeBytes, neededBytes }) => devices.includes(device) && freeBytes < neededBytes,
  );
}

export interface StandbyArming {
  /** OFF: none is started. AUTO: armed, takes by the profit rule. ALWAYS: takes whatever P says. */
  readonly mode: StandbyPolicy;
  readonly explanation: string;
}

export interface StandbyRequest {
  readonly policy: StandbyPolicy;
  readonly samplerDevices: readonly string[];
  /** N_t; with 0 only standby Trainers train, so OFF cannot be obeyed. */
  readonly trainers: number;
  /** Devices that are not listed were not measured and count as having room. */
  readonly room: readonly StandbyRoom[];
}

/**
 * Arms standby Trainers on all sampler devices or on none. Null when they are needed (N_t = 0)
 * and do not fit: the job cannot run on these devices.
 */
export function armStandby(request: StandbyRequest): StandbyArming | null {
  const short = shortRoom(request.room, request.samplerDevices);
  if (request.trainers === 0) {
    if (short !== undefined) return null;
    const mode = request.policy === 'ALWAYS' ? 'ALWAYS' : 'AUTO';
    return { mode, explanation: 'only they train, as no device is left for a Trainer' };
  }
  if (request.policy === 'OFF') return { mode: 'OFF', explanation: 'switched off by the job' };
  if (request.policy === 'ALWAYS') {
    return {
      mode: 'ALWAYS',
      explanation: 'they take batches whenever their Samplers have nothing to do',
    };
  }
  if (short === undefined) {
    return { mode: 'AUTO', explanation: 'they take batches when that empties the queue sooner' };
  }
  return {
    mode: 'OFF',
    explanation:
      `device ${short.device} has ${short.freeBytes} bytes free beside its Sampler, ` +
      `a standby Trainer needs ${short.neededBytes}`,
  };
}
