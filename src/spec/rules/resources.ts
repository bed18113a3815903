import { automaticKind, coresAlone } from '../automatic-kind.ts';
import {
  type DeviceKind,
  deviceKindOf,
  devicesOfKind,
  hasOwnMemory,
  onlySamplersOf,
  trainsInOwnMemory,
  wholeDeviceOf,
} from '../device-kinds.ts';
import type { SpecDraft } from '../job-spec.ts';
import { automaticCores } from '../limits.ts';
import { whyFloat32 } from '../precision.ts';
import { show } from '../spec-checker.ts';
import { reads } from '../spec-parts.ts';
import type { ResolveContext, Rule, RuleFacts } from './rule.ts';

/** CPU devices with up to `automaticCores` together, at least one; one device of other kinds. */
function defaultDevices(names: readonly string[], { deviceNames, deviceCores }: ResolveContext) {
  let devices = 0;
  let cores = 0;
  for (const name of names) {
    if (deviceKindOf(name) !== 'CPU') break;
    cores += deviceCores[deviceNames.indexOf(name)] ?? 0;
    if (cores > automaticCores) break;
    devices += 1;
  }
  return Math.max(1, devices);
}

/** Devices of this host: a number of them of one kind, or some by their names. */
export const devicesRule: Rule = (spec, facts) => {
  if (spec.resources.deviceNames.length === 0) countDevices(spec, facts);
  else nameDevices(spec, facts);
};

function countDevices({ resources, training }: SpecDraft, { check, given, context }: RuleFacts) {
  const path = 'spec.resources.devices';
  if (context.deviceNames.length === 0) check.violate(path, 'this host has no devices');
  if (check.failed('spec.resources.device_kind')) return;
  const isOpen = resources.deviceKind === 'AUTO';
  const kind =
    resources.deviceKind === 'AUTO' ? automaticKind(given, context) : resources.deviceKind;
  resources.deviceKind = kind;
  const names = devicesOfKind(context.deviceNames, kind);
  if (given.resources?.devices === undefined) {
    resources.devices = defaultDevices(names, context);
  }
  if (isOpen) return;
  const kindPath = 'spec.resources.device_kind';
  if (names.length === 0) {
    check.violate(kindPath, `${kind}: this host has no such device (gnnctl doctor says why)`);
  }
  const bits = new Set(names.map((name) => context.deviceBits?.get(name) ?? kind));
  if (bits.size > 1 && resources.devices > 1 && training.determinism !== 'RELAXED') {
    const expected = 'expected device_names of one of them, or determinism RELAXED';
    check.violate(path, `${resources.devices}: ${kind} devices here differ in bits; ${expected}`);
  }
}

function nameDevices(spec: SpecDraft, facts: RuleFacts): void {
  const { resources, training } = spec;
  const { check, given, context } = facts;
  const path = 'spec.resources.devices';
  const names = resources.deviceNames;
  const asked = given.resources?.devices;
  if (asked !== undefined && asked !== names.length && !check.failed(path)) {
    check.violate(
      path,
      `${show(asked)}: expected to be unset beside device_names, ` +
        `or their number, ${names.length}`,
    );
  }
  resources.devices = names.length;
  if (check.failed('spec.resources.device_names')) return;
  resources.deviceNames = logicalNames(names, facts);
  if (check.failed('spec.resources.device_names')) return;
  const kinds = new Set(resources.deviceNames.flatMap((name) => deviceKindOf(name) ?? []));
  checkKind(kinds, facts);
  const [kind = 'CPU'] = kinds;
  resources.deviceKind = kinds.size === 1 ? kind : 'AUTO';
  const bitsOf = (name: string) => context.deviceBits?.get(name) ?? deviceKindOf(name);
  const bits = new Set(resources.deviceNames.slice(onlySamplersOf(spec)).map(bitsOf));
  if (bits.size > 1 && training.determinism !== 'RELAXED') {
    const expected =
      'expected those that train to be of one kind (placement FIXED without standby Trainers has ' +
      'the first ones sample only), or determinism RELAXED';
    const which = [...bits].join('; ');
    check.violate('spec.resources.device_names', `they differ in bits (${which}): ${expected}`);
  }
}

function checkKind(kinds: ReadonlySet<DeviceKind>, { check, given }: RuleFacts): void {
  const wanted = given.resources?.deviceKind ?? 'AUTO';
  if (wanted !== 'AUTO' && [...kinds].some((kind) => kind !== wanted)) {
    const expected = 'expected the kind of device_names, or unset beside them';
    check.violate('spec.resources.device_kind', `${wanted}: ${expected}`);
  }
}

/** Refuses devices with their own memory to jobs that run on the CPU alone. */
export const deviceSupportRule: Rule = (spec, { check }) => {
  const { kind, resources, sampling, model, training } = spec;
  if (check.failed('spec.resources')) return;
  if (!hasOwnMemory(resources)) return;
  const expected = 'runs on CPU devices only; expected device_kind CPU';
  for (const part of [{ sampling }, { kind, model }, { kind, training }]) {
    const alone = coresAlone(part);
    if (alone !== null) check.violate(`spec.${alone.path}`, `${alone.value}: ${expected}`);
  }
};

/** Resolves in which numbers the job computes, after what decides where it trains. */
export const precisionRule: Rule = (spec, { check, context }) => {
  const { training } = spec;
  if (training.precision !== 'AUTO') return;
  const isOpen = reads({ kind: spec.kind }, 'training') && !check.failed('spec.resources');
  const isNarrow = isOpen && whyFloat32(spec, context) === null;
  training.precision = isNarrow ? 'BFLOAT16' : 'FLOAT32';
};

/** TF32 is what products of GPUs round to; simulated devices take it, and compute in float32. */
export const tf32Rule: Rule = (spec, { check }) => {
  const path = 'spec.training.precision';
  if (spec.training.precision !== 'TF32' || spec.model.type === 'TORCHSCRIPT') return;
  if (!reads({ kind: spec.kind }, 'training')) return;
  if (check.failed('spec.resources') || check.failed(path) || trainsInOwnMemory(spec)) return;
  const expected =
    'expected FLOAT32 or BFLOAT16, or GPUs for training (resources.device_kind CUDA)';
  check.violate(path, `TF32: CPU devices have no such products; ${expected}`);
};

/** The names as the host has them: `cuda:0` twice may be `cuda:0/0` and `cuda:0/1`. */
function logicalNames(names: readonly string[], { check, context }: RuleFacts): string[] {
  const path = 'spec.resources.device_names';
  const known = new Set(context.deviceNames);
  const seen = new Set<string>();
  return names.map((name, index) => {
    const parts = context.deviceNames.filter((device) => wholeDeviceOf(device) === name);
    const isWhole = !known.has(name) && parts.length > 0;
    const chosen = isWhole ? (parts.find((part) => !seen.has(part)) ?? name) : name;
    if (isWhole && chosen === name) {
      const many = `more often than its ${parts.length} logical devices`;
      check.violate(`${path}[${index}]`, `${show(name)}: named ${many}`);
    } else if (seen.has(chosen)) {
      check.violate(`${path}[${index}]`, `${show(name)}: named twice`);
    } else if (!known.has(chosen)) {
      const devices = known.size === 0 ? 'no devices' : [...known].join(', ');
      check.violate(`${path}[${index}]`, `${show(name)}: unknown; this host has ${devices}`);
    }
    seen.add(chosen);
    return chosen;
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
