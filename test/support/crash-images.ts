import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Random } from './random.ts';

/**
 * What a disk may hold after the power failed, made of what a process wrote (GNND_FAULT_RECORD of
 * faults.c). What was synced is there. Of writes to a file that came after its last sync each may
 * be there, or not, or half; names (files made, renamed, removed) reach the disk in their order, as
 * journalling file systems have it, but maybe not the last ones, and not before or after the
 * writes. A sync keeps the names so far.
 */

export type Operation =
  | { readonly kind: 'WRITE'; readonly path: string; readonly at: number; readonly bytes: Buffer }
  | { readonly kind: 'TRUNCATE'; readonly path: string; readonly size: number }
  | { readonly kind: 'RENAME'; readonly path: string; readonly to: string }
  | {
      readonly kind: 'SYNC' | 'UNLINK' | 'MKDIR' | 'RMDIR' | 'CREATE';
      readonly path: string;
    }
  /** What the process said by then on its standard output. */
  | { readonly kind: 'SAY'; readonly text: string };

const kinds = [
  '',
  'WRITE',
  'TRUNCATE',
  'SYNC',
  'RENAME',
  'UNLINK',
  'MKDIR',
  'RMDIR',
  'CREATE',
  'SAY',
] as const;
const headBytes = 32;

/** A record that its process did not end is left out. */
export function operationsOf(record: Buffer): readonly Operation[] {
  const operations: Operation[] = [];
  for (let at = 0; at + headBytes <= record.length; ) {
    const kind = kinds[record.readUInt32LE(at)];
    const [pathBytes, toBytes] = [record.readUInt32LE(at + 4), record.readUInt32LE(at + 8)];
    const offset = Number(record.readBigUInt64LE(at + 16));
    const size = Number(record.readBigUInt64LE(at + 24));
    const take = (bytes: number) => {
      const taken = record.subarray(at, at + bytes);
      at += bytes;
      return taken;
    };
    take(headBytes);
    const path = take(pathBytes).toString();
    const to = take(toBytes).toString();
    const bytes = take(size);
    if (bytes.length < size) break;
    if (kind === 'WRITE') operations.push({ kind, path, at: offset, bytes });
    else if (kind === 'TRUNCATE') operations.push({ kind, path, size: offset });
    else if (kind === 'RENAME') operations.push({ kind, path, to });
    else if (kind === 'SAY') operations.push({ kind, text: bytes.toString() });
    else if (kind !== undefined && kind !== '') operations.push({ kind, path });
  }
  return operations;
}

/** Record of what somebody else was told by now; to be appended to the process's record. */
export function sayRecord(text: string): Buffer {
  const bytes = Buffer.from(text);
  const head = Buffer.alloc(headBytes);
  head.writeUInt32LE(kinds.indexOf('SAY'), 0);
  head.writeBigUInt64LE(BigInt(bytes.length), 24);
  return Buffer.concat([head, bytes]);
}

/** A file, whatever its name is: the beginning of memory that grows by doubling. */
class Content {
  #room = Buffer.alloc(0);
  #size = 0;

  get bytes(): Buffer {
    return this.#room.subarray(0, this.#size);
  }

