import type { DescField, DescMessage, JsonObject, JsonValue } from '@bufbuild/protobuf';
import { getOption, ScalarType } from '@bufbuild/protobuf';
import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type LineCounter,
  type Node,
  type Pair,
  type Scalar,
  type YAMLMap,
} from 'yaml';
import { field as fieldOption, Unit } from '../../api/gen/gnnd/v1/field_pb.ts';
import { fullName, shortNames } from '../../spec/enum-names.ts';
import { nearestOf } from '../../spec/nearest.ts';
import { parseBytes, parseDurationMs } from '../session/units.ts';
import { hintForValue, meaningOfKey } from './spec-hints.ts';

/** Where in which file, both from 1; column 0 where there is no place to name. */
export interface Place {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** One thing wrong with a spec file: where, which field, what was expected. */
export interface SpecProblem extends Place {
  /** For example `spec.training.batch_size`; empty for the file as a whole. */
  readonly path: string;
  readonly description: string;
}

/** What a value may not be; distinct from a JSON null, which means "unset". */
const invalid = Symbol('invalid');
type Read = JsonValue | typeof invalid;

/**
 * Reads YAML nodes as messages, guided by their descriptors, and collects every problem. What it
 * answers is proto JSON; it is only usable when no problem was found.
 */
export class SpecReader {
  readonly problems: SpecProblem[] = [];
  readonly #file: string;
  readonly #lines: LineCounter;
  readonly #root: DescMessage;
  readonly #places = new Map<string, Place>();

  constructor(file: string, lines: LineCounter, root: DescMessage) {
    this.#file = file;
    this.#lines = lines;
    this.#root = root;
  }

  /** Where the values stand, by path. */
  get places(): ReadonlyMap<string, Place> {
    return this.#places;
  }

  placeOf(node: unknown): Place {
    const start = hasRange(node) ? node.range[0] : 0;
    const { line, col } = this.#lines.linePos(start);
    return { file: this.#file, line, column: col };
  }

  problem(node: unknown, path: string, description: string): void {
    this.problems.push({ ...this.placeOf(node), path, description });
  }

  /** The pairs of a map by key; keys that are no text or stand twice are problems. */
  entries(map: YAMLMap, path: string): Map<string, Pair> {
    const found = new Map<string, Pair>();
    for (const pair of map.items) {
      const key = isScalar(pair.key) ? String(pair.key.value) : null;
      if (key === null) this.problem(pair.key, path, 'expected a word as key');
      else if (found.has(key)) this.problem(pair.key, join(path, key), 'this key stands twice');
      else found.set(key, pair);
    }
    return found;
  }

  message(desc: DescMessage, node: unknown, path: string): JsonObject {
    const json: JsonObject = {};
    if (isNull(node)) return json;
    if (!isMap(node)) {
      const expected = `expected a map of ${keysOf(desc).join(', ')}`;
      this.problem(node, path, `${show(node)}: ${expected}${asMap(desc, node)}`);
      return json;
    }
    const setBy = new Map<DescField, string>();
    for (const [key, pair] of this.entries(node, path)) {
      const field = fieldOf(desc, key);
      if (field === undefined) {
        this.problem(pair.key, join(path, key), `unknown key; ${this.#suggest(desc, key)}`);
        continue;
      }
      const before = setBy.get(field);
      if (before !== undefined) {
        this.problem(pair.key, join(path, key), `the same field as ${before} above`);
        continue;
      }
      setBy.set(field, key);
      const fieldPath = join(path, field.name);
      this.#places.set(fieldPath, this.placeOf(pair.key));
      const value = this.#field(field, pair.value ?? pair.key, fieldPath, pair.value === null);
      if (value !== invalid && value !== null) json[field.jsonName] = value;
    }
    return json;
  }

  /** The value of one field, for `--set`; undefined when it is unset or wrong. */
  value(field: DescField, node: unknown, path: string): JsonValue | undefined {
    const value = this.#field(field, node, path, node === null);
    return value === invalid || value === null ? undefined : value;
  }

  /** The field that a key names, or a problem. */
  resolve(desc: DescMessage, key: string, path: string): DescField | undefined {
    const field = fieldOf(desc, key);
    if (field === undefined) this.problem(null, path, `unknown key; ${this.#suggest(desc, key)}`);
    return field;
  }

  #field(field: DescField, node: unknown, path: string, isUnset: boolean): Read {
    if (isUnset || isNull(node)) return null;
    // Anchors and aliases were reported for the whole file.
    if (isAlias(node)) return invalid;
    switch (field.fieldKind) {
      case 'message':
        return this.message(field.message, node, path);
      case 'list':
        return this.#list(field, node, path);
      case 'map':
        throw new Error(`${path}: the job spec has no maps`);
      default:
        return this.#scalar(field, node, path);
    }
  }

