import { defineConfig } from 'vitest/config';

// biome-ignore lint/style/noDefaultExport: vitest reads the default export.
export default defineConfig({
  test: {
    // A crash of native code ends one worker, not the run.
    pool: 'forks',
    include: ['test/**/*.test.ts'],
    // Hangs fail; a loaded machine does not.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    // Two cores: more files at once only make each slower.
    maxWorkers: 2,
  },
});
