/**
 * Ids of jobs and datasets: they name folders, appear in metrics and on command lines, so they are
 * DNS labels that start with a letter.
 */
export const idPattern = /^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/;
export const idRule =
  'lower-case letters, digits and hyphens, 1 to 63 characters, a letter first, no hyphen last';

/** Most threads of a Trainer, and cores of a job, where the spec leaves them open: not measured. */
export const automaticCores = 16;

/** `cache.ratio` of a cache that takes the memory there is. */
export const automaticRatio = -1;
/** `resources.pinned_features_bytes` likewise. */
export const automaticBytes = -1;
