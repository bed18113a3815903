import { createHash } from 'node:crypto';
import { isAbsolute } from 'node:path';
import { type FieldViolation, GnndError } from '../base/errors.ts';
import type { ImportChoices, ImportFormat } from '../records/dataset-record.ts';
import { idPattern } from '../spec/limits.ts';
import type { RequestKey } from '../store/store.ts';
import { mayHaveTypes } from './converted-formats.ts';
import { type DetectFormat, listsEdges } from './detect-format.ts';

/** What is asked of an import, and whether it can be asked. */

export interface ImportRequest extends ImportChoices {
  readonly id: string;
  /** An absolute path on this host. */
  readonly source: string;
  /** Null: told from the source. */
  readonly format: ImportFormat | null;
  /** Do all of it but keep nothing. */
  readonly validateOnly: boolean;
  /** The same request with the same id has one effect. */
  readonly requestId: string | null;
}

const importMethod = 'ImportDataset';

/** The format to import; rejects with SPEC_INVALID and everything that is wrong. */
export async function checkRequest(
  request: ImportRequest,
  detect: DetectFormat,
): Promise<ImportFormat> {
  const violations: FieldViolation[] = [];
  if (!idPattern.test(request.id)) {
    const expected = `expected 1 to 63 of a-z, 0-9 and -, a letter first, no - at the end`;
    violations.push({ path: 'dataset_id', description: `'${request.id}' is no id: ${expected}` });
  }
  const { source } = request;
  const detection = isAbsolute(source)
    ? await detect(source, request.format)
    : ({ kind: 'problem', description: 'expected an absolute path' } as const);
  if (detection.kind === 'problem') {
    violations.push({ path: 'source', description: `'${source}': ${detection.description}` });
  }
  if (request.directed && detection.kind === 'format' && !listsEdges(detection.format)) {
    const why = 'arrays say their direction themselves';
    const description = `is for tables and OGB folders, and this is ${detection.format}: ${why}`;
    violations.push({ path: 'directed', description });
  }
  if (request.link && detection.kind === 'format' && detection.format !== 'NPY') {
    const description = `is for folders of .npy files, and this is ${detection.format}`;
    violations.push({ path: 'link', description });
  }
  if (request.reverse === true && detection.kind === 'format' && !mayHaveTypes(detection.format)) {
    const description = `is for graphs of several types, and this is ${detection.format}`;
    violations.push({ path: 'reverse', description });
  }
  if (detection.kind === 'format' && violations.length === 0) return detection.format;
  const message = violations.map(({ path, description }) => `${path}: ${description}`).join('; ');
  throw new GnndError('SPEC_INVALID', message, { violations });
}

/** What is chosen of a request, in a fixed order. */
export function choicesOf(request: ImportChoices): ImportChoices {
  const { featureDtype, directed, link, task, split } = request;
  const { ignoredColumns, madeFeatures, randomSplit, reverse } = request;
  const arrays = { featureDtype, directed, link, task, split };
  return { ...arrays, ignoredColumns, madeFeatures, randomSplit, reverse };
}

function digestOfRequest(request: ImportRequest): string {
  const { id, source, format, validateOnly } = request;
  const text = JSON.stringify([id, source, format, validateOnly, choicesOf(request)]);
  return createHash('sha256').update(text).digest('hex');
}

export function requestKeys(request: ImportRequest): RequestKey[] {
  const { requestId } = request;
  if (requestId === null) return [];
  return [{ method: importMethod, requestId, sha256: digestOfRequest(request) }];
}
