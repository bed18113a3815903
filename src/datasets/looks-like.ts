/**
 * What a source that gnnd does not read looks like, and what to do with it: told from a name, the
 * first bytes of a file, or the names in a folder or an archive. Nothing here opens anything.
 */

/** What it is, as "is a picture (PNG)", and what to do; an empty remedy: nothing is known. */
export interface Looks {
  readonly what: string;
  readonly remedy: string;
}

export interface FileStart {
  readonly name: string;
  readonly bytes: number;
  /** `startBytes` of them, where there are so many. */
  readonly start: Uint8Array;
}

/** So much of a file tells its kind: the head of a tar archive is 512 bytes long. */
export const startBytes = 4096;

const importFolder = 'gnnctl dataset import FOLDER --id NAME';
const asTables = `write its nodes.csv and edges.csv into a folder: ${importFolder}`;
const asArrays =
  'read it in Python and hand its arrays on: client.import_arrays(NAME, features=x, …)';
const unpackTar = `unpack it (tar -xf FILE -C FOLDER), then: ${importFolder}`;
const unpack = `unpack it, then: ${importFolder}`;
const noGraph = 'a graph is needed: its nodes with features and labels, and its edges';
const asNetworkx = 'networkx reads it in Python; then: client.import_networkx(graph, NAME)';

