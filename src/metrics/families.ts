import { errorReasons } from '../base/errors.ts';
import { garbageKinds } from '../config/retention-limits.ts';
import { jobStates, reasons } from '../records/job-record.ts';
import {
  batchEvents,
  cacheResults,
  cacheTiers,
  checkpointResults,
  copyDirections,
  datasetStates,
  deviceMemoryUses,
  deviceStages,
  deviceStates,
  endStates,
  evalMetrics,
  executorOutcomes,
  executorRoles,
  grpcCodes,
  grpcTypes,
  historyAges,
  historyEvents,
  historyLevels,
  historyResults,
  jobPhases,
  propagationOutcomes,
  queueSides,
  reclaimedStates,
  rowWays,
  segmentKinds,
  splits,
  stages,
  standbyOutcomes,
  storeErrorCodes,
  storeOps,
  waits,
} from './labels.ts';

/**
 * Every metric family of ours: name, type, help, labels. A label lists the values it may take,
 * or is null where the host or the job decides: a device, a slot, a method.
 * The list is part of the contract (proto/contract/metrics.yaml). `process_*` and `nodejs_*` come
 * from prom-client.
 */
export interface FamilyDeclaration {
  readonly type: 'counter' | 'gauge' | 'histogram' | 'summary';
  readonly help: string;
  readonly labels: LabelDeclarations;
  /** Upper bounds of a histogram's buckets, ascending; one more bucket follows for the rest. */
  readonly bounds: readonly number[];
}

export type LabelDeclarations = Readonly<Record<string, readonly string[] | null>>;

/** Seconds; the same as `kStageBoundsNs` of the job segment. */
export const stageBounds = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
];
/** Seconds; the same as `kWaitBoundsNs` of the job segment. */
export const waitBounds = [...stageBounds, 60, 120];
const rpcBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const storeBounds = [0.0002, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5];
const longBounds = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600];

function counter<const L extends LabelDeclarations>(help: string, labels: L) {
  return { type: 'counter', help, labels, bounds: [] } as const;
}

function gauge<const L extends LabelDeclarations>(help: string, labels: L) {
  return { type: 'gauge', help, labels, bounds: [] } as const;
}

function histogram<const L extends LabelDeclarations>(
  help: string,
  bounds: readonly number[],
  labels: L,
) {
  return { type: 'histogram', help, labels, bounds } as const;
}

const slot = { job_slot: null } as const;
const rpc = { grpc_service: null, grpc_method: null, grpc_type: grpcTypes } as const;

