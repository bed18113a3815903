import { hasOwnMemory, trainsInOwnMemory } from './device-kinds.ts';
import type { JobSpec } from './job-spec.ts';
import { automaticRatio } from './limits.ts';

/** What a spec's cache fields amount to (docs/caching.md). */

type CacheFields = Pick<JobSpec, 'cache' | 'resources' | 'placement'>;

/**
 * Whether a cache's size follows from what a batch's work leaves of a device's memory, be it the
 * device's own memory or the amount that the spec says.
 */
export function hasAutomaticCache({ cache, resources }: Omit<CacheFields, 'placement'>): boolean {
  // `ratio` alone decides: where only ratio is given, it holds for standby_ratio, too.
  const isBound = resources.deviceMemoryBytes > 0 || hasOwnMemory(resources);
  return cache.ratio === automaticRatio && isBound;
}

/** Whether rows may lie in memory of the host's that devices read by themselves. */
export function mayPin(spec: Pick<JobSpec, 'resources' | 'placement'>): boolean {
  return trainsInOwnMemory(spec) && spec.resources.pinnedFeaturesBytes !== 0;
}

/** Whether rows may be found by their nodes' ranks: then nodes are ranked and records marked. */
export function mayCache(spec: CacheFields): boolean {
  const isKept = spec.cache.ratio > 0 || spec.cache.standbyRatio > 0;
  return isKept || hasAutomaticCache(spec) || mayPin(spec);
}
