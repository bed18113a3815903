import type { JobSpec, SpecDraft } from '../job-spec.ts';
import { kindOf, typesWith } from '../model-kinds.ts';
import { reads, whyUnread } from '../spec-parts.ts';
import type { Rule } from './rule.ts';

/** A scale of 1 is stored as the integer `scaleParts`. */
export const scaleParts = 16;

/** Whether a job's batches draw some neighbours more often than others (docs/sampling.md). */
export function favours({ sampling, kind }: Pick<JobSpec, 'sampling' | 'kind'>): boolean {
  return sampling.locality.maxScale > 1 && reads({ kind }, 'sampling.locality');
}

/** Whether how much more often follows from measured times, and so is recorded. */
export function adapts(spec: Pick<JobSpec, 'sampling' | 'kind'>): boolean {
  return favours(spec) && spec.sampling.locality.schedule === 'ADAPTIVE';
}

const scalePath = 'spec.sampling.locality.max_scale';

/** Locality favours nodes by the hottest rows; the model weighs the neighbours that it draws. */
export const localityRule: Rule = (spec, { check }) => {
  const { sampling, training } = spec;
  const { locality } = sampling;
  // An inference has the sampling of its model's job and draws no batch.
  if (!favours(spec) || check.failed('spec.sampling.locality')) return;
  if (!Number.isInteger(locality.maxScale * scaleParts)) {
    const description = `${locality.maxScale}: expected a multiple of ${1 / scaleParts}`;
    check.violate(scalePath, description);
  }
  const why = withoutUse(spec);
  if (why !== null) check.violate(scalePath, `${locality.maxScale}: ${why}`);
  if (sampling.replace) {
    const description = 'true: sampling.locality draws distinct neighbours; expected false';
    check.violate('spec.sampling.replace', description);
  }
  checkCache(spec, check);
  if (locality.schedule === 'ADAPTIVE' && training.determinism !== 'RELAXED') {
    const description =
      'ADAPTIVE: the scale follows from measured times, and decides bits; expected FIXED, or ' +
      'training.determinism RELAXED';
    check.violate('spec.sampling.locality.schedule', description);
  }
  if (locality.ratio === 0) locality.ratio = Math.max(0, spec.cache.ratio);
};

/** Weights undo the bias of sums; what attention and scripts make of them is unknown. */
function withoutUse({ model, sampling }: SpecDraft): string | null {
  const why = whyUnread(model.type, 'sampling.locality');
  if (why !== null) return why;
  if (!kindOf(model.type).weighs) {
    const others = typesWith(({ weighs }) => weighs).join(' and ');
    return `${model.type} has no aggregate that weights keep unbiased; ${others} have`;
  }
  if (sampling.fanouts.length > 0 && sampling.fanouts.every((fanout) => fanout === -1)) {
    return 'all neighbours are taken in every hop, none more often; expected a fanout above 0';
  }
  return null;
}

/** What decides bits must follow from the spec: not a cache that takes the memory there is. */
function checkCache({ cache }: SpecDraft, check: Parameters<Rule>[1]['check']): void {
  if (cache.ratio <= 0 && !check.failed('spec.cache.ratio')) {
    const given = cache.ratio === 0 ? '0' : 'automatic';
    const description =
      `${given}: sampling.locality favours rows that caches hold, and this decides bits; ` +
      'expected a share above 0';
    check.violate('spec.cache.ratio', description);
  }
  if (cache.policy === 'OPTIMAL') {
    const description =
      'OPTIMAL: it counts what epochs read before locality changes that; expected another policy';
    check.violate('spec.cache.policy', description);
  }
}
