import { mkdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { syncFolder } from '../base/atomic-file.ts';
import type { GraphSchema, TypedManifest, TypedStory } from '../records/dataset-record.ts';
import { relationText } from '../spec/job-relations.ts';
import { columnStatisticsOf } from './column-statistics.ts';
import type { SourceImport } from './data-tasks.ts';
import { type DatasetWriter, type DatasetWritten, writeTexts } from './dataset-writer.ts';
import { type ImportContext, part } from './import-context.ts';
import { type TypedLayout, typedLayout } from './typed-layout.ts';
import { importTypedLinks } from './typed-links.ts';
import { importType, type TypeWritten } from './typed-nodes.ts';
import { importRelation, type RelationWritten, reverseRelation } from './typed-relations.ts';
import { inOrder, relationsMax, reversedName } from './typed-schema.ts';

/**
 * A folder of several types of nodes and relations as a dataset: `types.json`, `nodes/TYPE` and
 * `edges/SOURCE__RELATION__DESTINATION.npy` (docs/datasets.md). Types are read first, in the order
 * of their names, then relations likewise: the digest depends on nothing else.
 */

/** Where the types end, and the relations of the source, of 1. */
const shares = { types: 0.3, relations: 0.8 };

/** Writes the dataset whole, except that nobody has checked its elements. */
export async function importTyped(
  context: ImportContext,
  { id, origin }: Pick<SourceImport, 'id' | 'origin'>,
): Promise<DatasetWritten> {
  const { problems, notices, source } = context;
  const root = context.writer.folder;
  for (const notice of origin?.notices ?? []) notices.add(notice);
  refuseOptions(context);
  const layout = await typedLayout(context);
  for (const folder of ['nodes', 'edges']) await mkdir(join(root, folder));
  const types = await importTypes(part(context, 0, shares.types), layout);
  const given = await importRelations(part(context, shares.types, shares.relations), layout);
  problems.throwIfAny();
  const linked = await importTypedLinks(context, layout, given);
  const made = await reverses(part(context, shares.relations, 1), linked, layout);
  problems.throwIfAny();
  const relations = inOrder([...linked, ...made], ({ relation }) => relationText(relation));
  const schema: GraphSchema = {
    types: types.map(({ type }) => type),
    relations: relations.map(({ relation }) => relation),
  };
  const writers = [...types, ...relations].flatMap(({ writer }) => writer ?? []);
  for (const { folder } of writers) syncFolder(folder);
  for (const name of ['nodes', 'edges']) syncFolder(join(root, name));
  const manifest: TypedManifest = {
    ...{ format: 'gnnd-dataset', version: 2, ...schema },
    sha256: sumsOf(root, writers),
  };
  const all = [...notices.kept, ...schemaNotices(schema)];
  const story: TypedStory = {
    ...{ name: id, source: origin?.source ?? `typed folder ${basename(source)}`, notices: all },
    ...(await columnsOf(root, types)),
  };
  const texts = await writeTexts(root, manifest, story);
  const bytes = writers.reduce((sum, writer) => sum + writer.bytes, texts.bytes);
  return { manifest, notices: all, digest: texts.digest, bytes };
}

/** Choices of an import that mean nothing here, or nothing yet. */
function refuseOptions({ problems, split, ignoredColumns, madeFeatures }: ImportContext): void {
  if (split !== null) problems.add('split', 'is not for graphs of several types');
  if (ignoredColumns.length > 0) problems.add('ignored_columns', 'is for tables');
  if (madeFeatures !== null) {
    problems.add('made_features', 'is not for graphs of several types: a type may have none');
  }
}

async function importTypes(
  context: ImportContext,
  { types, described }: TypedLayout,
): Promise<readonly TypeWritten[]> {
  const found: TypeWritten[] = [];
  for (const [name, numNodes] of types) {
    const at = found.length;
    const own = part(context, at / types.size, (at + 1) / types.size);
    own.progress(0, `reading nodes of ${name}`);
    const bare = { type: { name, num_nodes: numNodes }, writer: null, featureNames: null };
    found.push(described.has(name) ? await importType(own, name, numNodes) : bare);
  }
  const { problems, randomSplit } = context;
  if (randomSplit !== null && !found.some(({ type }) => type.labels !== undefined)) {
    problems.add('random_split', 'there are no labels to split');
  }
  return found;
}

async function importRelations(
  context: ImportContext,
  { relations, types }: TypedLayout,
): Promise<readonly RelationWritten[]> {
  const found: RelationWritten[] = [];
  for (const [at, relation] of relations.entries()) {
    context.progress(at / relations.length, `reading ${relation.path}`);
    const written = await importRelation(context, relation, types);
    if (written !== null) found.push(written);
  }
  return found;
}

/**
 * Each relation in the other direction, but for those that have one: by its name, or because each
 * edge is there both ways.
 */
async function reverses(
  context: ImportContext,
  given: readonly RelationWritten[],
  { types }: TypedLayout,
): Promise<readonly RelationWritten[]> {
  const { problems, reverse, progress } = context;
  if (reverse === false) return [];
  const texts = new Set(given.map(({ relation }) => relationText(relation)));
  const turnedTexts = new Set(given.map(({ relation }) => relationText(reversedName(relation))));
  const oneWay = given.filter(({ relation }) => {
    const isTurned = turnedTexts.has(relationText(relation));
    return !isTurned && !texts.has(relationText(reversedName(relation)));
  });
  if (given.length + oneWay.length > relationsMax) {
    const many = `${given.length} relations would have ${oneWay.length} reverses`;
    const expected = `expected at most ${relationsMax} in all, or false`;
    problems.add('reverse', `${many}, ${expected}`);
  }
  problems.throwIfAny();
  const made: RelationWritten[] = [];
  for (const [at, relation] of oneWay.entries()) {
    progress(at / oneWay.length, `turning ${relationText(relation.relation)}`);
    const turned = await reverseRelation(context, relation, types);
    if (turned !== null) made.push(turned);
  }
  return made;
}

/** SHA-256 of each array by its path below the dataset's folder. */
function sumsOf(root: string, writers: readonly DatasetWriter[]): TypedManifest['sha256'] {
  return Object.fromEntries(
    writers.flatMap(({ folder, arrays }) =>
      [...arrays].map(([name, { sha256 }]) => [
        `${folder.slice(root.length + 1)}/${name}.npy`,
        sha256,
      ]),
    ),
  );
}

async function columnsOf(root: string, types: readonly TypeWritten[]) {
  const columns: Record<string, TypedStory['columns'][string]> = {};
  const names: Record<string, readonly string[]> = {};
  for (const { type, featureNames } of types) {
    const { name, num_nodes: rows, features } = type;
    if (features === undefined) continue;
    const folder = join(root, 'nodes', name);
    columns[name] = await columnStatisticsOf(folder, { rows, ...features });
    if (featureNames !== null) names[name] = featureNames;
  }
  return { columns, feature_names: names };
}

function* schemaNotices({ types, relations }: GraphSchema): Generator<string> {
  for (const relation of relations.filter(({ num_edges }) => num_edges === 0)) {
    yield `${relationText(relation)} has no edge`;
  }
  for (const { name, labels } of types) {
    if (labels === undefined) continue;
    if (labels.split.val === 0) yield `${name}: there is no validation split`;
    if (labels.split.test === 0) yield `${name}: there is no test split`;
  }
}
