import { expect, test } from 'vitest';
import { addressOf, Session } from '../../../src/cli/session/session.ts';
import { createTestIo } from './test-io.ts';

test('the address is a gRPC target however it is written', () => {
  expect(addressOf('', { XDG_RUNTIME_DIR: '/run/user/7' })).toBe('unix:/run/user/7/gnnd/gnnd.sock');
  expect(addressOf('', {})).toBe('unix:/run/gnnd/gnnd.sock');
  expect(addressOf('/tmp/a.sock', {})).toBe('unix:/tmp/a.sock');
  expect(addressOf('unix:///tmp/a.sock', {})).toBe('unix:/tmp/a.sock');
  expect(addressOf('tcp://127.0.0.1:7443', {})).toBe('127.0.0.1:7443');
  expect(addressOf('host:1', {})).toBe('host:1');
});

const flags = { headers: true, color: 'auto' } as const;

test('a terminal gets tables and colours, a pipe neither', () => {
  const terminal = new Session(createTestIo({ isTty: true }).io, flags);
  const pipe = new Session(createTestIo().io, flags);
  expect([terminal.format, pipe.format]).toEqual(['table', 'plain']);
  expect([terminal.style.red('x'), pipe.style.red('x')]).toEqual(['\u001b[31mx\u001b[39m', 'x']);
});

test('NO_COLOR turns colours off, --color always on', () => {
  const io = createTestIo({ isTty: true, env: { NO_COLOR: '1' } }).io;
  expect(new Session(io, flags).style.red('x')).toBe('x');
  expect(new Session(io, { ...flags, color: 'always' }).style.red('x')).not.toBe('x');
});

test('a timeout needs a unit', () => {
  const { io } = createTestIo();
  expect(new Session(io, { ...flags, timeout: '30s' }).timeoutMs).toBe(30_000);
  expect(() => new Session(io, { ...flags, timeout: '30' })).toThrow('such as 30s or 5m');
});
