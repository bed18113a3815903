import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { ConvertedFormat } from './converted-formats.ts';

/** Sources that only Python reads, told by names and first bytes; what is in them is read later. */

/** First bytes of what `dgl.save_graphs` writes: 0xDD2E4FF046B4A13F, little-endian. */
const dglMagic = Buffer.from('3fa1b446f04f2edd', 'hex');
/** First bytes of what `torch.save` wrote before version 1.6: a pickle of a number. */
const oldTorchMagic = Buffer.from('80028a0a6cfc9c46f9206aa850192e', 'hex');
/** How the texts begin that networkx reads, whatever they are called. */
const networkxStarts = [
  /^\s*(<\?xml[^>]*>\s*)?(<!--[\s\S]*?-->\s*)?<(graphml|gexf)/i,
  /^\s*(#[^\n]*\n\s*|Creator[^\n]*\n\s*)*graph\s*\[/i,
  /^\s*\{[\s\S]*"(nodes|links|directed|multigraph)"\s*:/,
];
const networkxName = /\.(gml|graphml|gexf)(\.gz|\.bz2)?$/i;
const torchName = /\.(pt|pth)$/i;

/** The format of a file of this name that starts so; null where it is none of these. */
export function convertedFile(path: string, start: Buffer): ConvertedFormat | null {
  const begins = (magic: Buffer) => start.subarray(0, magic.length).equals(magic);
  if (begins(dglMagic)) return 'DGL';
  const name = basename(path);
  if (torchName.test(name) || begins(oldTorchMagic)) return 'PYG';
  const text = start.toString('latin1');
  const isNetworkx = networkxName.test(name) || networkxStarts.some((begin) => begin.test(text));
  return isNetworkx ? 'NETWORKX' : null;
}

/** The format of a folder with these names in it; null where it is none of these. */
export async function convertedFolder(
  folder: string,
  names: ReadonlySet<string>,
): Promise<ConvertedFormat | null> {
  const ends = (pattern: RegExp) => [...names].some((name) => pattern.test(name));
  if (ends(/^ind\..+\.graph$/)) return 'PLANETOID';
  if (names.has('adj_full.npz') && names.has('role.json')) return 'GRAPHSAINT';
  if (ends(/-G\.json$/)) return 'GRAPHSAGE';
  if (names.has('processed') || ends(/^(data|data_undirected)\.pt$/)) return 'PYG';
  if (names.has('split') && (await hasLinksSplit(join(folder, 'split')))) return 'OGB_LINKS';
  if (names.has('raw')) {
    const raw: string[] = await readdir(join(folder, 'raw')).catch(() => []);
    if (raw.some((name) => /^ind\..+\.graph$/.test(name))) return 'PLANETOID';
  }
  // A folder that torch_geometric was told to keep one dataset in: root/Cora/processed.
  const [only, ...others] = names;
  if (only === undefined || others.length > 0) return null;
  const inner: string[] = await readdir(join(folder, only)).catch(() => []);
  return inner.includes('processed') ? 'PYG' : null;
}

/** Whether a split of it is of links, which OGB keeps in files of torch. */
async function hasLinksSplit(folder: string): Promise<boolean> {
  const splits: string[] = await readdir(folder).catch(() => []);
  return splits.some((name) => existsSync(join(folder, name, 'train.pt')));
}
