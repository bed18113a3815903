import { describe, expect, it } from 'vitest';
import { createPageTokens } from '../../../src/api/pages.ts';
import { GnndError } from '../../../src/base/errors.ts';
import { forAll } from '../../support/random.ts';

const cursor = { createAtMs: 1_700_000_000_123, uid: '0b6c7d0e-6b0a-4a55-9a80-52f3a54bb001' };

function reasonOf(action: () => unknown): string {
  try {
    action();
    return 'none';
  } catch (error) {
    return error instanceof GnndError ? error.reason : String(error);
  }
}

describe('page tokens', () => {
  it('give back the cursor they were made of', () => {
    const tokens = createPageTokens();
    expect(tokens.open('jobs', tokens.issue('jobs', cursor))).toEqual(cursor);
  });

  it('are empty for the first page', () => {
    expect(createPageTokens().open('jobs', '')).toBeNull();
  });

  it('fit no other list and no other filter', () => {
    const tokens = createPageTokens();
    const token = tokens.issue('jobs RUNNING', cursor);
    expect(reasonOf(() => tokens.open('jobs', token))).toBe('PAGE_TOKEN_INVALID');
    expect(reasonOf(() => tokens.open('datasets', token))).toBe('PAGE_TOKEN_INVALID');
  });

  it('fit no other daemon', () => {
    const token = createPageTokens().issue('jobs', cursor);
    expect(reasonOf(() => createPageTokens().open('jobs', token))).toBe('PAGE_TOKEN_INVALID');
  });

  it('are refused after any change', () => {
    const tokens = createPageTokens();
    const token = tokens.issue('jobs', cursor);
    const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+/ \n';
    forAll(500, (random) => {
      const at = random.integer(0, token.length);
      const letter = random.pick([...letters]);
      const changed = random.pick([
        `${token.slice(0, at)}${letter}${token.slice(at)}`,
        `${token.slice(0, at)}${letter}${token.slice(at + 1)}`,
        token.slice(0, at),
      ]);
      if (changed === token || changed === '') return;
      expect(reasonOf(() => tokens.open('jobs', changed))).toBe('PAGE_TOKEN_INVALID');
    });
  });

  it('are refused when they are no tokens at all', () => {
    const tokens = createPageTokens();
    for (const token of ['x', '{}', 'null', 'A'.repeat(10_000_000)]) {
      expect(reasonOf(() => tokens.open('jobs', token))).toBe('PAGE_TOKEN_INVALID');
    }
  });
});
