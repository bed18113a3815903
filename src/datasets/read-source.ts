import type { DatasetCounts, DatasetValidation, GraphSchema } from '../native/contract.ts';
import type { DatasetManifest, Problem, TypedManifest } from '../records/dataset-record.ts';
import { completeDataset } from './complete-dataset.ts';
import type { SourceImport, TaskWatch } from './data-tasks.ts';
import { DatasetWriter, type DatasetWritten } from './dataset-writer.ts';
import { importers } from './detect-format.ts';
import type { ImportContext, ImportNative } from './import-context.ts';
import { NoticeList } from './notices.ts';
import { ProblemList } from './problems.ts';
import { withinRoot } from './source-root.ts';
import { tellUnreadLinks } from './target-links.ts';
import { importTyped } from './typed-import.ts';
import { nativeSchemaOf } from './typed-schema.ts';

/** The native check of every element of a dataset. */
export interface NativeValidator {
  /** `checked` names files whose elements were checked before. */
  datasetValidate(
    folder: string,
    counts: DatasetCounts,
    checked: readonly string[],
  ): Promise<DatasetValidation>;
  datasetValidateTyped(
    folder: string,
    schema: GraphSchema,
    checked: readonly string[],
  ): Promise<DatasetValidation>;
}

/** What reading a source needs of native code. */
export type NativeReader = NativeValidator & ImportNative;

/** What an import works with. */
interface SourceOptions extends SourceImport, TaskWatch {
  readonly native: NativeReader;
}

/** Share of the progress that the import makes; the rest is left for the check. */
const importShare = 0.9;

/**
 * Reads the source, writes the dataset into the folder and checks every element of it. Throws
 * ImportFailure for what is wrong with the source.
 */
export async function readSource(options: SourceOptions): Promise<DatasetWritten> {
  return await withinRoot(options, () => readMembers(options));
}

async function readMembers(options: SourceOptions): Promise<DatasetWritten> {
  const { source, choices, folder, progress, signal, native } = options;
  const problems = new ProblemList();
  const notices = new NoticeList();
  const checked = new Set<string>();
  const called = new Map<string, string>();
  const writer = new DatasetWriter(folder);
  try {
    const context: ImportContext = {
      ...choices,
      ...{ source, native, writer, checked, called, problems, notices, signal },
      progress: (fraction, message) => progress(importShare * fraction, message),
    };
    const written = await writeDataset(context, options);
    progress(importShare, 'checking every element');
    const found = await checkElements(native, { folder, checked }, written.manifest);
    problems.addAll(found.problems.map(asCalled(called)), found.problemCount);
    problems.throwIfAny();
    signal.throwIfAborted();
    return written;
  } finally {
    await writer.close();
  }
}

/** Throws ImportFailure for all that is wrong with the source but elements of its arrays. */
async function writeDataset(
  context: ImportContext,
  { id, format, origin }: SourceOptions,
): Promise<DatasetWritten> {
  const { writer, problems, notices } = context;
  if (format === 'TYPED_NPY') return await importTyped(context, { id, origin });
  if (context.reverse === true) {
    problems.add('reverse', 'is for graphs of several types, and this one has one');
  }
  const imported = await importers[format](context);
  problems.throwIfAny();
  tellUnreadLinks(context);
  for (const notice of origin?.notices ?? []) notices.add(notice);
  const { source: from, hasNoSplits } = origin ?? imported;
  const facts = await completeDataset(context, { ...imported, source: from, hasNoSplits });
  if (writer.written('train')?.rows === 0 && facts.numClasses > 0) {
    problems.add('train', 'the training split is empty: at least one node must be in it');
  }
  problems.throwIfAny();
  return await writer.finish(id, facts, notices.kept);
}

/** The native check of a dataset of one type or of several. */
export async function checkElements(
  native: NativeValidator,
  { folder, checked }: { readonly folder: string; readonly checked: Iterable<string> },
  manifest: DatasetManifest | TypedManifest,
): Promise<DatasetValidation> {
  const known = [...checked];
  return manifest.version === 1
    ? await native.datasetValidate(folder, manifestCounts(manifest), known)
    : await native.datasetValidateTyped(folder, nativeSchemaOf(manifest), known);
}

/** A problem of stored arrays, by the names that the person has for them. */
function asCalled(called: ReadonlyMap<string, string>): (problem: Problem) => Problem {
  const nameOf = (file: string) => called.get(file) ?? file;
  return ({ path, description }) => {
    // Of several types a file is named from the dataset's folder on, others of its type by name.
    const place = path.slice(0, path.lastIndexOf('/') + 1);
    const named = (file: string) => nameOf(`${place}${file}`).slice(place.length);
    return { path: nameOf(path), description: description.replaceAll(/\b[a-z_]+\.npy\b/g, named) };
  };
}

function manifestCounts(manifest: DatasetManifest): DatasetCounts {
  return {
    numNodes: manifest.num_nodes,
    numEdges: manifest.num_edges,
    numFeatures: manifest.num_features,
    numClasses: manifest.num_classes,
    train: manifest.split.train,
    val: manifest.split.val,
    test: manifest.split.test,
    featureDtype: manifest.feature_dtype,
    task: manifest.task ?? 'CLASSIFICATION',
  };
}
