import {
  create,
  type DescEnum,
  type DescField,
  type DescMessage,
  fromBinary,
  type Message,
  type MessageInitShape,
  type MessageShape,
  ScalarType,
  toBinary,
} from '@bufbuild/protobuf';
import { JobSpecSchema } from '../api/gen/gnnd/v1/job_spec_pb.ts';
import { GnndError, messageOf as messageOfError } from '../base/errors.ts';
import { numberOf, shortName } from './enum-names.ts';
import type { JobSpec, JobSpecInput } from './job-spec.ts';

/**
 * Specs as messages and as plain values, both ways, by their descriptors. What is absent stays
 * absent: unset differs from 0.
 */

type Plain = Record<string, unknown>;

/** A message of a spec, for example a SamplingSpec, as plain values. */
export function plainOf<T>(schema: DescMessage, message: Message): T {
  const values = message as unknown as Plain;
  const plain: Plain = {};
  for (const field of schema.fields) {
    const value = values[field.localName];
    if (value !== undefined) plain[field.localName] = plainValue(field, value);
  }
  return plain as T;
}

function plainValue(field: DescField, value: unknown): unknown {
  switch (field.fieldKind) {
    case 'message':
      return plainOf(field.message, value as Message);
    case 'enum':
      // A number that this version does not know becomes its digits, a name that no check accepts.
      return value === 0 ? undefined : shortName(field.enum, Number(value));
    case 'list': {
      const { enum: schema } = field;
      const items = [...(value as readonly unknown[])];
      return schema === undefined ? items : items.map((item) => shortName(schema, Number(item)));
    }
    default:
      if (typeof value !== 'bigint') return value;
      return field.scalar === ScalarType.UINT64 ? String(value) : Number(value);
  }
}

/** The message of plain values; members that are no fields are left out. */
export function messageOf<T extends DescMessage>(schema: T, plain: object): MessageShape<T> {
  const values = plain as Readonly<Plain>;
  const init: Plain = {};
  for (const field of schema.fields) {
    const value = values[field.localName];
    if (value !== undefined && value !== null) init[field.localName] = messageValue(field, value);
  }
  return create(schema, init as MessageInitShape<T>);
}

function messageValue(field: DescField, value: unknown): unknown {
  if (field.fieldKind === 'message') return messageOf(field.message, value as object);
  const { enum: schema } = field;
  if (schema !== undefined) {
    const numbers = (field.fieldKind === 'list' ? (value as readonly unknown[]) : [value]).map(
      (name) => enumNumber(schema, String(name)),
    );
    return field.fieldKind === 'list' ? numbers : numbers[0];
  }
  const isLong = field.scalar === ScalarType.INT64 || field.scalar === ScalarType.UINT64;
  return isLong ? BigInt(value as number | string) : value;
}

function enumNumber(schema: DescEnum, name: string): number {
  const number = numberOf(schema, name);
  if (number === null) throw new TypeError(`${schema.name} has no ${name}`);
  return number;
}

/** Specs as proto bytes: as they are stored, and as they go over the wire. */
export interface EncodedSpecs {
  readonly spec: Uint8Array;
  readonly effectiveSpec: Uint8Array;
}

/** Throws a TypeError for what is no spec: a bug of the caller. */
export function encodeSpec(spec: JobSpecInput | JobSpec): Uint8Array {
  try {
    return toBinary(JobSpecSchema, messageOf(JobSpecSchema, spec));
  } catch (error) {
    throw new TypeError(`not a job spec: ${messageOfError(error)}`, { cause: error });
  }
}

/** Throws STORE_CORRUPT where these are no bytes of a spec; `at` says whose they are. */
export function decodeSpecInput(bytes: Uint8Array, at: string): JobSpecInput {
  try {
    return plainOf(JobSpecSchema, fromBinary(JobSpecSchema, bytes));
  } catch (error) {
    const why = messageOfError(error);
    throw new GnndError('STORE_CORRUPT', `the store holds no spec in ${at}: ${why}`, {
      cause: error,
    });
  }
}

/** A resolved spec, in which every field is set, from its bytes. Throws like `decodeSpecInput`. */
export function decodeSpec(bytes: Uint8Array, at: string): JobSpec {
  return decodeSpecInput(bytes, at) as JobSpec;
}

interface Specs {
  readonly spec: JobSpecInput;
  readonly effectiveSpec: JobSpec;
  readonly encoded: EncodedSpecs;
}

/** `record` with specs that are decoded when somebody looks at them. Changes and returns it. */
export function withSpecs<T extends { readonly id: string }>(
  record: T,
  encoded: EncodedSpecs,
): T & Specs {
  const at = (column: string) => `job ${record.id}.${column}`;
  return Object.defineProperties(record, {
    spec: lazy('spec', () => decodeSpecInput(encoded.spec, at('spec'))),
    effectiveSpec: lazy('effectiveSpec', () =>
      decodeSpec(encoded.effectiveSpec, at('effective_spec')),
    ),
    encoded: { value: encoded, enumerable: true },
  }) as T & Specs;
}

function lazy(key: keyof Specs, make: () => unknown): PropertyDescriptor {
  return {
    enumerable: true,
    configurable: true,
    get(this: object) {
      const value = make();
      Object.defineProperty(this, key, { value, enumerable: true });
      return value;
    },
  };
}
