import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { addToken, createTokens, deleteToken, readTokens } from '../../../src/config/tokens.ts';

function place(): string {
  const folder = mkdtempSync(join(tmpdir(), 'gnnd-tokens-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return join(folder, 'tokens.json');
}

const ada = { name: 'ada', role: 'SUBMITTER', nowMs: 5 } as const;

test('a token is good from when it is made until it is deleted', async () => {
  const path = place();
  const tokens = createTokens(path);
  expect(tokens.isEmpty()).toBe(true);
  const text = await addToken(path, ada);
  expect(tokens.find(text)).toMatchObject({ name: 'ada', role: 'SUBMITTER', createAtMs: 5 });
  expect(tokens.find(`${text}x`)).toBe(null);
  const other = await addToken(path, { ...ada, name: 'ci@build-7', role: 'VIEWER' });
  expect(other).not.toBe(text);
  expect(readTokens(path).map(({ name }) => name)).toEqual(['ada', 'ci@build-7']);
  expect(await deleteToken(path, 'ada')).toBe(true);
  expect(tokens.find(text)).toBe(null);
  expect(tokens.find(other)).toMatchObject({ name: 'ci@build-7' });
  expect(await deleteToken(path, 'ada')).toBe(false);
});

test('its text is in no file, and the file is for its owner', async () => {
  const path = place();
  const text = await addToken(path, ada);
  expect(text).toMatch(/^gnnd_[\w-]{43}$/);
  expect(readFileSync(path, 'utf8')).not.toContain(text.slice(5));
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test('names are one to a person, and plain', async () => {
  const path = place();
  await addToken(path, ada);
  await expect(addToken(path, ada)).rejects.toThrow('ada has a token already; delete it first');
  for (const name of ['', 'a b', '../x', 'a\n', 'x'.repeat(64)]) {
    await expect(addToken(path, { ...ada, name })).rejects.toThrow('expected up to 63 letters');
  }
});

test('a file that is none is named, and forgets nobody', async () => {
  const path = place();
  const text = await addToken(path, ada);
  const tokens = createTokens(path);
  for (const wrong of ['', '{}', '{"tokens":[{"name":"x"}]}', '{"tokens":[1]}']) {
    writeFileSync(path, wrong);
    expect(() => tokens.find(text)).toThrow(path);
    expect(() => createTokens(path)).toThrow(path);
    await expect(addToken(path, { ...ada, name: 'new' })).rejects.toThrow(path);
    expect(readFileSync(path, 'utf8')).toBe(wrong);
  }
});
