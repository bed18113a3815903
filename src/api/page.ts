import { existsSync, readdirSync, readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isLoopback } from '../base/address.ts';
import type { DaemonConfig } from '../config/daemon-config.ts';
import { createPageCalls, type PageCallsOptions } from './page-calls.ts';

/**
 * The page for people, beside /metrics: files that set-up built from src/web, and the calls that
 * they make (page-calls.ts). The files hold no secret and are for everybody; a call needs a token,
 * which the page sends as a header. No cookie is set, so that no other site, nor another server of
 * this host, has or can use what the browser knows.
 */
export interface PageOptions extends PageCallsOptions {
  /** As browsers take it, with a slash at its end. */
  readonly address: string;
  /** dist/web. */
  readonly folder: string;
  /**
   * Whether only names of this host's loopback, and addresses, are taken as Host: where no token is
   * asked for, a name of somebody else's that leads here (DNS rebinding) would let his page in.
   */
  readonly ownNamesOnly: boolean;
}

/** What a configuration says of the page; null: none is served. */
export function pageSettings(
  { page, metricsListen, insecureLoopback }: DaemonConfig,
  http: { readonly host: string; readonly port: number; readonly connectionsMax: number },
): Omit<PageOptions, 'rpc' | 'observe'> | null {
  const isOwn = isLoopback(metricsListen.replace(/:\d+$/, ''));
  if (page === 'OFF' || (page === 'AUTO' && !isOwn)) return null;
  const isOpen = isOwn && insecureLoopback;
  const host = http.host.includes(':') ? `[${http.host}]` : http.host;
  return {
    address: `http://${host}:${http.port}/`,
    folder: fileURLToPath(new URL('../web', import.meta.url)),
    door: isOpen ? 'LOCAL' : 'NETWORK',
    ownNamesOnly: isOpen || page === 'AUTO',
    // The other half is left to those who ask for metrics.
    streamsMax: Math.floor(http.connectionsMax / 2),
  };
}

/** Answers what is the page's; false: nothing is. */
export type Page = (request: IncomingMessage, response: ServerResponse) => Promise<boolean>;

interface PageFile {
  readonly type: string;
  readonly bytes: Buffer;
}

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** Nothing but our own files, no inline script, nowhere to send anything but here. */
const policy = [
  "default-src 'none'",
  ...["script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'"],
  ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
].join('; ');

const safety: Readonly<Record<string, string>> = {
  'content-security-policy': policy,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

export function createPage(options: PageOptions): Page {
  const files = readFiles(options.folder);
  const calls = createPageCalls(options);
  return async (request, response) => {
    const path = request.url ?? '/';
    if (!URL.canParse(path, 'http://page')) return false;
    const url = new URL(path, 'http://page');
    const file = files.get(url.pathname);
    if (file === undefined && url.pathname !== '/' && !url.pathname.startsWith('/api/')) {
      return false;
    }
    for (const [name, value] of Object.entries(safety)) response.setHeader(name, value);
    const stranger = strangeness(request, options.ownNamesOnly);
    if (stranger !== null) {
      answerText(response, 403, stranger);
      return true;
    }
    if (file !== undefined) {
      answerFile(response, url.pathname, file);
      return true;
    }
    if (url.pathname === '/') {
      answerText(response, 404, 'the page is not built; npm run setup builds it');
      return true;
    }
    response.setHeader('cache-control', 'no-store');
    return await calls(url, request, response);
  };
}

/** Small and few, so in memory: no path from outside ever reaches the file system. */
function readFiles(folder: string): ReadonlyMap<string, PageFile> {
  if (!existsSync(folder)) return new Map();
  const found = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }): readonly [string, PageFile] => {
      const path = join(parentPath, name);
      const type = types[extname(name)] ?? 'application/octet-stream';
      return [path.slice(folder.length), { type, bytes: readFileSync(path) }];
    });
  const files = new Map(found);
  const index = files.get('/index.html');
  return index === undefined ? files : files.set('/', index);
}

/** Why a request is not from the page itself; null where it is. */
function strangeness({ headers }: IncomingMessage, ownNamesOnly: boolean): string | null {
  const host = headers.host ?? '';
  if (ownNamesOnly && !isOwnName(host)) {
    return `${JSON.stringify(host)} is no name of this host's loopback; open http://localhost`;
  }
  const site = headers['sec-fetch-site'];
  const isNavigation = headers['sec-fetch-mode'] === 'navigate';
  if (site !== undefined && site !== 'same-origin' && site !== 'none' && !isNavigation) {
    return 'another site asks; the page answers its own alone';
  }
  const { origin } = headers;
  if (origin === undefined) return null;
  const from = URL.canParse(origin) ? new URL(origin).host : '';
  return from === host ? null : `${JSON.stringify(origin)} asks; the page answers its own alone`;
}

/** An address cannot be somebody else's name. */
function isOwnName(host: string): boolean {
  const name = host.replace(/:\d+$/, '');
  return isLoopback(name) || /^(\d{1,3}(\.\d{1,3}){3}|\[[0-9a-fA-F:.]+\])$/.test(name);
}

function answerFile(response: ServerResponse, path: string, { type, bytes }: PageFile): void {
  // Names of assets have their contents' hash.
  const keeps = path.startsWith('/assets/') ? 'max-age=31536000, immutable' : 'no-cache';
  response.writeHead(200, { 'content-type': type, 'cache-control': keeps }).end(bytes);
}

function answerText(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' }).end(`${text}\n`);
}
