import { systemClock } from '../base/clock.ts';
import type { ReportProgress } from './import-context.ts';
import { elementBytes, type NpySource } from './npy.ts';

/** Before that much time, a rate says little. */
const settledMs = 2000;

/** Maps the bytes read to progress: how many, how fast, how long still. */
export class ByteProgress {
  readonly #report: ReportProgress;
  readonly #total: number;
  readonly #nowMs: () => number;
  readonly #startMs: number;
  #path = '';
  #elementBytes = 1;
  #done = 0;

  constructor(report: ReportProgress, totalBytes: number, nowMs = () => systemClock.monotonicMs()) {
    this.#report = report;
    this.#total = totalBytes;
    this.#nowMs = nowMs;
    this.#startMs = nowMs();
  }

  begin({ path, header }: NpySource): void {
    this.#path = path;
    this.#elementBytes = elementBytes[header.type];
    this.advance(0);
  }

  advance(elements: number): void {
    this.#done += elements * this.#elementBytes;
    // Headers are not counted, and what could not be read is left out.
    const share = this.#total === 0 ? 1 : Math.min(1, this.#done / this.#total);
    const counts = `${sizeText(this.#done)} of ${sizeText(this.#total)}`;
    this.#report(share, `reading ${this.#path}: ${counts}${this.#rateText(share)}`);
  }

  #rateText(share: number): string {
    const spentMs = this.#nowMs() - this.#startMs;
    if (spentMs < settledMs || share === 0) return '';
    const leftMs = (spentMs * (1 - share)) / share;
    return `, ${sizeText((1000 * this.#done) / spentMs)}/s, ${timeText(leftMs / 1000)} left`;
  }
}

function sizeText(bytes: number): string {
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(2)} GB`;
}

function timeText(seconds: number): string {
  const whole = Math.round(seconds);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}
