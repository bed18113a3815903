import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { checkedPairs, type LinkArray, type LinkSide, linkSides } from './check-links.ts';
import type { LinkArrayName } from './dataset-writer.ts';
import { ElementReader } from './element-reader.ts';
import type { ImportContext } from './import-context.ts';
import { readLinkLabels, writeLinkLabels } from './link-labels.ts';
import { readLinkWeights } from './link-weights.ts';
import { type NpySource, npyIntegers, openNpyFile } from './npy.ts';
import { badFile, formatCount, ImportFailure } from './problems.ts';
import { liesByEnd } from './typed-edges.ts';

/**
 * Links of a source, beside its graph: pairs of nodes that jobs learn and are judged by, in
 * `links/train.npy`, `links/val.npy` and `links/test.npy`, and negatives of the last two: of each
 * link, or pairs that are no links, one pool for all; and what is known of links, and weights.
 */

/** Names of files, ours first. */
const namesOf: Readonly<Record<LinkArrayName, readonly [string, ...string[]]>> = {
  links_train: ['train'],
  links_val: ['val', 'valid'],
  links_test: ['test'],
  links_val_negatives: ['val_negatives', 'valid_negatives', 'val_neg', 'valid_neg'],
  links_test_negatives: ['test_negatives', 'test_neg'],
  links_train_labels: ['train_labels', 'train_label'],
  links_val_labels: ['val_labels', 'valid_labels', 'val_label', 'valid_label'],
  links_test_labels: ['test_labels', 'test_label'],
  links_train_weights: ['train_weights', 'train_weight'],
  links_val_negative_pairs: ['val_negative_pairs', 'valid_negative_pairs'],
  links_test_negative_pairs: ['test_negative_pairs'],
};

/** Says of a source that has links beside files which are read without them. */
export function tellUnreadLinks({ source, writer, notices }: ImportContext): void {
  if (writer.written('links_train') !== null || !existsSync(join(source, 'links'))) return;
  notices.add(
    'links/ is not read: links are taken beside arrays alone (indptr.npy, edge_index.npy)',
  );
}

/** Where links lie, and what their ends are. */
export interface LinkPlace {
  /** Messages call it `links`. */
  readonly folder: string;
  /** Of the type that links lead from, and of the one that they lead to. */
  readonly numNodes: readonly [sources: number, destinations: number];
  /** Both are one type. */
  readonly isOneType: boolean;
}

/** Imports the links beside a graph of one type; nothing where there are none. */
export async function importLinksBeside(context: ImportContext): Promise<void> {
  const nodes = (context.writer.written('indptr')?.rows ?? 1) - 1;
  const folder = join(context.source, 'links');
  await importLinks(context, { folder, numNodes: [nodes, nodes], isOneType: true });
}

/**
 * Reads, checks and writes the links of a folder; nothing where it has none. REQUIRES: the edges
 * along which messages go are written.
 */
