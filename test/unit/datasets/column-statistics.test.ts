import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { columnStatisticsOf } from '../../../src/datasets/column-statistics.ts';
import { featuresAs } from '../../../src/datasets/float16.ts';
import { formatNpyHeader } from '../../../src/datasets/npy.ts';
import type { FeatureDtype } from '../../../src/records/dataset-record.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gnnd-columns-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function statisticsOf(
  rows: number,
  columns: number,
  valueAt: (row: number, column: number) => number,
  dtype: FeatureDtype = 'float32',
) {
  const values = Float32Array.from({ length: rows * columns }, (_, at) =>
    valueAt(Math.floor(at / columns), at % columns),
  );
  const header = formatNpyHeader({ type: dtype, shape: [rows, columns] });
  const data = featuresAs(values, dtype);
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  writeFileSync(join(folder, 'features.npy'), Buffer.concat([header, bytes]));
  return await columnStatisticsOf(folder, { rows, columns, dtype });
}

const sign = (row: number) => (row % 2 === 0 ? 1 : -1);

describe('columnStatisticsOf', () => {
  it('counts zeros and the columns that vary, and takes their deviations', async () => {
    const columns = [sign, (row: number) => 1e6 + 2 * sign(row), () => 0, () => 0.1];
    const valueAt = (row: number, column: number) => columns[column]?.(row) ?? 0;
    expect(await statisticsOf(100, 4, valueAt)).toEqual({
      ...{ rows: 100, zero_share: 0.25, varying: 2, standardized: 1 },
      ...{ deviation_median: 1, deviation_largest: 2 },
    });
  });

  it('takes what stands near mean 0 and deviation 1 for standardised', async () => {
    const factors = [1, 1.09, 1.2, 0.8];
    const scaled = (row: number, column: number) => sign(row) * (factors[column] ?? 0);
    expect((await statisticsOf(10, 4, scaled)).standardized).toBe(2);
    expect((await statisticsOf(10, 1, (row) => sign(row) + 0.2)).standardized).toBe(0);
  });

  it('reads float16 as the values that it holds', async () => {
    const valueAt = (row: number, column: number) => sign(row) * (column + 1) * 0.5;
    const half = await statisticsOf(64, 3, valueAt, 'float16');
    expect(half).toEqual(await statisticsOf(64, 3, valueAt));
    expect(half.deviation_largest).toBe(1.5);
  });

  it('looks all over a matrix that is too large to be read whole', async () => {
    const rows = 5000;
    // The first half of the nodes has zeros alone.
    const found = await statisticsOf(rows, 2000, (row) => (row < rows / 2 ? 0 : sign(row)));
    expect(found.rows).toBe(64 * 32);
    expect(found.zero_share).toBeGreaterThan(0.48);
    expect(found.zero_share).toBeLessThan(0.52);
    expect(found.varying).toBe(2000);
  });

  it('takes a value that is no number for no deviation', async () => {
    const found = await statisticsOf(4, 2, (row, column) =>
      column === 0 ? Number.NaN : sign(row),
    );
    expect(found).toMatchObject({ varying: 1, deviation_largest: 1 });
  });
});
