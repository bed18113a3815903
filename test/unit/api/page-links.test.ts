import { expect, test } from 'vitest';
import { pageSettings } from '../../../src/api/page.ts';
import { createPageLinks, linkLifeMs } from '../../../src/api/page-links.ts';
import { type ConfigValues, resolveConfig } from '../../../src/config/daemon-config.ts';

const local = { name: 'local', role: 'ADMIN' } as const;
const page = { address: 'http://127.0.0.1:9464/', door: 'NETWORK' } as const;
const tokenOf = (address: string) => address.split('#token=')[1] ?? '';

test('a link lets its holder look, for a day', () => {
  let nowMs = 1000;
  const links = createPageLinks(page, { wallMs: () => nowMs });
  const { address, expireAtMs } = links.linkFor(local);
  expect(expireAtMs).toBe(1000 + linkLifeMs);
  expect(links.find(tokenOf(address))).toMatchObject({ name: 'page', role: 'VIEWER' });
  expect(links.find('gnnd_page_other')).toBeNull();
  nowMs += linkLifeMs;
  expect(links.find(tokenOf(address))).toBeNull();
});

test('who has a token, or needs none, gets the address alone', () => {
  const clock = { wallMs: () => 0 };
  const viewer = { name: 'eva', role: 'VIEWER' } as const;
  const alone = { address: page.address, expireAtMs: null };
  expect(createPageLinks(page, clock).linkFor(viewer)).toEqual(alone);
  expect(createPageLinks({ ...page, door: 'LOCAL' }, clock).linkFor(local)).toEqual(alone);
  expect(createPageLinks(null, clock).linkFor(local)).toEqual({ address: '', expireAtMs: null });
});

test('a hundred links are good at a time: the oldest goes', () => {
  const links = createPageLinks(page, { wallMs: () => 0 });
  const tokens = Array.from({ length: 101 }, () => tokenOf(links.linkFor(local).address));
  expect(new Set(tokens).size).toBe(101);
  expect(tokens.map((token) => links.find(token) !== null).indexOf(true)).toBe(1);
});

test('a page is served on loopback, elsewhere when asked for and with tokens alone', () => {
  const of = (values: ConfigValues) => {
    const resolved = resolveConfig(values, { stateDir: '/state', runDir: '/run' });
    if (!('ok' in resolved)) throw new Error(resolved.problems.join());
    const http = { host: '0.0.0.0', port: 9464, connectionsMax: 64 };
    const found = pageSettings(resolved.ok, http);
    return found === null ? null : [found.door, found.ownNamesOnly];
  };
  const everywhere = { metrics_listen: '0.0.0.0:9464' };
  const open = { listen: '127.0.0.1:1', insecure_loopback: true };
  expect(of({})).toEqual(['NETWORK', true]);
  expect(of({ page: 'off' })).toBeNull();
  expect(of(everywhere)).toBeNull();
  expect(of({ ...everywhere, page: 'on' })).toEqual(['NETWORK', false]);
  expect(of({ ...everywhere, ...open, page: 'on' })).toEqual(['NETWORK', false]);
  expect(of(open)).toEqual(['LOCAL', true]);
  expect(of({ ...open, page: 'on' })).toEqual(['LOCAL', true]);
  expect(of({ metrics_listen: '[::1]:0' })).toEqual(['NETWORK', true]);
});
