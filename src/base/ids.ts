import { createHash, randomBytes } from 'node:crypto';

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz';

/** A lower-case ULID: 48 bits of wall time, then 80 random bits; 26 characters that sort by age. */
export function newUlid(wallMs: number): string {
  let bits = (BigInt(Math.floor(wallMs)) << 80n) | BigInt(`0x${randomBytes(10).toString('hex')}`);
  let text = '';
  for (let i = 0; i < 26; i += 1) {
    text = `${alphabet[Number(bits & 31n)]}${text}`;
    bits >>= 5n;
  }
  return text;
}

/** SHA-256, in hex, of a value's JSON with sorted keys: equal for equal requests. */
export function canonicalSha256(value: unknown): string {
  return createHash('sha256').update(canonicalJson(value)).digest('hex');
}

/** JSON with the keys of every object sorted; fields that are undefined are left out. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value === 'bigint') return `"${value}"`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const fields = Object.entries(value)
    .filter(([, field]) => field !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, field]) => `${JSON.stringify(key)}:${canonicalJson(field)}`);
  return `{${fields.join(',')}}`;
}
