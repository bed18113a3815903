import { request } from 'node:http';
import { describe, expect, it } from 'vitest';
import { roleByMethod } from '../../../src/api/access.ts';
import { rpcMethods } from '../../../src/api/api.ts';
import { pageMethods } from '../../../src/api/page-calls.ts';
import type { Token } from '../../../src/config/tokens.ts';
import { steady } from '../../support/until.ts';
import { startPage as start, type TestPage } from './server.ts';

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
}

/** By node:http: fetch would not let a test lie about Host and Origin. */
function ask(
  { url }: TestPage,
  path: string,
  headers: Readonly<Record<string, string>> = {},
  method = 'GET',
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { hostname: host, port } = new URL(url);
    const sent = request({ host, port, path, headers, method }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text }),
      );
    });
    sent.on('error', reject);
    sent.end();
  });
}

const getJob = '/api/gnnd.v1.JobService/GetJob?request=';
const mine = `${getJob}${encodeURIComponent('{"name":"jobs/mine"}')}`;
const viewer: Token = { name: 'eva', role: 'VIEWER', sha256: '', createAtMs: 0 };
const tokens = {
  find: (text: string) => (text === 'gnnd_known' ? viewer : null),
  isEmpty: () => false,
};
const asked = { door: 'NETWORK', ownNamesOnly: true } as const;

describe('calls of the page', () => {
  it('answer messages as JSON, and count as calls of the API', async () => {
    const page = await start();
    const { status, text } = await ask(page, mine);
    expect(status).toBe(200);
    expect(JSON.parse(text)).toMatchObject({ name: 'jobs/mine', state: 'JOB_STATE_PENDING' });
    const list = await ask(page, '/api/gnnd.v1.JobService/ListJobs');
    expect(JSON.parse(list.text).jobs).toHaveLength(1);
    expect(page.events.filter(({ kind }) => kind === 'handled')).toMatchObject([
      { method: 'GetJob', code: 'OK' },
      { method: 'ListJobs', code: 'OK' },
    ]);
  });

  it('fail with the reason, the sentence and a status of HTTP', async () => {
    const page = await start();
    const gone = await ask(page, `${getJob}${encodeURIComponent('{"name":"jobs/other"}')}`);
    expect(gone.status).toBe(404);
    expect(JSON.parse(gone.text).error).toMatchObject({ reason: 'JOB_NOT_FOUND' });
    const odd = await ask(page, `${getJob}${encodeURIComponent('{"nam":1}')}`);
    expect(odd.status).toBe(400);
    expect(JSON.parse(odd.text).error.message).toContain('GetJobRequest');
    const revision = encodeURIComponent('{"name":"jobs/mine","startRevision":"99"}');
    const future = await ask(page, `/api/gnnd.v1.JobService/WatchJob?request=${revision}`);
    expect([future.status, JSON.parse(future.text).error.reason]).toEqual([
      400,
      'REVISION_IN_FUTURE',
    ]);
  });

  it('only look: every one is what a viewer may call, and no other is answered', async () => {
    expect([...pageMethods].filter((name) => roleByMethod[name] !== 'VIEWER')).toEqual([]);
    const page = await start();
    for (const { service, method } of rpcMethods.filter(({ method }) => !pageMethods.has(method))) {
      expect((await ask(page, `/api/${service}/${method}`)).status, method).toBe(404);
    }
    expect((await ask(page, mine, {}, 'POST')).status).toBe(405);
  });

  it('need a token of somebody, where the address asks for one', async () => {
    const page = await start(asked, {}, tokens);
    expect((await ask(page, '/')).status).toBe(200);
    const none = await ask(page, mine);
    expect([none.status, JSON.parse(none.text).error.reason]).toEqual([401, 'UNAUTHENTICATED']);
    expect((await ask(page, mine, { authorization: 'Bearer gnnd_other' })).status).toBe(401);
    expect((await ask(page, mine, { authorization: 'Bearer gnnd_known' })).status).toBe(200);
    expect(page.logLines.filter(({ msg }) => msg === 'api.audit')).toHaveLength(2);
  });

  it('are refused to other sites and to names that lead here', async () => {
    const page = await start();
    const { host } = new URL(page.url);
    const statusOf = async (headers: Record<string, string>) =>
      (await ask(page, mine, headers)).status;
    expect(await statusOf({ host: 'evil.example:80' })).toBe(403);
    expect(await statusOf({ host: `localhost:${new URL(page.url).port}` })).toBe(200);
    expect(await statusOf({ origin: 'http://evil.example' })).toBe(403);
    expect(await statusOf({ origin: 'null' })).toBe(403);
    expect(await statusOf({ origin: `http://${host}` })).toBe(200);
    expect(await statusOf({ 'sec-fetch-site': 'cross-site' })).toBe(403);
    expect(await statusOf({ 'sec-fetch-site': 'same-site' })).toBe(403);
    const proxied = await start({ ownNamesOnly: false });
    expect((await ask(proxied, mine, { host: 'gnnd.example' })).status).toBe(200);
  });

  it('come with a policy that lets nothing else run or be asked', async () => {
    const page = await start();
    for (const path of ['/', mine]) {
      const { headers } = await ask(page, path);
      const policy = String(headers['content-security-policy']);
      expect(policy).toContain("default-src 'none'; script-src 'self'");
      expect(policy).not.toContain('unsafe');
      expect(headers['x-content-type-options']).toBe('nosniff');
      expect(headers['set-cookie']).toBeUndefined();
      expect(headers['access-control-allow-origin']).toBeUndefined();
    }
    expect((await ask(page, '/')).text).not.toMatch(/<script(?![^>]*src=)/);
    expect((await ask(page, '/../package.json')).status).toBe(404);
    expect((await ask(page, '//')).status).toBe(404);
  });

  it('stream within a number of streams, and end with the server', async () => {
    const page = await start({ streamsMax: 1 });
    const watch = mine.replace('GetJob', 'WatchJob');
    const first = await fetch(new URL(watch, page.url));
    const reader = first.body?.pipeThrough(new TextDecoderStream()).getReader();
    const snapshot = JSON.parse((await reader?.read())?.value ?? '');
    expect(snapshot.result).toMatchObject({ type: 'WATCH_TYPE_SNAPSHOT', revision: '1' });
    expect((await ask(page, watch)).status).toBe(429);
    expect(page.api.watchCount()).toBe(1);
    await page.api.close(1000);
    let rest = '';
    for (let part = await reader?.read(); part?.done === false; part = await reader?.read()) {
      rest += part.value;
    }
    const last = rest.trim().split('\n').at(-1) ?? '';
    expect(JSON.parse(last).error.reason).toBe('DAEMON_STOPPING');
  });

  it('hold nothing for a reader that does not read', async () => {
    const page = await start();
    page.jobs.transition('RUNNING', { attempts: [attempt] });
    const response = await fetch(new URL(mine.replace('GetJob', 'WatchJob'), page.url));
    const sent = () => page.events.filter(({ kind }) => kind === 'sent').length;
    // Far more than sockets and buffers of both sides hold.
    for (let page_ = 0; page_ < 50; page_ += 1) page.jobs.endEpochs(1000);
    // A client that reads would be sent 500 and more.
    expect(await steady(sent)).toBeLessThan(300);
    await response.body?.cancel();
  });
});

const attempt = {
  ...{ number: 1, startAtMs: 1_700_000_001_000, endAtMs: null, endReason: 'NONE' as const },
  ...{ message: '', executorRestarts: 0, exits: [], resumed: null },
};