  #list(field: DescField & { fieldKind: 'list' }, node: unknown, path: string): Read {
    if (!isSeq(node)) {
      this.problem(node, path, `${show(node)}: expected a list, such as [10, 10]`);
      return invalid;
    }
    if (field.listKind === 'message') throw new Error(`${path}: the job spec has no such lists`);
    return node.items.map((item, index) => {
      const itemPath = `${path}[${index}]`;
      this.#places.set(itemPath, this.placeOf(item));
      const value = this.#scalar(field, item, itemPath);
      return value === invalid ? null : value;
    });
  }

  #scalar(
    field: DescField & { fieldKind: 'scalar' | 'enum' | 'list' },
    node: unknown,
    path: string,
  ): Read {
    const expected = expectationOf(field);
    const value = isScalar(node) ? expected.read(node) : null;
    if (value !== null) return value;
    const meant = isScalar(node) ? expected.hint(String(node.value)) : '';
    this.problem(node, path, `${show(node)}: expected ${expected.shown}${meant}`);
    return invalid;
  }

  /**
   * What the user may have meant: what other libraries mean by the word, else a key here, else a
   * key of the same name elsewhere.
   */
  #suggest(desc: DescMessage, key: string): string {
    const meaning = meaningOfKey(key);
    if (meaning !== undefined) {
      if ('missing' in meaning) return meaning.missing;
      const last = meaning.field.slice(meaning.field.lastIndexOf('.') + 1);
      const isHere = messageOf(this.#root, meaning.field) === desc;
      return `did you mean ${isHere ? last : `spec.${meaning.field}`}?`;
    }
    const here = nearestOf(key, keysOf(desc));
    if (here !== null) return `did you mean ${here}?`;
    const elsewhere = pathsTo(this.#root, (field) => fieldIs(field, key));
    if (elsewhere.length > 0) return `did you mean spec.${elsewhere[0]}?`;
    const paths = pathsTo(this.#root, () => true);
    const last = (path: string) => path.slice(path.lastIndexOf('.') + 1);
    const meant = nearestOf(key, paths.map(last));
    const similar = paths.find((path) => last(path) === meant);
    if (similar !== undefined) return `did you mean spec.${similar}?`;
    return `known here: ${keysOf(desc).join(', ')}`;
  }
}

/** A value that stands where a map is expected may be that of a key in it: `model: GCN`. */
function asMap(desc: DescMessage, node: unknown): string {
  const text = isScalar(node) ? String(node.value) : '';
  for (const { name, enum: schema } of text === '' ? [] : desc.fields) {
    if (schema === undefined) continue;
    const names = shortNames(schema);
    const meant = fullName(schema, text) === null ? nearestOf(text, names) : text;
    if (meant === null) continue;
    const known = meant === text ? '' : `, one of ${names.join(', ')}`;
    return `; did you mean {${name}: ${meant}}${known}?`;
  }
  return '';
}

/** How a kind of field is read, and what is said when it cannot be. */
interface Expectation {
  readonly shown: string;
  /** Null when the node is not of the kind. */
  read(node: Scalar): JsonValue | null;
  hint(text: string): string;
}

const noHint = () => '';

function expectationOf(field: DescField & { fieldKind: 'scalar' | 'enum' | 'list' }): Expectation {
  if (field.enum !== undefined) {
    const schema = field.enum;
    return {
      shown: `one of ${shortNames(schema).join(', ')}`,
      read: ({ value }) => (typeof value === 'string' ? fullName(schema, value) : null),
      hint(text) {
        const known = hintForValue(schema.name, text);
        if (known !== undefined) return `; ${known}`;
        const meant = nearestOf(text, shortNames(schema));
        return meant === null ? '' : `; did you mean ${meant}?`;
      },
    };
  }
  const { unit } = getOption(field, fieldOption);
  if (unit === Unit.MILLISECONDS) {
    return integer(durationOf, 'a duration such as 90s, 5m or 2h');
  }
  if (unit === Unit.BYTES) {
    return integer(bytesOf, 'a size such as 512MiB or 8GiB', (text) => {
      const decimal = /^(\d+(?:\.\d+)?) ?([kmgt])b?$/i.exec(text);
      if (decimal === null) return '';
      return `; did you mean ${decimal[1]}${decimal[2]?.toUpperCase()}iB?`;
    });
  }
  switch (field.scalar) {
    case ScalarType.STRING:
      return {
        shown: 'text (in quotes, where it looks like a number)',
        read: ({ value }) => (typeof value === 'string' ? value : null),
        hint: noHint,
      };
    case ScalarType.BOOL:
      return {
        shown: 'true or false',
        read: ({ value }) => (typeof value === 'boolean' ? value : null),
        hint: noHint,
      };
    case ScalarType.DOUBLE:
      return { shown: 'a finite number', read: finiteOf, hint: noHint };
    case ScalarType.UINT64:
      return integer((text) => within(text, 0n, 2n ** 64n - 1n), 'an integer from 0 to 2^64 - 1');
    case ScalarType.INT64:
      return integer((text) => within(text, -(2n ** 63n), 2n ** 63n - 1n), 'an integer');
    default: {
      const read = (text: string) => within(text, -(2n ** 31n), 2n ** 31n - 1n);
      return integer(read, 'an integer');
    }
  }
}

/** 64-bit numbers are text in proto JSON, and JSON files may have them so. */
function integer(
  read: (text: string) => string | null,
  shown: string,
  hint: (text: string) => string = noHint,
): Expectation {
  return {
    shown,
    read({ value }) {
      const isText = typeof value === 'string' || typeof value === 'bigint';
      return isText ? read(String(value)) : null;
    },
    hint,
  };
}

function within(text: string, min: bigint, max: bigint): string | null {
  if (!/^-?\d{1,20}$/.test(text)) return null;
  const value = BigInt(text);
  return value >= min && value <= max ? String(value) : null;
}

function durationOf(text: string): string | null {
  const durationMs = parseDurationMs(text);
  return durationMs === null ? within(text, -(2n ** 63n), 2n ** 63n - 1n) : String(durationMs);
}

function bytesOf(text: string): string | null {
  const bytes = parseBytes(text);
  return bytes === null ? within(text, -(2n ** 63n), 2n ** 63n - 1n) : String(bytes);
}

function finiteOf({ value }: Scalar): JsonValue | null {
  const number = typeof value === 'bigint' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) ? number : null;
}

