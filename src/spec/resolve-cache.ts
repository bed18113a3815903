import {
  type CachePolicy,
  cachePolicies,
  type JobSpec,
  type JobSpecInput,
  prefetchModes,
} from './job-spec.ts';
import { automaticRatio, integerLimits, specDefaults } from './limits.ts';
import { type SpecChecker, show, wholeShare } from './spec-checker.ts';

/** Which feature rows devices keep, and how they are read. */
export function resolveCache(
  check: SpecChecker,
  cache: JobSpecInput['cache'],
  { algorithm }: Pick<JobSpec['sampling'], 'algorithm'>,
): JobSpec['cache'] {
  const defaults = specDefaults.cache;
  const ratio = (path: string, value: number | undefined) => {
    if (value === undefined || value === automaticRatio) return automaticRatio;
    if (Number.isFinite(value) && wholeShare.holds(value)) return value;
    check.violate(
      path,
      `${show(value)}: expected a finite number ${wholeShare.shown}, or -1 for automatic`,
    );
    return automaticRatio;
  };
  return {
    policy: resolvePolicy(check, cache?.policy, algorithm),
    presampleEpochs: check.integer(
      'spec.cache.presample_epochs',
      cache?.presampleEpochs,
      integerLimits.presampleEpochs,
      defaults.presampleEpochs,
    ),
    ratio: ratio('spec.cache.ratio', cache?.ratio),
    standbyRatio: ratio('spec.cache.standby_ratio', cache?.standbyRatio),
    prefetch: check.choice(
      'spec.cache.prefetch',
      cache?.prefetch,
      prefetchModes,
      defaults.prefetch,
    ),
  };
}

/** How likely a plug-in is to reach a node can be counted, not computed. */
function resolvePolicy(
  check: SpecChecker,
  given: CachePolicy | undefined,
  algorithm: JobSpec['sampling']['algorithm'],
): CachePolicy {
  const path = 'spec.cache.policy';
  if (algorithm !== 'KHOP_PLUGIN') {
    return check.choice(path, given, cachePolicies, specDefaults.cache.policy);
  }
  const policy = check.choice(path, given, cachePolicies, 'PRESC');
  if (policy === 'COMBINED' || policy === 'PROBABILITY') {
    check.violate(path, `${policy}: what KHOP_PLUGIN draws has no known probabilities; use PRESC`);
  }
  return policy;
}
