import { automaticCores } from '../limits.ts';
import { show } from '../spec-checker.ts';
import type { Rule, RuleFacts } from './rule.ts';

/** As many devices as have so many cores together, at least one. */
function defaultDevices(deviceCores: readonly number[]): number {
  let devices = 0;
  let cores = 0;
  for (const count of deviceCores) {
    cores += count;
    if (cores > automaticCores) break;
    devices += 1;
  }
  return Math.max(1, devices);
}

/** Devices of this host: a number of them, or some by their names. */
export const devicesRule: Rule = ({ resources }, facts) => {
  const { check, given, context } = facts;
  const path = 'spec.resources.devices';
  const names = resources.deviceNames;
  if (names.length === 0) {
    if (context.deviceNames.length === 0) check.violate(path, 'this host has no devices');
    if (given.resources?.devices === undefined) {
      resources.devices = defaultDevices(context.deviceCores);
    }
    return;
  }
  const asked = given.resources?.devices;
  if (asked !== undefined && asked !== names.length && !check.failed(path)) {
    check.violate(
      path,
      `${show(asked)}: expected to be unset beside device_names, ` +
        `or their number, ${names.length}`,
    );
  }
  resources.devices = names.length;
  checkNames(names, facts);
};

function checkNames(names: readonly string[], { check, context }: RuleFacts): void {
  const path = 'spec.resources.device_names';
  if (check.failed(path)) return;
  const known = new Set(context.deviceNames);
  const seen = new Set<string>();
  names.forEach((name, index) => {
    if (seen.has(name)) check.violate(`${path}[${index}]`, `${show(name)}: named twice`);
    else if (!known.has(name)) {
      const devices = known.size === 0 ? 'no devices' : [...known].join(', ');
      check.violate(`${path}[${index}]`, `${show(name)}: unknown; this host has ${devices}`);
    }
    seen.add(name);
  });
}

/** Tables to sample by edge weight are made, and have no file to stay in. */
export const topologyRule: Rule = ({ resources, sampling }, { check }) => {
  if (resources.topology !== 'FILE' || sampling.algorithm !== 'KHOP_WEIGHTED') return;
  const expected = 'expected AUTO or MEMORY for KHOP_WEIGHTED, whose tables are in memory';
  check.violate('spec.resources.topology', `FILE: ${expected}`);
};

/** How many of the devices sample, where the spec says so. */
export const samplersRule: Rule = ({ placement, resources }, { check, given }) => {
  const path = 'spec.placement.samplers';
  if (placement.policy !== 'FIXED' || check.failed('spec.resources')) return;
  if (check.failed(path)) return;
  const most = resources.devices;
  const asked = given.placement?.samplers;
  if (most < 2) {
    check.violate('spec.placement.policy', 'FIXED: expected at least 2 devices to split');
  } else if (asked === undefined) {
    check.violate(path, `required for policy FIXED: an integer from 1 to ${most}`);
  }
};

/** A step needs the records of all its batches. */
export const queueRule: Rule = ({ queue, training }, { check }) => {
  const { batchesPerStep } = training;
  if (queue.capacity === 0 || queue.capacity >= batchesPerStep) return;
  check.violate(
    'spec.queue.capacity',
    `${queue.capacity}: expected at least ${batchesPerStep}, training.batches_per_step, ` +
      'because a step needs all its batches at once',
  );
};
