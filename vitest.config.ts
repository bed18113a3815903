import { defineConfig } from 'vitest/config';

const tier = (name: string, more: { readonly globalSetup?: string[] } = {}) => ({
  extends: true as const,
  test: { name, include: [`test/${name}/**/*.test.ts`], ...more },
});
const trains = { globalSetup: ['test/support/imported.ts'] };

// biome-ignore lint/style/noDefaultExport: vitest reads the default export.
export default defineConfig({
  test: {
    // A crash of native code ends one worker, not the run.
    pool: 'forks',
    // Hangs fail; a loaded machine does not.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    // Two cores: more files at once only make each slower.
    maxWorkers: 2,
    projects: [
      ...[tier('unit'), tier('process'), tier('e2e', trains)],
      ...[tier('chaos', trains), tier('long', trains)],
    ],
  },
});
