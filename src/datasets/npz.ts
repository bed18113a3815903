import type { FileHandle } from 'node:fs/promises';
import { basename } from 'node:path';
import { crc32, createInflateRaw } from 'node:zlib';
import { messageOf } from '../base/errors.ts';
import { fileChunks, isZlibError, openSource, transformed } from './byte-streams.ts';
import { badFile } from './problems.ts';

/**
 * The part of ZIP that .npz files need: stored and deflated members, ZIP64 sizes, found through the
 * central directory (APPNOTE.TXT sections 4.3.12 to 4.3.16 and 4.5.3).
 */

export interface ZipMember {
  readonly name: string;
  /** Of the content. */
  readonly bytes: number;
  readonly packedBytes: number;
  readonly crc32: number;
  readonly method: 'stored' | 'deflated';
  /** Of its local header in the file. */
  readonly headerAt: number;
}

const endSignature = 0x06054b50;
const endBytes = 22;
const commentBytesMax = 0xffff;
const zip64LocatorSignature = 0x07064b50;
const zip64LocatorBytes = 20;
const zip64EndSignature = 0x06064b50;
const zip64EndBytes = 56;
const entrySignature = 0x02014b50;
const entryBytes = 46;
const localSignature = 0x04034b50;
const localBytes = 30;
const zip64ExtraId = 1;
const absent32 = 0xffffffff;
const inflateChunkBytes = 1 << 18;
/** Directories of real archives are far smaller. */
const directoryBytesMax = 64 << 20;

/** The members of an archive, by name. Throws ImportFailure when it is damaged or no ZIP file. */
export async function readZipDirectory(path: string): Promise<ReadonlyMap<string, ZipMember>> {
  const name = basename(path);
  const file = await openSource(path);
  try {
    const { size } = await file.stat();
    const { at, bytes } = await findDirectory(file, size, name);
    if (bytes > directoryBytesMax || at + bytes > size) {
      throw badFile(name, 'is damaged: its directory of members lies outside of the file');
    }
    return parseDirectory(await readAt(file, at, bytes, name), name);
  } finally {
    await file.close();
  }
}

async function readAt(file: FileHandle, at: number, bytes: number, name: string): Promise<Buffer> {
  const buffer = Buffer.alloc(bytes);
  let filled = 0;
  while (filled < bytes) {
    const { bytesRead } = await file.read(buffer, filled, bytes - filled, at + filled);
    if (bytesRead === 0) throw badFile(name, 'is truncated');
    filled += bytesRead;
  }
  return buffer;
}

async function findDirectory(
  file: FileHandle,
  size: number,
  name: string,
): Promise<{ at: number; bytes: number }> {
  const tailBytes = Math.min(size, endBytes + commentBytesMax);
  const tail = await readAt(file, size - tailBytes, tailBytes, name);
  let end = tail.length - endBytes;
  while (end >= 0 && tail.readUInt32LE(end) !== endSignature) end -= 1;
  if (end < 0) throw badFile(name, 'is not a whole .npz file: it has no ZIP directory at its end');
  const bytes = tail.readUInt32LE(end + 12);
  const at = tail.readUInt32LE(end + 16);
  if (bytes !== absent32 && at !== absent32) return { at, bytes };
  const locator = end - zip64LocatorBytes;
  if (locator < 0 || tail.readUInt32LE(locator) !== zip64LocatorSignature) {
    throw badFile(name, 'is damaged: its ZIP64 directory is missing');
  }
  const recordAt = Number(tail.readBigUInt64LE(locator + 8));
  const record = await readAt(file, recordAt, zip64EndBytes, name);
  if (record.readUInt32LE(0) !== zip64EndSignature) {
    throw badFile(name, 'is damaged: its ZIP64 directory is missing');
  }
  return { bytes: Number(record.readBigUInt64LE(40)), at: Number(record.readBigUInt64LE(48)) };
}

