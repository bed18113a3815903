import { rmSync } from 'node:fs';
import { GnndError } from '../base/errors.ts';
import type { ModelOptions } from '../native/contract.ts';
import {
  foldProblem,
  type Moments,
  type Propagations,
  readMoments,
  tokensOf,
  trainedSource,
} from '../prepare/prepare.ts';
import type { JobRecord } from '../records/job-record.ts';
import { reads } from '../spec/spec-parts.ts';
import type { ExportedRows, MomentsOfTypes } from './export-files.ts';

/** What an export says about standardised features, and a model that does without them. */

/** Throws SPEC_INVALID where there is nothing to fold, or the model has no place for it. */
export function checkFold({ effectiveSpec: { features } }: JobRecord, model: ModelOptions): void {
  const problem =
    features.standardize === 'ON'
      ? foldProblem(model)
      : "the job's features are not standardised, so there is nothing to fold";
  if (problem === null) return;
  throw new GnndError('SPEC_INVALID', 'invalid request: fold_standardization', {
    violations: [{ path: 'fold_standardization', description: `true: ${problem}` }],
  });
}

/**
 * `features` answers the path of the standardised features, making them where they are not there.
 * Features of earlier versions have no moments beside them and are made anew.
 */
export async function momentsOf(
  columns: number,
  features: () => Promise<string>,
): Promise<Moments> {
  const path = await features();
  try {
    return await readMoments(path, columns);
  } catch {
    rmSync(path, { force: true });
    return await readMoments(await features(), columns);
  }
}

/** Of the files of each type's rows, in the order of the model's types. */
export async function momentsOfTypes(
  { graph }: ModelOptions,
  typeRows: readonly string[],
): Promise<MomentsOfTypes> {
  const found = new Map<string, Moments>();
  for (const [at, { name, inDim }] of graph.types.entries()) {
    found.set(name, await readMoments(typeRows[at] ?? '', inDim));
  }
  return found;
}

/** Null for models over blocks. */
export async function exportedRows(
  propagations: Pick<Propagations, 'moments'>,
  { datasetDigest, effectiveSpec }: JobRecord,
  model: ModelOptions,
): Promise<ExportedRows | null> {
  if (!reads(effectiveSpec, 'propagation')) return null;
  const { propagation } = effectiveSpec;
  const source = trainedSource(effectiveSpec, datasetDigest);
  const found = await propagations.moments(source, model.inDim);
  const ofAll = (of: (moments: Moments) => Float64Array) =>
    found?.map(({ moments }) => [...of(moments)]) ?? null;
  return {
    operators: propagation.operators,
    hops: propagation.hops,
    self_loops: propagation.selfLoops,
    tokens: tokensOf(propagation),
    standardized: propagation.standardize,
    mean: ofAll(({ mean }) => mean),
    deviation: ofAll(({ deviation }) => deviation),
  };
}
