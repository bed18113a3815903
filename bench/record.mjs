import { appendFileSync, mkdirSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { output } from './daemon.mjs';

// What measured numbers come to, and the lines that are kept of them.

/** The middle number, or the mean of the two in the middle. */
export function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

export const mean = (numbers) => numbers.reduce((sum, number) => sum + number, 0) / numbers.length;

/** The sample's standard deviation; 0 of a single number. */
export function deviation(numbers) {
  if (numbers.length < 2) return 0;
  const middle = mean(numbers);
  const squares = numbers.reduce((sum, number) => sum + (number - middle) ** 2, 0);
  return Math.sqrt(squares / (numbers.length - 1));
}

/** Keeps a line of `name` in build/bench, with the host and the commit; returns the whole line. */
export function record(name, row) {
  const line = {
    bench: name,
    ...row,
    machine: `${cpus()[0]?.model ?? 'unknown processor'}, ${cpus().length} cores`,
    commit: output('git', ['rev-parse', '--short', 'HEAD']),
    load: Number(loadavg()[0]?.toFixed(1)),
  };
  mkdirSync('build/bench', { recursive: true });
  appendFileSync(`build/bench/${name}.jsonl`, `${JSON.stringify(line)}\n`);
  return line;
}