export async function importLinks(context: ImportContext, place: LinkPlace): Promise<void> {
  const { writer, problems } = context;
  const { folder } = place;
  const names = await readdir(folder).catch(() => null);
  if (names === null) return;
  const reader = new LinkReader(context, { ...place, names });
  const before = problems.count;
  const pairs = {
    train: await reader.read('links_train'),
    val: await reader.read('links_val'),
    test: await reader.read('links_test'),
  };
  const negatives = {
    val: await reader.read('links_val_negatives'),
    test: await reader.read('links_test_negatives'),
  };
  const pool = {
    val: await reader.read('links_val_negative_pairs'),
    test: await reader.read('links_test_negative_pairs'),
  };
  for (const side of ['val', 'test'] as const) {
    checkNegatives(context, side, pairs[side], negatives[side]);
  }
  if (problems.count === before && (pool.val === null) !== (pool.test === null)) {
    const [name, other] = pool.val === null ? ['val', 'test'] : ['test', 'val'];
    problems.add(`links/${name}_negative_pairs.npy`, `is missing beside that of ${other}`);
  }
  const columns = [negatives.val, negatives.test].map((given) => given?.columns ?? 0);
  if (columns[0] !== columns[1] && problems.count === before) {
    const each = `${columns[0]} of each link of val and ${columns[1]} of test`;
    problems.add('links/test_negatives.npy', `there are ${each}, expected as many`);
  }
  const { train, val, test } = pairs;
  const labels = await readLinkLabels(context, { folder, files: reader.labelFiles(), pairs });
  const file = reader.weightFile();
  const weights = await readLinkWeights(context, { folder, names, file, pairs: train });
  if (problems.count > before || train === null || val === null || test === null) return;
  const inGraph = await checkedPairs(context, { train, val, test }, place.isOneType);
  if (problems.count > before) return;
  for (const side of linkSides) await writer.writeLinks(`links_${side}`, pairs[side] ?? nothing);
  for (const side of ['val', 'test'] as const) {
    const given = negatives[side];
    if (given !== null) await writer.writeLinks(`links_${side}_negatives`, given);
    const shared = pool[side];
    if (shared !== null) await writer.writeLinks(`links_${side}_negative_pairs`, shared);
  }
  writer.linksInGraph(inGraph);
  if (labels !== null) await writeLinkLabels(context, labels);
  if (weights !== null) await writer.writeLinkWeights(weights);
  const [learnt, validated, tested] = [train, val, test].map((each) => formatCount(rowsOf(each)));
  const ranked =
    negatives.test === null ? '' : `, these with ${negatives.test.columns} negatives each`;
  const pooled =
    pool.test === null ? '' : `, beside ${formatCount(rowsOf(pool.test))} pairs that are none`;
  const sides = `${learnt} links to learn, ${validated} to validate and ${tested} to test`;
  const weighted = weights === null ? '' : ', each of training with a weight';
  context.notices.add(`brings ${sides}${ranked}${pooled}${weighted}`);
}

const nothing: LinkArray = { path: '', columns: 2, values: new Uint32Array() };

function checkNegatives(
  { problems }: ImportContext,
  side: 'val' | 'test',
  pairs: LinkArray | null,
  negatives: LinkArray | null,
): void {
  if (negatives === null || pairs === null) return;
  const [of, found] = [pairs, negatives].map(rowsOf);
  if (of === found) return;
  const expected = `expected ${formatCount(of ?? 0)}, one for each link of ${side}`;
  problems.add(negatives.path, `has ${formatCount(found ?? 0)} rows of negatives: ${expected}`);
}

function rowsOf({ values, columns }: LinkArray): number {
  return columns === 0 ? 0 : values.length / columns;
}

interface Links extends LinkPlace {
  readonly names: readonly string[];
}

class LinkReader {
  readonly #context: ImportContext;
  readonly #links: Links;

  constructor(context: ImportContext, links: Links) {
    this.#context = context;
    this.#links = links;
  }

  /** Files of what is known of links, by side, as far as there are any. */
  labelFiles(): Readonly<Record<LinkSide, string | null>> {
    const fileOf = (side: LinkSide) => this.#fileOf(`links_${side}_labels`);
    return { train: fileOf('train'), val: fileOf('val'), test: fileOf('test') };
  }

  /** The file of the weights of training links; null: there is none. */
  weightFile(): string | null {
    return this.#fileOf('links_train_weights');
  }

  #fileOf(name: LinkArrayName): string | null {
    const files = namesOf[name].map((each) => `${each}.npy`);
    return files.find((each) => this.#links.names.includes(each)) ?? null;
  }