/** Metrics of the daemon, the host and the API; jobs are in them as numbers only. */
export const daemonFamilies = {
  gnnd_build_info: gauge('Always 1; the labels say what runs.', {
    version: null,
    node_version: null,
  }),
  gnnd_start_time_seconds: gauge('When the daemon started, in seconds since the epoch.', {}),
  gnnd_ready: gauge('1 when the daemon takes jobs.', {}),
  gnnd_event_loop_delay_seconds: {
    type: 'summary',
    help: 'How late the event loop ran its timers; quantiles since the last scrape.',
    labels: {},
    bounds: [],
  },
  gnnd_store_transaction_duration_seconds: histogram(
    'From the begin of a store transaction to its durable commit.',
    storeBounds,
    { op: storeOps },
  ),
  gnnd_store_errors_total: counter('Store transactions that the database refused.', {
    code: storeErrorCodes,
  }),
  gnnd_store_revision: gauge('Newest revision of the store.', {}),
  gnnd_store_db_bytes: gauge('Size of the store file.', {}),
  gnnd_store_wal_bytes: gauge('Size of the write-ahead log of the store.', {}),
  gnnd_state_dir_free_bytes: gauge('Bytes that the state directory can still take.', {}),
  gnnd_watches: gauge('Open WatchJob streams.', {}),

  grpc_server_started_total: counter('Calls that arrived.', rpc),
  grpc_server_msg_received_total: counter('Messages received.', rpc),
  grpc_server_msg_sent_total: counter('Messages sent.', rpc),
  grpc_server_handled_total: counter('Calls that ended, by code.', {
    ...rpc,
    grpc_code: grpcCodes,
  }),
  grpc_server_handling_seconds: histogram('Duration of unary calls.', rpcBounds, rpc),
  gnnd_api_errors_total: counter('Calls that ended with an error, by reason.', {
    reason: errorReasons,
  }),
  gnnd_api_replayed_requests_total: counter('Calls that repeated a request id.', { method: null }),
  gnnd_retention_removed_total: counter('Things removed because a limit was reached.', {
    kind: garbageKinds,
  }),
  gnnd_retention_removed_bytes_total: counter('Their bytes.', { kind: garbageKinds }),

  gnnd_jobs: gauge('Jobs in the store.', { state: jobStates }),
  gnnd_job_transitions_total: counter('State changes of jobs.', { to: jobStates }),
  gnnd_job_ends_total: counter('Jobs that ended.', { state: endStates, reason: reasons }),
  gnnd_job_pending_seconds: histogram('How long jobs waited each time in PENDING.', longBounds, {}),
  gnnd_job_duration_seconds: histogram('From the creation of a job to its end.', longBounds, {
    state: endStates,
  }),

  gnnd_executor_starts_total: counter('Executors started.', { role: executorRoles }),
  gnnd_executor_exits_total: counter('Executors that ended.', {
    role: executorRoles,
    outcome: executorOutcomes,
  }),
  gnnd_executor_exit_reasons_total: counter('Why executors ended.', { reason: reasons }),

  gnnd_shm_segments: gauge('Shared memory segments.', { kind: segmentKinds }),
  gnnd_shm_bytes: gauge('Bytes of records that job segments hold, and of topologies.', {
    kind: segmentKinds,
  }),
  gnnd_device_info: gauge('Always 1; the labels describe the device.', {
    device: null,
    uuid: null,
    model: null,
    driver: null,
    kind: null,
  }),
  gnnd_device_state: gauge('1 for the current state of the device.', {
    device: null,
    state: deviceStates,
  }),
  gnnd_checkpoint_duration_seconds: histogram('Writing a checkpoint durably.', longBounds, {}),
  gnnd_propagations_running: gauge('Propagators at work.', {}),
  gnnd_propagation_done_ratio: gauge('Their mean share done; 0 while none is at work.', {}),
  gnnd_propagation_ends_total: counter('Propagators that ended.', { outcome: propagationOutcomes }),
  gnnd_propagation_seconds_total: counter('How long those that ended were at work.', {}),
  gnnd_propagation_hops_total: counter(
    'Products of an operator and all columns; of what was found done, none.',
    {},
  ),
  gnnd_propagation_device_hops_total: counter(
    'Of these, products that a GPU or a simulated device computed.',
    {},
  ),
  gnnd_propagation_bytes_total: counter('Bytes of files of propagations that were completed.', {}),
  gnnd_datasets: gauge('Datasets in the store.', { state: datasetStates }),
  gnnd_dataset_bytes: gauge('Bytes of all datasets.', {}),
} as const satisfies Readonly<Record<string, FamilyDeclaration>>;