function keysOf(desc: DescMessage): readonly string[] {
  return desc.fields.map(({ name }) => name);
}

function fieldIs(field: DescField, key: string): boolean {
  return field.name === key || field.jsonName === key;
}

export function fieldOf(desc: DescMessage, key: string): DescField | undefined {
  return desc.fields.find((field) => fieldIs(field, key));
}

/** Paths, from the root's fields down, of all fields that `accepts` accepts. */
function pathsTo(desc: DescMessage, accepts: (field: DescField) => boolean): readonly string[] {
  return desc.fields.flatMap((field) => {
    const below =
      field.fieldKind === 'message'
        ? pathsTo(field.message, accepts).map((path) => `${field.name}.${path}`)
        : [];
    return accepts(field) ? [field.name, ...below] : below;
  });
}

/** The message that the field at `path` belongs to. */
function messageOf(root: DescMessage, path: string): DescMessage | undefined {
  let desc: DescMessage | undefined = root;
  for (const key of path.split('.').slice(0, -1)) {
    const field: DescField | undefined = desc === undefined ? undefined : fieldOf(desc, key);
    desc = field?.fieldKind === 'message' ? field.message : undefined;
  }
  return desc;
}

export function join(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`;
}

export function isNull(node: unknown): boolean {
  return node === null || node === undefined || (isScalar(node) && node.value === null);
}

function hasRange(node: unknown): node is Node & { range: [number, number, number] } {
  return typeof node === 'object' && node !== null && 'range' in node && Array.isArray(node.range);
}

function show(node: unknown): string {
  if (isMap(node)) return 'a map';
  if (isSeq(node)) return 'a list';
  if (!isScalar(node)) return 'nothing';
  const text = typeof node.value === 'string' ? JSON.stringify(node.value) : String(node.value);
  return text.length <= 60 ? text : `${text.slice(0, 57)}...`;
}
