import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { ArrayImport } from './array-import.ts';
import { type ArraySet, arraySet, npzMembers } from './array-set.ts';
import {
  columnsOf,
  csvRowsOf,
  floatsOf,
  integersOf,
  shortPath,
  writePairs,
} from './csv-numbers.ts';
import type { DatasetFacts } from './dataset-writer.ts';
import { givenSource, vectorSource } from './given-array.ts';
import { tableSorter } from './graph-writer.ts';
import { type ImportContext, part } from './import-context.ts';
import type { NpySource } from './npy.ts';
import { badFile, formatCount, ImportFailure } from './problems.ts';

/**
 * Imports the folder of a node property dataset as the Open Graph Benchmark's package leaves it:
 * `raw` (CSV files, or .npz archives of the large ones), `split/NAME` and `mapping`. Edges are
 * stored as those of tables are.
 */

const splits = { train: 'train', val: 'valid', test: 'test' } as const;
const labelMax = 2 ** 31 - 1;

export async function importOgbFolder(context: ImportContext): Promise<DatasetFacts> {
  const folder = new OgbFolder(context);
  const set = await folder.arrays();
  const share = set.edges === null ? 1 : 0.5;
  // Which split it is was decided by its folder.
  const facts = await new ArrayImport({ ...part(context, 0, share), split: null }, set).run();
  await folder.writeNames();
  return facts;
}

/** Whether a folder is one, by the names in it. */
export function isOgbFolder(names: ReadonlySet<string>): boolean {
  return names.has('raw') && names.has('split');
}

/** An array by its name, how to read it, and its bytes. */
type Member = readonly [name: string, open: () => Promise<NpySource>, bytes: number];

class OgbFolder {
  readonly #context: ImportContext;
  readonly #root: string;
  #numNodes = 0;

  constructor(context: ImportContext) {
    this.#context = context;
    this.#root = context.source;
  }

  async arrays(): Promise<ArraySet> {
    const raw = join(this.#root, 'raw');
    if (existsSync(join(raw, 'triplet-type-list.csv.gz')) || existsSync(join(raw, 'relations'))) {
      throw badFile('raw', 'has several types of nodes or edges: gnnd learns from one of each');
    }
    const isBinary = existsSync(join(raw, 'data.npz'));
    const graph = isBinary ? await this.#binary(raw) : await this.#text(raw);
    const members = new Map(graph.map(([name, open]) => [name, open] as const));
    await this.#addSplits(members);
    const classNames = await this.#classNames();
    return arraySet(this.#context, {
      source: `OGB folder ${basename(this.#root)}`,
      names: [...members.keys()],
      pathOf: (name) => ogbPath(name, isBinary),
      bytesOf: (name) => graph.find(([member]) => member === name)?.[2] ?? 0,
      open: async (name) => {
        const opened = members.get(name);
        if (opened === undefined) throw badFile(ogbPath(name, isBinary), 'is missing');
        return await opened();
      },
      undirected: !this.#context.directed,
      classNames,
      isTable: true,
      edges: isBinary ? null : (numNodes) => this.#writeEdges(join(raw, 'edge.csv.gz'), numNodes),
    });
  }

