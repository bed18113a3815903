import { hasOwnMemory } from '../device-kinds.ts';
import type { JobSpec, SpecDraft } from '../job-spec.ts';
import { reads, whyUnread } from '../spec-parts.ts';
import type { Rule, RuleFacts } from './rule.ts';

type HistoryFields = Pick<JobSpec, 'history' | 'kind'>;

/** Whether a job's batches may read embeddings of earlier ones. */
export function keepsHistory({ history, kind }: HistoryFields): boolean {
  return history.staleSteps > 0 && history.gradientShare > 0 && reads({ kind }, 'history');
}

/** Whether its Trainers share one history, which is then a function of the job's version. */
export function sharesHistory(spec: HistoryFields & Pick<JobSpec, 'training'>): boolean {
  return keepsHistory(spec) && spec.training.determinism !== 'RELAXED';
}

/**
 * Whether embeddings and cached feature rows lie in one memory, where the coldest rows give way:
 * where what caches is the host's memory, in which history lies anyway.
 */
export function cachesBesideHistory(spec: HistoryFields & Pick<JobSpec, 'resources'>): boolean {
  return keepsHistory(spec) && !hasOwnMemory(spec.resources);
}

const stalePath = 'spec.history.stale_steps';

/** Which levels are kept, and whether there are any. */
export const historyRule: Rule = (spec, facts) => {
  const { history, model } = spec;
  const { check } = facts;
  if (check.failed(stalePath) || check.failed('spec.history.gradient_share')) return;
  if (!keepsHistory(spec)) {
    history.levels = [];
    return;
  }
  const why = withoutInnerRows(spec);
  if (why !== null) {
    check.violate(stalePath, `${history.staleSteps}: ${why}; expected 0`);
    return;
  }
  if (!check.failed('spec.model.layers')) resolveLevels(history, model.layers, facts);
  if (spec.training.determinism !== 'RELAXED' && spec.training.staleness > 0) {
    const description =
      `${spec.training.staleness}: with a history that is the same for every crew a batch sees ` +
      'all steps before its own; expected 0, or training.determinism RELAXED';
    check.violate('spec.training.staleness', description);
  }
  if (spec.cache.prefetch === 'ON') {
    const description =
      'ON: what history leaves to be read is known after the step before; use AUTO';
    check.violate('spec.cache.prefetch', description);
  }
};

function withoutInnerRows({ model }: SpecDraft): string | null {
  const oneLayer = model.layers === 1 ? 'a model of one layer has no hidden rows' : null;
  return whyUnread(model.type, 'history') ?? oneLayer;
}

function resolveLevels(
  history: SpecDraft['history'],
  layers: number,
  { check, given }: RuleFacts,
): void {
  const path = 'spec.history.levels';
  const asked = given.history?.levels ?? [];
  if (asked.length === 0) {
    history.levels = [layers - 1];
    return;
  }
  const beyond = asked.filter((level) => level >= layers);
  if (beyond.length > 0) {
    const most = layers === 2 ? '1' : `1 to ${layers - 1}`;
    check.violate(path, `${beyond.join(', ')}: expected ${most}, the hidden layers`);
  }
  if (new Set(asked).size < asked.length) {
    check.violate(path, `${asked.join(', ')}: expected each level once`);
  }
  history.levels = [...asked].sort((left, right) => left - right);
}
