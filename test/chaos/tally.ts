import type { Verdict } from '../support/ledger-history.ts';

/** What chaos did: faults by kind and phase, jobs by kind, violations. */

export class Tally {
  readonly #faults = new Map<string, Map<string, number>>();
  readonly #jobs = new Map<string, number>();
  readonly #histories = { segments: 0, changes: 0, steps: 0, deaths: 0, unsaid: 0 };
  readonly violations: string[] = [];
  rounds = 0;
  planned = 0;
  /** Hits that came after their job's end, or met nobody. */
  missed = 0;

  /** Counts a hit that met a process. */
  fault(kind: string, phase: string, count = 1): void {
    const phases = this.#faults.get(kind) ?? new Map<string, number>();
    phases.set(phase, (phases.get(phase) ?? 0) + count);
    this.#faults.set(kind, phases);
  }

  job(kind: string): void {
    this.#jobs.set(kind, (this.#jobs.get(kind) ?? 0) + 1);
  }

  /** What a segment's recorded history came to. */
  history({ changes, deaths, unsaid, version }: Verdict): void {
    this.#histories.segments += 1;
    this.#histories.changes += changes;
    this.#histories.deaths += deaths;
    this.#histories.unsaid += unsaid;
    this.#histories.steps += version;
  }

  /** Processes that were ended by a signal. */
  get kills(): number {
    let sum = 0;
    for (const [kind, phases] of this.#faults) {
      if (/^SIG|^daemon SIG|stalled/.test(kind)) sum += total(phases);
    }
    return sum;
  }

  get faults(): number {
    return [...this.#faults.values()].reduce((sum, phases) => sum + total(phases), 0);
  }

  /** A table in Markdown, and the sums. */
  report(): string {
    const phases = [
      ...new Set([...this.#faults.values()].flatMap((row) => [...row.keys()])),
    ].sort();
    const rows = [...this.#faults].sort(([a], [b]) => (a < b ? -1 : 1));
    const cells = (words: readonly (string | number)[]) => `| ${words.join(' | ')} |`;
    const { segments, changes, steps, deaths, unsaid } = this.#histories;
    const jobs = [...this.#jobs].map(([kind, count]) => `${kind} ${count}`).join(', ');
    return [
      cells(['fault', ...phases, 'all']),
      cells(['---', ...phases.map(() => '---'), '---']),
      ...rows.map(([kind, row]) =>
        cells([kind, ...phases.map((phase) => row.get(phase) ?? ''), total(row)]),
      ),
      `${this.rounds} rounds, jobs: ${jobs}`,
      `${this.planned} hits planned, ${this.missed} met nobody; ${this.faults} faults, ` +
        `${this.kills} processes killed; ${this.violations.length} violations`,
      `histories of ${segments} segments checked: ${changes} changes, ${steps} steps; ${deaths} ` +
        `executors reclaimed from, ${unsaid} changes of whom nobody could tell any more`,
      ...this.violations,
      '',
    ].join('\n');
  }
}

function total(row: ReadonlyMap<string, number>): number {
  return [...row.values()].reduce((sum, count) => sum + count, 0);
}
