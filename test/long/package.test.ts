import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/at-end.ts';
import { repository } from '../support/daemon.ts';
import { findPython } from '../support/python.ts';
import { skipped } from '../support/skipped.ts';

/**
 * The package, installed into an empty prefix by somebody who has nothing: dependencies come from
 * the registry; PyTorch is that of the tests, of which a second copy would be a gigabyte.
 */

const folder = temporaryFolder('gnnd-install-');

const canFetch = spawnSync('npm', ['view', 'yaml@2.9.1', 'version']).status === 0;

test('is packed, installed, and trains', async (context) => {
  if (!canFetch) return context.skip(skipped('the installed package', 'no npm registry'));
  const python = await findPython('torch');
  if (python === null) return context.skip(skipped('the installed package', 'no torch'));
  const env = {
    HOME: folder,
    PATH: [join(folder, 'bin'), dirname(process.execPath), '/usr/bin', '/bin'].join(delimiter),
    GNND_PYTHON: python,
    // How a registry is reached, and where a compiler of addons finds headers, is the machine's
    // matter: another prefix would have another file of settings for all users.
    npm_config_userconfig: join(homedir(), '.npmrc'),
    npm_config_globalconfig: execFileSync('npm', ['config', 'get', 'globalconfig'], {
      encoding: 'utf8',
    }).trim(),
  };
  const options = { cwd: folder, env, encoding: 'utf8' } as const;
  execFileSync('npm', ['pack', '--pack-destination', folder], { ...options, cwd: repository });
  const tarball = readdirSync(folder).find((name) => name.endsWith('.tgz')) ?? '';
  expect(existsSync(join(repository, 'prebuilt'))).toBe(false);

  const install = ['install', '--global', '--prefix', folder, '--foreground-scripts'];
  const said = spawnSync('npm', [...install, join(folder, tarball)], options);
  expect(said.status, said.stderr).toBe(0);
  // No compiler ran, because the prebuilt files of this platform fit.
  expect(said.stderr).toMatch(/native +prebuilt files of prebuilt\/linux-/);

  expect(execFileSync('gnnctl', ['version'], options)).toMatch(/^gnnctl \d+\.\d+\.\d+$/m);
  const spec = 'spec:\n  dataset: cora\n  training: {epochs: 2, batch_size: 20}\n';
  writeFileSync(join(folder, 'job.yaml'), spec);
  const cora = join(repository, 'test', 'fixtures', 'cora.npz');
  const run = ['run', '-f', 'job.yaml', '--import', cora, '--cpu-devices', '2'];
  expect(execFileSync('gnnd', run, options)).toMatch(/SUCCEEDED/);
  // Nothing is left to do.
  expect(spawnSync('gnnd', ['setup'], options)).toMatchObject({ status: 0, stderr: '' });
});
