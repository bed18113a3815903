import { jobStates } from '../records/job-record.ts';
import { baseNameOf } from '../spec/metrics.ts';
import { slotFamilies, stageBounds } from './families.ts';
import {
  batchEvents,
  cacheResults,
  cacheTiers,
  copyDirections,
  deviceMemoryUses,
  deviceStages,
  evalMetrics,
  executorRoles,
  historyAges,
  historyEvents,
  historyLevels,
  jobPhases,
  queueSides,
  reclaimedStates,
  rowWays,
  splits,
  stages,
  standbyOutcomes,
} from './labels.ts';
import type { JobMetricsInput } from './metrics-types.ts';
import { SeriesTable } from './series.ts';

/** The series of the job that holds a slot; thrown away as a whole when the slot is released. */
export class SlotSeries {
  readonly series = new SeriesTable(slotFamilies);
  readonly #slot: { readonly job_slot: string };

  constructor(slot: number) {
    this.#slot = { job_slot: String(slot) };
    this.series.initialize('gnnd_epoch_duration_seconds', this.#slot);
  }

  epochEnded(seconds: number): void {
    this.series.observe('gnnd_epoch_duration_seconds', this.#slot, seconds);
  }

  update(input: JobMetricsInput): void {
    // Devices and executors may have gone since the last update.
    this.series.clearExcept('gnnd_epoch_duration_seconds');
    this.#setJob(input);
    this.#setTraining(input);
    this.#setStages(input);
    this.#setQueue(input.queue);
    this.#setCache(input.cache);
    this.#setHistory(input.history);
    this.#setLocality(input.locality);
    this.#setDeviceUse(input.deviceUse);
    this.#setPlacement(input);
    this.#setExecutors(input);
    this.#setCheckpoints(input.checkpoints);
  }

  #setJob(input: JobMetricsInput): void {
    const { series } = this;
    const slot = this.#slot;
    const { job, uid, dataset, model } = input;
    series.set('gnnd_job_info', { ...slot, gnnd_job: job, uid, dataset, model }, 1);
    for (const state of jobStates) {
      series.set('gnnd_job_state', { ...slot, state }, flag(state === input.state));
    }
    for (const phase of jobPhases) {
      series.set('gnnd_job_phase', { ...slot, phase }, flag(phase === input.phase));
    }
    series.set('gnnd_job_attempt', slot, input.attempt);
    series.set('gnnd_job_restart_budget_remaining', slot, input.restartBudgetRemaining);
    if (input.lastProgressAtMs !== null) {
      const seconds = input.lastProgressAtMs / 1000;
      series.set('gnnd_job_last_progress_timestamp_seconds', slot, seconds);
    }
    if (input.remainingSeconds !== null) {
      series.set('gnnd_job_remaining_seconds', slot, input.remainingSeconds);
    }
    if (input.evaluation !== null) {
      const { doneRatio, remainingSeconds } = input.evaluation;
      series.set('gnnd_evaluation_done_ratio', slot, doneRatio);
      if (remainingSeconds !== null) {
        series.set('gnnd_evaluation_remaining_seconds', slot, remainingSeconds);
      }
    }
  }

  #setTraining(input: JobMetricsInput): void {
    const { series } = this;
    const slot = this.#slot;
    series.set('gnnd_epoch', slot, input.epoch);
    series.set('gnnd_epochs_target', slot, input.epochsTarget);
    series.set('gnnd_epochs_total', slot, input.epochsCompleted);
    for (const event of batchEvents) {
      series.set('gnnd_batches_total', { ...slot, event }, input.batches[event]);
    }
    series.set('gnnd_steps_total', slot, input.steps);
    series.set('gnnd_parameter_version', slot, input.parameterVersion);
    series.set('gnnd_sampled_edges_total', slot, input.sampledEdges);
    series.set('gnnd_sampled_nodes_total', slot, input.sampledNodes);
    series.set('gnnd_trained_seeds_total', slot, input.trainedSeeds);
    series.set('gnnd_evaluated_chunks_total', slot, input.evaluatedChunks);
    series.set('gnnd_evaluated_rows_total', slot, input.evaluatedRows);
    if (input.loss !== null) series.set('gnnd_loss', slot, input.loss);
    for (const split of splits) {
      for (const { name, value } of input.evaluated[split] ?? []) {
        const base = baseNameOf(name).toUpperCase();
        const metric = evalMetrics.find((known) => known === base);
        if (metric === undefined) continue;
        series.set('gnnd_eval_metric', { ...slot, split, metric }, value);
      }
    }
  }