function parseDirectory(directory: Buffer, name: string): ReadonlyMap<string, ZipMember> {
  const members = new Map<string, ZipMember>();
  let at = 0;
  while (at < directory.length) {
    const whole = at + entryBytes <= directory.length;
    if (!whole || directory.readUInt32LE(at) !== entrySignature) {
      throw badFile(name, 'is damaged: its directory of members cannot be read');
    }
    const nameEnd = at + entryBytes + directory.readUInt16LE(at + 28);
    const extraEnd = nameEnd + directory.readUInt16LE(at + 30);
    const next = extraEnd + directory.readUInt16LE(at + 32);
    if (next > directory.length) throw badFile(name, 'is damaged: its directory is cut off');
    const member = directory.toString('utf8', at + entryBytes, nameEnd);
    const extra = directory.subarray(nameEnd, extraEnd);
    members.set(member, parseEntry(directory.subarray(at, at + entryBytes), extra, member, name));
    at = next;
  }
  return members;
}

function parseEntry(entry: Buffer, extra: Buffer, member: string, name: string): ZipMember {
  const method = entry.readUInt16LE(10);
  if ((entry.readUInt16LE(8) & 1) !== 0) throw badFile(`${name}/${member}`, 'is encrypted');
  if (method !== 0 && method !== 8) {
    throw badFile(`${name}/${member}`, `has compression method ${method}, expected 0 or 8`);
  }
  const sizes = zip64Sizes(extra);
  const read = (at: number): number => {
    const value = entry.readUInt32LE(at);
    if (value !== absent32) return value;
    const size = sizes.shift();
    if (size === undefined) throw badFile(`${name}/${member}`, 'is damaged: it has no ZIP64 size');
    return size;
  };
  const bytes = read(24);
  const packedBytes = read(20);
  const headerAt = read(42);
  return {
    name: member,
    bytes,
    packedBytes,
    crc32: entry.readUInt32LE(16),
    method: method === 0 ? 'stored' : 'deflated',
    headerAt,
  };
}

function zip64Sizes(extra: Buffer): number[] {
  for (let at = 0; at + 4 <= extra.length; ) {
    const bytes = extra.readUInt16LE(at + 2);
    const field = extra.subarray(at + 4, at + 4 + bytes);
    if (extra.readUInt16LE(at) === zip64ExtraId) {
      const count = Math.floor(field.length / 8);
      return Array.from({ length: count }, (_, i) => Number(field.readBigUInt64LE(8 * i)));
    }
    at += 4 + bytes;
  }
  return [];
}

/**
 * The content of a member. Throws ImportFailure naming file and member when it is damaged: its
 * size and CRC-32 are checked when it ends.
 */
export async function* readZipMember(
  path: string,
  member: ZipMember,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const display = `${basename(path)}/${member.name}`;
  if (member.packedBytes > 0) {
    const start = await findData(path, member, display);
    const packed = fileChunks(path, { start, end: start + member.packedBytes });
    const content =
      member.method === 'stored'
        ? packed
        : transformed(packed, createInflateRaw({ chunkSize: inflateChunkBytes }));
    let bytes = 0;
    let crc = 0;
    try {
      for await (const chunk of content) {
        signal.throwIfAborted();
        bytes += chunk.length;
        crc = crc32(chunk, crc);
        if (bytes > member.bytes) break;
        yield chunk;
      }
    } catch (error) {
      if (!isZlibError(error)) throw error;
      throw badFile(display, `is damaged: ${messageOf(error)}`);
    }
    if (bytes !== member.bytes || crc !== member.crc32) {
      throw badFile(display, 'is damaged: its size or CRC-32 is not the one in the directory');
    }
  }
}

/** The name and extra field of a local header may be longer than those of the directory. */
async function findData(path: string, member: ZipMember, display: string): Promise<number> {
  const file = await openSource(path);
  try {
    const header = await readAt(file, member.headerAt, localBytes, display);
    if (header.readUInt32LE(0) !== localSignature) {
      throw badFile(display, 'is damaged: its local header is not where the directory says');
    }
    return member.headerAt + localBytes + header.readUInt16LE(26) + header.readUInt16LE(28);
  } finally {
    await file.close();
  }
}
