import { hasOwnMemory } from '../device-kinds.ts';
import type { SpecDraft } from '../job-spec.ts';
import { show } from '../spec-checker.ts';
import { reads } from '../spec-parts.ts';
import type { Rule, RuleFacts } from './rule.ts';

/**
 * Resolves jobs that lend batches to a user's process: the last device lends, all others sample,
 * and what a Trainer of gnnd's would do is neutral. A failed attempt is not repeated, because its
 * reader is in the middle of an epoch.
 */
export const loadRule: Rule = (spec, { check, given, context }) => {
  if (spec.kind !== 'LOAD') return;
  const { placement, resources, cache, training, restart, model, load } = spec;
  checkItems(load, check);
  if (load.nodesFile === '' && load.linksFile === '' && context.trainNodes === 0) {
    const description = 'required: the dataset has no training nodes';
    check.violate('spec.load.nodes_file', description);
  }
  if (hasOwnMemory(resources)) {
    const expected = 'expected CPU, whose Samplers a loader has';
    check.violate('spec.resources.device_kind', `${resources.deviceKind}: ${expected}`);
  }
  if (!reads({ model }, 'sampling')) {
    check.violate('spec.model.type', `${model.type}: draws no batches; expected GRAPHSAGE`);
  }
  if (resources.devices < 2 && !check.failed('spec.resources')) {
    check.violate(
      'spec.resources.devices',
      `${resources.devices}: expected 2 or more, one to lend batches and the others to sample`,
    );
  }
  placement.policy = 'FIXED';
  placement.standby = 'OFF';
  placement.samplers = Math.max(1, resources.devices - 1);
  cache.ratio = 0;
  cache.standbyRatio = 0;
  resources.pinnedFeaturesBytes = 0;
  training.batchesPerStep = 1;
  training.staleness = 0;
  training.stalenessCompensation = 'NONE';
  if (given.restart?.maxAttempts === undefined) restart.maxAttempts = 1;
};

/** What batches are of: nodes or links, each a file and how many it has. */
function checkItems(load: SpecDraft['load'], check: RuleFacts['check']): void {
  for (const [name, file, count] of [
    ['nodes', load.nodesFile, load.nodes],
    ['links', load.linksFile, load.links],
  ] as const) {
    if (file !== '' && !file.startsWith('/')) {
      check.violate(`spec.load.${name}_file`, `${show(file)}: expected an absolute path`);
    }
    if ((file === '') !== (count === 0)) {
      const description = `${count}: expected the number of ${name} in ${name}_file`;
      check.violate(`spec.load.${name}`, description);
    }
  }
  if (load.linksFile === '') {
    if (load.negatives > 0) {
      const description = `${load.negatives}: without links_file there are no links; expected 0`;
      check.violate('spec.load.negatives', description);
    }
  } else if (load.nodesFile !== '') {
    const description = `${show(load.linksFile)}: beside nodes_file; expected one of them`;
    check.violate('spec.load.links_file', description);
  }
}
