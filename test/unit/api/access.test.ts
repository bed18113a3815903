import { describe, expect, test } from 'vitest';
import { createAccess, roleByMethod, roleFor, targetOf } from '../../../src/api/access.ts';
import { rpcMethods } from '../../../src/api/api.ts';
import type { Role } from '../../../src/config/tokens.ts';
import { createMemoryLog } from '../../support/api-fakes.ts';

const token = (name: string, role: Role) => ({ name, role, sha256: '', createAtMs: 0 });
const tokens = new Map([
  ['see', token('vera', 'VIEWER')],
  ['run', token('sam', 'SUBMITTER')],
  ['all', token('ada', 'ADMIN')],
]);
const { log, lines } = createMemoryLog();
const access = createAccess({ find: (text) => tokens.get(text) ?? null }, log);
const own = { service: 'gnnd.v1.JobService', door: 'NETWORK' } as const;

function outcome(method: string, text?: string): string {
  const authorization = text === undefined ? undefined : `Bearer ${text}`;
  const call = { ...own, authorization, method };
  try {
    const caller = access.identify(call);
    access.authorize(caller, call);
    return caller.name;
  } catch (error) {
    return Object(error).reason;
  }
}

describe('over the network', () => {
  test.each([
    ['GetJob', ['vera', 'sam', 'ada']],
    ['CreateJob', ['ACCESS_DENIED', 'sam', 'ada']],
    ['DeleteDataset', ['ACCESS_DENIED', 'ACCESS_DENIED', 'ada']],
    ['NobodyThoughtOfThis', ['ACCESS_DENIED', 'ACCESS_DENIED', 'ada']],
  ])('%s is for some roles', (method, expected) => {
    expect(['see', 'run', 'all'].map((text) => outcome(method, text))).toEqual(expected);
    expect([outcome(method), outcome(method, 'old')]).toEqual(Array(2).fill('UNAUTHENTICATED'));
  });

  test('a token has its form', () => {
    for (const authorization of ['', 'all', 'Basic all', 'Bearer', 'Bearer all all']) {
      const call = { ...own, authorization, method: 'GetJob' };
      expect(() => access.identify(call)).toThrow('authorization is not "Bearer TOKEN"');
    }
  });

  test('health is for everybody, reflection for those who may look', () => {
    expect(roleFor('grpc.health.v1.Health', 'Check')).toBe(null);
    expect(roleFor('grpc.reflection.v1.ServerReflection', 'ServerReflectionInfo')).toBe('VIEWER');
  });

  test('tokens that cannot be read let nobody in, and are named in the log', () => {
    const find = () => {
      throw new Error('/state/tokens.json: expected tokens');
    };
    const shut = createAccess({ find }, log);
    const call = { ...own, authorization: 'Bearer all', method: 'GetJob' };
    expect(() => shut.identify(call)).toThrow('nobody has this token');
    expect(lines.at(-1)?.fields['error']).toBe('/state/tokens.json: expected tokens');
  });
});

test('through the socket everybody may do everything, or what their token says', () => {
  const call = { service: own.service, door: 'LOCAL', method: 'CollectGarbage' } as const;
  const local = access.identify({ ...call, authorization: undefined });
  expect(local.name).toBe('local');
  access.authorize(local, { ...call, authorization: undefined });
  const named = { ...call, authorization: 'Bearer see' };
  expect(() => access.authorize(access.identify(named), named)).toThrow(
    'CollectGarbage needs the role ADMIN; vera has the role VIEWER',
  );
});

test('each of our methods has its role', () => {
  const methods = rpcMethods.filter(({ service }) => service.startsWith('gnnd.'));
  expect(Object.keys(roleByMethod).sort()).toEqual(methods.map(({ method }) => method).sort());
});

test('what a request is about', () => {
  expect(targetOf({ name: 'jobs/mine', requestId: 'x' })).toBe('jobs/mine');
  expect(targetOf({ jobId: 'mine' })).toBe('mine');
  expect(targetOf({ name: '', datasetId: 'cora' })).toBe('cora');
  expect(targetOf({})).toBe('');
});
