import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { GnndError } from '../base/errors.ts';

/**
 * Page tokens: base64url of a MAC and a versioned JSON text. The key lives as long as the daemon,
 * so a token is trusted once its MAC fits, and no token outlives the code that made it.
 */
export interface PageTokens {
  /** `list` names the method and everything that selects its rows: a token fits no other list. */
  issue(list: string, cursor: unknown): string;
  /** The cursor; null for the first page. Throws PAGE_TOKEN_INVALID. */
  open<T>(list: string, token: string): T | null;
}

const version = 1;
const macBytes = 16;
const tokenLengthMax = 1024;

export function createPageTokens(key: Buffer = randomBytes(32)): PageTokens {
  const mac = (text: Buffer) =>
    createHmac('sha256', key).update(text).digest().subarray(0, macBytes);
  return {
    issue(list, cursor) {
      const text = Buffer.from(JSON.stringify({ version, list, cursor }));
      return Buffer.concat([mac(text), text]).toString('base64url');
    },
    open<T>(list: string, token: string): T | null {
      if (token === '') return null;
      if (token.length > tokenLengthMax) throw invalidToken('not a token of this daemon');
      const bytes = Buffer.from(token, 'base64url');
      const text = bytes.subarray(macBytes);
      // The text is compared, too: base64 decoding skips characters it does not know.
      const isOurs =
        bytes.length > macBytes &&
        timingSafeEqual(bytes.subarray(0, macBytes), mac(text)) &&
        bytes.toString('base64url') === token;
      if (!isOurs) throw invalidToken('not a token of this daemon, or of an earlier run of it');
      const content: { version: number; list: string; cursor: T } = JSON.parse(text.toString());
      if (content.version !== version || content.list !== list) {
        throw invalidToken('made for another list: the filter must not change between pages');
      }
      return content.cursor;
    },
  };
}

function invalidToken(why: string): GnndError {
  return new GnndError('PAGE_TOKEN_INVALID', `page_token: ${why}; list again from the start`, {
    violations: [{ path: 'page_token', description: why }],
  });
}
