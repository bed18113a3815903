import Sqlite from 'better-sqlite3';

/** The task of `checkInBackground`: reads one table after the other, and says what it found. */

export type FileFindings =
  | { readonly kind: 'WHOLE'; readonly tables: number }
  | { readonly kind: 'DAMAGED'; readonly problems: readonly string[] };

const problemsMax = 10;

function problemsIn(path: string): { readonly tables: number; readonly problems: string[] } {
  const connection = new Sqlite(path, { readonly: true });
  try {
    const tables = connection
      .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
      .pluck()
      .all()
      .map(String);
    const problems: string[] = [];
    for (const table of tables) {
      // A read of its own each: the log cannot be moved into the file while one lasts.
      const lines = connection.prepare(`PRAGMA quick_check('${table}')`).pluck().all().map(String);
      problems.push(...lines.filter((line) => line !== 'ok').map((line) => `${table}: ${line}`));
      if (problems.length >= problemsMax) break;
    }
    return { tables: tables.length, problems: problems.slice(0, problemsMax) };
  } finally {
    connection.close();
  }
}

export function checkFile(path: string): FileFindings {
  try {
    const { tables, problems } = problemsIn(path);
    return problems.length === 0 ? { kind: 'WHOLE', tables } : { kind: 'DAMAGED', problems };
  } catch (error) {
    // Damage can be such that not even the check gets through.
    const isDamage = error instanceof Sqlite.SqliteError && /CORRUPT|NOTADB/.test(error.code);
    if (!isDamage) throw error;
    return { kind: 'DAMAGED', problems: [error.message] };
  }
}
