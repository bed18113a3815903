import { expect, test } from 'vitest';
import { CheckpointError, checkpointDelaysMs, written } from '../../../src/supervisor/finalize.ts';

/** A disk that is full for the first `failures` tries. */
function disk(failures: number) {
  const bench = { tries: 0, waitedMs: 0, failed: 0, stopAfterMs: Number.POSITIVE_INFINITY };
  const write = async () => {
    bench.tries += 1;
    if (bench.tries > failures) return 'written';
    const cause = Object.assign(new Error('no space left on the device'), { code: 'ENOSPC' });
    throw new CheckpointError('no space left on the device', cause);
  };
  const retries = {
    onFailed: () => {
      bench.failed += 1;
    },
    sleep: async (delayMs: number) => {
      bench.waitedMs += delayMs;
    },
    isStopped: () => bench.waitedMs >= bench.stopAfterMs,
  };
  return { bench, write, retries };
}

test('a checkpoint that cannot be written is tried again, without training anew', async () => {
  const { bench, write, retries } = disk(4);
  expect(await written(write, retries)).toBe('written');
  expect(bench).toMatchObject({ tries: 5, failed: 4, waitedMs: 15_000 });
});

test('the tries end after ten minutes with the last error', async () => {
  const { bench, write, retries } = disk(1000);
  await expect(written(write, retries)).rejects.toThrow('no space left');
  expect(bench.tries).toBe(checkpointDelaysMs.length + 1);
  expect(bench.waitedMs).toBe(600_000);
});

test('what no time mends is not tried again', async () => {
  const { bench, retries } = disk(0);
  const write = async () => {
    bench.tries += 1;
    throw Object.assign(new Error('a file is in the way'), { code: 'ENOTDIR' });
  };
  await expect(written(write, retries)).rejects.toThrow('a file is in the way');
  expect(bench).toMatchObject({ tries: 1, waitedMs: 0 });
});

test('a stop ends the tries without a result', async () => {
  const { bench, write, retries } = disk(1000);
  bench.stopAfterMs = 3000;
  expect(await written(write, retries)).toBe(null);
  expect(bench.tries).toBe(2);
});