  /** Null where there is no such array, or something is wrong with it, which is told. */
  async read(name: LinkArrayName): Promise<LinkArray | null> {
    const { problems, signal } = this.#context;
    const { folder, names } = this.#links;
    const [own, ...others] = namesOf[name];
    const file = [own, ...others].map((each) => `${each}.npy`).find((each) => names.includes(each));
    const isPairs = !name.endsWith('_negatives');
    if (file === undefined) {
      if (linkSides.some((side) => side === own)) problems.add(`links/${own}.npy`, 'is missing');
      return null;
    }
    try {
      const open = () => openNpyFile(join(folder, file), signal, isPairs ? 'ANY' : 'C');
      const values = await this.#values(open, `links/${file}`, isPairs);
      if (values.values.length > 0) return values;
      problems.add(values.path, 'is empty: expected one link or more');
    } catch (error) {
      if (!(error instanceof ImportFailure)) throw error;
      for (const { description } of error.problems) problems.add(`links/${file}`, description);
    }
    return null;
  }

  async #values(
    open: () => Promise<NpySource>,
    path: string,
    isPairs: boolean,
  ): Promise<LinkArray> {
    const source = await open();
    try {
      const { type, shape } = source.header;
      if (!npyIntegers.some((each) => each === type)) {
        throw badFile(path, `has dtype ${type}, expected ids of nodes: ${npyIntegers.join(', ')}`);
      }
      const [rows = 0, columns = 0] = shape;
      if (isPairs && (shape.length !== 2 || (rows !== 2 && columns !== 2))) {
        throw badFile(path, `has shape (${shape.join(', ')}), expected [2, links] or [links, 2]`);
      }
      if (!isPairs && (shape.length !== 2 || columns === 0)) {
        throw badFile(path, `has shape (${shape.join(', ')}), expected [links, negatives]`);
      }
      const isByEnd = isPairs && liesByEnd(source.header);
      if (isPairs && rows === 2 && columns === 2) {
        const how = 'read as [2, links]: two sources, then their destinations';
        this.#context.notices.add(`${path} has shape (2, 2), ${how}`);
      }
      const ids = await this.#ids(source, path, isByEnd ? columns : null);
      return { path, columns: isPairs ? 2 : columns, values: ids };
    } finally {
      await source.close();
    }
  }

  /** All elements, row after row; `pairs` of an array that has sources first, then destinations. */
  async #ids(source: NpySource, path: string, pairs: number | null): Promise<Uint32Array> {
    const { signal } = this.#context;
    const { shape } = source.header;
    const count = (shape[0] ?? 0) * (shape[1] ?? 0);
    const columns = shape[1] ?? 1;
    const isPairs = pairs !== null || !path.endsWith('negatives.npy');
    const place = (at: number) => `row ${Math.floor(at / columns)}, column ${at % columns}`;
    const reader = new ElementReader(source, 'uint32', (_, value) => {
      throw badFile(path, `has ${value}, ${this.#expected(1)}`);
    });
    const read = await reader.take(count);
    signal.throwIfAborted();
    const { numNodes } = this.#links;
    const sideOf = (at: number): 0 | 1 => {
      if (!isPairs) return 1;
      return (pairs === null ? at % 2 === 0 : at < pairs) ? 0 : 1;
    };
    const outside: number[] = [];
    let others = 0;
    for (let at = 0; at < count; at += 1) {
      if ((read[at] ?? 0) < numNodes[sideOf(at)]) continue;
      if (outside.length === 0) outside.push(at);
      else others += 1;
    }
    for (const at of outside) {
      const more = others === 0 ? '' : ` and ${formatCount(others)} more`;
      throw badFile(path, `has ${read[at]} at ${place(at)}${more}: ${this.#expected(sideOf(at))}`);
    }
    return pairs === null ? read : turned(read, pairs);
  }

  #expected(side: 0 | 1): string {
    return `expected ids below the ${formatCount(this.#links.numNodes[side])} nodes`;
  }
}

/** Sources first, then destinations, as pairs. */
function turned(ids: Uint32Array, pairs: number): Uint32Array {
  const found = new Uint32Array(ids.length);
  for (let pair = 0; pair < pairs; pair += 1) {
    found[2 * pair] = ids[pair] ?? 0;
    found[2 * pair + 1] = ids[pairs + pair] ?? 0;
  }
  return found;
}