  #setStages(input: JobMetricsInput): void {
    for (const { device, stage, seconds } of input.stageSeconds) {
      this.series.set('gnnd_stage_seconds_total', { ...this.#slot, device, stage }, seconds);
    }
    for (const { device, wait, seconds } of input.waitSeconds) {
      this.series.set('gnnd_wait_seconds_total', { ...this.#slot, device, wait }, seconds);
    }
    for (const stage of stages) {
      const raw = input.stageDurations[stage] ?? noStageDurations;
      this.series.setRaw('gnnd_stage_duration_seconds', { ...this.#slot, stage }, raw);
    }
  }

  #setQueue(queue: JobMetricsInput['queue']): void {
    const { series } = this;
    const slot = this.#slot;
    series.set('gnnd_queue_depth_batches', slot, queue.depth);
    series.set('gnnd_queue_capacity_batches', slot, queue.capacity);
    series.set('gnnd_queue_bytes', slot, queue.bytes);
    series.set('gnnd_queue_slot_bytes', slot, queue.slotBytes);
    for (const side of queueSides) {
      series.set('gnnd_queue_inflight_batches', { ...slot, side }, queue.inflight[side]);
      series.set('gnnd_queue_ops_total', { ...slot, side, result: 'OK' }, queue.ops[side]);
      series.setRaw('gnnd_queue_wait_seconds', { ...slot, side }, queue.waits[side]);
    }
    for (const state of reclaimedStates) {
      series.set('gnnd_queue_reclaimed_slots_total', { ...slot, state }, queue.reclaimed[state]);
    }
    series.set('gnnd_queue_corrupt_slots_total', slot, queue.corruptRecords);
    series.set('gnnd_lock_owner_died_total', slot, queue.lockOwnersDied);
  }

  #setCache(cache: JobMetricsInput['cache']): void {
    const { series } = this;
    const slot = this.#slot;
    series.set('gnnd_cache_capacity_rows', { ...slot, tier: 'DEVICE' }, cache.capacityRows);
    series.set('gnnd_cache_ratio', { ...slot, tier: 'DEVICE' }, cache.ratio);
    series.set('gnnd_cache_given_up_rows', { ...slot, tier: 'DEVICE' }, cache.givenUpRows);
    for (const tier of cacheTiers) {
      for (const result of cacheResults) {
        const { rows, bytes } = cache.lookups[tier][result];
        series.set('gnnd_cache_rows_total', { ...slot, tier, result }, rows);
        series.set('gnnd_cache_bytes_total', { ...slot, tier, result }, bytes);
      }
    }
    series.set('gnnd_cache_fill_seconds', slot, cache.fillSeconds);
    series.set('gnnd_presample_seconds', slot, cache.presampleSeconds);
  }

  #setHistory(history: JobMetricsInput['history']): void {
    if (history === null) return;
    const { series } = this;
    const slot = this.#slot;
    const hits = history.hitsByLevel.reduce((sum, count) => sum + count, 0);
    series.set('gnnd_history_lookups_total', { ...slot, result: 'HIT' }, hits);
    const misses = history.lookups - hits;
    series.set('gnnd_history_lookups_total', { ...slot, result: 'MISS' }, misses);
    for (const [index, level] of historyLevels.entries()) {
      const found = history.hitsByLevel[index] ?? 0;
      if (found > 0) series.set('gnnd_history_hits_total', { ...slot, level }, found);
    }
    for (const [index, eighth] of historyAges.entries()) {
      const found = history.hitsByAge[index] ?? 0;
      series.set('gnnd_history_age_total', { ...slot, eighth }, found);
    }
    for (const event of historyEvents) {
      const count = history.events[event];
      series.set('gnnd_history_embeddings_total', { ...slot, event }, count);
    }
    series.set('gnnd_history_pruned_rows_total', slot, history.prunedRows);
    series.set('gnnd_history_places', slot, history.places);
    const { compared, pruneSeconds, updateSeconds } = history;
    series.set('gnnd_history_compared_rows_total', slot, compared.rows);
    series.set('gnnd_history_similar_rows_total', slot, compared.similar);
    series.set('gnnd_history_cosine_total', slot, compared.cosine);
    series.set('gnnd_history_lag_steps_total', slot, compared.lagSteps);
    series.set('gnnd_history_seconds_total', { ...slot, part: 'PRUNE' }, pruneSeconds);
    series.set('gnnd_history_seconds_total', { ...slot, part: 'UPDATE' }, updateSeconds);
  }

  #setLocality(locality: JobMetricsInput['locality']): void {
    if (locality === null) return;
    const slot = this.#slot;
    this.series.set('gnnd_locality_scale', slot, locality.scale);
    const { extractShare } = locality;
    if (extractShare !== null) this.series.set('gnnd_locality_extract_share', slot, extractShare);
  }

  #setDeviceUse(uses: JobMetricsInput['deviceUse']): void {
    for (const { device, memoryBytes, copiedBytes, features, ...rest } of uses) {
      const labels = { ...this.#slot, device };
      this.series.set('gnnd_device_registered_bytes', labels, rest.registeredBytes);
      this.series.set('gnnd_device_row_wait_seconds_total', labels, rest.rowWaitSeconds);
      this.series.set('gnnd_device_evaluated_chunks_total', labels, rest.evaluatedChunks);
      for (const stage of deviceStages) {
        const seconds = rest.stageSeconds[stage];
        this.series.set('gnnd_device_stage_seconds_total', { ...labels, stage }, seconds);
      }
      for (const way of rowWays) {
        const { rows, bytes } = features[way];
        this.series.set('gnnd_device_feature_rows_total', { ...labels, way }, rows);
        this.series.set('gnnd_device_feature_bytes_total', { ...labels, way }, bytes);
      }
      for (const use of deviceMemoryUses) {
        this.series.set('gnnd_device_memory_bytes', { ...labels, use }, memoryBytes[use]);
      }
      for (const direction of copyDirections) {
        const bytes = copiedBytes[direction];
        this.series.set('gnnd_device_copy_bytes_total', { ...labels, direction }, bytes);
      }
    }
  }

  #setPlacement(input: JobMetricsInput): void {
    const { series } = this;
    const slot = this.#slot;
    if (input.placement !== null) {
      const { placement } = input;
      series.set('gnnd_placement_k', slot, placement.k);
      series.set('gnnd_sampler_batch_seconds', slot, placement.samplerBatchSeconds);
      series.set('gnnd_trainer_batch_seconds', slot, placement.trainerBatchSeconds);
      series.set('gnnd_standby_batch_seconds', slot, placement.standbyBatchSeconds);
      const { predictedBatchSeconds, measuredBatchSeconds } = placement;
      if (predictedBatchSeconds !== null) {
        series.set('gnnd_predicted_batch_seconds', slot, predictedBatchSeconds);
      }
      if (measuredBatchSeconds !== null) {
        series.set('gnnd_measured_batch_seconds', slot, measuredBatchSeconds);
      }
      if (placement.standbyProfitSeconds !== null) {
        series.set('gnnd_standby_profit_seconds', slot, placement.standbyProfitSeconds);
      }
    }
    const { toStandby, toSampler } = input.switches;
    const ways = [
      { from: 'SAMPLER', to: 'STANDBY', count: toStandby },
      { from: 'STANDBY', to: 'SAMPLER', count: toSampler },
    ] as const;
    for (const { from, to, count } of ways) {
      series.set('gnnd_role_switches_total', { ...slot, from, to }, count);
    }
    for (const outcome of standbyOutcomes) {
      const wakeups = input.standbyWakeups[outcome];
      series.set('gnnd_standby_wakeups_total', { ...slot, outcome }, wakeups);
    }
  }

