import { expect, test } from 'vitest';
import { withMeant } from '../../../src/api/meant.ts';
import { type ErrorReason, GnndError } from '../../../src/base/errors.ts';

type Known = Parameters<typeof withMeant>[1];

function known(ids: readonly string[]): Known {
  const named = ids.map((id) => ({ id, name: id }));
  return {
    jobs: { list: () => ({ jobs: named, next: null }) },
    datasets: { list: () => ({ datasets: named, nextId: null }) },
    host: { devices: () => named },
  } as unknown as Known;
}

function saidOf(reason: ErrorReason, resource: string, ids: readonly string[]): string {
  const error = new GnndError(reason, 'there is none', { resource });
  return (withMeant(error, known(ids)) as GnndError).message;
}

test.each<readonly [ErrorReason, string, string]>([
  ['JOB_NOT_FOUND', 'jobs/frist', 'first'],
  ['DATASET_NOT_FOUND', 'datasets/coar', 'cora'],
  ['DEVICE_NOT_FOUND', 'devices/cpu0', 'cpu:0'],
])('%s names what may be meant', (reason, resource, meant) => {
  const names = ['first', 'cora', 'cpu:0', 'something-else'];
  expect(saidOf(reason, resource, names)).toBe(`there is none; did you mean ${meant}?`);
});

test('nothing is added where nothing is near, nor to other errors', () => {
  expect(saidOf('JOB_NOT_FOUND', 'jobs/first', ['quite-another'])).toBe('there is none');
  expect(saidOf('JOB_NOT_FOUND', 'jobs/first', ['first'])).toBe('there is none');
  expect(saidOf('JOB_NOT_FOUND', 'jobs/first', [])).toContain('there is none at all yet');
  expect(saidOf('JOB_STATE_CONFLICT', 'jobs/frist', ['first'])).toBe('there is none');
  const bug = new Error('a bug');
  expect(withMeant(bug, known(['a']))).toBe(bug);
});

test('names that cannot be had leave the error as it was', () => {
  const error = new GnndError('JOB_NOT_FOUND', 'there is none', { resource: 'jobs/a' });
  const broken = {
    ...known([]),
    jobs: {
      list() {
        throw new Error('the store is gone');
      },
    },
  } as unknown as Known;
  expect(withMeant(error, broken)).toBe(error);
});
