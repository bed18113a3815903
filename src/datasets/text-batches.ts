import type { CoreAddon, TextBatch, TextRowsOptions } from '../native/contract.ts';
import type { CsvFile } from './csv-reader.ts';

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
  const rows = native.textRowsOpen(options);
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
