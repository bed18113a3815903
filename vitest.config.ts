import { defineConfig } from 'vitest/config';

interface More {
  readonly globalSetup?: string[];
  readonly isolate?: boolean;
}

/** Hangs fail; a machine that is ten times slower under its load does not. */
const tier = (name: string, limitMs: number, more: More = {}) => ({
  extends: true as const,
  test: {
    ...{ name, include: [`test/${name}/**/*.test.ts`] },
    ...{ testTimeout: limitMs, hookTimeout: limitMs, ...more },
  },
});
const trains = { globalSetup: ['test/support/imported.ts'] };

// biome-ignore lint/style/noDefaultExport: vitest reads the default export.
export default defineConfig({
  test: {
    // A crash of native code ends one worker, not the run.
    pool: 'forks',
    // Two cores: more files at once only make each slower.
    maxWorkers: 2,
    projects: [
      // Files of one worker share the modules that they import: loading them anew for each file
      // took more processor time than the tests.
      tier('unit', 120_000, { isolate: false }),
      tier('process', 180_000),
      ...['e2e', 'thorough', 'chaos', 'long'].map((name) => tier(name, 300_000, trains)),
    ],
  },
});