/** By the bytes that a file begins with. */
const magics: readonly (readonly [magic: string | RegExp, what: string, remedy: string])[] = [
  ['\x89PNG\r\n', 'is a picture (PNG)', noGraph],
  ['\xff\xd8\xff', 'is a picture (JPEG)', noGraph],
  [/^GIF8[79]a/, 'is a picture (GIF)', noGraph],
  [/^(II\*\0|MM\0\*)/, 'is a picture (TIFF)', noGraph],
  [/^RIFF[\s\S]{4}WEBP/, 'is a picture (WebP)', noGraph],
  [/^RIFF[\s\S]{4}WAVE|^ID3|^OggS|^fLaC/, 'is a sound', noGraph],
  [/^[\s\S]{4}ftyp/, 'is a film', noGraph],
  ['%PDF-', 'is a PDF document', noGraph],
  ['%!PS', 'is a PostScript document', noGraph],
  ['\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1', 'is an old Office document (.xls, .doc)', asTables],
  ['\x89HDF\r\n\x1a\n', 'is an HDF5 file (h5py reads it)', asArrays],
  ['MATLAB 5.0 MAT-file', 'is a MATLAB file (scipy.io.loadmat reads it)', asArrays],
  ['SQLite format 3\0', 'is an SQLite database', asTables],
  ['PGDMP', 'is a dump of PostgreSQL', asTables],
  [
    'PAR1',
    'is one Parquet file',
    `name it nodes.parquet, edges.parquet beside it: ${importFolder}`,
  ],
  ['ARROW1', 'is an Arrow file (Feather)', 'write nodes.parquet and edges.parquet of it'],
  ['ORC', 'is an ORC file', 'write nodes.parquet and edges.parquet of it'],
  ['Obj\x01', 'is an Avro file', 'write nodes.parquet and edges.parquet of it'],
  ['CDF', 'is a NetCDF file', asArrays],
  [
    '\x93NUMPY',
    'is one array (.npy)',
    `a dataset is the folder of all its arrays: ${importFolder}`,
  ],
  ...['\x02', '\x03', '\x04', '\x05'].map((protocol) => pickle(`\x80${protocol}`)),
  [/^[\s\S]{6}\0\0\{"/, 'is a safetensors file: the weights of a model', noGraph],
  pickle(/^c[a-z_.]+\n\w+\n/),
  ['\x7fELF', 'is a program', noGraph],
  ['\x7bGIT', 'is a bundle of git', noGraph],
  ['BZh', 'is packed (bzip2)', `unpack it (bunzip2 FILE), then: ${importFolder}`],
  ['\xfd7zXZ\0', 'is packed (xz)', `unpack it (unxz FILE), then: ${importFolder}`],
  ['\x28\xb5\x2f\xfd', 'is packed (zstd)', `unpack it (unzstd FILE), then: ${importFolder}`],
  ["7z\xbc\xaf'\x1c", 'is an archive (7z)', unpack],
  ['Rar!', 'is an archive (RAR)', unpack],
];

function pickle(begin: string | RegExp): readonly [string | RegExp, string, string] {
  const remedy = `it is not loaded, as that runs what it says; if you trust it, ${asArrays}`;
  return [begin, 'is a pickle of Python objects', remedy];
}

/** By how a text begins, after white space. */
const texts: readonly (readonly [begin: RegExp, what: string, remedy: string])[] = [
  [/^version https:\/\/git-lfs/, 'is a pointer of Git LFS, not the file', 'get it: git lfs pull'],
  [/^(<!doctype html|<html)/i, 'is a web page', 'was a download answered with one? Get it anew'],
  [/^(<\?xml[^>]*>\s*)?<svg/, 'is a picture (SVG)', noGraph],
  [/^(<\?xml|<\w+[ >])/, 'is XML', asTables],
  [/^(strict\s+)?(di)?graph\b[^\n]*\{/i, 'is a graph in DOT', asNetworkx],
  [/^\*vertices\b/i, 'is a Pajek graph', asNetworkx],
  [/^%%MatrixMarket/i, 'is a Matrix Market file', scipyRemedy()],
  [/^(@prefix|@base|<https?:[^>]*>\s+<)/, 'is RDF', asTables],
  [/^(-- |\/\*|CREATE TABLE|INSERT INTO|PRAGMA)/i, 'is SQL', asTables],
  [/^\{[\s\S]*"nbformat"|^\{\s*"cells"/, 'is a notebook', noGraph],
  [/^\{[^\n]*\}\s*\n\s*\{/, 'is lines of JSON', asTables],
  [/^[{[]/, 'is JSON', asTables],
  [/^(api_version:|spec:|dataset:)/m, 'looks like a job spec', 'gnnctl job create -f FILE'],
  [/^(import |from \w+ import |def |class |#!)/, 'is a program in source', noGraph],
];

function scipyRemedy(): string {
  return 'scipy.io.mmread reads it in Python; then: client.import_scipy(matrix, NAME, …)';
}

/** The kind of a file that is of no format. */
export function fileLooksLike({ name, bytes, start }: FileStart): Looks {
  if (bytes === 0) return { what: 'is empty', remedy: 'was it written to its end?' };
  if (start.every((byte) => byte === 0)) {
    return { what: 'holds nothing but zeros', remedy: 'was its copy cut off? Get it anew' };
  }
  const latin = Buffer.from(start).toString('latin1');
  if (latin.startsWith('\x1f\x8b')) return gzipped(name);
  if (latin.slice(257, 262) === 'ustar') return { what: 'is an archive (tar)', remedy: unpackTar };
  const magic = magics.find(([is]) =>
    typeof is === 'string' ? latin.startsWith(is) : is.test(latin),
  );
  if (magic !== undefined) return { what: magic[1], remedy: magic[2] };
  const text = textOf(start, bytes);
  if (text === null)
    return { what: `is of a kind that gnnd does not know${endingOf(name)}`, remedy: '' };
  return textLooksLike(text);
}

function gzipped(name: string): Looks {
  if (/\.(tar\.gz|tgz)$/i.test(name)) return { what: 'is an archive (tar.gz)', remedy: unpackTar };
  if (/\.(csv|tsv|txt)\.gz$/i.test(name)) return oneTable('is one packed table', '.csv.gz');
  return { what: 'is packed (gzip)', remedy: `unpack it (gunzip FILE), then: ${importFolder}` };
}

function oneTable(what: string, ending: string): Looks {
  const remedy = `a dataset is a folder with nodes${ending} and edges${ending}: ${importFolder}`;
  return { what, remedy };
}

/** Null for bytes that are no text; a letter that was cut off at the end is none of them. */
function textOf(start: Uint8Array, bytes: number): string | null {
  const isWide =
    (start[0] === 0xff && start[1] === 0xfe) || (start[0] === 0xfe && start[1] === 0xff);
  if (isWide) return new TextDecoder(start[0] === 0xff ? 'utf-16le' : 'utf-16be').decode(start);
  if (start.includes(0)) return null;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(start, {
      stream: start.length < bytes,
    });
  } catch {
    // Older tables are in Latin-1, which has no bytes that control anything but white space.
    return start.some((byte) => byte < 9) ? null : Buffer.from(start).toString('latin1');
  }
}

function textLooksLike(text: string): Looks {
  const body = text.trimStart();
  const found = texts.find(([begin]) => begin.test(body));
  if (found !== undefined) return { what: found[1], remedy: found[2] };
  const lines = body
    .split(/\r?\n/)
    .slice(0, -1)
    .filter((line) => !/^[#%]/.test(line) && line !== '');
  const first = lines[0] ?? body.split(/\r?\n/)[0] ?? '';
  const isPairs =
    lines.length > 0 &&
    lines.every((line) => /^[^\s,;]+[ \t,;]+[^\s,;]+([ \t,;]+[\d.eE+-]+)?\s*$/.test(line));
  const separator = [',', '\t', ';', '|'].find((one) => first.includes(one));
  const columns = separator === undefined ? [] : first.split(separator);
  if (isPairs && columns.length <= 3) {
    const edges = 'name it edges.csv with a first line src,dst';
    return { what: 'is a list of edges', remedy: `${edges}, nodes.csv beside it: ${importFolder}` };
  }
  const counts = new Set(lines.map((line) => line.split(separator ?? '\n').length));
  // Sentences have commas, too, but not as many in each line.
  const isTable = columns.length > 1 && (counts.size === 1 || lines.length < 2);
  if (!isTable) return { what: 'is a text', remedy: noGraph };
  const shown = columns
    .slice(0, 4)
    .map((column) => column.trim().slice(0, 20))
    .join(', ');
  const more = columns.length > 4 ? ', …' : '';
  return oneTable(`is one table (its first line: ${shown}${more})`, '.csv');
}

function endingOf(name: string): string {
  const ending = /\.\w{1,12}$/.exec(name)?.[0];
  return ending === undefined ? '' : ` (${ending})`;
}

/** What a ZIP archive without arrays holds. */
export function zipLooksLike(names: readonly string[]): Looks {
  const has = (pattern: RegExp) => names.some((name) => pattern.test(name));
  if (names.length === 0) return { what: 'is a ZIP archive with nothing in it', remedy: '' };
  if (has(/(^|\/)constants\.pkl$/)) {
    return { what: 'is a TorchScript file: a model', remedy: noGraph };
  }
  if (has(/^xl\//)) return { what: 'is an Excel workbook (.xlsx)', remedy: asTables };
  if (has(/^word\//)) return { what: 'is a Word document (.docx)', remedy: noGraph };
  if (has(/^ppt\//)) return { what: 'is a presentation (.pptx)', remedy: noGraph };
  if (has(/^content\.xml$/)) return { what: 'is an OpenDocument file', remedy: asTables };
  if (has(/^model\.weights\.h5$/)) return { what: 'is a model of Keras', remedy: noGraph };
  if (has(/^META-INF\/MANIFEST\.MF$/)) return { what: 'is a Java archive', remedy: noGraph };
  const shown = someNames(names);
  if (has(/\.(csv|tsv|parquet|npz|pt|bin)(\.\w+)?$/) || has(/^([^/]+\/)?(raw|processed|split)\//)) {
    return {
      what: `is a ZIP archive of ${shown}`,
      remedy: `unpack it (unzip FILE), then: ${importFolder}`,
    };
  }
  const remedy = 'numpy.savez makes what is read';
  return { what: `is a ZIP archive without a .npy array (${shown})`, remedy };
}

/** Names that others give to the two tables. */
const tableNames: Readonly<Record<'nodes' | 'edges', RegExp>> = {
  nodes: /^(node|vertices|vertex|features?|entities|content|users?|papers?)s?\b/i,
  edges: /^(edge|links?|relation|cites|citations?|adjacency|edgelist|edge_list)s?\b/i,
};

/** The kind of a folder that is of no format, by the names in it. */
export function folderLooksLike(names: readonly string[]): Looks {
  const all = names.filter((name) => !name.startsWith('.'));
  if (all.length === 0) return { what: 'is an empty folder', remedy: noGraph };
  const shown = someNames(all);
  const having = (pattern: RegExp) => all.filter((name) => pattern.test(name));
  const pictures = having(/\.(png|jpe?g|gif|bmp|tiff?|webp)$/i);
  if (pictures.length * 2 > all.length)
    return { what: `is a folder of pictures (${shown})`, remedy: noGraph };
  if (all.includes('export.json') || all.includes('model.safetensors')) {
    return { what: 'holds a trained model (gnnctl checkpoint export JOB FOLDER)', remedy: noGraph };
  }
  if (having(/^gnnd\.db$/).length > 0 || (all.includes('store') && all.includes('LOCK'))) {
    return {
      what: "is a daemon's state directory",
      remedy: 'its datasets are those of gnnctl dataset list',
    };
  }
  if (all.includes('data.mdb')) return { what: 'is an LMDB database', remedy: asTables };
  const arrays = having(/\.npy$/);
  if (arrays.length > 0) {
    const needed = 'expected indptr.npy and indices.npy, or edge_index.npy';
    return {
      what: `has arrays (${someNames(arrays)}), but none of edges`,
      remedy: `${needed}: ${importFolder}`,
    };
  }
  const tables = having(/\.(csv|tsv|parquet)(\.(gz|zst))?$/i);
  if (tables.length > 0) return tablesLookLike(tables);
  if (all.includes('processed') || all.includes('raw')) {
    const remedy = 'in Python: client.import_pyg(path, NAME) of the file in processed';
    return { what: 'is the folder of a dataset of PyTorch Geometric', remedy };
  }
  return { what: `is a folder of no format that is known (${shown})`, remedy: '' };
}

function tablesLookLike(tables: readonly string[]): Looks {
  const renamed = (['nodes', 'edges'] as const).flatMap((table) => {
    const found = tables.find((name) => tableNames[table].test(name));
    return found === undefined ? [] : [`${found} as ${table}${found.slice(found.indexOf('.'))}`];
  });
  const what = `has tables (${someNames(tables)}), but no nodes.csv and no edges.csv`;
  const how = renamed.length === 0 ? 'name them so' : `name ${renamed.join(', ')}`;
  return { what, remedy: `${how}, then: ${importFolder}` };
}

function someNames(names: readonly string[]): string {
  const shown = [...names]
    .sort()
    .slice(0, 3)
    .map((name) => name.slice(0, 60));
  return `${shown.join(', ')}${names.length > shown.length ? ', …' : ''}`;
}
