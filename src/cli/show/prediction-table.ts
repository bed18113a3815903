import { formatCount } from '../../spec/counted.ts';
import type { Session } from '../session/session.ts';
import { printable } from '../session/terminal.ts';
import { type Column, tableOf } from './output.ts';

/** Rows of a predictions.csv as its pieces come: the first are kept, all are counted. */
export class PredictionTable {
  #rest = '';
  #columns: readonly string[] = [];
  readonly #head: (readonly string[])[] = [];
  readonly #counts = new Map<string, number>();
  #rows = 0;

  take(text: string): void {
    this.#rest += text;
    let start = 0;
    for (let from = 0; ; ) {
      const end = this.#rest.indexOf('\n', from);
      if (end < 0) break;
      from = end + 1;
      const record = this.#rest.slice(start, end);
      // Within a name that has a line's end in it there is an odd number of quotes so far.
      if ((record.split('"').length - 1) % 2 === 1) continue;
      this.#see(fieldsOf(record));
      start = from;
    }
    this.#rest = this.#rest.slice(start);
  }

  get rows(): number {
    return this.#rows;
  }

  /** Whether a row is a pair of nodes with its score. */
  get hasScores(): boolean {
    return this.#columns.includes('score');
  }

  #see(fields: readonly string[]): void {
    if (this.#columns.length === 0) {
      this.#columns = fields;
      return;
    }
    this.#rows += 1;
    if (this.#head.length < headRows) this.#head.push(fields);
    for (const name of this.#classesOf(fields)) {
      if (name !== '') this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
    }
  }

  #at(fields: readonly string[], column: string): string {
    return fields[this.#columns.indexOf(column)] ?? '';
  }

  /** The node's class; with several labels, those that it has; with numbers, none. */
  #classesOf(fields: readonly string[]): readonly string[] {
    const one = this.#at(fields, 'class') || this.#at(fields, 'prediction');
    if (one !== '' || !this.#isLabelled(fields)) return [one];
    return this.#labels(fields).flatMap((value, label) => (value === '1' ? [`${label}`] : []));
  }

  #labels(fields: readonly string[]): readonly string[] {
    return fields.filter((_, at) => /^prediction_\d+$/.test(this.#columns[at] ?? ''));
  }

  #isLabelled(fields: readonly string[]): boolean {
    const labels = this.#labels(fields);
    return this.#columns.includes('probabilities_0') && labels.length > 0;
  }

  /** The first rows, as people read them. */
  headText(session: Session): string {
    if (this.hasScores) return this.#scoresText(session);
    const id = this.#columns.includes('id') ? 'id' : 'node';
    const columns: Column<readonly string[]>[] = [
      { title: id.toUpperCase(), shown: (row) => printable(this.#at(row, id)) },
      { title: this.#title(), shown: (row) => printable(this.#predictionOf(row)) },
      { title: 'PROBABILITY', align: 'right', shown: (row) => this.#probabilityOf(row) },
      { title: 'EMBEDDING', shown: (row) => this.#embeddingOf(row) },
    ];
    const isGiven = ({ shown }: Column<readonly string[]>) =>
      this.#head.some((row) => shown(row) !== '');
    return tableOf(session, columns.filter(isGiven), this.#head);
  }

  /** Every column, but numbers of nodes that have ids. */
  #scoresText(session: Session): string {
    const hasIds = this.#columns.some((name) => /^(.*_)?id$/.test(name));
    const numbers = hasIds ? ['node', 'nearest', 'source', 'destination'] : [];
    const shown = this.#columns.filter((name) => !numbers.includes(name));
    const columns = shown.map((name): Column<readonly string[]> => {
      const text = (row: readonly string[]) => printable(this.#at(row, name));
      return { title: name.toUpperCase(), shown: text };
    });
    return tableOf(session, columns, this.#head);
  }

  #title(): string {
    const [row = []] = this.#head;
    if (this.#columns.includes('prediction')) return 'CLASS';
    return this.#isLabelled(row) ? 'LABELS' : 'PREDICTION';
  }

  #predictionOf(row: readonly string[]): string {
    if (this.#columns.includes('prediction') || this.#isLabelled(row)) {
      return this.#classesOf(row).join(', ') || 'none';
    }
    return this.#labels(row).join(', ');
  }

  #probabilityOf(row: readonly string[]): string {
    const share = this.#at(row, `probabilities_${this.#at(row, 'prediction')}`);
    return share === '' ? '' : Number(share).toFixed(3);
  }

  /** Its first numbers. */
  #embeddingOf(fields: readonly string[]): string {
    const numbers = fields.filter((_, at) => /^embeddings_\d+$/.test(this.#columns[at] ?? ''));
    const shown = numbers.slice(0, shownNumbers).map((text) => Number(text).toPrecision(3));
    return [...shown, ...(numbers.length > shownNumbers ? ['…'] : [])].join(' ');
  }

  /** How many nodes each class has, the most frequent first. */
  countsText(): string {
    return textOfCounts(this.#counts);
  }
}

/** The most frequent first; of many only those. */
export function textOfCounts(counts: ReadonlyMap<string, number>): string {
  const all = [...counts].sort(([, a], [, b]) => b - a);
  const shown = all.slice(0, countedMax).map(([name, n]) => `${printable(name)} ${formatCount(n)}`);
  const others = all.length - shown.length;
  return [...shown, ...(others > 0 ? [`and ${others} more`] : [])].join(', ');
}

const headRows = 10;
const shownNumbers = 6;
const countedMax = 12;

/** Fields of one record, which is given without its line's end. */
function fieldsOf(record: string): readonly string[] {
  const line = record.replace(/\r$/, '');
  if (!line.includes('"')) return line.split(',');
  return [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^",]*))/g)].map(
    ([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain ?? '',
  );
}
