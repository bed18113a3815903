import type { DescEnum } from '@bufbuild/protobuf';

/** Enum values by the names that people use: GCN, not MODEL_TYPE_GCN. */

/** Short names in order of number, without UNSPECIFIED. */
export function shortNames(schema: DescEnum): readonly string[] {
  return schema.values.filter(({ number }) => number !== 0).map(({ name }) => short(schema, name));
}

/** The short name of a number; unknown numbers of newer daemons as they are. */
export function shortName(schema: DescEnum, value: number): string {
  const found = schema.value[value];
  return found === undefined ? String(value) : short(schema, found.name);
}

/** The full name of a short or full one, in upper or lower case; null when there is none. */
export function fullName(schema: DescEnum, text: string): string | null {
  const wanted = text.toUpperCase();
  const found = schema.values.find(({ name }) => name === wanted || short(schema, name) === wanted);
  return found?.name ?? null;
}

/** The number of a short or full name; null when there is none. */
export function numberOf(schema: DescEnum, text: string): number | null {
  const name = fullName(schema, text);
  return schema.values.find((value) => value.name === name)?.number ?? null;
}

function short(schema: DescEnum, name: string): string {
  const prefix = schema.sharedPrefix?.toUpperCase() ?? '';
  return name.startsWith(prefix) ? name.slice(prefix.length) : name;
}
