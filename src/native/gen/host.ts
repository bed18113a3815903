// Made by "npm run build:contract" from the tables in native/node.

export type NativeCode =
  | 'SPEC_INVALID'
  | 'DATASET_NOT_FOUND'
  | 'DATASET_CORRUPT'
  | 'SHM_ALLOCATION_FAILED'
  | 'SHM_CORRUPTED'
  | 'IO'
  | 'DISK_FULL'
  | 'ABORTED'
  | 'NUMERIC_DIVERGENCE'
  | 'PLUGIN_FAILED'
  | 'DEVICE_UNAVAILABLE'
  | 'DEVICE_OUT_OF_MEMORY'
  | 'DEVICE_FAILED'
  | 'DEVICE_LOST'
  | 'INTERNAL';

export type InstructionSet = 'SCALAR' | 'AVX2' | 'AVX512' | 'NEON';

export interface HostFunctions {
  hostInstructionSet(): InstructionSet;
  /** Digest of all native sources and options that decide bits. */
  hostBuildId(): string;
  /** Cores this process may run on. */
  hostCores(): readonly number[];
  /** Later threads of this process inherit it. */
  hostPin(cores: readonly number[]): void;
  /** SIGKILL this process when its parent dies; false when the parent is dead already. */
  hostDieWithParent(parentPid: number): boolean;
  /** native/core/base/confine.h */
  hostConfine(unixSockets: boolean): void;
  /** A descriptor that holds the lock for the process's life; null when another holds it. */
  hostLock(path: string): number | null;
  /** Like hostLock, on the folder itself (native/core/base/claim.h). */
  hostLockFolder(path: string, shared: boolean): number | null;
  /** native/core/base/claim.h */
  hostShareFolder(fd: number): void;
  /** native/core/base/claim.h */
  hostBindSocket(path: string, mode: number): number;
  /** Should this process, or a child of it, crash: it leaves no core file. */
  hostNoCoreFile(): void;
  /** Number of bytes written (native/core/base/write_now.h). */
  hostWriteNow(fd: number, text: string, waitMs: number): number;
  /** Free memory of the native heap goes back to the kernel; some milliseconds. */
  hostReturnMemory(): void;
  /** native/core/base/bus_error.h */
  hostExplainBusErrors(exitCode: number): void;
  /** native/core/base/loop_watch.h */
  hostNotify(state: string): boolean;
  /** native/core/base/loop_watch.h */
  hostWatchLoop(limitMs: number, line: string): void;
  /** The loop lives. */
  hostBeat(): void;
  /** After so long, writes `line` to stderr and ends this process, whatever its threads do. */
  hostExitAfter(delayMs: number, exitCode: number, line: string): void;
}
