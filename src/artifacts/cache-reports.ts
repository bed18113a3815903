import { isAbsolute, join } from 'node:path';
import { makeFolder } from '../base/atomic-file.ts';
import { type FieldViolation, messageOf } from '../base/errors.ts';
import { createLine } from '../base/line.ts';
import { isInside, placeOf } from '../base/rooted.ts';
import { requireOneType } from '../datasets/ready-dataset.ts';
import type { CacheReport } from '../native/contract.ts';
import type { DatasetRecord } from '../records/dataset-record.ts';
import type { JobSpec, JobSpecInput } from '../spec/job-spec.ts';
import { resolveJobSpec } from '../spec/resolve-job-spec.ts';
import type { ResolveContext } from '../spec/rules/rule.ts';
import { show } from '../spec/spec-checker.ts';
import { type Range, rangeOf } from '../spec/spec-fields.ts';
import type { Store } from '../store/store.ts';
import { contextOf, invalid, type SampleEpochsOptions, sampleEpochs } from './sample-epochs.ts';

/** What caches of every policy and size would be worth to jobs on a dataset. */

export interface CacheReportRequest {
  readonly dataset: string;
  readonly samplings: readonly NonNullable<JobSpecInput['sampling']>[];
  readonly batchSize: number | undefined;
  readonly epochs: number | undefined;
  readonly presampleEpochs: readonly number[];
  readonly ratios: readonly number[];
  readonly randomSeed: string | undefined;
  /** Empty: nothing is dumped. */
  readonly dumpDir: string;
}

export interface DatasetCacheReport {
  readonly dataset: string;
  readonly digest: string;
  readonly samplings: readonly {
    readonly sampling: JobSpec['sampling'];
    readonly report: CacheReport;
  }[];
}

export interface CacheReports {
  /** Throws a GnndError that names every wrong field. Stops early on `signal`, leaving nothing. */
  report(request: CacheReportRequest, signal: AbortSignal): Promise<DatasetCacheReport>;
}

export interface CacheReportsOptions extends SampleEpochsOptions {
  readonly store: Store;
  /** Samples are dumped below it. */
  readonly dumpsDir: string;
}

const samplingsMax = 16;
const ratiosMax = 100;
const presampleRange = rangeOf('cache.presample_epochs');
const epochsRange: Range = { min: 1, max: 100 };
const defaults = { epochs: 10, presampleEpochs: [1], ratios: [0.05, 0.1, 0.15, 0.2, 0.25, 0.3] };

export function createCacheReports(options: CacheReportsOptions): CacheReports {
  // Each samples whole epochs on a core: one at a time, in the order of arrival.
  const line = createLine();
  return {
    async report(asked, signal) {
      const { dumpDir, problem } = await dumpPlaceOf(asked.dumpDir, options.dumpsDir);
      const request = { ...asked, dumpDir };
      const dataset = requireOneType(options.store, request.dataset);
      const specs = specsOf(request, problem, contextOf(options, dataset));
      const samplings: { sampling: JobSpec['sampling']; report: CacheReport }[] = [];
      const leave = await line.enter(signal);
      try {
        for (const [index, spec] of specs.entries()) {
          const report = await reportOf(options, { request, dataset, spec, index, signal });
          samplings.push({ sampling: spec.sampling, report });
        }
      } finally {
        leave();
      }
      return { dataset: dataset.id, digest: dataset.digest, samplings };
    },
  };
}

interface Part {
  readonly request: CacheReportRequest;
  readonly dataset: DatasetRecord;
  readonly spec: JobSpec;
  readonly index: number;
  readonly signal: AbortSignal;
}

async function reportOf(
  options: CacheReportsOptions,
  { request, dataset, spec, index, signal }: Part,
): Promise<CacheReport> {
  const dumpFolder = request.dumpDir === '' ? '' : join(request.dumpDir, String(index));
  if (dumpFolder !== '') makeFolder(dumpFolder);
  const part = { dataset, spec, signal, log: 'cache-report', samplingPath: `samplings[${index}]` };
  const answer = await sampleEpochs(options, part, (inputs) => ({
    role: 'CACHE_REPORT',
    options: {
      ...inputs,
      epochs: spec.training.epochs,
      presampleEpochs: orDefault(request.presampleEpochs, defaults.presampleEpochs),
      ratios: orDefault(request.ratios, defaults.ratios),
      dumpFolder,
    },
  }));
  if (answer.role === 'CACHE_REPORT') return answer.value;
  throw new Error(`a cache report was answered with ${answer.role}`);
}