  async #writeEdges(path: string, numNodes: number): Promise<void> {
    const sorter = tableSorter(this.#context, numNodes, false);
    await writePairs(part(this.#context, 0.5, 1), path, { sorter, numNodes });
  }

  /** raw/*.csv.gz. */
  async #text(raw: string): Promise<readonly Member[]> {
    const context = this.#context;
    const at = (name: string) => join(raw, `${name}.csv.gz`);
    const isMissing = (name: string) => !existsSync(at(name));
    const needed = ['edge', 'num-node-list', 'node-feat', 'node-label'];
    const missing = needed.filter(isMissing);
    if (missing.length > 0) {
      throw new ImportFailure(
        missing.map((name) => ({ path: shortPath(at(name)), description: 'is missing' })),
      );
    }
    const [numNodes = 0, ...more] = await integersOf(context, at('num-node-list'), counted);
    if (more.length > 0) throw badFile(shortPath(at('num-node-list')), severalGraphs(more.length));
    this.#numNodes = numNodes;
    const columns = await columnsOf(context, at('node-feat'));
    const shape = { rows: numNodes, columns };
    const labels = {
      rows: numNodes,
      columns: Math.max(1, await columnsOf(context, at('node-label'))),
      mayLack: true,
    };
    if (!isMissing('edge-feat')) this.#noticeUnused('raw/edge-feat.csv.gz');
    return [
      [
        'features',
        async () =>
          givenSource(
            shortPath(at('node-feat')),
            { type: 'float32', shape: [numNodes, columns] },
            () => floatsOf(context, at('node-feat'), shape),
          ),
        4 * numNodes * columns,
      ],
      [
        'labels',
        async () =>
          givenSource(
            shortPath(at('node-label')),
            { type: 'float32', shape: [numNodes, labels.columns] },
            () => floatsOf(context, at('node-label'), labels),
          ),
        4 * numNodes * labels.columns,
      ],
    ];
  }

  /** raw/data.npz and raw/node-label.npz. */
  async #binary(raw: string): Promise<readonly Member[]> {
    const data = await npzMembers(join(raw, 'data.npz'), this.#context.signal);
    const labels = await npzMembers(join(raw, 'node-label.npz'), this.#context.signal);
    if (data.names.includes('edge_feat')) this.#noticeUnused('raw/data.npz/edge_feat');
    this.#numNodes = (await data.open('node_feat').then(closed)).header.shape[0] ?? 0;
    return [
      ['features', () => data.open('node_feat'), data.bytesOf('node_feat')],
      ['edge_index', () => data.open('edge_index'), data.bytesOf('edge_index')],
      ['labels', () => labels.open('node_label'), labels.bytesOf('node_label')],
    ];
  }

  #noticeUnused(path: string): void {
    this.#context.notices.add(`${path} is not used: models here read no edge features`);
  }

  async #addSplits(members: Map<string, Member[1]>): Promise<void> {
    const root = join(this.#root, 'split');
    const found = (await readdir(root, { withFileTypes: true })).filter((e) => e.isDirectory());
    const names = found.map(({ name }) => name).sort();
    if (names.length === 0) {
      throw badFile('split', 'has no folder of a split, such as split/time');
    }
    const asked = this.#context.split;
    const only = asked === null && names.length === 1 ? names[0] : asked;
    if (only === undefined || only === null || !names.includes(only)) {
      const wrong = asked === null ? '' : `, and no '${asked}'`;
      throw badFile('split', `has ${names.join(' and ')}${wrong}: choose one with split`);
    }
    for (const [name, file] of Object.entries(splits)) {
      const path = join(root, only, `${file}.csv.gz`);
      if (!existsSync(path)) {
        const torch = existsSync(join(root, only, 'split_dict.pt'));
        const how = torch ? ': split_dict.pt is read by gnnd for Python, client.import_ogb' : '';
        throw badFile(`split/${shortPath(path)}`, `is missing${how}`);
      }
      members.set(name, async () => {
        const rule = { below: this.#numNodes };
        return vectorSource(shortPath(path), 'int32', await integersOf(this.#context, path, rule));
      });
    }
  }

  /** What the classes are called, where `mapping` has all of them. */
  async #classNames(): Promise<readonly string[] | null> {
    const path = await this.#mapping('labelidx');
    if (path === null) return null;
    const names: string[] = [];
    for await (const name of this.#mapped(path)) names.push(name);
    return names.length === 0 ? null : names;
  }

  /** What `mapping` calls the nodes, for people. */
  async writeNames(): Promise<void> {
    const path = await this.#mapping('nodeidx');
    if (path === null) return;
    const { writer, notices } = this.#context;
    let count = 0;
    const lines = async function* (names: AsyncIterable<string>) {
      for await (const name of names) {
        count += 1;
        yield Buffer.from(`${name.replaceAll(/[\r\n]/g, ' ')}\n`, 'utf8');
      }
    };
    await writer.writeNames(lines(this.#mapped(path)));
    if (count === this.#numNodes) return;
    await writer.dropNames();
    const expected = `${formatCount(this.#numNodes)} nodes, one a row in their order`;
    notices.add(`${shortPath(path)} is not used: it does not name the ${expected}`);
  }

  async #mapping(start: string): Promise<string | null> {
    const folder = join(this.#root, 'mapping');
    if (!existsSync(folder)) return null;
    const found = (await readdir(folder)).filter(
      (name) => name.startsWith(start) && name.endsWith('.csv.gz'),
    );
    return found[0] === undefined || found.length > 1 ? null : join(folder, found[0]);
  }

  /** The second columns of rows `0,…`, `1,…` and so on; ends where they do not count up. */
  async *#mapped(path: string): AsyncGenerator<string> {
    let next = 0;
    let isHeader = true;
    for await (const rows of csvRowsOf(this.#context, path)) {
      for (const { fields } of rows) {
        if (isHeader) {
          isHeader = false;
          continue;
        }
        if (fields[0] !== String(next)) return;
        next += 1;
        yield fields.slice(1).join(',');
      }
    }
  }
}

const counted = { below: labelMax } as const;

function severalGraphs(others: number): string {
  return `says that there are ${others + 1} graphs: gnnd learns from one`;
}

function ogbPath(name: string, isBinary: boolean): string {
  if (name in splits) return `split/${name}`;
  if (isBinary) return name === 'labels' ? 'raw/node-label.npz' : 'raw/data.npz';
  return name === 'features' ? 'raw/node-feat.csv.gz' : `raw/${name}.csv.gz`;
}

async function closed(source: NpySource): Promise<NpySource> {
  await source.close();
  return source;
}
