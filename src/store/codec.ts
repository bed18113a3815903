import { GnndError, messageOf } from '../base/errors.ts';

/**
 * What comes out of the database is checked before it is believed: a decoder turns an unknown value
 * into a typed one or throws GnndError STORE_CORRUPT naming the place. What a decoder would not
 * take back is not written either (`toJson`).
 */
export type Decoder<T> = (value: unknown, at: string) => T;

export function corrupt(at: string, expected: string, value: unknown): GnndError {
  const found = JSON.stringify(value)?.slice(0, 80) ?? String(value);
  return new GnndError('STORE_CORRUPT', `the store holds ${found} in ${at}, expected ${expected}`);
}

export const text: Decoder<string> = (value, at) => {
  if (typeof value !== 'string') throw corrupt(at, 'a string', value);
  return value;
};

export const blob: Decoder<Uint8Array> = (value, at) => {
  if (!(value instanceof Uint8Array)) throw corrupt(at, 'bytes', value);
  return value;
};

export const bool: Decoder<boolean> = (value, at) => {
  if (typeof value !== 'boolean') throw corrupt(at, 'true or false', value);
  return value;
};

export const integer: Decoder<number> = (value, at) => {
  if (typeof value !== 'number' || !Number.isSafeInteger(value)) {
    throw corrupt(at, 'an integer', value);
  }
  return value;
};

/** JSON has no infinities and no NaN: `toJson` writes their names. A column has NULL for NaN. */
export const float: Decoder<number> = (value, at) => {
  if (typeof value === 'number') return value;
  if (value === null || value === 'NaN') return Number.NaN;
  if (value === 'Infinity') return Number.POSITIVE_INFINITY;
  if (value === '-Infinity') return Number.NEGATIVE_INFINITY;
  throw corrupt(at, 'a number', value);
};

export function oneOf<const T extends string>(values: readonly T[]): Decoder<T> {
  return (value, at) => {
    const found = values.find((candidate) => candidate === value);
    if (found === undefined) throw corrupt(at, `one of ${values.join(', ')}`, value);
    return found;
  };
}

export function nullable<T>(decode: Decoder<T>): Decoder<T | null> {
  return (value, at) => (value === null ? null : decode(value, at));
}

export function list<T>(decode: Decoder<T>): Decoder<readonly T[]> {
  return (value, at) => {
    if (!Array.isArray(value)) throw corrupt(at, 'a list', value);
    return value.map((element: unknown, index) => decode(element, `${at}[${index}]`));
  };
}

export function dictionary<T>(decode: Decoder<T>): Decoder<Readonly<Record<string, T>>> {
  return (value, at) =>
    Object.fromEntries(
      Object.entries(members(value, at)).map(([key, member]) => [
        key,
        decode(member, `${at}.${key}`),
      ]),
    );
}

type Shape = Readonly<Record<string, Decoder<unknown>>>;
type Decoded<S extends Shape> = { readonly [K in keyof S]: ReturnType<S[K]> };

/** All members of `shape` must be there; others are ignored. */
export function object<S extends Shape>(shape: S): Decoder<Decoded<S>> {
  const entries = Object.entries(shape);
  return (value, at) => {
    const given = members(value, at);
    const decoded: Record<string, unknown> = {};
    for (const [key, decode] of entries) {
      if (!(key in given)) throw corrupt(at, `a member ${key}`, value);
      decoded[key] = decode(given[key], `${at}.${key}`);
    }
    return decoded as Decoded<S>;
  };
}

/** Members of `shape` may be missing; others are ignored. */
export function partial<S extends Shape>(shape: S): Decoder<Partial<Decoded<S>>> {
  return (value, at) => {
    const given = members(value, at);
    const decoded = Object.entries(shape)
      .filter(([key]) => key in given)
      .map(([key, decode]) => [key, decode(given[key], `${at}.${key}`)]);
    return Object.fromEntries(decoded) as Partial<Decoded<S>>;
  };
}

export function fromJson<T>(decode: Decoder<T>): Decoder<T> {
  return (value, at) => {
    let parsed: unknown;
    try {
      parsed = JSON.parse(text(value, at));
    } catch (error) {
      throw new GnndError('STORE_CORRUPT', `the store holds no JSON in ${at}: ${messageOf(error)}`);
    }
    return decode(parsed, at);
  };
}

/** JSON that `decode` takes back. Throws a TypeError, because the value is a bug of the caller. */
export function toJson<T>(value: T, decode: Decoder<T>, at: string): string {
  const written = JSON.stringify(value, (_key, member: unknown) =>
    typeof member === 'number' && !Number.isFinite(member) ? String(member) : member,
  );
  try {
    decode(JSON.parse(written), at);
  } catch (error) {
    throw new TypeError(`cannot store ${at}: ${messageOf(error)}`, { cause: error });
  }
  return written;
}

function members(value: unknown, at: string): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw corrupt(at, 'an object', value);
  }
  return value as Readonly<Record<string, unknown>>;
}
