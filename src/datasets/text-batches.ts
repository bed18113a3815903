import type { CoreAddon, TextBatch, TextIdsHandle, TextRowsOptions } from '../native/contract.ts';
import type { CsvFile } from './csv-reader.ts';
import type { EdgeSorter } from './edge-sorter.ts';

/** Large files of text, whose columns native code reads: all that is plain in them. */

export type TextReader = Pick<CoreAddon, 'textRowsOpen' | 'textRowsRead'>;

/** Smaller files are read by rows, which costs nothing that anyone would notice. */
export const batchesBytesMin = 1 << 20;

/** The file in batches; while one is looked at the next one is read. */
export async function* textBatches(
  native: TextReader,
  file: CsvFile,
  options: TextRowsOptions,
): AsyncGenerator<TextBatch> {
  const rows = native.textRowsOpen(options, null);
  let reading: Promise<TextBatch> | null = null;
  const read = (piece: Uint8Array, isLast: boolean) => {
    const next = native.textRowsRead(rows, piece, isLast);
    // Who asks for it hears of it; nobody does where the batch before is the last one wanted.
    next.catch(() => undefined);
    return next;
  };
  for await (const piece of file.pieces()) {
    const done: TextBatch | null = await reading;
    reading = read(piece, false);
    if (done !== null) yield done;
  }
  if (reading !== null) yield await reading;
  yield await read(new Uint8Array(), true);
}

/** Where edges of a text go. */
export interface EdgeTarget {
  readonly sorter: EdgeSorter;
  /** Those of columns of ID; null: ends are whole numbers. */
  readonly ids: TextIdsHandle | null;
  /** Its column stands before that of the source. */
  readonly targetFirst: boolean;
}

/** The file in batches, whose plain ones were `taken` by the sorter. */
export async function* edgeBatches(
  native: TextReader,
  file: CsvFile,
  options: TextRowsOptions,
  { sorter, ids, targetFirst, linesBefore }: EdgeTarget & { readonly linesBefore: number },
): AsyncGenerator<TextBatch> {
  const rows = native.textRowsOpen(options, ids);
  const form = { targetFirst, linesBefore };
  for await (const piece of file.pieces()) yield await sorter.read(rows, [piece, false], form);
  yield await sorter.read(rows, [new Uint8Array(), true], form);
}