  /** What is new reads as zeros. */
  resize(size: number): void {
    if (size > this.#room.length) {
      const room = Buffer.alloc(2 * size);
      this.bytes.copy(room);
      this.#room = room;
    }
    if (size < this.#size) this.#room.fill(0, size, this.#size);
    this.#size = size;
  }

  write(bytes: Buffer, at: number): void {
    this.resize(Math.max(this.#size, at + bytes.length));
    bytes.copy(this.#room, at);
  }
}

/** Names of files and folders; a folder has no content. */
class Names {
  readonly all = new Map<string, Content | null>();

  move(path: string, to: string): void {
    for (const [name, content] of [...this.all]) {
      if (name !== path && !name.startsWith(`${path}/`)) continue;
      this.all.delete(name);
      this.all.set(to + name.slice(path.length), content);
    }
  }
}

/**
 * Below `folder` what the disk holds of `root` if the power fails before operation `end`. What was
 * there before the record began is not known and must be nothing.
 */
export function writeCrashImage(
  operations: readonly Operation[],
  { root, folder, end, random }: { root: string; folder: string; end: number; random: Random },
): void {
  const kept = surviving(operations.slice(0, end), random);
  const [running, disk] = [new Names(), new Names()];
  operations.slice(0, end).forEach((operation, i) => {
    const share = kept[i] ?? 0;
    perform(operation, running, disk, share);
  });
  mkdirSync(folder, { recursive: true });
  for (const [path, content] of disk.all) {
    const place = join(folder, path.slice(root.length));
    mkdirSync(content === null ? place : dirname(place), { recursive: true });
    if (content !== null) writeFileSync(place, content.bytes);
  }
}

const changesNames = (operation: Operation): boolean =>
  ['CREATE', 'RENAME', 'UNLINK', 'MKDIR', 'RMDIR'].includes(operation.kind);

/** How much of each operation is on the disk: 0, 1, or half of a write. */
function surviving(operations: readonly Operation[], random: Random): readonly number[] {
  const nameOf = lastNamesOf(operations);
  const syncedAt = new Map<string, number>();
  let synced = -1;
  operations.forEach(({ kind }, i) => {
    if (kind !== 'SYNC') return;
    syncedAt.set(nameOf[i] ?? '', i);
    synced = i;
  });
  const namesEnd = random.integer(synced + 1, operations.length);
  return operations.map((operation, i) => {
    if (changesNames(operation)) return i < namesEnd ? 1 : 0;
    if (operation.kind !== 'WRITE' && operation.kind !== 'TRUNCATE') return 0;
    if (i < (syncedAt.get(nameOf[i] ?? '') ?? -1)) return 1;
    return operation.kind === 'TRUNCATE' ? random.integer(0, 1) : random.integer(0, 2) / 2;
  });
}

/** The name that each operation's file has in the end. */
function lastNamesOf(operations: readonly Operation[]): readonly string[] {
  const names: string[] = [];
  const moves: { path: string; to: string }[] = [];
  for (let i = operations.length - 1; i >= 0; i -= 1) {
    const operation = operations[i];
    if (operation === undefined || operation.kind === 'SAY') continue;
    let name = operation.path;
    for (const { path, to } of moves.toReversed()) {
      if (name === path || name.startsWith(`${path}/`)) name = to + name.slice(path.length);
    }
    names[i] = name;
    if (operation.kind === 'RENAME') moves.push({ path: operation.path, to: operation.to });
  }
  return names;
}

function perform(operation: Operation, running: Names, disk: Names, share: number): void {
  if (operation.kind === 'SAY' || operation.kind === 'SYNC') return;
  const { path } = operation;
  const isKept = share === 1;
  const { all } = running;
  if (operation.kind === 'WRITE' || operation.kind === 'TRUNCATE') {
    const content = contentOf(path, running, disk);
    if (share > 0) change(content, operation, share);
  } else if (operation.kind === 'RENAME') {
    running.move(path, operation.to);
    if (isKept) disk.move(path, operation.to);
  } else if (operation.kind === 'MKDIR' || operation.kind === 'CREATE') {
    const made = operation.kind === 'MKDIR' ? null : new Content();
    all.set(path, made);
    if (isKept) disk.all.set(path, made);
  } else {
    all.delete(path);
    if (isKept) disk.all.delete(path);
  }
}

function change(
  content: Content,
  operation: Extract<Operation, { kind: 'WRITE' | 'TRUNCATE' }>,
  share: number,
): void {
  if (operation.kind === 'TRUNCATE') content.resize(operation.size);
  else {
    const kept = Math.ceil(operation.bytes.length * share);
    content.write(operation.bytes.subarray(0, kept), operation.at);
  }
}

/** Content of a file that the record saw made, or that appears with its first write (mkostemp). */
function contentOf(path: string, running: Names, disk: Names): Content {
  const known = running.all.get(path);
  if (known !== undefined && known !== null) return known;
  const made = new Content();
  running.all.set(path, made);
  disk.all.set(path, made);
  return made;
}