  #setExecutors(input: JobMetricsInput): void {
    const { series } = this;
    const slot = this.#slot;
    for (const role of executorRoles) {
      const executors = input.executors.filter((executor) => executor.role === role);
      const bytes = executors.reduce((sum, executor) => sum + executor.residentBytes, 0);
      const age = Math.max(0, ...executors.map((executor) => executor.heartbeatAgeSeconds));
      series.set('gnnd_executors', { ...slot, role }, executors.length);
      series.set('gnnd_executor_resident_bytes', { ...slot, role }, bytes);
      series.set('gnnd_executor_heartbeat_age_seconds', { ...slot, role }, age);
      series.set('gnnd_executor_cpu_seconds_total', { ...slot, role }, input.cpuSeconds[role]);
    }
    for (const device of new Set(input.executors.map((executor) => executor.device))) {
      for (const role of executorRoles) {
        const holds = input.executors.some(
          (executor) => executor.device === device && executor.role === role && executor.hasTurn,
        );
        series.set('gnnd_executor_role', { ...slot, device, role }, flag(holds));
      }
    }
  }

  #setCheckpoints(checkpoints: JobMetricsInput['checkpoints']): void {
    const { series } = this;
    const slot = this.#slot;
    const written = { ...slot, cause: 'FINAL' } as const;
    series.set('gnnd_checkpoints_total', { ...written, result: 'OK' }, checkpoints.ok);
    series.set('gnnd_checkpoints_total', { ...written, result: 'FAILED' }, checkpoints.failed);
    series.set('gnnd_checkpoint_bytes', slot, checkpoints.bytes);
    if (checkpoints.lastSuccessAtMs !== null) {
      const seconds = checkpoints.lastSuccessAtMs / 1000;
      series.set('gnnd_checkpoint_last_success_timestamp_seconds', slot, seconds);
    }
  }
}

const noStageDurations = {
  counts: new Array<number>(stageBounds.length + 1).fill(0),
  sum: 0,
};

function flag(condition: boolean): number {
  return condition ? 1 : 0;
}
