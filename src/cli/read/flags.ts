import { gnnctlExit } from '../../base/exit-codes.ts';
import { CliError } from '../session/exit.ts';
import { readSpec } from './spec-file.ts';

/** What options of commands say. */

/** Collects the values of an option that may be given again. */
export const collect = (value: string, before: readonly string[] | undefined) => [
  ...(before ?? []),
  value,
];

/** The sampling of a job spec, as `{algorithm: RANDOM_WALK}`. */
export function samplingOf(yaml: string) {
  const reading = readSpec(null, [`sampling=${yaml}`]);
  if ('ok' in reading) return reading.ok.spec.sampling ?? {};
  const details = reading.problems.map(({ path, description }) => `${path}: ${description}`);
  throw new CliError(gnnctlExit.USAGE, '--sampling is not what a job spec has', details);
}

/** `1,2.5`; none for what was not given. */
export function numbersOf(option: string, list: string | undefined): number[] {
  if (list === undefined) return [];
  return list.split(',').map((word) => {
    const value = Number(word);
    if (word.trim() !== '' && Number.isFinite(value)) return value;
    throw usage(option, list, 'numbers with commas between them');
  });
}

export function integerOf(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^-?\d{1,9}$/.test(text)) return Number(text);
  throw usage(option, text, 'an integer');
}

export function seedOf(text: string | undefined): bigint | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,20}$/.test(text) && BigInt(text) < 2n ** 64n) return BigInt(text);
  throw usage('--random-seed', text, 'an integer from 0 to 2^64 - 1');
}

export function usage(option: string, text: string, expected: string): CliError {
  return new CliError(gnnctlExit.USAGE, `${option} ${JSON.stringify(text)}: expected ${expected}`);
}

/** The field, where there is one. */
export function optional<K extends string, V>(key: K, value: V | undefined): { [P in K]?: V } {
  return value === undefined ? {} : ({ [key]: value } as { [P in K]: V });
}
