// Made by "npm run build:contract" from the tables in native/node.

export type ColumnKind = 'SKIP' | 'TEXT' | 'NUMBER' | 'WEIGHT' | 'WHOLE' | 'ID' | 'CODE';

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
  /** Where the last row begins, from 1. */
  readonly lastLine: number;
  /** The rows were added to a sorter, and are not here. */
  readonly taken: boolean;
  /** Of WHOLE, ID and CODE. */
  readonly wholes: Uint32Array;
  readonly numbers: Float32Array;
  /** One a column of texts: those of all rows, by line feeds. */
  readonly texts: readonly string[];
  /** Rows that are not plain: their numbers are 0, and their texts empty. */
  readonly odd: Uint32Array;
  /** As they stand. */
  readonly oddRows: readonly string[];
  /** The text is not UTF-8, has a record without an end, an id that is none, or more texts than a column of codes may: the columns are worth nothing. */
  readonly broken: boolean;
  /** One a column of codes: its texts that have a number since this batch, a line feed behind each. */
  readonly coded: readonly string[];
}

/** Rows of a text under way; closed when nothing refers to it. */
export type TextRowsHandle = { readonly textRows: unique symbol };

/** Texts by their numbers; gone when nothing refers to them. */
export type TextIdsHandle = { readonly textIds: unique symbol };

export interface EdgeSorterOptions {
  readonly numNodes: number;
  readonly weighted: boolean;
  /** Rows ascend, each column once, without self-loops; else they are as listed. */
  readonly once: boolean;
  /** An edge stands in the row of its source, too. */
  readonly bothWays: boolean;
  /** For what does not fit into memory. */
  readonly folder: string;
  /** Held until they become a run, and given out at once. */
  readonly entriesMax: number;
  /** Of runs, beyond which they go to the disk. */
  readonly memoryBytesMax: number;
  /** Sources have ids of their own, below this; 0: they are nodes of the rows. */
  readonly numSources: number;
}

/** Edges that were added twice with unequal weights, by their lines. */
export interface EdgeConflict {
  readonly line: number;
  readonly earlier: number;
}

export interface EdgeCounts {
  /** That were left out. */
  readonly selfLoops: number;
  /** Of all rows given out so far. */
  readonly entries: number;
  /** Entries that were left out because they were there. */
  readonly repeated: number;
  readonly conflictCount: number;
  /** The first ones. */
  readonly conflicts: readonly EdgeConflict[];
}

/** Rows that follow each other. */
export interface EdgeRows {
  /** Where each ends, counted over all rows before. */
  readonly ends: BigInt64Array;
  readonly indices: Uint32Array;
  /** Empty where edges have none. */
  readonly weights: Float32Array;
}

export interface EdgeForm {
  readonly targetFirst: boolean;
  /** Of parts that were read before. */
  readonly linesBefore: number;
  /** Held, until they become a run. */
  readonly entriesMax: number;
}

/** Edges that become rows; what they hold is gone when nothing refers to them. */
export type EdgeSorterHandle = { readonly edgeSorter: unique symbol };

export interface TableFunctions {
  /** Ids are those of columns of ID. */
  textRowsOpen(options: TextRowsOptions, ids: TextIdsHandle | null): TextRowsHandle;
  /** Rows that end in the next piece of the text; one call at a time. */
  textRowsRead(rows: TextRowsHandle, bytes: Uint8Array, isLast: boolean): Promise<TextBatch>;
  textIdsOpen(): TextIdsHandle;
  /** False where it was there before. */
  textIdsAdd(ids: TextIdsHandle, text: string): boolean;
  /** Adds texts, by line feeds, up to one that was there before or that is no id: how many. */
  textIdsAddAll(ids: TextIdsHandle, texts: string): number;
  textIdsFind(ids: TextIdsHandle, text: string): number | null;
  /** REQUIRES: there are so many. */
  textIdsAt(ids: TextIdsHandle, number: number): string;
  /** All texts in their order, a line feed behind each: a piece, null behind the last. */
  textIdsLines(ids: TextIdsHandle, piece: number): Uint8Array | null;
  edgeSorterOpen(options: EdgeSorterOptions): EdgeSorterHandle;
  /** Ends are source and target of each edge; lines count from the first line. Entries that are in no run yet; null, and nothing is added, where an end is no node. */
  edgeSorterAdd(sorter: EdgeSorterHandle, ends: Uint32Array, weights: Float32Array, lines: Uint32Array, firstLine: number): number | null;
  /** Adds the rows that end in the next piece of a text, two WHOLE or ID each and perhaps a WEIGHT, and settles; where not all of them are plain they come back as from textRowsRead. One call at a time. */
  edgeSorterRead(rows: TextRowsHandle, bytes: Uint8Array, isLast: boolean, sorter: EdgeSorterHandle, form: EdgeForm): Promise<TextBatch>;
  /** What was added becomes a run. */
  edgeSorterSettle(sorter: EdgeSorterHandle): Promise<void>;
  /** The next rows, after the last edge; null after the last row. */
  edgeSorterNext(sorter: EdgeSorterHandle): Promise<EdgeRows | null>;
  edgeSorterCounts(sorter: EdgeSorterHandle): EdgeCounts;
}
