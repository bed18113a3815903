import type { ExecutorOptions, LoopEnd, NativeCode, TrainerOptions } from '../native/contract.ts';

/**
 * What the daemon and an executor say to each other over their channel: few messages, one start and
 * one end. Everything frequent (progress, counters, commands) is in the job segment.
 */

/** Changes with every change of a message. */
export const protocolVersion = 1;

/** Descriptors an executor inherits. */
export const segmentFd = 3;
export const topologyFd = 4;

/** Down, once, as the first message. */
export type StartMessage = {
  readonly kind: 'start';
  readonly version: typeof protocolVersion;
  readonly cores: readonly number[];
} & (
  | { readonly role: 'SAMPLER'; readonly options: ExecutorOptions }
  | { readonly role: 'TRAINER' | 'STANDBY'; readonly options: TrainerOptions }
);

/** Up, once, as the last message. */
export type EndMessage =
  | { readonly kind: 'ended'; readonly end: LoopEnd }
  | { readonly kind: 'failed'; readonly code: NativeCode; readonly message: string };

/** Narrows what arrived on the channel; null for anything that is not an EndMessage. */
export function endMessageOf(value: unknown): EndMessage | null {
  if (typeof value !== 'object' || value === null || !('kind' in value)) return null;
  const { kind } = value;
  return kind === 'ended' || kind === 'failed' ? (value as EndMessage) : null;
}

/** Narrows what arrived on the channel; null for anything that is not a StartMessage of ours. */
export function startMessageOf(value: unknown): StartMessage | null {
  if (typeof value !== 'object' || value === null || !('kind' in value)) return null;
  const message = value as StartMessage;
  return message.kind === 'start' && message.version === protocolVersion ? message : null;
}
