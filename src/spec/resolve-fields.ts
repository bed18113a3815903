import type { JobSpecInput, SpecDraft } from './job-spec.ts';
import { type SpecChecker, show } from './spec-checker.ts';
import {
  isGroup,
  leafAt,
  type SpecGroup,
  type SpecLeaf,
  type SpecOwner,
  type SpecScalar,
  type SpecValue,
  specRoot,
} from './spec-fields.ts';

/**
 * What the options of each field say, applied to a spec: types, bounds, defaults, and who reads a
 * field. Fields whose default follows from others get a value that means nothing ("", 0, []); the
 * rules that know better come after.
 */

type Members = Readonly<Record<string, unknown>>;

/**
 * Every field of a spec; what is wrong with one that was given goes to `check`. `ceilings` are
 * lower upper bounds of some integers, by their paths: those of this host.
 */
export function resolveFields(
  check: SpecChecker,
  given: JobSpecInput,
  ceilings: Ceilings = {},
): SpecDraft {
  return resolveGroup(specRoot, given, { check, given, ceilings }) as SpecDraft;
}

type Ceilings = Readonly<Record<string, number>>;

interface Resolving {
  readonly check: SpecChecker;
  readonly given: JobSpecInput;
  readonly ceilings: Ceilings;
}

function resolveGroup(group: SpecGroup, given: Members, resolving: Resolving): Members {
  return Object.fromEntries(
    group.members.map((member) => {
      const value = given[member.key];
      return isGroup(member)
        ? [member.key, resolveGroup(member, (value ?? {}) as Members, resolving)]
        : [member.key, resolveLeaf(member, value as SpecValue | undefined, resolving)];
    }),
  );
}

function resolveLeaf(
  leaf: SpecLeaf,
  value: SpecValue | undefined,
  { check, given, ceilings }: Resolving,
): SpecValue {
  const owner = leaf.owners.find((each) => !isChosen(each, given));
  if (owner !== undefined) {
    const isUnset = value === undefined || isSame(value, leaf.neutral);
    if (!isUnset && isKnown(owner, given)) {
      check.violate(`spec.${leaf.path}`, `${show(value)}: only for ${owner.name}`);
    }
    return leaf.neutral;
  }
  if (leaf.isList) return resolveList(leaf, value as readonly SpecScalar[] | undefined, check);
  const lte = ceilings[leaf.path];
  const bounded = lte === undefined ? leaf : { ...leaf, option: { ...leaf.option, lte } };
  return resolveScalar(bounded, value as SpecScalar | undefined, check);
}

function resolveScalar(
  leaf: SpecLeaf,
  value: SpecScalar | undefined,
  check: SpecChecker,
): SpecScalar {
  const path = `spec.${leaf.path}`;
  const fallback = (leaf.fallback ?? leaf.option.gte ?? leaf.neutral) as SpecScalar;
  if (value === undefined || (value === '' && leaf.option.required)) {
    if (leaf.option.required) check.violate(path, `required: ${expectationOf(leaf)}`);
    return value === undefined ? fallback : value;
  }
  if (isFine(leaf, value)) return leaf.kind === 'UINT64' ? String(BigInt(value)) : value;
  const shown = leaf.kind === 'TEXT' ? `${String(value).length} characters` : show(value);
  check.violate(path, `${shown}: expected ${expectationOf(leaf)}`);
  return fallback;
}

/** An empty list is one that was not given: messages cannot tell them apart. */
function resolveList(
  leaf: SpecLeaf,
  list: readonly SpecScalar[] | undefined,
  check: SpecChecker,
): SpecValue {
  if (list === undefined || list.length === 0) return leaf.fallback ?? leaf.neutral;
  const path = `spec.${leaf.path}`;
  const { maxItems } = leaf.option;
  if (maxItems > 0 && list.length > maxItems) {
    check.violate(path, `${list.length} given: expected at most ${maxItems}`);
    return list.slice(0, maxItems);
  }
  list.forEach((item, index) => {
    if (isFine(leaf, item)) return;
    check.violate(`${path}[${index}]`, `${show(item)}: expected ${expectationOf(leaf)}`);
  });
  return list;
}

