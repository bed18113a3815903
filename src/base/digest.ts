import { webcrypto } from 'node:crypto';

/** SHA-256 in hex, computed by another thread: a large file must not keep the event loop. */
export async function sha256Of(bytes: Uint8Array): Promise<string> {
  return Buffer.from(await webcrypto.subtle.digest('SHA-256', bytes)).toString('hex');
}
