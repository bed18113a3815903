import { type DescField, type DescMessage, getOption, ScalarType } from '@bufbuild/protobuf';
import { field as fieldOption, type SpecField } from '../api/gen/gnnd/v1/field_pb.ts';
import { JobSpecSchema } from '../api/gen/gnnd/v1/job_spec_pb.ts';
import { shortNames } from './enum-names.ts';

/**
 * The fields of a job spec, as their options in `proto/gnnd/v1` tell them: what they are, their
 * defaults and bounds. Nothing about a single field is written down anywhere else.
 */

export type SpecScalar = string | number | boolean;
export type SpecValue = SpecScalar | readonly SpecScalar[];
export type SpecKind = 'ENUM' | 'INTEGER' | 'UINT64' | 'REAL' | 'FLAG' | 'TEXT';

/** A field that holds a value. */
export interface SpecLeaf {
  readonly key: string;
  /** From the spec down, in snake case, for example `model.hidden_dim`. */
  readonly path: string;
  /** From the spec down, as objects have them, for example `['model', 'hiddenDim']`. */
  readonly keys: readonly string[];
  readonly kind: SpecKind;
  readonly isList: boolean;
  readonly option: SpecField;
  /** Values of an ENUM, by their short names. */
  readonly choices: readonly string[];
  /** The default; undefined where it follows from other fields or the field is required. */
  readonly fallback: SpecValue | undefined;
  /** Value in a resolved spec of a job that does not read the field. */
  readonly neutral: SpecValue;
  /** Who reads it: all of them must be so, its groups' first; none where every job reads it. */
  readonly owners: readonly SpecOwner[];
}

/** Whoever reads a field: jobs in which an enum has one of some values. */
export interface SpecOwner {
  readonly path: string;
  readonly values: readonly string[];
  /** For people, for example `type GAT or GATV2`. */
  readonly name: string;
}

/** A field that holds other fields. */
export interface SpecGroup {
  readonly key: string;
  readonly members: readonly SpecMember[];
}

export type SpecMember = SpecLeaf | SpecGroup;

const zeroOf: Readonly<Record<SpecKind, SpecValue>> = {
  ENUM: '',
  INTEGER: 0,
  UINT64: '0',
  REAL: 0,
  FLAG: false,
  TEXT: '',
};

/** All fields, as they are nested; and their leaves, in order. */
export const specRoot: SpecGroup = {
  key: 'spec',
  members: membersOf(JobSpecSchema, { names: '', keys: [] }, []),
};
export const specLeaves: readonly SpecLeaf[] = leavesOf(specRoot);

const byPath = new Map(specLeaves.map((leaf) => [leaf.path, leaf]));

export function isGroup(member: SpecMember): member is SpecGroup {
  return 'members' in member;
}

/** Throws for a path that names no field: a bug. */
export function leafAt(path: string): SpecLeaf {
  const leaf = byPath.get(path);
  if (leaf === undefined) throw new Error(`the job spec has no field ${path}`);
  return leaf;
}

/** Both ends are allowed. */
export interface Range {
  readonly min: number;
  readonly max: number;
}

/** The bounds of an integer field. */
export function rangeOf(path: string): Range {
  const { gte, lte } = leafAt(path).option;
  if (gte === undefined || lte === undefined) throw new Error(`${path} has no bounds`);
  return { min: gte, max: lte };
}

/** The default of a field that has one whatever the others are. */
export function defaultOf<T extends SpecValue>(path: string): T {
  const { fallback } = leafAt(path);
  if (fallback === undefined) throw new Error(`${path} has no default of its own`);
  return fallback as T;
}

/** The option of a field; every field of a spec has it. */
function optionOf(desc: DescField): SpecField {
  const option = getOption(desc, fieldOption);
  if (option.about === '') throw new Error(`${desc.toString()} lacks the option gnnd.v1.field`);
  return option;
}

interface Place {
  readonly names: string;
  readonly keys: readonly string[];
}

function membersOf(
  desc: DescMessage,
  within: Place,
  owners: readonly SpecOwner[],
): readonly SpecMember[] {
  return desc.fields.map((field): SpecMember => {
    const option = optionOf(field);
    const keys = [...within.keys, field.localName];
    const own = option.onlyFor === undefined ? [] : [ownerOf(option.onlyFor)];
    const all = [...owners, ...own];
    if (field.fieldKind !== 'message') {
      return leafOf(field, { names: `${within.names}${field.name}`, keys }, option, all);
    }
    const place = { names: `${within.names}${field.name}.`, keys };
    return { key: field.localName, members: membersOf(field.message, place, all) };
  });
}

function leafOf(
  desc: DescField,
  { names: path, keys }: Place,
  option: SpecField,
  owners: readonly SpecOwner[],
): SpecLeaf {
  const kind = kindOf(desc);
  const isList = desc.fieldKind === 'list';
  const read = (text: string | undefined): SpecValue | undefined =>
    text === undefined || (!isList && (kind === 'ENUM' || kind === 'TEXT' || kind === 'UINT64'))
      ? text
      : JSON.parse(text);
  const fallback = read(option.default);
  const neutral = read(option.otherwise) ?? (isList ? [] : zeroOf[kind]);
  return {
    key: desc.localName,
    path,
    keys,
    kind,
    isList,
    option,
    choices: desc.enum === undefined ? [] : shortNames(desc.enum),
    fallback,
    neutral,
    owners,
  };
}

function kindOf(desc: DescField): SpecKind {
  if (desc.enum !== undefined) return 'ENUM';
  switch (desc.scalar) {
    case ScalarType.INT32:
    case ScalarType.INT64:
      return 'INTEGER';
    case ScalarType.UINT64:
      return 'UINT64';
    case ScalarType.DOUBLE:
      return 'REAL';
    case ScalarType.BOOL:
      return 'FLAG';
    case ScalarType.STRING:
      return 'TEXT';
    default:
      throw new Error(`${desc.toString()}: no field of a job spec is of this type`);
  }
}

function ownerOf({ field, values, except, name }: NonNullable<SpecField['onlyFor']>): SpecOwner {
  const chooser = choicesAt(field);
  const owners = except.length > 0 ? chooser.filter((each) => !except.includes(each)) : values;
  const choice = field.slice(field.lastIndexOf('.') + 1);
  return { path: field, values: owners, name: name === '' ? `${choice} ${orOf(owners)}` : name };
}

/** Values of the enum at a path; by the descriptor, since fields own each other in any order. */
function choicesAt(path: string): readonly string[] {
  let desc: DescMessage = JobSpecSchema;
  for (const name of path.split('.')) {
    const found = desc.fields.find((field) => field.name === name);
    if (found?.fieldKind === 'message') desc = found.message;
    else if (found?.enum !== undefined) return shortNames(found.enum);
  }
  throw new Error(`the job spec has no enum ${path}`);
}

function orOf(words: readonly string[]): string {
  return words.length < 2
    ? words.join('')
    : `${words.slice(0, -1).join(', ')} or ${words.at(-1) ?? ''}`;
}

function leavesOf(group: SpecGroup): readonly SpecLeaf[] {
  return group.members.flatMap((member) => (isGroup(member) ? leavesOf(member) : [member]));
}
