import type { JobRecord } from '../records/job-record.ts';
import { freshTally } from '../scheduler/restart.ts';
import type { Tally } from '../scheduler/state.ts';
import type { Store } from '../store/store.ts';

/** What jobs have used up of their budgets, as stored: a restart of the daemon resets nothing. */

export function storedTally(store: Pick<Store, 'getMeta'>, job: JobRecord): Tally {
  const stored = store.getMeta(keyOf(job));
  const tally: Tally = { ...freshTally, ...(stored === null ? {} : JSON.parse(stored)) };
  // An attempt that died with the daemon was never judged; its number is used up all the same.
  return { ...tally, attempt: job.attempts.at(-1)?.number ?? 0 };
}

export function storeTally(
  store: Pick<Store, 'setMeta'>,
  job: JobRecord | null,
  tally: Tally,
): void {
  store.setMeta(keyOf(job), JSON.stringify(tally));
}

function keyOf(job: JobRecord | null): string {
  return `tally:${job?.uid ?? ''}`;
}
