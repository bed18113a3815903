import { randomBytes } from 'node:crypto';
import type { Clock } from '../base/clock.ts';
import type { Token } from '../config/tokens.ts';
import type { Caller } from './access.ts';
import type { PageOptions } from './page.ts';

/**
 * Tokens of the page for people who may call without one, through the daemon's socket: each looks
 * only, is good for a day, and lives in memory.
 */
export interface PageLinks {
  /** Where the page is, for this caller; an empty address: no page is served. */
  linkFor(caller: Caller): PageLink;
  /** Null: nobody has this token, or no longer. */
  find(text: string): Token | null;
}

export interface PageLink {
  readonly address: string;
  /** Null where the address has no token. */
  readonly expireAtMs: number | null;
}

export const linkLifeMs = 24 * 3600 * 1000;
/** Beyond it the oldest is good no longer: who asks again and again takes no memory. */
const linksMax = 100;

export function createPageLinks(
  page: Pick<PageOptions, 'address' | 'door'> | null,
  clock: Pick<Clock, 'wallMs'>,
): PageLinks {
  const expiries = new Map<string, number>();
  return {
    linkFor({ name }) {
      if (page === null) return { address: '', expireAtMs: null };
      const needsToken = page.door === 'NETWORK' && name === 'local';
      if (!needsToken) return { address: page.address, expireAtMs: null };
      const text = `gnnd_page_${randomBytes(24).toString('base64url')}`;
      const expireAtMs = clock.wallMs() + linkLifeMs;
      expiries.set(text, expireAtMs);
      for (const oldest of expiries.keys()) {
        if (expiries.size <= linksMax) break;
        expiries.delete(oldest);
      }
      return { address: `${page.address}#token=${text}`, expireAtMs };
    },
    find(text) {
      const expireAtMs = expiries.get(text) ?? 0;
      if (expireAtMs <= clock.wallMs()) return null;
      return { name: 'page', role: 'VIEWER', sha256: '', createAtMs: expireAtMs - linkLifeMs };
    },
  };
}
