import { type ErrorReason, GnndError } from '../base/errors.ts';
import type { Datasets } from '../datasets/datasets.ts';
import type { Jobs } from '../jobs/jobs.ts';
import { nearestOf } from '../spec/nearest.ts';
import type { HostView } from './host-handlers.ts';

interface Known {
  readonly jobs: Pick<Jobs, 'list'>;
  readonly datasets: Pick<Datasets, 'list'>;
  readonly host: Pick<HostView, 'devices'>;
}

/** The newest jobs, or the first datasets, among which a mistyped id is looked for. */
const lookedThroughMax = 500;

const namesOf: Readonly<Partial<Record<ErrorReason, (known: Known) => readonly string[]>>> = {
  JOB_NOT_FOUND: ({ jobs }) =>
    jobs.list({ limit: lookedThroughMax, after: null, states: [] }).jobs.map(({ id }) => id),
  DATASET_NOT_FOUND: ({ datasets }) =>
    datasets.list({ limit: lookedThroughMax, afterId: null }).datasets.map(({ id }) => id),
  DEVICE_NOT_FOUND: ({ host }) => host.devices().map(({ name }) => name),
};

/** The same error, with the name that may be meant where one is not known. */
export function withMeant(error: unknown, known: Known): unknown {
  if (!(error instanceof GnndError) || error.message.includes('did you mean')) return error;
  const names = namesIn(error.reason, known);
  if (names === null) return error;
  const given = (error.resource ?? '').replace(/^\w+\//, '');
  const meant = nearestOf(given, names);
  // What was deleted meanwhile is still listed.
  if (names.includes(given) || (meant === null && names.length > 0)) return error;
  const hint = meant === null ? 'there is none at all yet' : `did you mean ${meant}?`;
  const { violations, resource, metadata, cause } = error;
  const details = { violations, metadata, cause, ...(resource === null ? {} : { resource }) };
  return new GnndError(error.reason, `${error.message}; ${hint}`, details);
}

/** Null where there are no names, or they cannot be had: a hint is a courtesy. */
function namesIn(reason: ErrorReason, known: Known): readonly string[] | null {
  try {
    return namesOf[reason]?.(known) ?? null;
  } catch {
    return null;
  }
}
