import type { Pool } from '../../src/pool/pool.ts';

/** For tests in which nothing is computed. */
export const noThreads: Pool = {
  run: ({ name }) => Promise.reject(new Error(`no thread for ${name}`)),
  close: async () => {},
};
