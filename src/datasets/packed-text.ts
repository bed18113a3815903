import { createGunzip } from 'node:zlib';
import { Decompress } from 'fzstd';
import { messageOf } from '../base/errors.ts';
import { isZlibError, transformed } from './byte-streams.ts';
import { badFile } from './problems.ts';

/** Files of text as people pack them: gzip and zstd, told by name and held against first bytes. */

type Packing = 'gzip' | 'zstd';

const packings: Readonly<Record<string, Packing>> = { '.gz': 'gzip', '.zst': 'zstd' };
const suffixOf: Readonly<Record<Packing, string>> = { gzip: '.gz', zstd: '.zst' };
const chunkBytes = 1 << 18;

/** What a file is by its first bytes, to follow "is"; null where they are those of a text. */
const kinds: readonly { readonly magic: Buffer; readonly kind: string; packing?: Packing }[] = [
  { magic: Buffer.from([0x1f, 0x8b]), kind: 'a gzip file', packing: 'gzip' },
  { magic: Buffer.from([0x28, 0xb5, 0x2f, 0xfd]), kind: 'a zstd file', packing: 'zstd' },
  { magic: Buffer.from('PAR1'), kind: 'a Parquet file' },
  { magic: Buffer.from('PK\x03\x04'), kind: 'a ZIP archive, as .xlsx and .npz are' },
  { magic: Buffer.from('BZh'), kind: 'a bzip2 file' },
  { magic: Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a]), kind: 'an xz file' },
  { magic: Buffer.from('ARROW1'), kind: 'an Arrow file' },
  { magic: Buffer.from('SQLite format 3'), kind: 'an SQLite database' },
  { magic: Buffer.from([0xff, 0xfe]), kind: 'UTF-16 text' },
  { magic: Buffer.from([0xfe, 0xff]), kind: 'UTF-16 text' },
];

/** How the name of a file says that it is packed, or null. */
export function packingOf(name: string): Packing | null {
  const suffix = Object.keys(packings).find((end) => name.toLowerCase().endsWith(end));
  return suffix === undefined ? null : (packings[suffix] ?? null);
}

/** The bytes of a text, unpacked. Throws ImportFailure for a file that is not what it is called. */
export async function* textBytes(
  name: string,
  chunks: AsyncGenerator<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  try {
    const packing = packingOf(name);
    const checked = startChecked(name, chunks, packing);
    if (packing === 'gzip') yield* gunzipped(name, checked);
    else if (packing === 'zstd') yield* unpackedZstd(name, checked);
    else yield* checked;
  } finally {
    await chunks.return(undefined);
  }
}

async function* startChecked(
  name: string,
  chunks: AsyncGenerator<Uint8Array>,
  packing: Packing | null,
): AsyncGenerator<Uint8Array> {
  let isFirst = true;
  for await (const chunk of chunks) {
    if (isFirst) checkStart(name, chunk, packing);
    isFirst = false;
    yield chunk;
  }
}

function checkStart(name: string, start: Uint8Array, packing: Packing | null): void {
  const known = kinds.find(({ magic }) => magic.equals(start.subarray(0, magic.length)));
  if (known !== undefined && known.packing === packing && packing !== null) return;
  const isText = known === undefined;
  if (packing !== null) {
    const found = isText ? 'something else, perhaps plain text' : known.kind;
    throw badFile(name, `is no ${packing} file, as its name says: it is ${found}`);
  }
  const isWide = isText && start.length > 1 && (start[0] === 0) !== (start[1] === 0);
  if (isText && !isWide) return;
  const kind = isWide ? 'UTF-16 text' : known?.kind;
  const remedy =
    known?.packing === undefined
      ? 'expected UTF-8 text: store it as that'
      : `call it ${name}${suffixOf[known.packing]}`;
  throw badFile(name, `is ${kind}, ${remedy}`);
}

async function* gunzipped(
  name: string,
  chunks: AsyncGenerator<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  try {
    yield* transformed(chunks, createGunzip({ chunkSize: chunkBytes }));
  } catch (error) {
    if (!isZlibError(error)) throw error;
    throw badFile(name, `is not a whole gzip file: ${messageOf(error)}`);
  }
}

async function* unpackedZstd(
  name: string,
  chunks: AsyncGenerator<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const ready: Uint8Array[] = [];
  let isWhole = false;
  const unpack = new Decompress((bytes, isLast) => {
    // The library reuses what it hands over.
    if (bytes.length > 0) ready.push(bytes.slice());
    isWhole = isLast ?? false;
  });
  const push = (chunk: Uint8Array, isLast: boolean) => {
    try {
      unpack.push(chunk, isLast);
    } catch (error) {
      throw badFile(name, `is not a whole zstd file: ${messageOf(error)}`);
    }
  };
  for await (const chunk of chunks) {
    push(chunk, false);
    yield* ready.splice(0);
  }
  push(new Uint8Array(), true);
  yield* ready.splice(0);
  if (!isWhole) throw badFile(name, 'is not a whole zstd file: it ends too early');
}
