import type { PropagationPlan, PropagationProgress } from '../native/contract.ts';

/** Where a propagation is: the share that is done, and a line for people with the time left. */
export function propagationText(
  { done, resumed, total, op, hop, column, finishing }: PropagationProgress,
  { operators, hops }: PropagationPlan,
  elapsedMs: number,
): [share: number, message: string] {
  const share = total === 0 ? 0 : Math.min(1, done / total);
  if (finishing) return [1, 'joining files and digests'];
  if (hop === 0) return [share, 'writing the features'];
  const made = done - resumed;
  const left = made > 0 ? (elapsedMs * (total - done)) / made : null;
  const operator = `operator ${op + 1} of ${operators.length}`;
  const where = `${operator}, column ${column}, hop ${hop} of ${hops}`;
  return [share, left === null ? where : `${where}, ${Math.ceil(left / 1000)} s left`];
}