function isFine(leaf: SpecLeaf, value: SpecScalar): boolean {
  switch (leaf.kind) {
    case 'ENUM':
      return leaf.choices.includes(String(value));
    case 'FLAG':
      return typeof value === 'boolean';
    case 'TEXT':
      return isFineText(leaf, String(value));
    case 'UINT64':
      // The length is looked at first: BigInt takes quadratic time.
      return /^[0-9]{1,20}$/.test(String(value)) && BigInt(value) <= uint64Max;
    case 'INTEGER':
      return Number.isInteger(value) && isWithin(leaf, Number(value));
    case 'REAL':
      return Number.isFinite(value) && isWithin(leaf, Number(value));
  }
}

const uint64Max = 2n ** 64n - 1n;

function isFineText({ option }: SpecLeaf, text: string): boolean {
  return option.maxLength === 0 || (text.length <= option.maxLength && !text.includes('\0'));
}

function isWithin({ option }: SpecLeaf, value: number): boolean {
  const { gt, gte, lt, lte, also } = option;
  if (also.some((special) => special.value === value)) return true;
  return (
    (gt === undefined || value > gt) &&
    (gte === undefined || value >= gte) &&
    // Kernels compute in float32, where the next number below 1 may be 1.
    (lt === undefined || Math.fround(value) < lt) &&
    (lte === undefined || value <= lte)
  );
}

/** What a field takes, for people: `an integer from 1 to 64`. */
export function expectationOf(leaf: SpecLeaf): string {
  switch (leaf.kind) {
    case 'ENUM':
      return `one of ${leaf.choices.join(', ')}`;
    case 'FLAG':
      return 'true or false';
    case 'UINT64':
      return `an integer from 0 to ${uint64Max}`;
    case 'TEXT':
      return leaf.option.maxLength > 0
        ? `at most ${leaf.option.maxLength} characters, none of them NUL`
        : leaf.option.rangeRule;
    case 'INTEGER':
    case 'REAL':
      return [boundsOf(leaf), ...specialsOf(leaf)].join(', or ');
  }
}

function boundsOf({ kind, option }: SpecLeaf): string {
  const { gt, gte, lt, lte } = option;
  if (kind === 'INTEGER') {
    return gte === undefined || lte === undefined
      ? 'an integer'
      : `an integer from ${gte} to ${lte}`;
  }
  return `a finite number ${intervalOf({ gt, gte, lt, lte })}`;
}

type Bounds = Pick<SpecLeaf['option'], 'gt' | 'gte' | 'lt' | 'lte'>;

function intervalOf({ gt, gte, lt, lte }: Bounds): string {
  if (lt === undefined && lte === undefined)
    return gte === undefined ? `above ${gt}` : `${gte} or more`;
  const low = gte === undefined ? `(${gt}` : `[${gte}`;
  const high = lte === undefined ? `${lt})` : `${lte}]`;
  const interval = `${low}, ${high}`;
  return gte !== undefined && lt !== undefined ? interval : `in ${interval}`;
}

function specialsOf({ option }: SpecLeaf): readonly string[] {
  return option.also.map(({ value, means }) => `${value} for ${means}`);
}

/** Whether the enum that chooses has one of the owner's values. */
function isChosen(owner: SpecOwner, given: JobSpecInput): boolean {
  return owner.values.includes(choiceAt(owner, given));
}

/** False for a value that no version of this field has: it is refused by its own check. */
function isKnown(owner: SpecOwner, given: JobSpecInput): boolean {
  return leafAt(owner.path).choices.includes(choiceAt(owner, given));
}

function choiceAt({ path }: SpecOwner, given: JobSpecInput): string {
  const leaf = leafAt(path);
  let at: unknown = given;
  for (const key of leaf.keys) at = at === undefined ? at : (at as Members)[key];
  return String(at ?? leaf.fallback);
}

function isSame(left: SpecValue, right: SpecValue): boolean {
  if (typeof left !== 'object' || typeof right !== 'object') return left === right;
  return left.length === right.length && left.every((item, index) => item === right[index]);
}
