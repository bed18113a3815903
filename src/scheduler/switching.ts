import type { StandbyPolicy } from '../spec/job-spec.ts';

/**
 * When a standby Trainer works (GNNLab §5.4). Here it is armed or not; whether it takes a batch is
 * decided natively, under the queue's own order.
 */

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
