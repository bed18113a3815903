import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { writeFileAtomic } from '../base/atomic-file.ts';
import { messageOf } from '../base/errors.ts';

/**
 * Who may use the API, by bearer token. Tokens are 256 random bits; the file has their SHA-256, so
 * that whoever reads it can call nothing.
 */

/** Each may do what those before it may. */
export const roles = ['VIEWER', 'SUBMITTER', 'ADMIN'] as const;
export type Role = (typeof roles)[number];

export interface Token {
  readonly name: string;
  readonly role: Role;
  /** SHA-256 of the token's text, in hexadecimal digits. */
  readonly sha256: string;
  readonly createAtMs: number;
}

/** The daemon's view of the file, which may change while it runs. */
export interface Tokens {
  /** Null: nobody has this token. Throws an Error where the file cannot be read. */
  find(text: string): Token | null;
  /** As it was last seen. */
  isEmpty(): boolean;
}

const prefix = 'gnnd_';
const nameForm = /^[A-Za-z0-9][A-Za-z0-9._@-]{0,62}$/;

/** Looks at the file again when it has changed; none: no tokens. Throws as readTokens does. */
export function createTokens(path: string): Tokens {
  let seen = '';
  let bySha256: ReadonlyMap<string, Token> = new Map();
  const look = () => {
    const state = stateOf(path);
    if (state === seen) return;
    bySha256 = new Map(readTokens(path).map((token) => [token.sha256, token]));
    seen = state;
  };
  look();
  return {
    find(text) {
      look();
      return bySha256.get(sha256Of(text)) ?? null;
    },
    isEmpty: () => bySha256.size === 0,
  };
}

/** In the order of their making. Throws an Error that names the file and what is wrong with it. */
export function readTokens(path: string): readonly Token[] {
  if (stateOf(path) === '') return [];
  try {
    const { tokens } = JSON.parse(readFileSync(path, 'utf8'));
    if (!Array.isArray(tokens) || !tokens.every(isToken)) throw new Error('expected tokens');
    return tokens;
  } catch (cause) {
    throw new Error(`${path}: ${messageOf(cause)}`, { cause });
  }
}

/** Answers the token's text, which is nowhere else. Throws an Error where the name will not do. */
export async function addToken(
  path: string,
  { name, role, nowMs }: { readonly name: string; readonly role: Role; readonly nowMs: number },
): Promise<string> {
  const tokens = readTokens(path);
  if (!nameForm.test(name)) {
    const expected = 'expected up to 63 letters, digits, dots, dashes, underscores or @';
    throw new Error(`${JSON.stringify(name)}: ${expected}`);
  }
  if (tokens.some((token) => token.name === name)) {
    throw new Error(`${name} has a token already; delete it first`);
  }
  const text = `${prefix}${randomBytes(32).toString('base64url')}`;
  await write(path, [...tokens, { name, role, sha256: sha256Of(text), createAtMs: nowMs }]);
  return text;
}

/** False: there was none of that name. */
export async function deleteToken(path: string, name: string): Promise<boolean> {
  const tokens = readTokens(path);
  const kept = tokens.filter((token) => token.name !== name);
  if (kept.length === tokens.length) return false;
  await write(path, kept);
  return true;
}

function write(path: string, tokens: readonly Token[]): Promise<void> {
  return writeFileAtomic(path, [`${JSON.stringify({ tokens }, null, 2)}\n`], 0o600);
}

/** Another text after each change; empty: there is no file. */
function stateOf(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false, bigint: true });
  return stats === undefined ? '' : `${stats.ino} ${stats.size} ${stats.mtimeNs}`;
}

function sha256Of(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function isToken(value: unknown): value is Token {
  if (typeof value !== 'object' || value === null) return false;
  const { name, role, sha256, createAtMs } = value as Partial<Token>;
  const isKnown = roles.some((known) => known === role);
  const isHash = typeof sha256 === 'string' && /^[0-9a-f]{64}$/.test(sha256);
  return isKnown && isHash && typeof name === 'string' && typeof createAtMs === 'number';
}
