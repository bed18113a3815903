import type { FamilyDeclaration } from './families.ts';

/** The series of declared families: names and labels are checked by the compiler. */

type Families = Readonly<Record<string, FamilyDeclaration>>;

/** Exactly the labels that the family declares, with the values it allows. */
export type LabelsOf<F extends FamilyDeclaration> = {
  readonly [L in keyof F['labels']]: F['labels'][L] extends readonly (infer V)[] ? V : string;
};

type NamesOf<F extends Families, T extends FamilyDeclaration['type']> = {
  [N in keyof F & string]: F[N]['type'] extends T ? N : never;
}[keyof F & string];

interface Distribution {
  /** Per bucket, not cumulative; the last one is for what is above all bounds. */
  readonly counts: readonly number[];
  readonly sum: number;
}

/** One line of a family, its name aside. */
export interface Sample {
  /** For example `_bucket`; empty for the family's own name. */
  readonly suffix: string;
  readonly labels: readonly (readonly [name: string, value: string])[];
  readonly value: number;
}

interface Series<V> {
  readonly labels: readonly (readonly [string, string])[];
  value: V;
}

export class SeriesTable<F extends Families> {
  readonly #declarations: F;
  readonly #numbers = new Map<string, Map<string, Series<number>>>();
  readonly #distributions = new Map<string, Map<string, Series<Distribution>>>();

  constructor(declarations: F) {
    this.#declarations = declarations;
  }

  set<N extends NamesOf<F, 'counter' | 'gauge'>>(
    name: N,
    labels: LabelsOf<F[N]>,
    value: number,
  ): void {
    this.#number(name, labels).value = value;
  }

  add<N extends NamesOf<F, 'counter'>>(name: N, labels: LabelsOf<F[N]>, value = 1): void {
    this.#number(name, labels).value += value;
  }

  observe<N extends NamesOf<F, 'histogram'>>(name: N, labels: LabelsOf<F[N]>, value: number): void {
    const series = this.#distribution(name, labels);
    const { bounds } = this.#declaration(name);
    const above = bounds.findIndex((bound) => value <= bound);
    const bucket = above === -1 ? bounds.length : above;
    series.value = {
      counts: series.value.counts.map((count, i) => (i === bucket ? count + 1 : count)),
      sum: series.value.sum + value,
    };
  }

  /** Replaces a histogram by counts that were made elsewhere: one per bound, one for the rest. */
  setRaw<N extends NamesOf<F, 'histogram'>>(
    name: N,
    labels: LabelsOf<F[N]>,
    raw: Distribution,
  ): void {
    const { bounds } = this.#declaration(name);
    if (raw.counts.length !== bounds.length + 1) {
      throw new RangeError(
        `${name} has ${bounds.length + 1} buckets, got ${raw.counts.length} counts`,
      );
    }
    this.#distribution(name, labels).value = { counts: [...raw.counts], sum: raw.sum };
  }

  /** Removes all series but those of the family `kept`. */
  clearExcept(kept: keyof F & string): void {
    for (const table of [this.#numbers, this.#distributions]) {
      for (const name of table.keys()) {
        if (name !== kept) table.delete(name);
      }
    }
  }

  /** Gives every combination of listed label values a series; `fixed` stands in for the others. */
  initialize(name: keyof F & string, fixed: Readonly<Record<string, string>> = {}): void {
    const declaration = this.#declaration(name);
    let combinations: Readonly<Record<string, string>>[] = [{}];
    for (const [label, values] of Object.entries(declaration.labels)) {
      const given = fixed[label];
      const choices = given === undefined ? values : [given];
      if (choices === null) return;
      combinations = combinations.flatMap((labels) =>
        choices.map((value) => ({ ...labels, [label]: value })),
      );
    }
    for (const labels of combinations) {
      if (declaration.type === 'histogram') this.#distribution(name, labels);
      else this.#number(name, labels);
    }
  }

  samples(name: keyof F & string): Sample[] {
    const numbers = [...(this.#numbers.get(name)?.values() ?? [])].map(
      ({ labels, value }): Sample => ({ suffix: '', labels, value }),
    );
    const distributions = [...(this.#distributions.get(name)?.values() ?? [])].flatMap((series) =>
      distributionSamples(this.#declaration(name).bounds, series),
    );
    return [...numbers, ...distributions];
  }

  #declaration(name: keyof F & string): FamilyDeclaration {
    const declaration = this.#declarations[name];
    if (declaration === undefined) throw new RangeError(`no metric family is named ${name}`);
    return declaration;
  }

  #number(name: keyof F & string, labels: object): Series<number> {
    return entry(this.#numbers, name, this.#ordered(name, labels), 0);
  }

  #distribution(name: keyof F & string, labels: object): Series<Distribution> {
    const counts = new Array<number>(this.#declaration(name).bounds.length + 1).fill(0);
    return entry(this.#distributions, name, this.#ordered(name, labels), { counts, sum: 0 });
  }

  /** In the order of the declaration, whatever the caller's was. */
  #ordered(name: keyof F & string, labels: object): readonly (readonly [string, string])[] {
    const given = new Map<string, unknown>(Object.entries(labels));
    return Object.keys(this.#declaration(name).labels).map((label) => {
      const value = given.get(label);
      if (typeof value !== 'string') throw new TypeError(`${name} lacks the label ${label}`);
      return [label, value] as const;
    });
  }
}

function entry<V>(
  table: Map<string, Map<string, Series<V>>>,
  name: string,
  labels: readonly (readonly [string, string])[],
  initial: V,
): Series<V> {
  let family = table.get(name);
  if (family === undefined) {
    family = new Map();
    table.set(name, family);
  }
  const key = JSON.stringify(labels);
  let series = family.get(key);
  if (series === undefined) {
    series = { labels, value: initial };
    family.set(key, series);
  }
  return series;
}

function distributionSamples(
  bounds: readonly number[],
  { labels, value }: Series<Distribution>,
): Sample[] {
  let total = 0;
  const buckets = value.counts.map((count, i): Sample => {
    total += count;
    const bound = bounds[i] ?? Number.POSITIVE_INFINITY;
    return { suffix: '_bucket', labels: [...labels, ['le', boundText(bound)]], value: total };
  });
  return [
    ...buckets,
    { suffix: '_sum', labels, value: value.sum },
    { suffix: '_count', labels, value: total },
  ];
}

/** OpenMetrics wants bounds to look like floating point numbers; the text format does not mind. */
function boundText(bound: number): string {
  if (bound === Number.POSITIVE_INFINITY) return '+Inf';
  return Number.isInteger(bound) ? `${bound}.0` : String(bound);
}
