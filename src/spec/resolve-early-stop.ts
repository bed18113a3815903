import type { JobSpec, JobSpecInput } from './job-spec.ts';
import { integerLimits, specDefaults } from './limits.ts';
import { type SpecChecker, share, unusedField } from './spec-checker.ts';

type EarlyStop = JobSpec['training']['earlyStop'];
type EarlyStopInput = NonNullable<JobSpecInput['training']>['earlyStop'];

/** When to stop before the last epoch; `valNodes` is null when the dataset is not known. */
export function resolveEarlyStop(
  check: SpecChecker,
  earlyStop: EarlyStopInput,
  { valNodes }: { readonly valNodes: number | null },
): EarlyStop {
  const path = (field: string) => `spec.training.early_stop.${field}`;
  const defaults = specDefaults.earlyStop;
  // 0 is what a resolved spec says for "never".
  const given = earlyStop?.patienceEpochs === 0 ? undefined : earlyStop?.patienceEpochs;
  const patienceEpochs = check.integer(
    path('patience_epochs'),
    given,
    integerLimits.patienceEpochs,
    defaults.patienceEpochs,
  );
  const { minDelta } = earlyStop ?? {};
  if (given === undefined) {
    const owner = 'a job with patience_epochs';
    return { patienceEpochs, minDelta: unusedField(check, path('min_delta'), minDelta, 0, owner) };
  }
  if (valNodes === 0) {
    const description = `${given}: the dataset has no validation nodes, so nothing is evaluated`;
    check.violate(path('patience_epochs'), description);
  }
  return {
    patienceEpochs,
    minDelta: check.real(path('min_delta'), minDelta, share, defaults.minDelta),
  };
}