/** Each part as the spec of a job that samples so. */
function specsOf(
  request: CacheReportRequest,
  dumpProblem: string | null,
  context: ResolveContext,
): readonly JobSpec[] {
  const violations = [...violationsOf(request)];
  if (dumpProblem !== null) violations.push({ path: 'dump_dir', description: dumpProblem });
  // One resolution a sampling: not before their number is known to be a small one.
  if (request.samplings.length > samplingsMax) throw invalid(violations);
  const samplings = request.samplings.length === 0 ? [{}] : request.samplings;
  const specs = samplings.flatMap((sampling, index) => {
    const resolution = resolveJobSpec(
      {
        dataset: request.dataset,
        sampling,
        training: {
          epochs: request.epochs ?? defaults.epochs,
          batchSize: request.batchSize,
          randomSeed: request.randomSeed,
        },
      },
      context,
    );
    if ('ok' in resolution) return [resolution.ok];
    for (const { path, description } of resolution.violations) {
      violations.push({ path: pathOf(path, index), description });
    }
    return [];
  });
  if (violations.length > 0) throw invalid(violations);
  return specs;
}

/** `spec.sampling.fanouts[0]` is `samplings[2].fanouts[0]`, `spec.training.epochs` is `epochs`. */
function pathOf(path: string, index: number): string {
  return path.replace(/^spec\.sampling/, `samplings[${index}]`).replace(/^spec\.training\./, '');
}

/** The place itself, without links, so that what was checked is what is written to. */
async function dumpPlaceOf(
  dumpDir: string,
  root: string,
): Promise<{ readonly dumpDir: string; readonly problem: string | null }> {
  if (dumpDir === '') return { dumpDir, problem: null };
  const wrong = (what: string) => ({ dumpDir, problem: `${show(dumpDir)}: ${what}` });
  if (!isAbsolute(dumpDir) || dumpDir.includes('\0')) {
    return wrong("expected an absolute path on the daemon's host");
  }
  try {
    const place = await placeOf(dumpDir);
    if (isInside(await placeOf(root), place)) return { dumpDir: place, problem: null };
    return wrong(`is not in ${root}, the daemon's dumps_dir`);
  } catch (error) {
    return wrong(messageOf(error));
  }
}

function violationsOf(request: CacheReportRequest): readonly FieldViolation[] {
  const violations: FieldViolation[] = [];
  const violate = (path: string, description: string) => violations.push({ path, description });
  const within = (path: string, value: number, { min, max }: Range) => {
    if (Number.isInteger(value) && value >= min && value <= max) return;
    violate(path, `${show(value)}: expected an integer from ${min} to ${max}`);
  };
  const atMost = (path: string, list: readonly unknown[], max: number) => {
    if (list.length > max) violate(path, `${list.length} given: expected at most ${max}`);
  };
  const { samplings, presampleEpochs, ratios } = request;
  atMost('samplings', samplings, samplingsMax);
  atMost('presample_epochs', presampleEpochs, presampleRange.max);
  atMost('ratios', ratios, ratiosMax);
  if (request.epochs !== undefined) within('epochs', request.epochs, epochsRange);
  presampleEpochs.slice(0, presampleRange.max).forEach((epochs, i) => {
    within(`presample_epochs[${i}]`, epochs, presampleRange);
  });
  ratios.slice(0, ratiosMax).forEach((ratio, i) => {
    if (ratio >= 0 && ratio <= 1) return;
    violate(`ratios[${i}]`, `${show(ratio)}: expected a finite number in [0, 1]`);
  });
  return violations;
}

function orDefault<T>(given: readonly T[], fallback: readonly T[]): readonly T[] {
  return given.length === 0 ? fallback : given;
}
