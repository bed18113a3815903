/**
 * Event files of TensorBoard: records of length, masked CRC-32C of it, data and CRC of that; the
 * data are protobuf messages `Event` (wall_time 1, step 2, file_version 3, summary 5).
 */

/** A step's values by their names. */
export interface ScalarStep {
  readonly step: number;
  readonly values: readonly (readonly [name: string, value: number])[];
}

/** A whole file; `wallSeconds` since 1970 is the time of every event. */
export function tensorboardEvents(steps: readonly ScalarStep[], wallSeconds: number): Buffer {
  const time = Buffer.alloc(9);
  time.writeUInt8(tagOf(1, wireDouble), 0);
  time.writeDoubleLE(wallSeconds, 1);
  const begin = Buffer.concat([time, bytesField(3, Buffer.from('brain.Event:2'))]);
  const events = steps.map(({ step, values }) => {
    const scalars = values.map(([name, value]) => scalarOf(name, value));
    const at = [Buffer.of(tagOf(2, wireVarint)), varint(step)];
    return Buffer.concat([time, ...at, bytesField(5, Buffer.concat(scalars))]);
  });
  return Buffer.concat([begin, ...events].map(recordOf));
}

const wireVarint = 0;
const wireDouble = 1;
const wireBytes = 2;
const wireFloat = 5;

function tagOf(field: number, wire: number): number {
  return (field << 3) | wire;
}

/** `Summary.Value` (tag 1, simple_value 2) in field 1 of `Summary`. */
function scalarOf(name: string, value: number): Buffer {
  const number = Buffer.alloc(5);
  number.writeUInt8(tagOf(2, wireFloat), 0);
  number.writeFloatLE(value, 1);
  return bytesField(1, Buffer.concat([bytesField(1, Buffer.from(name)), number]));
}

function bytesField(field: number, data: Buffer): Buffer {
  return Buffer.concat([Buffer.of(tagOf(field, wireBytes)), varint(data.length), data]);
}

/** Varint of a whole number from 0. */
function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 0x7f; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  return Buffer.from([...bytes, rest]);
}

function recordOf(data: Buffer): Buffer {
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(data.length));
  return Buffer.concat([length, maskedCrc(length), data, maskedCrc(data)]);
}

function maskedCrc(data: Buffer): Buffer {
  let crc = 0xffffffff;
  for (const byte of data) crc = (crcTable[(crc ^ byte) & 0xff] ?? 0) ^ (crc >>> 8);
  crc = ~crc >>> 0;
  const masked = Buffer.alloc(4);
  masked.writeUInt32LE((((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0);
  return masked;
}

/** CRC table of the Castagnoli polynomial, reflected. */
const crcTable = Uint32Array.from({ length: 256 }, (_, entry) => {
  let value = entry;
  for (let bit = 0; bit < 8; bit += 1) value = (value >>> 1) ^ ((value & 1) === 0 ? 0 : 0x82f63b78);
  return value;
});
