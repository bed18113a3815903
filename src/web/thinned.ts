/**
 * Points of a chart in bounded memory, whatever their number: when there are more than the chart
 * has room for, every two become their mean, and so on. Nothing is sampled away, only averaged.
 */
export class Thinned {
  readonly #capacity: number;
  readonly #columns: (number | null)[][];
  /** How many values each point is the mean of. */
  #stride = 1;
  /** Values that do not fill a point yet. */
  #open: Sum[];
  #openCount = 0;
  #count = 0;

  /** `capacity` points, an even number. */
  constructor(columns: number, capacity: number) {
    this.#capacity = capacity;
    this.#columns = Array.from({ length: columns }, () => []);
    this.#open = newSums(columns);
  }

  /** Values that were added so far. */
  get count(): number {
    return this.#count;
  }

  get stride(): number {
    return this.#stride;
  }

  /** One value per column; null where there is none. */
  add(values: readonly (number | null)[]): void {
    this.#count += 1;
    this.#openCount += 1;
    this.#open.forEach((sum, column) => {
      const value = values[column] ?? null;
      if (value === null) return;
      sum.total += value;
      sum.count += 1;
    });
    if (this.#openCount < this.#stride) return;
    this.#columns.forEach((points, column) => {
      points.push(meanOf(this.#open[column]));
    });
    this.#open = newSums(this.#columns.length);
    this.#openCount = 0;
    if ((this.#columns[0]?.length ?? 0) >= this.#capacity) this.#halve();
  }

  /** Column by column, the oldest first; values that do not fill a point yet are the last one. */
  points(): (number | null)[][] {
    if (this.#openCount === 0) return this.#columns.map((points) => [...points]);
    return this.#columns.map((points, column) => [...points, meanOf(this.#open[column])]);
  }

  #halve(): void {
    this.#stride *= 2;
    for (const points of this.#columns) {
      const half = points.length / 2;
      for (let index = 0; index < half; index += 1) {
        points[index] = middle(points[2 * index] ?? null, points[2 * index + 1] ?? null);
      }
      points.length = half;
    }
  }
}

interface Sum {
  total: number;
  count: number;
}

function newSums(columns: number): Sum[] {
  return Array.from({ length: columns }, () => ({ total: 0, count: 0 }));
}

function meanOf(sum: Sum | undefined): number | null {
  return sum === undefined || sum.count === 0 ? null : sum.total / sum.count;
}

function middle(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b;
  return (a + b) / 2;
}
