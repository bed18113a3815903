import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { Job } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { Reason } from '../../src/api/gen/gnnd/v1/types_pb.ts';

/** What a job tells and leaves that ended before its last epoch, every epoch evaluated. */

/** The first epoch, from 1, after which the last `patience` accuracies brought nothing. */
function expectedEnd(accuracies: readonly number[], patience: number): number {
  return (
    accuracies.findIndex((_, epoch) => {
      const waited = accuracies.slice(0, epoch + 1);
      return epoch - waited.indexOf(Math.max(...waited)) >= patience;
    }) + 1
  );
}

export function expectStopped(job: Job, patience: number, plannedEpochs: number): void {
  const accuracies = job.epochs.map(({ valAccuracy }) => valAccuracy ?? Number.NaN);
  const best = accuracies.indexOf(Math.max(...accuracies));
  expect(job.epochs).toHaveLength(expectedEnd(accuracies, patience));
  expect(job.epochs.length).toBeGreaterThan(patience);
  expect(job.epochs.length).toBeLessThan(plannedEpochs);
  expect(job.reason).toBe(Reason.COMPLETED);
  expect(job.message).toBe(
    `stopped early after epoch ${accuracies.length}: no better validation accuracy ` +
      `for ${patience} epochs; best epoch ${best + 1}`,
  );
  expect(job.attempts.at(-1)?.message).toBe(job.message);
  expect(job.result).toMatchObject({
    epochs: accuracies.length,
    bestEpoch: best,
    bestValAccuracy: accuracies[best],
    parametersSha256: job.epochs.at(-1)?.parametersSha256,
  });
  expectCheckpoint(job, best);
}

/** Both files hold the parameters that their epochs ended with. */
function expectCheckpoint(job: Job, best: number): void {
  const folder = job.result?.checkpointDir ?? '';
  const manifest = JSON.parse(readFileSync(join(folder, 'MANIFEST.json'), 'utf8'));
  expect(manifest.epochs).toBe(job.epochs.length);
  for (const [file, epoch] of [
    ['last.safetensors', job.epochs.length - 1],
    ['best.safetensors', best],
  ] as const) {
    const { sha256, parametersSha256 } = manifest.files[file];
    const bytes = readFileSync(join(folder, file));
    expect(createHash('sha256').update(bytes).digest('hex')).toBe(sha256);
    expect(parametersSha256).toBe(job.epochs[epoch]?.parametersSha256);
  }
}
