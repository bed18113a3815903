import { create, type DescField, type DescMessage, ScalarType, toBinary } from '@bufbuild/protobuf';
import { type ReflectMessage, reflect } from '@bufbuild/protobuf/reflect';
import type { Random } from './random.ts';

/** Requests that nobody means: well-formed ones with wild values, and such with wrong bytes. */

const texts = [
  ...[
    '',
    'cora',
    'datasets/cora',
    'jobs/a',
    'jobs/',
    'jobs/../../etc',
    '../..',
    '/',
    '/proc/self/mem',
  ],
  ...[
    '/dev/zero',
    '/nowhere',
    'a\u0000b',
    'a\nb',
    '$(reboot)',
    "'; DROP TABLE jobs; --",
    '%s%n',
    '\ufffd',
  ],
  ...[
    'x'.repeat(5000),
    '-1',
    '0',
    'NaN',
    '{}',
    '00000000-0000-4000-8000-000000000000',
    '\u202emada',
  ],
];
const integers = [0, 1, -1, 2, 7, 100, 65_536, 2 ** 31 - 1, -(2 ** 31)];
const longs = [0n, 1n, -1n, 5n, 2n ** 53n, 2n ** 63n - 1n, -(2n ** 63n)];
const reals = [0, 1, -1, 0.5, 1e308, -1e308, 1e-320, Number.NaN, Number.POSITIVE_INFINITY];
const depthMax = 6;

/** A random request as bytes on the wire. */
export function randomRequest(random: Random, schema: DescMessage): Uint8Array {
  const message = create(schema);
  fill(random, reflect(schema, message), 0);
  const bytes = toBinary(schema, message);
  return random.chance(0.3) ? damaged(random, bytes) : bytes;
}

function fill(random: Random, message: ReflectMessage, depth: number): void {
  const groups = new Set<string>();
  for (const field of message.fields) {
    if (field.oneof !== undefined && groups.has(field.oneof.name)) continue;
    if (!random.chance(depth === 0 ? 0.6 : 0.3)) continue;
    if (field.oneof !== undefined) groups.add(field.oneof.name);
    if (field.fieldKind === 'message') {
      if (depth === depthMax) continue;
      const value = reflect(field.message, create(field.message));
      fill(random, value, depth + 1);
      message.set(field, value);
    } else if (field.fieldKind === 'scalar') {
      message.set(field, scalarOf(random, field.scalar));
    } else if (field.fieldKind === 'enum') {
      message.set(field, random.pick([...field.enum.values.map(({ number }) => number), 99, -5]));
    } else if (field.fieldKind === 'list') {
      fillList(random, message, field, depth);
    }
  }
}

function fillList(
  random: Random,
  message: ReflectMessage,
  field: Extract<DescField, { fieldKind: 'list' }>,
  depth: number,
): void {
  const list = message.get(field);
  const count = random.chance(0.02) ? 2000 : random.integer(1, 4);
  for (let i = 0; i < count; i += 1) {
    if (field.listKind === 'scalar') list.add(scalarOf(random, field.scalar));
    else if (field.listKind === 'enum') {
      list.add(random.pick([...field.enum.values.map(({ number }) => number), 99]));
    } else if (depth < depthMax) {
      const value = reflect(field.message, create(field.message));
      fill(random, value, depth + 1);
      list.add(value);
    }
  }
}

function scalarOf(random: Random, scalar: ScalarType): unknown {
  switch (scalar) {
    case ScalarType.BOOL:
      return random.chance(0.5);
    case ScalarType.STRING:
      return random.pick(texts).replace('\ufffd', '\ud83d\ude00');
    case ScalarType.BYTES:
      return Uint8Array.from({ length: random.integer(0, 40) }, () => random.integer(0, 255));
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return scalar === ScalarType.DOUBLE ? random.pick(reals) : random.pick([0, 1, Number.NaN]);
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
      return random.pick(longs);
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return random.pick(longs.filter((value) => value >= 0n));
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return random.pick(integers.filter((value) => value >= 0));
    default:
      return random.pick(integers);
  }
}

/** Cut short, with bytes turned, taken out or put in. */
function damaged(random: Random, bytes: Uint8Array): Uint8Array {
  const out = [...bytes];
  for (let i = random.integer(1, 6); i > 0; i -= 1) {
    const at = random.integer(0, out.length);
    const value = random.integer(0, 255);
    const way = random.integer(0, 3);
    if (way === 0) out.splice(at, 1);
    else if (way === 1) out.splice(at, 0, value);
    else if (way === 2 && at < out.length) out[at] = value;
    else if (random.chance(0.2)) out.length = Math.min(out.length, at);
  }
  return Uint8Array.from(out);
}