/** Metrics of the job in a slot; all have the label job_slot and go when the slot is released. */
export const slotFamilies = {
  gnnd_job_info: gauge('Always 1; maps a slot to its job.', {
    ...slot,
    // Not `job`: scrapers have a label of that name, for the job that scrapes.
    gnnd_job: null,
    uid: null,
    dataset: null,
    model: null,
  }),
  gnnd_job_state: gauge('1 for the current state.', { ...slot, state: jobStates }),
  gnnd_job_phase: gauge('1 for the current phase.', { ...slot, phase: jobPhases }),
  gnnd_job_attempt: gauge('Number of the current attempt.', slot),
  gnnd_job_restart_budget_remaining: gauge(
    'Attempts that may still fail while running, the present one included.',
    slot,
  ),
  gnnd_job_last_progress_timestamp_seconds: gauge('When a step was last committed.', slot),
  gnnd_job_remaining_seconds: gauge(
    'Expected time to the end of all planned epochs; absent while unknown.',
    slot,
  ),

  gnnd_evaluation_done_ratio: gauge(
    'Share done of the evaluation that runs, 0 to 1; absent while none does.',
    slot,
  ),
  gnnd_evaluation_remaining_seconds: gauge(
    'Expected time to the end of the evaluation that runs; absent while unknown.',
    slot,
  ),

  gnnd_epoch: gauge('Epoch in progress, from 0.', slot),
  gnnd_epochs_target: gauge('Epochs planned.', slot),
  gnnd_epochs_total: counter('Epochs completed.', slot),
  gnnd_epoch_duration_seconds: histogram('Duration of epochs.', longBounds, slot),
  gnnd_batches_total: counter('Batches, by what happened to them.', {
    ...slot,
    event: batchEvents,
  }),
  gnnd_steps_total: counter('Parameter updates committed.', slot),
  gnnd_parameter_version: gauge('Version of the parameters.', slot),
  gnnd_sampled_edges_total: counter('Edges drawn.', slot),
  gnnd_sampled_nodes_total: counter('Input nodes of samples.', slot),
  gnnd_trained_seeds_total: counter('Training nodes of trained batches.', slot),
  gnnd_evaluated_chunks_total: counter(
    'Chunks of evaluations and inferences; those that an earlier attempt did are not among them.',
    slot,
  ),
  gnnd_evaluated_rows_total: counter('Rows of all layers that these chunks computed.', slot),
  gnnd_stage_seconds_total: counter(
    'Busy time: S sample, M mark, C copy, P prune, E extract, T train, A apply, V evaluate.',
    { ...slot, device: null, stage: stages },
  ),
  gnnd_wait_seconds_total: counter(
    'Waiting; EXTRACT is the part of stage E that training waited for, the rest was hidden.',
    { ...slot, device: null, wait: waits },
  ),
  gnnd_stage_duration_seconds: histogram('Duration of a stage for one batch.', stageBounds, {
    ...slot,
    stage: stages,
  }),
  gnnd_loss: gauge('Mean training loss, last value.', slot),
  gnnd_eval_metric: gauge('Last evaluation: shares, or errors in the unit of the targets.', {
    ...slot,
    split: splits,
    metric: evalMetrics,
  }),

  gnnd_queue_depth_batches: gauge('READY batches.', slot),
  gnnd_queue_capacity_batches: gauge('Slots of the queue.', slot),
  gnnd_queue_inflight_batches: gauge('Batches claimed by Samplers or taken by Trainers.', {
    ...slot,
    side: queueSides,
  }),
  gnnd_queue_bytes: gauge('Bytes of the records in the queue.', slot),
  gnnd_queue_slot_bytes: gauge('Bytes of the largest record so far.', slot),
  gnnd_queue_ops_total: counter('Batches put into the queue and taken from it.', {
    ...slot,
    side: queueSides,
    result: ['OK'],
  }),
  gnnd_queue_wait_seconds: histogram('Blocked time per operation of the queue.', waitBounds, {
    ...slot,
    side: queueSides,
  }),
  gnnd_queue_reclaimed_slots_total: counter('Batches taken back from dead executors.', {
    ...slot,
    state: reclaimedStates,
  }),
  gnnd_queue_corrupt_slots_total: counter('Records that failed their checks.', slot),
  gnnd_lock_owner_died_total: counter('Deaths of an executor that held the lock.', slot),

  gnnd_cache_capacity_rows: gauge('Feature rows that the largest cache of a Trainer holds.', {
    ...slot,
    tier: ['DEVICE'],
  }),
  gnnd_cache_ratio: gauge('The same as a share of all rows.', { ...slot, tier: ['DEVICE'] }),
  gnnd_cache_given_up_rows: gauge(
    'Of these, the coldest ones, whose memory embeddings have taken: the rest is the hot rank of the border.',
    { ...slot, tier: ['DEVICE'] },
  ),
  gnnd_cache_rows_total: counter('Feature rows that extraction looked for, by tier.', {
    ...slot,
    tier: cacheTiers,
    result: cacheResults,
  }),
  gnnd_cache_bytes_total: counter('The same in bytes.', {
    ...slot,
    tier: cacheTiers,
    result: cacheResults,
  }),
  gnnd_cache_fill_seconds: gauge('Filling the slowest cache.', slot),
  gnnd_presample_seconds: gauge("Ranking the nodes; 0 when an earlier job's order was used.", slot),

  gnnd_history_lookups_total: counter(
    'Rows of hidden layers looked for in history; absent without one, as all of it.',
    { ...slot, result: historyResults },
  ),
  gnnd_history_hits_total: counter('Rows found in history, by layer; 1 reads the features.', {
    ...slot,
    level: historyLevels,
  }),
  gnnd_history_age_total: counter(
    'Rows found in history, by age in eighths of history.stale_steps, 1 the youngest.',
    { ...slot, eighth: historyAges },
  ),
  gnnd_history_embeddings_total: counter(
    'Embeddings stored, forgotten for their gradients, and lost for want of memory.',
    { ...slot, event: historyEvents },
  ),
  gnnd_history_pruned_rows_total: counter('Feature rows that history spared batches.', slot),
  gnnd_history_places: gauge('Places that embeddings have taken of their memory.', slot),
  gnnd_history_compared_rows_total: counter(
    'Rows computed anew and compared with the older embedding that was there.',
    slot,
  ),
  gnnd_history_similar_rows_total: counter('Such of a cosine similarity of at least 0.8.', slot),
  gnnd_history_cosine_total: counter('Sum of their cosine similarities.', slot),
  gnnd_history_lag_steps_total: counter("Sum of the older embeddings' ages in steps.", slot),
  gnnd_history_seconds_total: counter('Look-up with pruning, and admission.', {
    ...slot,
    part: ['PRUNE', 'UPDATE'],
  }),

  gnnd_locality_scale: gauge(
    'How many times as likely as others favoured neighbours are drawn; absent without locality.',
    slot,
  ),
  gnnd_locality_extract_share: gauge(
    "Extraction's share of the time of the last epoch's batches, training the rest.",
    slot,
  ),

  gnnd_device_memory_bytes: gauge(
    "Most that executors hold of a device's memory at a time, by use; absent on CPU devices.",
    { ...slot, device: null, use: deviceMemoryUses },
  ),
  gnnd_device_copy_bytes_total: counter('Copied to a device and back; absent on CPU devices.', {
    ...slot,
    device: null,
    direction: copyDirections,
  }),
  gnnd_device_feature_rows_total: counter(
    'Feature rows of batches on a device: of its own memory, read by itself from another ' +
      "device's or the host's, or copied there by the host; absent on CPU devices.",
    { ...slot, device: null, way: rowWays },
  ),
  gnnd_device_feature_bytes_total: counter('The same in bytes.', {
    ...slot,
    device: null,
    way: rowWays,
  }),
  gnnd_device_row_wait_seconds_total: counter(
    "What rows beyond a device's own memory cost by the rates that its job's placement reckons " +
      'with; 0 without a placement, absent on CPU devices.',
    { ...slot, device: null },
  ),
  gnnd_device_stage_seconds_total: counter(
    "Time on a device's streams by stage, as its own events have it; absent on CPU devices.",
    { ...slot, device: null, stage: deviceStages },
  ),
  gnnd_device_evaluated_chunks_total: counter(
    'Those of gnnd_evaluated_chunks_total that a device computed; absent on CPU devices.',
    { ...slot, device: null },
  ),
  gnnd_device_registered_bytes: gauge(
    "Most of the host's memory that executors registered with a device; absent on CPU devices.",
    { ...slot, device: null },
  ),

  gnnd_placement_k: gauge('K = T_t / T_s.', slot),
  gnnd_sampler_batch_seconds: gauge('T_s: a Sampler per batch.', slot),
  gnnd_trainer_batch_seconds: gauge('T_t: a Trainer per batch.', slot),
  gnnd_standby_batch_seconds: gauge('T_t_prime: a standby Trainer per batch.', slot),
  gnnd_predicted_batch_seconds: gauge(
    'Wall time of a batch as the plan predicts it; absent where nothing was measured before.',
    slot,
  ),
  gnnd_measured_batch_seconds: gauge(
    'Wall time of a batch in the last epoch, its evaluation left out; absent before the first.',
    slot,
  ),
  gnnd_standby_profit_seconds: gauge(
    'P = M_r * T_t / N_t - T_t_prime; absent without standby Trainers and while it has no bound.',
    slot,
  ),
  gnnd_executors: gauge('Executors alive.', { ...slot, role: executorRoles }),
  gnnd_executor_role: gauge('1 for the role that has the device now.', {
    ...slot,
    device: null,
    role: executorRoles,
  }),
  gnnd_role_switches_total: counter('Hand-overs of a device between Sampler and standby.', {
    ...slot,
    from: ['SAMPLER', 'STANDBY'],
    to: ['SAMPLER', 'STANDBY'],
  }),
  gnnd_standby_wakeups_total: counter('Wake-ups of standby Trainers.', {
    ...slot,
    outcome: standbyOutcomes,
  }),
  gnnd_executor_resident_bytes: gauge('Memory of executors, sum by role.', {
    ...slot,
    role: executorRoles,
  }),
  gnnd_executor_cpu_seconds_total: counter('Processor time of executors.', {
    ...slot,
    role: executorRoles,
  }),
  gnnd_executor_heartbeat_age_seconds: gauge('Oldest heartbeat by role.', {
    ...slot,
    role: executorRoles,
  }),
  gnnd_checkpoints_total: counter('Checkpoints, by how writing them ended.', {
    ...slot,
    result: checkpointResults,
    cause: ['FINAL'],
  }),
  gnnd_checkpoint_bytes: gauge('Size of the newest checkpoint.', slot),
  gnnd_checkpoint_last_success_timestamp_seconds: gauge('When it was written.', slot),
} as const satisfies Readonly<Record<string, FamilyDeclaration>>;
