import { open } from 'node:fs/promises';
import { join } from 'node:path';
import type { FeatureDtype } from '../records/dataset-record.ts';
import type { ColumnStatistics } from '../spec/standardize.ts';
import { float16Widener } from './float16.ts';
import { elementBytes } from './npy.ts';

/** What the columns of a dataset's features look like, for the choice of whether to standardise. */

/** Values that are looked at, 16 MiB of float32: of a larger matrix, runs of rows all over it. */
const valuesMax = 1 << 22;
/** Runs of rows in a larger matrix; ids often follow time, so that one place tells too little. */
const runs = 64;
/** A column is constant but for rounding below this deviation, as a share of its largest value. */
const constantShare = 1e-6;
/** How far from 0 the mean and from 1 the deviation of a standardised column may be. */
const standardizedTolerance = 0.1;

export interface FeatureShape {
  readonly rows: number;
  readonly columns: number;
  readonly dtype: FeatureDtype;
}

/** Statistics of the features in a dataset's folder, of all rows or of a sample of them. */
export async function columnStatisticsOf(
  folder: string,
  shape: FeatureShape,
): Promise<ColumnStatistics> {
  const { columns, dtype } = shape;
  const counter = new ColumnCounter(columns);
  const widen = float16Widener();
  const rowBytes = columns * elementBytes[dtype];
  const file = await open(join(folder, 'features.npy'));
  try {
    const { size } = await file.stat();
    const dataAt = size - shape.rows * rowBytes;
    for (const { from, count } of sampledRuns(shape)) {
      const bytes = new Uint8Array(count * rowBytes);
      await file.read(bytes, 0, bytes.length, dataAt + from * rowBytes);
      counter.add(
        dtype === 'float16' ? widen(new Uint16Array(bytes.buffer)) : new Float32Array(bytes.buffer),
      );
    }
  } finally {
    await file.close();
  }
  return counter.result();
}

interface Run {
  readonly from: number;
  readonly count: number;
}

function sampledRuns({ rows, columns }: FeatureShape): readonly Run[] {
  const rowsAtOnce = Math.max(1, Math.floor(valuesMax / runs / Math.max(1, columns)));
  const needed = Math.ceil(rows / rowsAtOnce);
  const taken = Math.min(runs, needed);
  return Array.from({ length: taken }, (_, index) => {
    const from = Math.floor((index * needed) / taken) * rowsAtOnce;
    return { from, count: Math.min(rowsAtOnce, rows - from) };
  });
}

/** Sums of columns, around the first row so that large means cost no digits. */
class ColumnCounter {
  readonly #columns: number;
  readonly #first: Float64Array;
  readonly #sums: Float64Array;
  readonly #squares: Float64Array;
  readonly #largest: Float64Array;
  #rows = 0;
  #zeros = 0;

  constructor(columns: number) {
    this.#columns = columns;
    this.#first = new Float64Array(columns);
    this.#sums = new Float64Array(columns);
    this.#squares = new Float64Array(columns);
    this.#largest = new Float64Array(columns);
  }

  add(values: Float32Array): void {
    const columns = this.#columns;
    if (this.#rows === 0) this.#first.set(values.subarray(0, columns));
    for (let at = 0; at < values.length; at += columns) {
      for (let column = 0; column < columns; column += 1) {
        const value = values[at + column] ?? 0;
        const distance = value - (this.#first[column] ?? 0);
        if (value === 0) this.#zeros += 1;
        this.#sums[column] = (this.#sums[column] ?? 0) + distance;
        this.#squares[column] = (this.#squares[column] ?? 0) + distance * distance;
        this.#largest[column] = Math.max(this.#largest[column] ?? 0, Math.abs(value));
      }
    }
    this.#rows += values.length / columns;
  }

  result(): ColumnStatistics {
    const deviations: number[] = [];
    let standardized = 0;
    for (let column = 0; column < this.#columns; column += 1) {
      const shifted = (this.#sums[column] ?? 0) / this.#rows;
      const mean = (this.#first[column] ?? 0) + shifted;
      const variance = (this.#squares[column] ?? 0) / this.#rows - shifted * shifted;
      const deviation = Math.sqrt(Math.max(0, variance));
      if (!(deviation > constantShare * (this.#largest[column] ?? 0))) continue;
      deviations.push(deviation);
      const isCentred = Math.abs(mean) < standardizedTolerance;
      if (isCentred && Math.abs(deviation - 1) < standardizedTolerance) standardized += 1;
    }
    deviations.sort((left, right) => left - right);
    const at = (share: number) => deviations[Math.floor(share * (deviations.length - 1))] ?? 0;
    return {
      rows: this.#rows,
      zero_share: this.#zeros / Math.max(1, this.#rows * this.#columns),
      varying: deviations.length,
      standardized,
      deviation_median: at(0.5),
      deviation_largest: at(1),
    };
  }
}
