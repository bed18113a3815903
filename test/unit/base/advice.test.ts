import { expect, test } from 'vitest';
import { hostAndPort } from '../../../src/base/address.ts';
import { serveCommand, typed } from '../../../src/base/advice.ts';

test('words are quoted where a shell would take them for something else', () => {
  expect(typed('unix:/run/gnnd.sock')).toBe('unix:/run/gnnd.sock');
  expect(typed('/a b/$x')).toBe("'/a b/$x'");
  expect(typed("it's")).toBe("'it'\\''s'");
});

test('a daemon is started with what its address needs', () => {
  const start = 'npx gnnd serve --listen';
  expect(serveCommand('unix:/a b')).toBe(`${start} 'unix:/a b'`);
  for (const own of ['localhost:4444', '127.0.0.1:4444', '[::1]:4444']) {
    expect(serveCommand(own)).toBe(`${start} ${typed(own)} --insecure-loopback`);
  }
  const far = `${start} 0.0.0.0:4444 --tls-cert FILE --tls-key FILE`;
  expect(serveCommand('gpu7.example:4444')).toBe(far);
  for (const none of ['localhost', 'localhost:', 'a/b:1', 'localhost:99999']) {
    expect([serveCommand(none), hostAndPort(none)]).toEqual([null, null]);
  }
});
