/**
 * How our processes say why they ended. Part of the contract (proto/contract/exit-codes.yaml): a
 * code never changes its meaning. Death by a signal stays a signal, never 128 + n.
 */

/** `gnnd serve`. OK, USAGE, INCOMPATIBLE_DATA and CONFIGURATION must not be restarted. */
export const daemonExit = {
  OK: 0,
  USAGE: 64,
  /** A store or segment of another version. */
  INCOMPATIBLE_DATA: 65,
  /** An invariant of ours does not hold. */
  INTERNAL: 70,
  /** The host refused memory, descriptors, processes or an address; a restart may help. */
  OS_RESOURCE: 71,
  /** The state directory cannot be used, or another daemon has it. */
  STATE_DIR: 73,
  /** The store met an I/O error or is damaged; a restart reads it again. */
  STORE_IO: 74,
  /** Stopping took longer than `stop_timeout_ms`; what hung was left behind. */
  STOP_TIMEOUT: 75,
  PERMISSION: 77,
  CONFIGURATION: 78,
} as const;

/** An executor, to the daemon. */
export const executorExit = {
  OK: 0,
  /** An invariant of ours does not hold, or a system call failed. */
  INTERNAL: 1,
  SPEC: 10,
  DATASET: 11,
  DEVICE_OUT_OF_MEMORY: 12,
  DEVICE_ERROR_STICKY: 13,
  DEVICE_LOST: 14,
  SHM_CORRUPTED: 15,
  /** The daemon was silent for too long. */
  LEASE_LOST: 16,
  CHECKPOINT_IO: 17,
  NUMERIC_DIVERGENCE: 18,
  /** The daemon had gone before this process was up. */
  PARENT_GONE: 19,
  PROTOCOL: 20,
  /** Code of the user's cannot be loaded or broke its contract. */
  PLUGIN: 21,
} as const;

/** `gnnctl`, for scripts. */
export const gnnctlExit = {
  /** Also: the awaited job SUCCEEDED. */
  OK: 0,
  FAILURE: 1,
  USAGE: 2,
  INVALID_ARGUMENT: 3,
  NOT_FOUND: 4,
  /** FAILED_PRECONDITION, ABORTED, ALREADY_EXISTS. */
  CONFLICT: 5,
  RESOURCE_EXHAUSTED: 6,
  /** PERMISSION_DENIED, UNAUTHENTICATED. */
  PERMISSION: 7,
  UNAVAILABLE: 8,
  /** The deadline or --timeout passed; the job goes on. */
  DEADLINE: 9,
  JOB_FAILED: 10,
  JOB_CANCELLED: 11,
  /** INTERNAL, DATA_LOSS. */
  INTERNAL: 13,
  INTERRUPTED: 130,
} as const;
