import { type DeviceKind, devicesOfKind } from './device-kinds.ts';
import type { JobSpec, JobSpecInput } from './job-spec.ts';
import { kindOf } from './model-kinds.ts';
import type { ResolveContext } from './rules/rule.ts';
import { defaultOf } from './spec-fields.ts';
import { reads } from './spec-parts.ts';

/**
 * On which kind of devices a job runs that leaves that open: GPUs where the host has fit ones and
 * all of the job runs there, else cores; simulated devices never. Decided when the job is created,
 * since kinds differ in bits.
 */
export function automaticKind(
  asked: JobSpecInput,
  { deviceNames, deviceBits }: Pick<ResolveContext, 'deviceNames' | 'deviceBits'>,
): Extract<DeviceKind, 'CPU' | 'CUDA'> {
  const names = devicesOfKind(deviceNames, 'CUDA');
  const devices = asked.resources?.devices ?? 1;
  // A number that is none is refused elsewhere.
  const areEnough = names.length > 0 && names.length >= devices;
  if (!areEnough || coresAlone(asked) !== null || reads({ task: asked.task }, 'links')) {
    return 'CPU';
  }
  const bits = new Set(names.map((name) => deviceBits?.get(name)));
  const isStrict = asked.training?.determinism !== 'RELAXED';
  return isStrict && devices > 1 && bits.size > 1 ? 'CPU' : 'CUDA';
}

type Placeable = Pick<JobSpecInput, 'kind' | 'sampling' | 'model' | 'training'>;

/** Field of a job that makes it run on the CPU alone; null: there is none. */
export function coresAlone({ kind, sampling, model, training }: Placeable): {
  readonly path: string;
  readonly value: string;
} | null {
  const algorithm = sampling?.algorithm ?? defaultOf<string>('sampling.algorithm');
  if (algorithm === 'KHOP_PLUGIN') return { path: 'sampling.algorithm', value: algorithm };
  const maxScale = sampling?.locality?.maxScale ?? 1;
  if (maxScale > 1 && reads({ kind }, 'sampling.locality')) {
    return { path: 'sampling.locality.max_scale', value: `max_scale ${maxScale}` };
  }
  if (training?.determinism === 'PORTABLE' && reads({ kind }, 'training')) {
    return { path: 'training.determinism', value: 'PORTABLE' };
  }
  const type = model?.type ?? defaultOf<JobSpec['model']['type']>('model.type');
  const predictsRows = !reads({ kind }, 'training') && reads({ model: { type } }, 'propagation');
  if (kindOf(type).coresAlone || predictsRows) return { path: 'model.type', value: type };
  return null;
}

/** How the kind of a job's devices came about, for people; empty where the job names devices. */
export function kindText(given: JobSpecInput, { resources, ...spec }: JobSpec): string {
  if (resources.deviceNames.length > 0) return '';
  const kind = resources.deviceKind;
  if ((given.resources?.deviceKind ?? 'AUTO') !== 'AUTO') return `${kind}, as asked for`;
  if (kind === 'CUDA') return 'CUDA, chosen: the host has GPUs on which all of the job runs';
  if (reads({ task: spec.task }, 'links')) return `${kind}, chosen: links have not run on a GPU`;
  const alone = coresAlone(spec);
  const why =
    alone === null
      ? 'the host had no fit GPU, or fewer than asked for (gnnctl device list, gnnctl doctor)'
      : `${alone.value} runs on CPU devices alone`;
  return `${kind}, chosen: ${why}`;
}
