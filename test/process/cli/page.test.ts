import { afterEach, beforeEach, expect, test } from 'vitest';
import { HostService } from '../../../src/api/gen/gnnd/v1/host_service_pb.ts';
import { gnnctlExit } from '../../../src/base/exit-codes.ts';
import { runCli } from '../../../src/cli/program.ts';
import { createTestIo } from '../../unit/cli/test-io.ts';
import { FakeDaemon } from './fake-daemon.ts';

let daemon: FakeDaemon;
beforeEach(() => {
  daemon = new FakeDaemon();
});
afterEach(() => daemon.close());

async function page(address: string) {
  const { io, stdout, stderr } = createTestIo();
  await daemon.unary(HostService.method.createPageLink, () => ({ address })).listen();
  const exitCode = await runCli(['--address', daemon.address, 'page'], io);
  return { exitCode, stdout: stdout(), stderr: stderr() };
}

test('gnnctl page prints the address that the daemon makes', async () => {
  const address = 'http://127.0.0.1:9464/#token=gnnd_page_x';
  const { exitCode, stdout } = await page(address);
  expect(exitCode).toBe(gnnctlExit.OK);
  expect(stdout).toContain(address);
});

test('gnnctl page says how to get one where none is served', async () => {
  const { exitCode, stderr } = await page('');
  expect(exitCode).toBe(gnnctlExit.NOT_FOUND);
  expect(stderr).toContain('page: on');
});
