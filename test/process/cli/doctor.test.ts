import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { repository } from '../../support/daemon.ts';

test('the doctor tries whether executors are confined here', () => {
  const cli = join(repository, 'dist/cli/main.js');
  const { stdout } = spawnSync(process.execPath, [cli, 'doctor', '-o', 'json'], {
    encoding: 'utf8',
  });
  const { findings } = JSON.parse(stdout);
  // Executors are confined here, as those in the tests of plug-ins are.
  expect(findings).toContainEqual({
    what: 'Confinement',
    verdict: 'ok',
    found: expect.stringContaining('seccomp'),
    command: '',
  });
});
