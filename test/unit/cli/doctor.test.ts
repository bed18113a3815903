import { expect, test } from 'vitest';
import { hugePageFinding, nodeFinding, printFindings } from '../../../src/cli/commands/doctor.ts';
import { Session } from '../../../src/cli/session/session.ts';
import { createTestIo } from './test-io.ts';

test('an old Node is missing, a new one is not', () => {
  expect(nodeFinding('18.20.0').verdict).toBe('missing');
  expect(nodeFinding('20.16.0').verdict).toBe('missing');
  expect(nodeFinding('20.17.0').verdict).toBe('ok');
  expect(nodeFinding('24.0.0').verdict).toBe('ok');
});

test('huge pages that are off are advice, with the command that turns them on', () => {
  expect(hugePageFinding('always within_size [advise] never').verdict).toBe('ok');
  expect(hugePageFinding('always within_size advise [never] deny force').verdict).toBe('ok');
  const off = hugePageFinding('always within_size advise never [deny] force');
  expect(off.verdict).toBe('advice');
  expect(off.command).toContain('sudo tee /sys/kernel/mm/transparent_hugepage/shmem_enabled');
  expect(hugePageFinding(null).verdict).toBe('advice');
});

test('findings for people name the command and end with what is missing', () => {
  const { io, stdout } = createTestIo();
  const session = new Session(io, { headers: true, color: 'auto', output: 'table' });
  printFindings(session, [nodeFinding('24.0.0'), nodeFinding('18.0.0')]);
  expect(stdout()).toBe(
    [
      '✓  Node           24.0.0',
      '✗  Node           18.0.0; gnnd needs 20.17 or later',
      '                  nvm install 20, or see https://nodejs.org/en/download',
      '',
      'Missing: Node.',
      '',
    ].join('\n'),
  );
});
