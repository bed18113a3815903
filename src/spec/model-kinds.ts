import { type DescEnumValue, getOption } from '@bufbuild/protobuf';
import { type ModelKind, model as modelOption } from '../api/gen/gnnd/v1/field_pb.ts';
import { ModelTypeSchema } from '../api/gen/gnnd/v1/model_pb.ts';
import { shortName } from './enum-names.ts';
import type { ModelType } from './job-spec.ts';

/** The kinds of models, as options of `ModelType` in `proto/gnnd/v1/model.proto` tell them. */

const kinds: ReadonlyMap<string, ModelKind> = new Map(
  ModelTypeSchema.values.map((value) => [typeOf(value), getOption(value, modelOption)]),
);

/** Throws for a type that is none: a bug. */
export function kindOf(type: ModelType): ModelKind {
  const kind = kinds.get(type);
  if (kind === undefined) throw new Error(`there is no model ${type}`);
  return kind;
}

/** The types of which `isOne` holds, in their order. */
export function typesWith(isOne: (kind: ModelKind) => boolean): readonly string[] {
  return [...kinds].filter(([, kind]) => isOne(kind)).map(([type]) => type);
}

/** The type that another library calls so; undefined where none is known. */
export function typeCalled(word: string): string | undefined {
  return typesWith(({ words }) => words.includes(word))[0];
}

function typeOf({ parent, number }: DescEnumValue): string {
  return shortName(parent, number);
}
