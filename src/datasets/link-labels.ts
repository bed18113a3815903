import { join } from 'node:path';
import { modelColumnsMax } from '../records/dataset-record.ts';
import type { LinkArray, LinkSide } from './check-links.ts';
import { linkSides } from './check-links.ts';
import type { LinkLabelArray } from './dataset-writer.ts';
import type { ImportContext } from './import-context.ts';
import { labelNumbers } from './label-arrays.ts';
import { type NpySource, openNpyFile } from './npy.ts';
import { badFile, formatCount, ImportFailure } from './problems.ts';

/**
 * What is known of a dataset's own links: integers are classes, several columns of 0 and 1 labels,
 * and floats numbers to regress on. The training side says which, and how many classes there are.
 */

interface Files {
  readonly folder: string;
  readonly files: Readonly<Record<LinkSide, string | null>>;
  readonly pairs: Readonly<Record<LinkSide, LinkArray | null>>;
}

export type LinkLabels = Readonly<Record<LinkSide, LinkLabelArray>>;

/** Null where there are none, or something is wrong with them, which is told. */
export async function readLinkLabels(
  context: ImportContext,
  { folder, files, pairs }: Files,
): Promise<LinkLabels | null> {
  const { problems } = context;
  if (linkSides.every((side) => files[side] === null)) return null;
  const found: Partial<Record<LinkSide, LinkLabelArray>> = {};
  for (const side of linkSides) {
    const file = files[side];
    if (file === null) {
      const expected = 'expected what is known of the links of each side, or of none';
      problems.add(`links/${side}_labels.npy`, `is missing: ${expected}`);
      continue;
    }
    try {
      found[side] = await labelsIn(context, { path: join(folder, file), name: `links/${file}` });
    } catch (error) {
      if (!(error instanceof ImportFailure)) throw error;
      for (const { description } of error.problems) problems.add(`links/${file}`, description);
    }
  }
  const { train, val, test } = found;
  if (train === undefined || val === undefined || test === undefined) return null;
  const before = problems.count;
  const sides = { train, val, test };
  for (const side of linkSides) {
    const problem = problemOf(sides[side], pairs[side], train);
    if (problem !== null) problems.add(`links/${files[side]}`, problem);
  }
  return problems.count === before ? sides : null;
}

/** REQUIRES: what `readLinkLabels` answered. */
export async function writeLinkLabels(
  { writer, notices }: ImportContext,
  labels: LinkLabels,
): Promise<void> {
  for (const side of linkSides) await writer.writeLinkLabels(`links_${side}_labels`, labels[side]);
  const { task, values, columns } = labels.train;
  const count = columns ?? countOf(values);
  writer.linkLabelsOf({ task, count });
  notices.add(
    `brings ${formatCount(count)} ${units[task]} of links, which jobs of task LINK_LABELS learn`,
  );
  if (task !== 'REGRESSION' || !(values as Float32Array).every(Number.isInteger)) return;
  notices.add(
    'labels of links are whole numbers of a float type, and regressed on: give classes ' +
      'as integers',
  );
}

function countOf(classes: LinkLabelArray['values']): number {
  let largest = 0;
  for (const value of classes) if (value > largest) largest = value;
  return largest + 1;
}

/** What is wrong with a side beside its links and the training side; null: nothing. */
function problemOf(
  side: LinkLabelArray,
  pairs: LinkArray | null,
  train: LinkLabelArray,
): string | null {
  const links = pairs === null ? null : pairs.values.length / 2;
  const rows = side.values.length / (side.columns ?? 1);
  if (links !== null && rows !== links) {
    return `has ${formatCount(rows)} rows: expected ${formatCount(links)}, one for each link`;
  }
  if (side.task !== train.task || side.columns !== train.columns) {
    return `has ${textOf(side)}: expected ${textOf(train)}, as for training`;
  }
  if (side.task !== 'CLASSIFICATION') return null;
  const count = countOf(train.values);
  const at = side.values.findIndex((value: number) => value >= count);
  if (at < 0) return null;
  const known = `the ${formatCount(count)} classes of training`;
  return `has class ${side.values[at]} at index ${at}: expected one of ${known}`;
}

const units = { CLASSIFICATION: 'classes', MULTI_LABEL: 'labels', REGRESSION: 'numbers' } as const;

function textOf({ task, columns }: LinkLabelArray): string {
  const many = columns === null ? '' : `${formatCount(columns)} `;
  return `${many}${units[task]} of each link`;
}

async function labelsIn(
  { signal }: ImportContext,
  { path, name }: { readonly path: string; readonly name: string },
): Promise<LinkLabelArray> {
  const source = await openNpyFile(path, signal);
  try {
    const { type, shape } = source.header;
    const [rows = 0, columns = 1] = shape;
    if (shape.length > 2 || shape.length === 0 || rows === 0 || columns === 0) {
      const expected = 'expected [links] or [links, labels]';
      throw badFile(name, `has shape (${shape.join(', ')}), ${expected}`);
    }
    if (type.startsWith('float')) {
      const values = await numbersIn(source, name, new Float32Array(rows * columns));
      return { task: 'REGRESSION', columns, values };
    }
    if (columns > 1) {
      const values = await numbersIn(source, name, new Uint8Array(rows * columns));
      return { task: 'MULTI_LABEL', columns, values };
    }
    const values = await numbersIn(source, name, new Int32Array(rows));
    return { task: 'CLASSIFICATION', columns: null, values };
  } finally {
    await source.close();
  }
}

/** All elements; throws for one that the type of `values` does not hold. */
async function numbersIn<T extends LinkLabelArray['values']>(
  source: NpySource,
  name: string,
  values: T,
): Promise<T> {
  const numbersOf = labelNumbers(source.header.type);
  const columns = source.header.shape[1] ?? 1;
  let at = 0;
  for await (const block of source.blocks()) {
    const numbers = numbersOf(block);
    for (let index = 0; index < numbers.length; index += 1) {
      const value = Number(numbers[index]);
      const wrong = wrongWith(value, values);
      if (wrong !== null) {
        const where = columns === 1 ? `index ${at}` : `row ${Math.floor(at / columns)}`;
        throw badFile(name, `has ${value} at ${where}, ${wrong}`);
      }
      values[at] = value;
      at += 1;
    }
  }
  return values;
}

function wrongWith(value: number, values: LinkLabelArray['values']): string | null {
  if (values instanceof Float32Array) {
    return Number.isFinite(Math.fround(value)) ? null : 'expected a finite number of each link';
  }
  if (values instanceof Uint8Array) {
    return value === 0 || value === 1 ? null : 'expected 0 or 1 of each label';
  }
  return value >= 0 && value < modelColumnsMax
    ? null
    : `expected a class of each link, 0 to ${modelColumnsMax - 1}`;
}
