import { hasOwnMemory } from './device-kinds.ts';
import type { JobSpec } from './job-spec.ts';
import { automaticRatio } from './limits.ts';

/** What a spec's cache fields amount to (docs/caching.md). */

type CacheFields = Pick<JobSpec, 'cache' | 'resources'>;

/**
 * Whether a cache's size follows from what the work of a batch leaves of a device's memory: of its
 * own, or of what the spec says.
 */
export function hasAutomaticCache({ cache, resources }: CacheFields): boolean {
  // Where standby_ratio is unset and ratio is not, the one that was given holds for both.
  const isBound = resources.deviceMemoryBytes > 0 || hasOwnMemory(resources);
  return cache.ratio === automaticRatio && isBound;
}

/** Whether any Trainer of the job may keep rows: then nodes are ranked and records marked. */
export function mayCache(spec: CacheFields): boolean {
  return spec.cache.ratio > 0 || spec.cache.standbyRatio > 0 || hasAutomaticCache(spec);
}
