/** Addresses as people and configurations write them: `unix:/path` or `host:port`. */

/** Whether a host's name or address is this host's own. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || /^\[?::1\]?$/.test(host) || /^127\.[\d.]+$/.test(host);
}

/** The two parts of `host:port`; null for anything else. */
export function hostAndPort(
  address: string,
): { readonly host: string; readonly port: number } | null {
  const [, host = '', port = ''] = /^(\[[\w.:]+\]|[^/:[\]]+):(\d{1,5})$/.exec(address) ?? [];
  return host === '' || Number(port) > 65_535 ? null : { host, port: Number(port) };
}
