import type { Clock } from '../base/clock.ts';
import { GnndError } from '../base/errors.ts';
import { integer, object, text } from './codec.ts';
import type { Database } from './database.ts';
import type { RequestKey, StoredRequest } from './store-types.ts';

/** Which calls were done, so that a repeated one has its effect only once. */
export interface RequestTable {
  find(method: string, requestId: string): StoredRequest | null;
  /** Null when there was none. Throws REQUEST_ID_REUSED when it was another request. */
  replayOf(key: RequestKey): StoredRequest | null;
  /**
   * Only in the transaction of the call's effect. Throws REQUEST_ID_REUSED. Forgets what is older
   * than a day, except about jobs that have not ended.
   */
  remember(key: RequestKey, resource: string, revision: number): void;
}

const keptMs = 24 * 60 * 60 * 1000;
/** Looking for old ones meets all that jobs in the queue were made by, so it is done seldom. */
const forgottenEveryMs = 60 * 60 * 1000;

const storedRequest = object({ sha256: text, resource: text, revision: integer, at_ms: integer });

export function requestTable(database: Database, clock: Clock): RequestTable {
  const select = database.prepare(
    'SELECT sha256, resource, revision, at_ms FROM requests WHERE method = ? AND request_id = ?',
  );
  const insert = database.prepare('INSERT INTO requests VALUES (?, ?, ?, ?, ?, ?)');
  const forget = database.prepare(
    `DELETE FROM requests WHERE at_ms < ? AND NOT EXISTS (
       SELECT 1 FROM jobs
       WHERE resource LIKE 'jobs/%' AND jobs.id = substr(resource, 6)
       AND state NOT IN ('SUCCEEDED', 'FAILED', 'CANCELLED')
     )`,
  );
  let forgottenAtMs = Number.NEGATIVE_INFINITY;
  const find: RequestTable['find'] = (method, requestId) => {
    const row = database.get(select, method, requestId);
    if (row === null) return null;
    const { at_ms: atMs, ...stored } = storedRequest(row, `request ${method} ${requestId}`);
    return { ...stored, atMs };
  };
  return {
    find,
    replayOf({ method, requestId, sha256 }) {
      const first = find(method, requestId);
      if (first !== null && first.sha256 !== sha256) throw reused(requestId, first);
      return first;
    },
    remember({ method, requestId, sha256 }, resource, revision) {
      const nowMs = clock.wallMs();
      if (nowMs - forgottenAtMs >= forgottenEveryMs) {
        database.run(forget, nowMs - keptMs);
        forgottenAtMs = nowMs;
      }
      const first = find(method, requestId);
      if (first !== null) throw reused(requestId, first);
      database.run(insert, method, requestId, sha256, resource, revision, nowMs);
    },
  };
}

function reused(requestId: string, first: StoredRequest): GnndError {
  return new GnndError(
    'REQUEST_ID_REUSED',
    `request id ${requestId} was already used for ${first.resource}`,
    {
      resource: first.resource,
      metadata: {
        firstUsedTime: new Date(first.atMs).toISOString(),
        resource: first.resource,
      },
    },
  );
}
