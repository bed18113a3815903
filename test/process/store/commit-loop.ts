import { writeSync } from 'node:fs';
import { systemClock } from '../../../src/base/clock.ts';
import { createLog } from '../../../src/base/log.ts';
import { assertTransition } from '../../../src/jobs/job-state.ts';
import { openStore } from '../../../src/store/store.ts';
import { epochReport, newJob } from '../../unit/store/job-values.ts';

/**
 * Commits for ever and says on its standard output what it has committed, one JSON line each, after
 * the commit has returned. It is there to be killed.
 */
const path = process.argv[2] ?? '';
const store = openStore(path, {
  clock: systemClock,
  log: createLog({ level: 'error' }),
  assertTransition,
});

const acknowledge = (line: object) => writeSync(1, `${JSON.stringify(line)}\n`);

for (let i = 0; ; i++) {
  const id = `j${store.incarnation}-${i}`;
  const request = { method: 'CreateJob', requestId: `r-${id}`, sha256: 'aa' };
  acknowledge({ id, revision: store.insertJob(newJob(id), request).revision });
  const preparing = store.atomically(() => {
    store.openAttempt(id);
    return store.transition(id, { state: 'PREPARING' });
  });
  acknowledge({ id, revision: preparing.revision, state: 'PREPARING' });
  store.recordEpochs(id, 1, [epochReport(0)]);
  acknowledge({ id, epochs: 1 });
}
