import { createHash } from 'node:crypto';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { importedVariable } from './daemon.ts';

/** Cora with other things to learn: folders that a daemon adopts when it starts. */

export const coraClasses = 7;

/** Maps a node's class to its row of labels.npy. */
type RowOf = (label: number, node: number) => readonly number[];

/** A node of class c has the labels c and c + 1; one in nine of the others' is not known. */
const labelsOf: RowOf = (label, node) =>
  Array.from({ length: coraClasses }, (_, c) => {
    const has = c === label || c === (label + 1) % coraClasses;
    return !has && (node + c) % 9 === 0 ? 255 : Number(has);
  });

/** A number of the class, and whether it is odd, which one in five nodes does not say. */
const numbersOf: RowOf = (label, node) => [label - 3, node % 5 === 0 ? Number.NaN : label % 2];

/** Writes `cora-labels` (MULTI_LABEL) and `cora-numbers` (REGRESSION) into a daemon's folder. */
export function putTaskDatasets(folder: string): void {
  const imported = process.env[importedVariable];
  if (imported === undefined) throw new Error('datasets are imported for the tiers e2e and long');
  const cora = join(imported, 'cora');
  const put = (id: string, task: string, write: (labels: Int32Array) => Buffer, count: number) => {
    const place = join(folder, 'state', 'datasets', id);
    cpSync(cora, place, { recursive: true });
    const bytes = write(classesIn(join(cora, 'labels.npy')));
    writeFileSync(join(place, 'labels.npy'), bytes);
    const manifest = JSON.parse(readFileSync(join(place, 'dataset.json'), 'utf8'));
    const header = 10 + bytes.readUInt16LE(8);
    manifest.sha256['labels.npy'] = createHash('sha256')
      .update(bytes.subarray(header))
      .digest('hex');
    writeFileSync(
      join(place, 'dataset.json'),
      JSON.stringify({ ...manifest, task, num_classes: count }),
    );
  };
  put('cora-labels', 'MULTI_LABEL', (labels) => table(labels, labelsOf, '|u1'), coraClasses);
  put('cora-numbers', 'REGRESSION', (labels) => table(labels, numbersOf, '<f4'), 2);
}

function classesIn(path: string): Int32Array {
  const bytes = readFileSync(path);
  const data = bytes.subarray(10 + bytes.readUInt16LE(8));
  return new Int32Array(new Uint8Array(data).buffer);
}

function table(labels: Int32Array, rowOf: RowOf, descr: '|u1' | '<f4'): Buffer {
  const values = [...labels].flatMap((label, node) => rowOf(label, node));
  const shape = `(${labels.length}, ${values.length / labels.length})`;
  const text = `{'descr': '${descr}', 'fortran_order': False, 'shape': ${shape}, }`;
  const header = `${text.padEnd(128 - 10 - 1)}\n`;
  const start = Buffer.from([0x93, ...Buffer.from('NUMPY'), 1, 0, header.length, 0]);
  const array = descr === '|u1' ? Uint8Array.from(values) : Float32Array.from(values);
  const data = Buffer.from(array.buffer, array.byteOffset, array.byteLength);
  return Buffer.concat([start, Buffer.from(header), data]);
}
