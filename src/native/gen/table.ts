// Made by "npm run build:contract" from the tables in native/node.

export type ColumnKind = 'SKIP' | 'TEXT' | 'NUMBER' | 'WEIGHT' | 'WHOLE';

export interface TextRowsOptions {
  /** One character. */
  readonly separator: string;
  /** The first row is no data. */
  readonly header: boolean;
  readonly decimalCommas: boolean;
  readonly columns: readonly ColumnKind[];
}

/** Several columns of one kind stand row after row, in their order. */
export interface TextBatch {
  readonly numRows: number;
  /** Once, as it stands. */
  readonly header: string | null;
  /** Where the first row begins, from 1. */
  readonly firstLine: number;
  /** Where each row begins, from the first line. */
  readonly lines: Uint32Array;
  readonly wholes: Uint32Array;
  readonly numbers: Float32Array;
  /** One a column of texts: those of all rows, by line feeds. */
  readonly texts: readonly string[];
  /** Rows that are not plain: their numbers are 0, and their texts empty. */
  readonly odd: Uint32Array;
  /** As they stand. */
  readonly oddRows: readonly string[];
  /** The text is not UTF-8, or has a record without an end: the columns are worth nothing. */
  readonly broken: boolean;
}

/** Rows of a text under way; closed when nothing refers to it. */
export type TextRowsHandle = { readonly textRows: unique symbol };

export interface TableFunctions {
  textRowsOpen(options: TextRowsOptions): TextRowsHandle;
  /** Rows that end in the next piece of the text; one call at a time. */
  textRowsRead(rows: TextRowsHandle, bytes: Uint8Array, isLast: boolean): Promise<TextBatch>;
}
