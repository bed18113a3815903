import type { JobSpec } from './job-spec.ts';
import { meantBy } from './nearest.ts';

/**
 * What of a dataset with several types a job takes (decision 0139): its target type, relations, and
 * the relations that give input rows to types without features. Functions of names alone.
 */

/** A relation by its names. */
export interface RelationName {
  readonly source: string;
  readonly name: string;
  readonly destination: string;
}

/** A dataset's types and relations, as far as jobs choose among them. */
export interface SchemaNames {
  readonly types: readonly {
    readonly name: string;
    /** Absent: it has none; so are labels. */
    readonly features?: object;
    readonly labels?: object;
  }[];
  readonly relations: readonly (RelationName & {
    /** The relation that it turns around; absent: it is the source's own. */
    readonly reverse_of?: string;
  })[];
}

/** What a relation is called in specs, paths and messages: `author__writes__paper`. */
export function relationText({ source, name, destination }: RelationName): string {
  return `${source}__${name}__${destination}`;
}

type Asked = Pick<JobSpec['relations'], 'reverse' | 'only'>;

/** Types and relations of a job, each in its order: the target first, the others as they come. */
export interface Taken<S extends SchemaNames> {
  readonly types: readonly S['types'][number][];
  readonly relations: readonly S['relations'][number][];
}

/** Relations that take part, in the dataset's order. */
export function takenRelations<S extends SchemaNames>(
  schema: S,
  { reverse, only }: Asked,
): readonly S['relations'][number][] {
  const isAsked = (relation: RelationName) =>
    only.length === 0 || only.includes(relationText(relation));
  return schema.relations.filter(
    (relation) => isAsked(relation) && (reverse || relation.reverse_of === undefined),
  );
}

/** What a job with this target takes. REQUIRES: there is such a type. */
export function takenOf<S extends SchemaNames>(
  schema: S,
  asked: Pick<JobSpec['relations'], 'target' | 'reverse' | 'only'>,
): Taken<S> {
  const relations = takenRelations(schema, asked);
  const ends = new Set(relations.flatMap(({ source, destination }) => [source, destination]));
  const isTarget = ({ name }: { readonly name: string }) => name === asked.target;
  const target = schema.types.filter(isTarget);
  const others = schema.types.filter((type) => !isTarget(type) && ends.has(type.name));
  return { types: [...target, ...others], relations };
}

/** The type that is learnt; or why that is not known. */
export function targetOf(
  { types }: SchemaNames,
  asked: string,
): { readonly target: string } | { readonly problem: string } {
  const labelled = types.flatMap(({ name, labels }) => (labels === undefined ? [] : [name]));
  const [first] = labelled;
  if (first === undefined)
    return { problem: 'no type of the dataset has labels; import it with those of one' };
  if (asked === '' && labelled.length === 1) return { target: first };
  if (labelled.includes(asked)) return { target: asked };
  const expected = `expected a type that has labels: ${labelled.join(', ')}`;
  if (asked === '') return { problem: `required: ${expected}` };
  const isType = types.some(({ name }) => name === asked);
  const names = types.map(({ name }) => name);
  const what = isType ? 'has none' : `is no type of the dataset${meantBy(asked, names)}`;
  return { problem: `${asked} ${what}; ${expected}` };
}

/** The type that has the seeds of batches that are lent: any; the learnt one by default. */
export function seedTypeOf(schema: SchemaNames, asked: string): ReturnType<typeof targetOf> {
  if (asked === '') return targetOf(schema, asked);
  const names = schema.types.map(({ name }) => name);
  if (names.includes(asked)) return { target: asked };
  return { problem: `${asked} is no type of the dataset${meantBy(asked, names)}` };
}

/** How input rows of types without features come about, in the order in which they can be made. */
export interface RowSources {
  /** Each type is the destination of its relation, whose source has rows before it. */
  readonly means: readonly { readonly type: number; readonly relation: number }[];
  /** Names of types that no relation leads to from one with rows. */
  readonly without: readonly string[];
}

/** Indices are those of `taken`. */
export function rowSourcesOf({ types, relations }: Taken<SchemaNames>): RowSources {
  const names = types.map(({ name }) => name);
  const made = new Set(types.flatMap(({ name, features }) => (features ? [name] : [])));
  const means: { type: number; relation: number }[] = [];
  for (;;) {
    const before = new Set(made);
    for (const [type, name] of names.entries()) {
      const relation = relations.findIndex(
        ({ source, destination }) => destination === name && before.has(source),
      );
      if (made.has(name) || relation < 0) continue;
      means.push({ type, relation });
      made.add(name);
    }
    if (made.size === before.size) break;
  }
  return { means, without: names.filter((name) => !made.has(name)) };
}

/** What `relations.fanouts` says of one relation; or why it cannot be read. */
export function relationFanoutsOf(
  text: string,
): { readonly relation: string; readonly fanouts: readonly number[] } | null {
  const [, relation = '', list = ''] = /^([^=\s]+)=(-?\d+(?:\/-?\d+)*)$/.exec(text) ?? [];
  return relation === '' ? null : { relation, fanouts: list.split('/').map(Number) };
}

/** Fanouts of each relation that a job takes, in place of the usual ones; none: all have those. */
export function fanoutsByRelation(
  relations: readonly RelationName[],
  asked: readonly string[],
  usual: readonly number[],
): readonly (readonly number[])[] {
  if (asked.length === 0) return [];
  const own = new Map(
    asked.flatMap((text) => {
      const found = relationFanoutsOf(text);
      return found === null ? [] : [[found.relation, found.fanouts] as const];
    }),
  );
  return relations.map((relation) => own.get(relationText(relation)) ?? usual);
}
