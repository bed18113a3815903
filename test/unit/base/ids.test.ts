import { expect, test } from 'vitest';
import { canonicalJson, canonicalSha256, newUlid } from '../../../src/base/ids.ts';

test('ids have 26 characters that sort by age and never repeat', () => {
  const ids = Array.from({ length: 1000 }, (_, i) => newUlid(1_700_000_000_000 + i));
  expect(ids.every((id) => /^[0-9a-hjkmnp-tv-z]{26}$/.test(id))).toBe(true);
  expect([...ids].sort()).toEqual(ids);
  expect(new Set(Array.from({ length: 1000 }, () => newUlid(1))).size).toBe(1000);
});

test('equal requests have equal digests, whatever the order of their keys', () => {
  expect(canonicalSha256({ a: 1, b: [1, { d: 2, c: 3 }] })).toBe(
    canonicalSha256({ b: [1, { c: 3, d: 2 }], a: 1 }),
  );
  expect(canonicalSha256({ a: [1, 2] })).not.toBe(canonicalSha256({ a: [2, 1] }));
  expect(canonicalJson({ a: undefined, b: 10n, c: null })).toBe('{"b":"10","c":null}');
});
