/**
 * What ways of training take on a dataset, by arithmetic alone: `gnnctl job suggest`. A pure
 * function. Its times are guesses, right to a factor of two or so: what processors do in a second
 * is written below, and neighbourhoods are taken as random draws.
 */

export type Way = 'FULL' | 'SAMPLED' | 'PROPAGATED';

export interface GraphSizes {
  readonly nodes: number;
  readonly edges: number;
  readonly features: number;
  readonly classes: number;
  readonly train: number;
}

export interface WaySettings {
  readonly hiddenDim: number;
  readonly batchSize: number;
  /** Fanouts of SAMPLED, the layer nearest the targets first; FULL has as many layers. */
  readonly fanouts: readonly number[];
  /** Hops of PROPAGATED. */
  readonly hops: number;
}

export interface WayWork {
  /** Feature rows that a batch reads. */
  readonly batchRows: number;
  /** Bytes of feature and hidden rows that an epoch gathers. */
  readonly epochBytes: number;
  /** Multiplications with an addition, of an epoch's matrix products, forward and backward. */
  readonly epochProducts: number;
  /** Bytes that are gathered once, before the first epoch. */
  readonly onceBytes: number;
}

/** A core's rates (Zen 4, 2 cores measured: SIGN's products, rows of 512 bytes in random order). */
export const coreRates = { productsPerSecond: 30e9, bytesPerSecond: 5e9 } as const;

const floatBytes = 4;
/** Forward, and backward once for the weights and once for the rows. */
const passes = 3;

export function workOf(way: Way, graph: GraphSizes, settings: WaySettings): WayWork {
  return way === 'PROPAGATED' ? rowsWork(graph, settings) : blocksWork(way, graph, settings);
}

/** Seconds on so many cores. */
export function secondsOf(
  { epochBytes, epochProducts, onceBytes }: WayWork,
  cores: number,
): { readonly epoch: number; readonly once: number } {
  const { productsPerSecond, bytesPerSecond } = coreRates;
  const epoch = epochProducts / productsPerSecond + epochBytes / bytesPerSecond;
  return { epoch: epoch / cores, once: onceBytes / bytesPerSecond / cores };
}

/** SIGN of three layers on rows of all hops, after one operator. */
function rowsWork(graph: GraphSizes, { hiddenDim, batchSize, hops }: WaySettings): WayWork {
  const { nodes, edges, features, classes, train } = graph;
  const width = (hops + 1) * features;
  const weights = width * hiddenDim + hiddenDim * hiddenDim + hiddenDim * classes;
  return {
    batchRows: Math.min(batchSize, train) * (hops + 1),
    epochBytes: train * width * floatBytes,
    epochProducts: passes * train * weights,
    onceBytes: hops * (edges + 2 * nodes) * features * floatBytes,
  };
}

/** GraphSAGE over blocks. */
function blocksWork(
  way: 'FULL' | 'SAMPLED',
  graph: GraphSizes,
  { hiddenDim, batchSize, fanouts }: WaySettings,
): WayWork {
  const { nodes, edges, features, classes, train } = graph;
  const degree = edges / Math.max(1, nodes);
  const layers = fanouts.length;
  let rows = Math.min(batchSize, train);
  let bytes = 0;
  let products = 0;
  fanouts.forEach((fanout, index) => {
    // Layers count from the targets: the last one reads features.
    const isFirst = index === layers - 1;
    const input = isFirst ? features : hiddenDim;
    const output = index === 0 ? classes : hiddenDim;
    const drawn = rows * (way === 'FULL' ? degree : Math.min(fanout, degree));
    products += 2 * rows * input * output;
    // Gradients go back through all layers but the one that reads features.
    bytes += (isFirst ? 1 : 2) * drawn * input * floatBytes;
    rows = distinct(rows + drawn, nodes);
  });
  bytes += rows * features * floatBytes;
  const batches = Math.ceil(train / Math.max(1, batchSize));
  return {
    batchRows: Math.round(rows),
    epochBytes: batches * bytes,
    epochProducts: passes * batches * products,
    onceBytes: 0,
  };
}

/** Different ones among so many draws of n. */
function distinct(draws: number, n: number): number {
  return n * (1 - Math.exp(-draws / Math.max(1, n)));
}

export interface WayFinding {
  readonly way: Way;
  readonly epochSeconds: number;
  readonly onceSeconds: number;
  /** Why the daemon refuses it; null: it would take it. */
  readonly refusal: string | null;
}

/** How many times as fast another way must be to be worth fewer points of accuracy. */
export const worthwhile = 5;
/** Seconds for all epochs up to which nobody needs to save time. */
export const shortSeconds = 600;

/** Which to try first, and why. Null where the daemon would take none. */
export function suggestionOf(
  findings: readonly WayFinding[],
  epochs: number,
): { readonly way: Way; readonly reason: string } | null {
  const possible = findings.filter(({ refusal }) => refusal === null);
  const of = (way: Way) => possible.find((finding) => finding.way === way);
  const total = ({ onceSeconds, epochSeconds }: WayFinding) => onceSeconds + epochs * epochSeconds;
  const [sampled, propagated] = [of('SAMPLED'), of('PROPAGATED')];
  if (sampled === undefined || propagated === undefined) {
    const [only] = [sampled, propagated, of('FULL')].filter((found) => found !== undefined);
    return only === undefined ? null : { way: only.way, reason: 'the others are refused here' };
  }
  const ratio = total(sampled) / total(propagated);
  if (total(sampled) <= shortSeconds) {
    const reason = `${epochs} epochs take minutes at most, and such models were the most accurate`;
    return { way: 'SAMPLED', reason };
  }
  if (ratio >= worthwhile) {
    const reason = `it is ${Math.round(ratio)} times as fast, for some points of accuracy`;
    return { way: 'PROPAGATED', reason };
  }
  const reason = `propagation saves little: a factor of ${ratio.toFixed(1)}`;
  return { way: 'SAMPLED', reason };
}
