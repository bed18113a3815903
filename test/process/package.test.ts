import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/at-end.ts';
import { repository } from '../support/daemon.ts';

/** What `npm pack` packs; test/long/package.test.ts installs it. */

const scratch = temporaryFolder('gnnd-pack-');

/** Paths in the package, as npm says; nothing is built for that. */
function packedFiles(): readonly string[] {
  const args = ['pack', '--dry-run', '--json', '--ignore-scripts'];
  const options = { cwd: repository, encoding: 'utf8', stdio: 'pipe' } as const;
  const [packed] = JSON.parse(execFileSync('npm', args, options));
  return packed.files.map(({ path }: { path: string }) => path);
}

test('the package has what runs and what builds it, no test and nothing that was fetched', () => {
  const files = packedFiles();
  const needed = [
    ...['dist/main.js', 'dist/cli/main.js', 'dist/executor/main.js', 'dist/web/index.html'],
    ...['deploy/setup.mjs', 'deploy/gnnd.service', 'CMakeLists.txt', 'native/cmake/train.cmake'],
    ...['dist/python/gnnd_formats/__main__.py', 'deploy/monitoring/dashboard.json'],
    ...['man/gnnd.1', 'man/gnnctl.1'],
    ...['proto/gnnd/v1/job.proto', 'proto/contract/exit-codes.yaml', 'LICENSE', 'README.md'],
  ];
  expect(needed.filter((path) => !files.includes(path))).toEqual([]);
  const folders = /(^|\/)(test|tests|fixtures|bench|node_modules|\.[^/]+|build|src)\//;
  const names = /\.test\.|\.(ts|[jt]s\.map|tsbuildinfo|pyc|log|npz)$/;
  expect(files.filter((path) => folders.test(path) || names.test(path))).toEqual([]);
  const telling = files.filter((path) =>
    readFileSync(join(repository, path), 'latin1').includes(repository),
  );
  expect(telling).toEqual([]);
});

test('prebuilt native files know no folder of the machine that built them', async () => {
  const { packPrebuilt } = await import('../../deploy/native.mjs');
  const folder = join(scratch, 'prebuilt');
  const libraries = { torch: '2.0+cpu', products: 'some 1.0', folders: {}, hasCuda: false };
  const before = process.cwd();
  process.chdir(repository);
  await packPrebuilt(folder, libraries).finally(() => process.chdir(before));
  expect(JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8'))).toEqual({
    libraries: 'PyTorch 2.0, some 1.0',
  });
  const names = readdirSync(folder).filter((name) => name !== 'manifest.json');
  expect(names).toEqual(expect.arrayContaining(['gnnd_core.node', 'gnnd_train.node']));
  const telling = names.filter((name) =>
    readFileSync(join(folder, name), 'latin1').includes(repository),
  );
  expect(telling).toEqual([]);
});
