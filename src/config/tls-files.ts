import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { messageOf } from '../base/errors.ts';
import type { DaemonConfig } from './daemon-config.ts';

/** What a server shows its clients, PEM. */
export interface TlsFiles {
  readonly cert: Buffer;
  readonly key: Buffer;
  /** Clients show a certificate that this one signed; null: they need none. */
  readonly clientCa: Buffer | null;
}

/** Null: there are none. Throws an Error that names the key, its file and what is wrong with it. */
export function readTlsFiles({
  tlsCert,
  tlsKey,
  tlsClientCa,
}: Pick<DaemonConfig, 'tlsCert' | 'tlsKey' | 'tlsClientCa'>): TlsFiles | null {
  if (tlsCert === '') return null;
  const read = (key: string, path: string) => {
    try {
      return readFileSync(path);
    } catch (cause) {
      throw new Error(`${key}: ${messageOf(cause)}`, { cause });
    }
  };
  const files = {
    cert: read('tls_cert', tlsCert),
    key: read('tls_key', tlsKey),
    clientCa: tlsClientCa === '' ? null : read('tls_client_ca', tlsClientCa),
  };
  try {
    createSecureContext({ cert: files.cert, key: files.key });
  } catch (cause) {
    const why = messageOf(cause);
    throw new Error(`tls_cert ${tlsCert} and tls_key ${tlsKey}: ${why}`, { cause });
  }
  return files;
}
