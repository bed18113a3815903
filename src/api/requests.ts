import { type FieldViolation, GnndError, someOf } from '../base/errors.ts';
import { idPattern, idRule } from '../spec/limits.ts';

/** What all handlers ask of a request's fields. */

/** A request that can be refused before any work: INVALID_ARGUMENT with all violations. */
export function invalidRequest(violations: readonly FieldViolation[]): GnndError {
  const message = `invalid request: ${someOf(violations.map(({ path }) => path))}`;
  return new GnndError('SPEC_INVALID', message, { violations });
}

/** What is wrong with the id of a new resource; null when nothing is. */
export function idViolation(path: string, id: string): FieldViolation | null {
  if (idPattern.test(id)) return null;
  return { path, description: `${JSON.stringify(id.slice(0, 80))}: expected an id: ${idRule}` };
}

type Collection = 'jobs' | 'datasets' | 'operations' | 'propagations';

/** The id in a name such as `jobs/mine`. Operation ids have the same form as the others. */
export function idOfName(collection: Collection, name: string): string {
  const prefix = `${collection}/`;
  const id = name.startsWith(prefix) ? name.slice(prefix.length) : '';
  if (/^[A-Za-z0-9-]{1,63}$/.test(id)) return id;
  const shown = JSON.stringify(name.slice(0, 80));
  throw invalidRequest([{ path: 'name', description: `${shown}: expected ${prefix}{id}` }]);
}

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** The request id in lower case; null when none was sent. Throws REQUEST_ID_INVALID. */
export function requestIdOf(requestId: string): string | null {
  if (requestId === '') return null;
  if (uuidPattern.test(requestId)) return requestId.toLowerCase();
  const shown = JSON.stringify(requestId.slice(0, 80));
  throw new GnndError('REQUEST_ID_INVALID', `request_id ${shown} is not a UUID`, {
    violations: [{ path: 'request_id', description: `${shown}: expected a UUID, 36 characters` }],
  });
}

const pageSizeDefault = 50;
const pageSizeMax = 500;

/** 0 is the default, more than the most is the most; negative is an error. */
export function pageSizeOf(pageSize: number): number {
  notNegative('page_size', pageSize);
  return pageSize === 0 ? pageSizeDefault : Math.min(pageSize, pageSizeMax);
}

export function notNegative(path: string, value: number): void {
  if (value >= 0) return;
  throw invalidRequest([{ path, description: `${value}: expected 0 or more` }]);
}
