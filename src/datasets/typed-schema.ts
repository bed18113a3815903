import type { GraphSchema as NativeSchema } from '../native/contract.ts';
import type { GraphSchema, NodeType } from '../records/dataset-record.ts';
import type { RelationName } from '../spec/job-relations.ts';

/** What types and relations may be called, and how many there are (native/core/graph/schema.h). */

export const typesMax = 64;
export const relationsMax = 256;
const nameMax = 64;
/** Two _ stand between the names of a relation's ends, so that none is in one or beside one. */
const namePattern = /^[A-Za-z0-9](?:-|_?[A-Za-z0-9])*$/;
export const nameRule = `expected up to ${nameMax} of a-z, A-Z, 0-9, - and single _ between them`;

export function isTypedName(name: string): boolean {
  return name.length <= nameMax && namePattern.test(name);
}

/** Null: it is none. */
export function relationOf(text: string): RelationName | null {
  const [source = '', name = '', destination = '', ...more] = text.split('__');
  const isOne = more.length === 0 && [source, name, destination].every(isTypedName);
  return isOne ? { source, name, destination } : null;
}

/** The relation of a made one, whose edges it has in the other direction. */
export function reversedName({ source, name, destination }: RelationName): RelationName {
  return { source: destination, name: `rev_${name}`, destination: source };
}

/** In the order in which a dataset has them: that of their names, byte by byte. */
export function inOrder<T>(all: Iterable<T>, nameOf: (one: T) => string): T[] {
  return [...all].sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
}

/** Of all types together, as a dataset's record counts them. */
export function totalsOf({ types, relations }: GraphSchema) {
  const sum = <T>(all: readonly T[], of: (one: T) => number) =>
    all.reduce((total, one) => total + of(one), 0);
  const split = (side: 'train' | 'val' | 'test') =>
    sum(types, ({ labels }) => labels?.split[side] ?? 0);
  return {
    numNodes: sum(types, ({ num_nodes }) => num_nodes),
    numEdges: sum(relations, ({ num_edges }) => num_edges),
    ...{ numTrain: split('train'), numVal: split('val'), numTest: split('test') },
  };
}

/** What the native core needs to know of it. */
export function nativeSchemaOf({ types, relations }: GraphSchema): NativeSchema {
  const indexOf = (name: string) => types.findIndex((type) => type.name === name);
  return {
    types: types.map(nativeTypeOf),
    relations: relations.map(({ source, name, destination, num_edges }) => ({
      ...{ source: indexOf(source), name, destination: indexOf(destination) },
      numEdges: num_edges,
    })),
  };
}

function nativeTypeOf({ name, num_nodes, features, labels }: NodeType): NativeSchema['types'][0] {
  return {
    ...{ name, numNodes: num_nodes },
    ...{ numFeatures: features?.columns ?? 0, featureDtype: features?.dtype ?? 'float32' },
    ...{ labelled: labels !== undefined, task: labels?.task ?? 'CLASSIFICATION' },
    numClasses: labels?.num_classes ?? 0,
    ...(labels?.split ?? { train: 0, val: 0, test: 0 }),
  };
}
