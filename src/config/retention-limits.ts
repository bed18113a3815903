/** What the daemon keeps, and for how long; null means that no limit was set. */
export interface RetentionLimits {
  /** Days since their end for ended jobs. Null: `unsetJobLimits` for those without a result. */
  readonly jobsDays: number | null;
  /** How many ended jobs are kept, the last to end. Null: as above. */
  readonly jobsCount: number | null;
  readonly eventsDays: number;
  readonly eventsCount: number;
  /** Bytes of the logs of one job's executors. */
  readonly jobLogsBytes: number;
  /** Bytes of the logs of all jobs' executors. */
  readonly logsBytes: number;
  /** Bytes of files that can be made again. Null: `derivedDiskShare` of the disk they are on. */
  readonly derivedBytes: number | null;
}

/** A model is never deleted unless somebody said so; what failed or was cancelled left none. */
export const unsetJobLimits = { days: 90, count: 10_000 } as const;
export const derivedDiskShare = 0.2;
/** What was said of an import or a check is not asked for any more. */
export const operationsDays = 7;

/** What the daemon may remove. */
export const garbageKinds = ['JOB', 'LOG', 'DERIVED_FILE', 'EVENTS', 'OPERATIONS'] as const;
export type GarbageKind = (typeof garbageKinds)[number];

export const retentionKeys = [
  {
    name: 'jobs_retain_days',
    help: 'deletes jobs that ended so long ago (default: 90, of FAILED and CANCELLED ones only)',
  },
  {
    name: 'jobs_retain_count',
    help: 'deletes ended jobs beyond so many (default: 10000, of FAILED and CANCELLED ones only)',
  },
  { name: 'job_logs_max_bytes', help: "bytes of a job's executor logs, e.g. 64MiB" },
  { name: 'logs_max_bytes', help: 'bytes of all executor logs' },
  { name: 'events_retain_days', help: 'days for which watches can resume' },
  { name: 'events_retain_count', help: 'events from which watches can resume' },
  { name: 'cache_max_bytes', help: 'bytes of derived files (default: auto, a fifth of the disk)' },
] as const;

type RetentionKey = (typeof retentionKeys)[number]['name'];

/** The limits in configuration values; sentences about those that cannot be go to `problems`. */
export function retentionLimitsOf(
  values: Readonly<Partial<Record<RetentionKey, unknown>>>,
  problems: string[],
): RetentionLimits {
  const count = (name: RetentionKey, high: number): number | null => {
    const value = values[name];
    if (value === undefined || value === 'auto') return null;
    const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
    const isCount = typeof number === 'number' && Number.isInteger(number);
    if (isCount && number >= 1 && number <= high) return number;
    problems.push(`${name} must be an integer in 1..${high}, not ${JSON.stringify(value)}`);
    return null;
  };
  const bytes = (name: RetentionKey): number | null => {
    const value = values[name];
    if (value === undefined || value === 'auto') return null;
    const number = bytesOf(value);
    if (number !== null) return number;
    const expected = 'a number of bytes such as 512MiB, of at least 1MiB';
    problems.push(`${name} must be ${expected}, not ${JSON.stringify(value)}`);
    return null;
  };
  return {
    jobsDays: count('jobs_retain_days', 36_500),
    jobsCount: count('jobs_retain_count', 10_000_000),
    eventsDays: count('events_retain_days', 36_500) ?? 7,
    eventsCount: count('events_retain_count', 100_000_000) ?? 100_000,
    jobLogsBytes: bytes('job_logs_max_bytes') ?? 64 * mebibyte,
    logsBytes: bytes('logs_max_bytes') ?? 1024 * mebibyte,
    derivedBytes: bytes('cache_max_bytes'),
  };
}

const mebibyte = 2 ** 20;
const units: Readonly<Record<string, number>> = {
  '': 1,
  KiB: 2 ** 10,
  MiB: mebibyte,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
};

function bytesOf(value: unknown): number | null {
  const match = /^(\d+(?:\.\d+)?) ?([KMGT]iB|)$/.exec(String(value).trim());
  const unit = units[match?.[2] ?? ''];
  if (match === null || unit === undefined) return null;
  const bytes = Math.floor(Number(match[1]) * unit);
  return bytes >= mebibyte && bytes <= Number.MAX_SAFE_INTEGER ? bytes : null;
}
