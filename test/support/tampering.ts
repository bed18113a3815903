/**
 * Histories of a segment that cannot be, each made of one that was (ledger-history.ts): what a
 * check must find. Each keeps one rule less.
 */

const recordBytes = 64;
const [reclaims, reclaimed, tries, did, reads] = [4, 5, 6, 7, 9] as const;
const [batch, chunk, version, evaluation] = [0, 1, 2, 3] as const;
const [claimed, ready, taken, trained] = [1, 2, 3, 4] as const;

/** The records of a history, each with what is asked of it. */
function recordsOf(history: Buffer): Buffer[] {
  const records: Buffer[] = [];
  for (let at = 0; at + recordBytes <= history.length; at += recordBytes) {
    records.push(Buffer.from(history.subarray(at, at + recordBytes)));
  }
  return records;
}

const kindOf = (record: Buffer) => record.readUInt32LE(0);
const ownerOf = (record: Buffer) => record.readUInt32LE(4);
const numberOf = (record: Buffer, at: number) => record.readBigUInt64LE(8 + 8 * at);
const stateOf = (word: bigint) => Number(word >> 61n);
const isOf = (record: Buffer, word: number) => numberOf(record, 0) === BigInt(word);
const isChange = (record: Buffer) => kindOf(record) === tries || kindOf(record) === did;
const goesTo = (record: Buffer, word: number, state: number) =>
  isChange(record) && isOf(record, word) && stateOf(numberOf(record, 3)) === state;
const isSame = (a: Buffer, b: Buffer) => a.subarray(4).equals(b.subarray(4));

/** The first record that fits, from the history's middle on, where all are at work; −1: none. */
function find(records: readonly Buffer[], fits: (record: Buffer) => boolean): number {
  const middle = Math.floor(records.length / 2);
  const later = records.findIndex((record, at) => at >= middle && fits(record));
  const found = later >= 0 ? later : records.findIndex(fits);
  return found;
}

/** Away with a change, what was tried and what was done of it. */
function without(records: readonly Buffer[], at: number): Buffer[] | null {
  const change = records[at];
  if (change === undefined) return null;
  return records.filter((record) => !(isChange(record) && isSame(record, change)));
}

function moved(records: readonly Buffer[], from: number, to: number): Buffer[] {
  const rest = [...records];
  rest.splice(to, 0, ...rest.splice(from, 1));
  return rest;
}

function altered(record: Buffer, at: number, value: bigint): Buffer {
  const copy = Buffer.from(record);
  copy.writeBigUInt64LE(value, 8 + 8 * at);
  return copy;
}

/** Where no step was committed yet. */
const isOpening = (record: Buffer) => isChange(record) && isOf(record, version);

const changes: Readonly<Record<string, (records: Buffer[]) => Buffer[] | null>> = {
  'a batch is taken that nobody published': (records) =>
    without(
      records,
      find(records, (record) => goesTo(record, batch, ready) && ownerOf(record) !== 0),
    ),
  'a batch is published that nobody claimed': (records) =>
    without(
      records,
      find(records, (record) => goesTo(record, batch, claimed)),
    ),
  'a batch is claimed by two': (records) => {
    const at = find(records, (record) => goesTo(record, batch, claimed) && kindOf(record) === did);
    if (at < 0) return null;
    const twin = records.slice(at, at + 1).map((record) => altered(record, 6, 1n));
    const tried = twin.map((record) => {
      record.writeUInt32LE(tries, 0);
      return Buffer.from(record);
    });
    for (const record of twin) record.writeUInt32LE(did, 0);
    return [...records.slice(0, at + 1), ...tried, ...twin, ...records.slice(at + 1)];
  },
  'a batch is handed in that nobody computed': (records) => {
    const from = find(records, (record) => kindOf(record) === reads);
    return from < 0 ? null : records.filter((_, at) => at !== from);
  },
  'a batch is computed before its version is committed': (records) => {
    const commit = find(records, (record) => isChange(record) && isOf(record, version));
    const next = records.findIndex((record, at) => at > commit && kindOf(record) === reads);
    return next < 0 ? null : moved(records, next, records.findIndex(isOpening));
  },
  'a step is committed without one of its batches': (records) => {
    const at = find(records, (record) => goesTo(record, batch, trained));
    return without(records, at);
  },
  'a step is left out': (records) =>
    without(
      records,
      find(records, (record) => isChange(record) && isOf(record, version)),
    ),
  'slots are used again too early': ([first, ...rest]) => {
    return [altered(first as Buffer, 4, 1n), ...rest];
  },
  'an evaluation is committed without one of its chunks': (records) =>
    without(
      records,
      find(records, (record) => goesTo(record, chunk, trained)),
    ),
  'an evaluation is left out': (records) =>
    without(
      records,
      find(records, (record) => isChange(record) && isOf(record, evaluation)),
    ),
  'a dead executor goes on': (records) => {
    const at = find(records, (record) => kindOf(record) === reclaimed);
    const owner = records[at]?.readUInt32LE(4);
    const own = records.findIndex(
      (record) => kindOf(record) === tries && ownerOf(record) === owner,
    );
    return at < 0 || own < 0 ? null : moved(records, own, at);
  },
  'what a dead executor held stays its own': (records) => {
    const at = records.findIndex(
      (record, i) =>
        kindOf(record) === did &&
        ownerOf(record) === 0 &&
        isOf(record, batch) &&
        stateOf(numberOf(record, 2)) >= claimed &&
        records.slice(0, i).some((before) => kindOf(before) === reclaims),
    );
    return without(records, at);
  },
  'a living executor is taken for dead': (records) => {
    const at = find(records, (record) => goesTo(record, batch, taken) && kindOf(record) === did);
    if (at < 0) return null;
    const mark = Buffer.alloc(recordBytes);
    mark.writeUInt32LE(reclaims, 0);
    mark.writeUInt32LE(ownerOf(records[at] as Buffer), 4);
    return [...records.slice(0, at + 1), mark, ...records.slice(at + 1)];
  },
};

/** Tamperings named by what they break in a history; null where it holds nothing of the kind. */
export const tamperings = Object.entries(changes).map(([what, change]) => ({
  what,
  tamper: (history: Buffer): Buffer | null => {
    const made = change(recordsOf(history));
    return made === null ? null : Buffer.concat(made);
  },
}));
