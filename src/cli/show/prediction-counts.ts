import { createReadStream, existsSync } from 'node:fs';
import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PredictionTable, textOfCounts } from './prediction-table.ts';

/** How many nodes each class has in a folder of predictions; empty where there are no classes. */
export async function countsIn(folder: string): Promise<string> {
  const arrays = join(folder, 'predictions.npy');
  if (existsSync(arrays)) return textOfCounts(await countsOfArray(arrays, await namesIn(folder)));
  const table = join(folder, 'predictions.csv');
  if (!existsSync(table)) return '';
  const rows = new PredictionTable();
  for await (const piece of createReadStream(table, 'utf8')) rows.take(String(piece));
  return rows.countsText();
}

async function namesIn(folder: string): Promise<readonly string[]> {
  const facts: Readonly<Record<string, unknown>> = JSON.parse(
    await readFile(join(folder, 'inference.json'), 'utf8'),
  );
  const names = facts['class_names'];
  return Array.isArray(names) ? names.map(String) : [];
}

const pieceBytes = 2 ** 20;

/**
 * Counts by class in an array of one int64 a node; other arrays hold several labels, or numbers.
 */
async function countsOfArray(
  path: string,
  names: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>();
  const file = await open(path);
  try {
    const head = Buffer.alloc(10);
    await file.read(head, 0, head.length, 0);
    const dataAt = head.length + head.readUInt16LE(8);
    const header = Buffer.alloc(dataAt - head.length);
    await file.read(header, 0, header.length, head.length);
    if (!/'descr': '<i8'.*'shape': \(\d+,\)/.test(header.toString('latin1'))) return counts;
    const piece = Buffer.alloc(pieceBytes);
    for (let at = dataAt; ; ) {
      const { bytesRead } = await file.read(piece, 0, piece.length, at);
      for (let byte = 0; byte + 8 <= bytesRead; byte += 8) {
        const label = piece.readInt32LE(byte);
        const name = names[label] ?? String(label);
        counts.set(name, (counts.get(name) ?? 0) + 1);
      }
      if (bytesRead < 8) return counts;
      at += bytesRead - (bytesRead % 8);
    }
  } finally {
    await file.close();
  }
}
