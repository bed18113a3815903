import type { Clock } from '../base/clock.ts';
import { GnndError } from '../base/errors.ts';
import type { OperationRecord } from '../records/dataset-record.ts';
import { float, fromJson, integer, nullable, object, oneOf, text, toJson } from './codec.ts';
import type { Database, Row } from './database.ts';
import type { EventTable } from './event-table.ts';
import type { RequestTable } from './request-table.ts';
import { operationFailure, operationValidation } from './shapes.ts';
import type { OperationChange, OperationEnd, OperationStore } from './store-types.ts';

export interface OperationTableParts {
  readonly database: Database;
  readonly clock: Clock;
  readonly events: EventTable;
  readonly requests: RequestTable;
}

type Progress = Pick<OperationRecord, 'progress' | 'message'>;

const operationRow = object({
  id: text,
  kind: oneOf(['ImportDataset', 'ValidateDataset', 'PropagateDataset']),
  target: text,
  done: integer,
  progress: float,
  message: text,
  create_at_ms: integer,
  end_at_ms: nullable(integer),
  error: nullable(fromJson(operationFailure)),
  validation: nullable(fromJson(operationValidation)),
  resource: text,
});

export function operationTable(parts: OperationTableParts): OperationStore {
  const { database, clock, events, requests } = parts;
  const select = database.prepare('SELECT * FROM operations WHERE id = ?');
  const selectOpen = database.prepare('SELECT * FROM operations WHERE done = 0 ORDER BY id');
  const insert = database.prepare(
    "INSERT INTO operations VALUES (?, ?, ?, 0, 0, '', ?, NULL, NULL, NULL, ?)",
  );
  const finish = database.prepare(
    `UPDATE operations SET done = 1, progress = ?, message = ?, end_at_ms = ?, error = ?,
       validation = ? WHERE id = ?`,
  );
  /** Progress of operations that have not ended. */
  const running = new Map<string, Progress>();

  const withProgress = (record: OperationRecord): OperationRecord =>
    record.done ? record : { ...record, ...running.get(record.id) };

  const get = (id: string): OperationRecord | null => {
    const row = database.get(select, id);
    return row === null ? null : withProgress(recordOf(row));
  };

  const need = (id: string): OperationRecord => {
    const record = get(id);
    if (record !== null) return record;
    throw new GnndError('OPERATION_NOT_FOUND', `there is no operation ${id}`, {
      resource: `operations/${id}`,
    });
  };

  const end = (id: string, { progress, message }: Progress, how: OperationEnd): void => {
    const { error, validation } = how;
    database.write('OPERATION', 'ALL', () =>
      database.run(
        finish,
        ...[error === null ? 1 : progress, message, clock.wallMs()],
        error === null ? null : toJson(error, operationFailure, `error of operation ${id}`),
        validation === null
          ? null
          : toJson(validation, operationValidation, `report of operation ${id}`),
        id,
      ),
    );
  };

  return {
    insertOperation: ({ id, kind, target, resource = '' }, request) =>
      database.write('OPERATION', 'ALL', () => {
        database.run(insert, id, kind, target, clock.wallMs(), resource);
        if (request !== undefined) {
          requests.remember(request, `operations/${id}`, events.revision());
        }
        return need(id);
      }),
    updateOperation(id, change) {
      const current = need(id);
      if (current.done) throw new GnndError('INTERNAL', `operation ${id} has ended`);
      const progress = progressed(current, change);
      if (change.end === undefined) {
        running.set(id, progress);
        return { ...current, ...progress };
      }
      end(id, progress, change.end);
      running.delete(id);
      return need(id);
    },
    getOperation: get,
    unfinishedOperations: () => database.all(selectOpen).map((row) => withProgress(recordOf(row))),
  };
}

function progressed(current: Progress, change: OperationChange): Progress {
  return {
    progress: change.progress ?? current.progress,
    message: change.message ?? current.message,
  };
}

function recordOf(row: Row): OperationRecord {
  const stored = operationRow(row, `operation ${String(row['id'])}`);
  return {
    id: stored.id,
    kind: stored.kind,
    target: stored.target,
    done: stored.done !== 0,
    progress: stored.progress,
    message: stored.message,
    createAtMs: stored.create_at_ms,
    endAtMs: stored.end_at_ms,
    error: stored.error,
    resource: stored.resource,
    validation: stored.validation,
  };
}
