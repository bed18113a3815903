import { readFileSync } from 'node:fs';
import { gnnctlExit } from '../../base/exit-codes.ts';
import { fileProblem } from '../../base/file-problem.ts';
import type { ClientTls, Identity } from './client.ts';
import { CliError } from './exit.ts';
import type { CliIo } from './io.ts';

/** Flags about who calls and over what, as commander reads them. */
export interface IdentityFlags {
  readonly tls?: boolean;
  readonly tlsCa?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly tokenFile?: string;
}

/** Flags first, then GNND_TLS_CA, GNND_TLS_CERT, GNND_TLS_KEY, GNND_TOKEN and GNND_TOKEN_FILE. */
export function identityOf(address: string, flags: IdentityFlags, env: CliIo['env']): Identity {
  return { token: tokenOf(flags, env), tls: tlsOf(address, flags, env) };
}

function tokenOf({ tokenFile }: IdentityFlags, env: CliIo['env']): string | null {
  const path = tokenFile ?? (env['GNND_TOKEN'] ? '' : env['GNND_TOKEN_FILE']) ?? '';
  const text = path === '' ? (env['GNND_TOKEN'] ?? '') : read('--token-file', path).toString();
  const token = text.trim();
  if (/[^\x21-\x7e]/.test(token)) {
    throw new CliError(gnnctlExit.USAGE, 'the token is not one: expected a line of letters');
  }
  return token === '' ? null : token;
}

function tlsOf(address: string, flags: IdentityFlags, env: CliIo['env']): ClientTls | null {
  if (address.startsWith('unix:')) return null;
  const ca = flags.tlsCa ?? env['GNND_TLS_CA'] ?? '';
  const cert = flags.tlsCert ?? env['GNND_TLS_CERT'] ?? '';
  const key = flags.tlsKey ?? env['GNND_TLS_KEY'] ?? '';
  if ((cert === '') !== (key === '')) {
    throw new CliError(gnnctlExit.USAGE, '--tls-cert and --tls-key: expected both or neither');
  }
  if (flags.tls !== true && ca === '' && cert === '') return null;
  return {
    ca: ca === '' ? null : read('--tls-ca', ca),
    pair: cert === '' ? null : { cert: read('--tls-cert', cert), key: read('--tls-key', key) },
  };
}

function read(flag: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new CliError(gnnctlExit.USAGE, `${flag} ${path}: ${fileProblem(error)}`);
  }
}
