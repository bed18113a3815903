import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { GnndError, messageOf } from '../base/errors.ts';
import { openRegular, readRegular } from '../base/regular-file.ts';
import { reads } from '../spec/spec-parts.ts';
import type { Store } from '../store/store.ts';
import type { ExportPart } from './export-files.ts';

/** What an inference left, as files to take away. */

export type FilePart = Extract<ExportPart, { readonly kind: 'file' | 'data' }>;

const manifestName = 'inference.json';
const pieceBytes = 256 * 1024;

interface Manifest {
  readonly files: Readonly<Record<string, { readonly bytes: number; readonly sha256: string }>>;
}

/**
 * Each file, its digest compared while it is read; inference.json last. Throws JOB_NOT_FOUND,
 * JOB_STATE_CONFLICT, and CHECKPOINT_CORRUPT where a file is not what was written.
 */
export async function* predictionFiles(
  store: Pick<Store, 'getJob'>,
  id: string,
): AsyncGenerator<FilePart, void, void> {
  const resource = `jobs/${id}`;
  const folder = folderOf(store, id);
  try {
    const bytes = await readRegular(join(folder, manifestName));
    const { files }: Manifest = JSON.parse(bytes.toString('utf8'));
    for (const [name, wanted] of Object.entries(files)) {
      yield { kind: 'file', name, bytes: wanted.bytes };
      yield* checkedPieces(join(folder, name), wanted);
    }
    yield { kind: 'file', name: manifestName, bytes: bytes.length };
    yield { kind: 'data', bytes };
  } catch (cause) {
    const message = `the predictions of job ${id} cannot be read: ${messageOf(cause)}`;
    throw new GnndError('CHECKPOINT_CORRUPT', message, { resource, cause });
  }
}

function folderOf(store: Pick<Store, 'getJob'>, id: string): string {
  const resource = `jobs/${id}`;
  const job = store.getJob(id);
  if (job === null) throw new GnndError('JOB_NOT_FOUND', `there is no job ${id}`, { resource });
  const folder = job.state === 'SUCCEEDED' ? job.result?.predictions?.folder : undefined;
  if (folder !== undefined) return folder;
  const why = reads(job.effectiveSpec, 'inference')
    ? `is ${job.state}: only an inference that SUCCEEDED has predictions`
    : 'trains: gnnctl predict JOB makes an inference with its model';
  throw new GnndError('JOB_STATE_CONFLICT', `job ${id} ${why}`, { resource });
}

async function* checkedPieces(
  path: string,
  { bytes: size, sha256 }: { readonly bytes: number; readonly sha256: string },
): AsyncGenerator<FilePart, void, void> {
  const hash = createHash('sha256');
  const file = await openRegular(path);
  try {
    let done = 0;
    for await (const piece of file.createReadStream({
      highWaterMark: pieceBytes,
      autoClose: false,
    })) {
      const bytes = Buffer.from(piece);
      hash.update(bytes);
      done += bytes.length;
      yield { kind: 'data', bytes };
    }
    if (done === size && hash.digest('hex') === sha256) return;
    throw new Error(`${path} is not what was written`);
  } finally {
    await file.close();
  }
}
