/** The native rule by which a standby Trainer takes a batch (GNNLab §5.4), for the simulator. */

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
