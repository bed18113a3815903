import { text } from './codec.ts';
import type { Database } from './database.ts';

/** Small facts about the store itself. */
export interface MetaTable {
  get(key: string): string | null;
  /** Only inside a transaction. */
  set(key: string, value: string): void;
}

export function metaTable(database: Database): MetaTable {
  const select = database.prepare('SELECT value FROM meta WHERE key = ?');
  const upsert = database.prepare(
    'INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value',
  );
  return {
    get(key) {
      const row = database.get(select, key);
      return row === null ? null : text(row['value'], `meta.${key}`);
    },
    set(key, value) {
      database.run(upsert, key, value);
    },
  };
}
