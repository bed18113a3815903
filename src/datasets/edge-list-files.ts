import { basename } from 'node:path';
import { openRegular } from '../base/regular-file.ts';
import { firstNames, secondNames } from './edge-columns.ts';

/** Folders with one file of edges and what says more of the nodes, told by the files' names. */

/** What describes the nodes of a list of edges, by the collection that it comes from. */
export type NodesForm =
  /** LINQS: id, features, label; no header. */
  | 'CONTENT'
  /** geom-gcn: node_id, feature (numbers by commas), label. */
  | 'FEATURE_LABEL'
  /** MUSAE: a table with a header, and features as lists by id in a .json. */
  | 'TARGET'
  /** SNAP: node, label. */
  | 'LABELS';

export interface EdgeListFiles {
  readonly edges: string;
  readonly nodes: { readonly form: NodesForm; readonly file: string } | null;
  /** Lists of features by id, of TARGET. */
  readonly features: string | null;
}

const packed = '(\\.gz|\\.zst)?$';
const textName = new RegExp(
  `\\.(txt|csv|tsv|tab|dat|edges|edgelist|el|cites|labels)${packed}`,
  'i',
);
const aside = /^(readme|licen[cs]e|citation|citing|\.|_)|\.(md|pdf|html?|py|bib)$/i;
const edgesName = /edge|graph|link|network|cites|\.el\b|ties|follow/i;
const labelsName = /label|target|class|node|communit|depart|categor|type/i;

/** Bytes that tell whether a text is a list. */
const startBytes = 1 << 14;

/** Whether a file alone may be a list of edges: its name, and that its first lines are alike. */
export async function isEdgeListFile(path: string): Promise<boolean> {
  const name = basename(path);
  if (!textName.test(name)) return false;
  if (/\.(gz|zst)$/i.test(name)) return true;
  const file = await openRegular(path);
  const start = Buffer.alloc(startBytes);
  try {
    const { bytesRead } = await file.read(start, 0, startBytes, 0);
    return isList(start.toString('utf8', 0, bytesRead), bytesRead < startBytes);
  } finally {
    await file.close();
  }
}

/** Whether a header has names of both ends. */
function namesEnds(header: readonly string[]): boolean {
  const names = header.map((name) => name.replaceAll('"', '').toLowerCase());
  return [firstNames, secondNames].every((ends) => names.some((name) => ends.includes(name)));
}

const isNumber = (text: string) => /^-?\d+(\.\d*)?$/.test(text);

function isList(text: string, isWhole: boolean): boolean {
  const lines = text.split(/\r?\n/).slice(0, isWhole ? undefined : -1);
  const rows = lines.filter((line) => line.trim() !== '' && !/^[#%]/.test(line));
  const cut = rows.map((line) => line.trim().split(/[\s,;|]+/));
  const [first] = cut;
  const width = first?.length ?? 0;
  // A header of other columns is that of a table.
  if (width > 2 && first?.some(isNumber) === false && !namesEnds(first)) return false;
  // Prose may have equally many words a line; lists with more than two columns have numbers.
  const isPair = (fields: readonly string[]) =>
    fields.length === width && (width === 2 || fields === first || fields.some(isNumber));
  return !text.includes('\0') && width >= 2 && cut.every(isPair);
}

/** Null where it is not clear which file has the edges. */
export function edgeListFiles(names: readonly string[]): EdgeListFiles | null {
  const files = names.filter((name) => !aside.test(name));
  return linqs(files) ?? geom(files) ?? musae(files) ?? snap(files);
}

const one = (names: readonly string[]): string | null =>
  names.length === 1 ? (names[0] ?? null) : null;

function linqs(names: readonly string[]): EdgeListFiles | null {
  const ending = (end: string) => one(names.filter((name) => new RegExp(end + packed).test(name)));
  const [edges, file] = [ending('\\.cites'), ending('\\.content')];
  if (edges === null || file === null) return null;
  return { edges, nodes: { form: 'CONTENT', file }, features: null };
}

function geom(names: readonly string[]): EdgeListFiles | null {
  const edges = one(names.filter((name) => /graph_edges\.txt/.test(name)));
  const file = one(names.filter((name) => /node_feature_label\.txt/.test(name)));
  if (edges === null || file === null) return null;
  return { edges, nodes: { form: 'FEATURE_LABEL', file }, features: null };
}

function musae(names: readonly string[]): EdgeListFiles | null {
  const edges = one(names.filter((name) => /_edges?\.csv/.test(name)));
  const file = one(names.filter((name) => /_target\.csv/.test(name)));
  if (edges === null || file === null) return null;
  const features = one(names.filter((name) => /\.json$/.test(name)));
  return { edges, nodes: { form: 'TARGET', file }, features };
}

function snap(names: readonly string[]): EdgeListFiles | null {
  const texts = names.filter((name) => textName.test(name));
  const [only] = texts;
  if (texts.length === 1 && only !== undefined) {
    return { edges: only, nodes: null, features: null };
  }
  if (texts.length !== 2) return null;
  const labels = one(texts.filter((name) => labelsName.test(name)));
  const edges = one(texts.filter((name) => edgesName.test(name)));
  // Two tables are nodes and edges by other names than theirs, which is for their owner to say.
  const others = texts.filter((name) => name !== edges && !/\.(csv|tsv)\b/i.test(name));
  const file = labels ?? one(others);
  const rest = one(texts.filter((name) => name !== file));
  if (file === null || rest === null || (labels === null && edges === null)) return null;
  return { edges: rest, nodes: { form: 'LABELS', file }, features: null };
}
