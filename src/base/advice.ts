import { hostAndPort, isLoopback } from './address.ts';
import { isClone } from './package-root.ts';

/**
 * What messages tell people to type, where that takes thought. A test of the sources holds every
 * command in a text against what the programs take; another one types what was printed.
 */

/** A word as a shell takes it. */
export function typed(word: string): string {
  return /^[\w@%+=:,./~-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

const gnnd = isClone ? 'npx gnnd' : 'gnnd';

/** What starts a daemon that answers at `address`; null where no daemon can. */
export function serveCommand(address: string): string | null {
  const listen = `${gnnd} serve --listen ${typed(address)}`;
  if (address.startsWith('unix:')) return listen;
  const parts = hostAndPort(address);
  if (parts === null) return null;
  if (isLoopback(parts.host)) return `${listen} --insecure-loopback`;
  return `${gnnd} serve --listen 0.0.0.0:${parts.port} --tls-cert FILE --tls-key FILE`;
}
