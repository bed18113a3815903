import { formatCount } from './counted.ts';
import type { JobSpecInput, SpecDraft } from './job-spec.ts';
import { reads } from './spec-parts.ts';

/**
 * Whether features are standardised in a job that leaves that open (decision 0115). Standardising
 * gives every column the same say and a size that a learning rate fits. It costs accuracy in one
 * case: columns of mostly zeros, such as words of a text, where few training nodes are known. Rare
 * words then become the largest values of all, and the model learns the training nodes by them.
 */

/** Counts of the columns of features, over all rows of a dataset or a sample of them. */
export interface ColumnStatistics {
  /** Rows that were looked at. */
  readonly rows: number;
  /** Share of the values that are 0. */
  readonly zero_share: number;
  /** Columns that are not constant. */
  readonly varying: number;
  /** Those of them that have about mean 0 and deviation 1. */
  readonly standardized: number;
  /** Standard deviations of the columns that vary. */
  readonly deviation_median: number;
  readonly deviation_largest: number;
}

/** From this share of zeros on, columns are sparse. */
const sparseShare = 0.5;
/**
 * Training nodes a column below which sparse columns stay raw: measured up to 1.1, where raw
 * features won or drew once there were steps enough, and 7.8, where standardised ones won.
 */
const fewNodesPerColumn = 2;
/** Columns of larger deviations than this drown all others, sparse or not. */
const hugeDeviation = 10;
/** From this share of standardised columns on, the features are. */
const standardizedShare = 0.9;

/** Whether most values are 0, as of words of a text. */
export function areSparse(columns: ColumnStatistics | null | undefined): boolean {
  return columns != null && columns.zero_share >= sparseShare;
}

export interface StandardizeChoice {
  readonly value: 'ON' | 'OFF';
  readonly why: string;
}

/** What a dataset has, as far as it is known. */
export interface RareFacts {
  /** What the import counted; null or unset where that is not known. */
  readonly columns?: ColumnStatistics | null;
  readonly trainNodes: number | null;
}

export function automaticStandardize(
  { kind, model, propagation }: Pick<SpecDraft, 'kind' | 'model' | 'propagation'>,
  { columns, trainNodes }: RareFacts,
): StandardizeChoice {
  const off = (why: string): StandardizeChoice => ({ value: 'OFF', why });
  const on = (why: string): StandardizeChoice => ({ value: 'ON', why });
  if (kind === 'LOAD') return off('a loader lends features as they are');
  if (model.type === 'TORCHSCRIPT') return off('a TORCHSCRIPT takes features as they are');
  if (reads({ model }, 'propagation') && propagation.standardize) {
    return off('rows are standardised after they are propagated');
  }
  if (columns == null) return off('nothing is known of the columns of its dataset');
  const { varying, standardized } = columns;
  if (varying === 0) return off('all columns of its dataset are constant');
  if (standardized >= standardizedShare * varying) {
    return off('the columns have mean 0 and deviation 1 already');
  }
  const zeros = zerosOf(columns);
  if (!areSparse(columns)) return on(`the columns are dense: ${zeros}`);
  if (columns.deviation_largest > hugeDeviation) {
    const largest = Number(columns.deviation_largest.toPrecision(2));
    return on(`the largest deviation of a column is ${largest}, and would drown the others`);
  }
  const few = fewText({ columns, trainNodes });
  return areRareWords({ columns, trainNodes })
    ? off(`${zeros}, and ${few} are too few to learn the rare ones from`)
    : on(`${few} are enough, though ${zeros}`);
}

const zerosOf = ({ zero_share }: ColumnStatistics) =>
  `${Math.round(100 * zero_share)} % of the values are 0`;

/** "140 training nodes for 1,432 columns" */
export function fewText({ columns, trainNodes }: RareFacts): string {
  const nodes = formatCount(trainNodes ?? 0);
  return `${nodes} training nodes for ${formatCount(columns?.varying ?? 0)} columns`;
}

/**
 * Whether columns are sparse, of about one size, and too many for the training nodes: then neither
 * they nor rows that are propagated of them are standardised.
 */
export function areRareWords({ columns, trainNodes }: RareFacts): boolean {
  if (columns == null || columns.varying === 0) return false;
  const { varying, standardized, deviation_largest } = columns;
  if (standardized >= standardizedShare * varying) return false;
  const areWords = areSparse(columns) && deviation_largest <= hugeDeviation;
  return areWords && (trainNodes ?? 0) < fewNodesPerColumn * varying;
}

/** How the choice of a job came about, for people. */
export function standardizeText(
  given: JobSpecInput,
  spec: Pick<SpecDraft, 'kind' | 'model' | 'propagation' | 'features'>,
  facts: RareFacts,
): string {
  const { standardize } = spec.features;
  if ((given.features?.standardize ?? 'AUTO') !== 'AUTO') return `${standardize}, as asked for`;
  return `${standardize}, chosen: ${automaticStandardize(spec, facts).why}`;
}
