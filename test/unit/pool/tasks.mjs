/** Tasks for pool.test.ts; threads load plain JavaScript. */

export const double = (number) => 2 * number;

/** One array with memory of its own, one that lies in memory shared with others. */
export function makeArrays(length) {
  const shared = new Uint8Array(2 * length).fill(1);
  return { own: Buffer.alloc(length, 7), part: shared.subarray(length), length };
}

/** Works without a pause until its thread is ended. */
export function spin(flag) {
  Atomics.store(flag, 0, 1);
  Atomics.notify(flag, 0);
  for (;;) Atomics.load(flag, 0);
}

/** Works until the flag is 2. */
export function hold(flag) {
  Atomics.add(flag, 1, 1);
  while (Atomics.load(flag, 0) !== 2) Atomics.wait(flag, 0, 0, 10);
  return 'held';
}

export function die() {
  process.exit(3);
}

export function dieLater() {
  setImmediate(() => {
    throw new Error('out of the blue');
  });
  return new Promise(() => {});
}

export async function throwAsTold({ kind }) {
  const { GnndError } = await import('../../../dist/base/errors.js');
  if (kind === 'EXPECTED') {
    throw new GnndError('SPEC_INVALID', 'no such thing', {
      violations: [{ path: 'spec.model', description: 'none' }],
      resource: 'jobs/a',
      metadata: { what: 'it' },
      cause: Object.assign(new Error('deeper'), { code: 'DATASET_CORRUPT' }),
    });
  }
  throw Object.assign(new TypeError('a bug'), { code: 'EBUG' });
}
