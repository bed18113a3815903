import type { ImportFormat } from '../records/dataset-record.ts';

/**
 * Formats that only Python reads: a program of ours (src/python/gnnd_formats) makes a folder of
 * arrays of the source, which is imported as any such folder is (decision 0085).
 */

const convertedFormats = [
  ...(['PYG', 'DGL', 'PLANETOID', 'GRAPHSAINT', 'GRAPHSAGE', 'NETWORKX'] as const),
  ...(['BENCHMARK_NPZ', 'OGB_LINKS'] as const),
] as const satisfies readonly ImportFormat[];
export type ConvertedFormat = (typeof convertedFormats)[number];

/** Formats of benchmarks that come without a split. */
const splitless: ReadonlySet<ImportFormat> = new Set(['PYG', 'DGL', 'NETWORKX', 'BENCHMARK_NPZ']);
/** Their readers store both directions of an edge unless they are told not to. */
const undirected: ReadonlySet<ImportFormat> = new Set(['BENCHMARK_NPZ', 'OGB_LINKS']);

/** Formats that a Preparer reads itself. */
export type ReadFormat = Exclude<ImportFormat, ConvertedFormat>;
/** Those of graphs of one type and one relation. */
export type PlainFormat = Exclude<ReadFormat, 'TYPED_NPY'>;

export function isConverted(format: ImportFormat): format is ConvertedFormat {
  return convertedFormats.some((each) => each === format);
}

/** Whether chance splits the nodes of a source of this format that has no split. */
export function hasNoSplits(format: ConvertedFormat): boolean {
  return splitless.has(format);
}

/** Whether a user may ask for its edges as they are listed. */
export function isMadeUndirected(format: ImportFormat): boolean {
  return undirected.has(format);
}

/** Whether its graphs may have several types; what is in a source says whether they do. */
export function mayHaveTypes(format: ImportFormat): boolean {
  return format === 'TYPED_NPY' || format === 'PYG';
}

/** A source of a format that is told only by what is in it. */
export class OtherFormat extends Error {
  readonly format: ConvertedFormat;

  constructor(format: ConvertedFormat) {
    super(`the source is ${format}`);
    this.format = format;
  }
}

/** What a converter left: a folder of arrays, and what a user should know of how it came about. */
export interface Converted {
  readonly folder: string;
  readonly notices: readonly string[];
}

/** What the import of a converted source says in place of the folder of arrays. */
export interface ConvertedOrigin {
  /** Where it came from, for people. */
  readonly source: string;
  readonly hasNoSplits: boolean;
  readonly notices: readonly string[];
}
