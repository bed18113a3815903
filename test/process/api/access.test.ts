import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { HostService } from '../../../src/api/gen/gnnd/v1/host_service_pb.ts';
import { JobService } from '../../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { type ApiClient, createApiClient } from '../../../src/cli/session/client.ts';
import { addToken, createTokens, deleteToken } from '../../../src/config/tokens.ts';
import { startApi, type TestApi } from './server.ts';

/** TLS and tokens as clients meet them; the certificates are those of test/fixtures/tls/make.sh. */

const pem = (name: string) => readFileSync(join('test/fixtures/tls', name));
const pair = (name: string) => ({ cert: pem(`${name}.pem`), key: pem(`${name}.key`) });
const { getJob, cancelJob } = JobService.method;
const mine = { name: 'jobs/mine' };

let api: TestApi;
let tokensFile: string;
const clients: ApiClient[] = [];

async function open(clientCa: Buffer | null): Promise<void> {
  const tls = { ...pair('server'), clientCa };
  api = await startApi(
    {},
    () => '127.0.0.1:0',
    undefined,
    (folder) => {
      tokensFile = join(folder, 'tokens.json');
      return { tls, tokens: createTokens(tokensFile) };
    },
  );
}

beforeEach(() => open(null));
afterEach(() => {
  for (const client of clients.splice(0)) client.close();
});

function client(token: string | null, certificate: string | null = null, ca = 'ca.pem'): ApiClient {
  const [address = ''] = api.api.addresses;
  const own = certificate === null ? null : pair(certificate);
  const made = createApiClient(address.replace('127.0.0.1', 'localhost'), {
    token,
    tls: { ca: ca === '' ? null : pem(ca), pair: own },
  });
  clients.push(made);
  return made;
}

const tokenOf = (name: string, role: 'VIEWER' | 'SUBMITTER' | 'ADMIN') =>
  addToken(tokensFile, { name, role, nowMs: 0 });
const call = (who: ApiClient) => who.unary(getJob, mine, { timeoutMs: 10_000 });

it('asks for a token, and takes one from when it is made until it is deleted', async () => {
  await expect(call(client(null))).rejects.toMatchObject({
    code: status.UNAUTHENTICATED,
    reason: 'UNAUTHENTICATED',
  });
  const vera = client(await tokenOf('vera', 'VIEWER'));
  expect(await call(vera)).toMatchObject(mine);
  await expect(vera.unary(cancelJob, mine)).rejects.toMatchObject({
    code: status.PERMISSION_DENIED,
    reason: 'ACCESS_DENIED',
    message: 'CancelJob needs the role SUBMITTER; vera has the role VIEWER',
  });
  await deleteToken(tokensFile, 'vera');
  await expect(call(vera)).rejects.toMatchObject({ reason: 'UNAUTHENTICATED' });
});

it('lets submitters change the jobs that they created, and admins all', async () => {
  const sam = client(await tokenOf('sam', 'SUBMITTER'));
  const tom = client(await tokenOf('tom', 'SUBMITTER'));
  const ann = client(await tokenOf('ann', 'ADMIN'));
  const { suspendJob, resumeJob, retryJob, deleteJob } = JobService.method;
  const changes = [
    () => tom.unary(cancelJob, mine),
    () => tom.unary(suspendJob, mine),
    () => tom.unary(resumeJob, mine),
    () => tom.unary(retryJob, mine),
    () => tom.unary(deleteJob, mine),
  ];
  for (const change of changes) {
    await expect(change()).rejects.toMatchObject({
      code: status.PERMISSION_DENIED,
      reason: 'ACCESS_DENIED',
      message: 'sam created mine; tom changes jobs of its own',
    });
  }
  expect(await sam.unary(cancelJob, mine)).toMatchObject({ createdBy: 'sam' });
  expect(await ann.unary(cancelJob, mine)).toMatchObject(mine);
  const gone = { name: 'jobs/gone' };
  await expect(tom.unary(cancelJob, gone)).rejects.toMatchObject({ reason: 'JOB_NOT_FOUND' });
});

it('writes a line for each change and each refusal, and none for looking', async () => {
  const sam = client(await tokenOf('sam', 'SUBMITTER'));
  await call(sam);
  await sam.unary(cancelJob, mine);
  const collect = sam.unary(HostService.method.collectGarbage, {});
  await expect(collect).rejects.toThrow('needs the role ADMIN');
  const lines = api.logLines.filter(({ msg }) => msg === 'api.audit');
  const who = { door: 'NETWORK', caller: 'sam' };
  const done = { method: 'CancelJob', target: 'jobs/mine', code: 'OK', reason: null };
  const denied = { code: 'PermissionDenied', reason: 'ACCESS_DENIED' };
  expect(lines.map(({ level, fields }) => [level, fields])).toEqual([
    ['info', { ...who, ...done }],
    ['warn', { ...who, method: 'CollectGarbage', target: '', ...denied }],
  ]);
});

it('speaks to nobody who does not trust it, or speaks plainly', async () => {
  const token = await tokenOf('ada', 'ADMIN');
  await expect(call(client(token, null, ''))).rejects.toMatchObject({ code: status.UNAVAILABLE });
  const [address = ''] = api.api.addresses;
  const plain = createApiClient(address, { token, tls: null });
  clients.push(plain);
  await expect(call(plain)).rejects.toMatchObject({ code: status.UNAVAILABLE });
  expect(api.events.filter(({ kind }) => kind === 'started')).toEqual([]);
});

it('may ask for a certificate beside the token', async () => {
  await api.close();
  await open(pem('ca.pem'));
  const token = await tokenOf('ada', 'ADMIN');
  await expect(call(client(token))).rejects.toMatchObject({ code: status.UNAVAILABLE });
  await expect(call(client(null, 'client'))).rejects.toMatchObject({ reason: 'UNAUTHENTICATED' });
  expect(await call(client(token, 'client'))).toMatchObject(mine);
});
