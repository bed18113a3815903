import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { DatasetService } from '../../../src/api/gen/gnnd/v1/dataset_service_pb.ts';
import { HostService } from '../../../src/api/gen/gnnd/v1/host_service_pb.ts';
import { JobState } from '../../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService, WatchType } from '../../../src/api/gen/gnnd/v1/job_service_pb.ts';
import {
  Health,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from '../../../src/api/gen/grpc/health/v1/health_pb.ts';
import { ServerReflection } from '../../../src/api/gen/grpc/reflection/v1/reflection_pb.ts';
import { opennessOf } from '../../../src/api/listen.ts';
import { createBell } from '../../../src/api/wait.ts';
import { jobRecord, settled } from '../../support/api-fakes.ts';
import { CallError, failureOf } from './client.ts';
import { fakeDatasets, startApi as start, type TestApi } from './server.ts';

const job = JobService.method;
const mine = { name: 'jobs/mine' };

describe('an address', () => {
  const told = ({ logLines }: TestApi) => logLines.filter(({ msg }) => msg === openToOthers);
  const openToOthers = 'api.open_to_others';

  it('of TCP says what it means for other users, also on loopback', async () => {
    const [line] = told(await start({}, () => '127.0.0.1:0'));
    expect(line).toMatchObject({ level: 'warn', fields: { address: '127.0.0.1:0' } });
    expect(line?.fields['meaning']).toMatch(/^every user of this host may .*plug-ins.*unix:/);
    expect(opennessOf('0.0.0.0:7000')).toContain('everybody who reaches this port');
  });

  it('that is a socket has its mode for that', async () => {
    expect(told(await start())).toEqual([]);
    expect(opennessOf('unix:/run/gnnd.sock')).toBe(null);
  });
});

describe('connections', () => {
  it('that never said a word give way to one that may', async () => {
    const path = (folder: string) => join(folder, 'gnnd.sock');
    const { client, api, folder, events } = await start({}, (where) => `unix:${path(where)}`, 20);
    await client.call(job.getJob, mine);
    const silent = Array.from({ length: 60 }, () => connect({ path: path(folder) }));
    const ends = silent.map((socket) => once(socket.on('error', () => {}).resume(), 'close'));
    // 20 stay: the client, which spoke, and the youngest of the silent ones.
    await Promise.all(ends.slice(0, 41));
    const next = connect({ path: path(folder) });
    next.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
    await once(next, 'data');
    expect(silent.slice(0, 41).every(({ destroyed }) => destroyed)).toBe(true);
    expect(silent.slice(42).some(({ destroyed }) => destroyed)).toBe(false);
    expect(api.connectionCount()).toBe(20);
    await client.call(job.getJob, mine);
    expect(events.filter(({ kind }) => kind === 'handled')).toHaveLength(2);
    for (const socket of [...silent, next]) socket.destroy();
  });
});

describe('a request of HTTP/1', () => {
  it.each(['GET / HTTP/1.1', 'POST /gnnd.v1.JobService/ListJobs HTTP/1.1'])(
    '%s is told where it is',
    async (line) => {
      const { client, folder } = await start();
      const socket = connect({ path: join(folder, 'gnnd.sock') });
      socket.write(`${line}\r\nhost: localhost\r\n\r\n`);
      const answer = await text(socket);
      expect(answer).toMatch(
        /^HTTP\/1.1 400 .*this is gnnd's listen, for gRPC; metrics .* metrics_listen/s,
      );
      expect((await client.call(job.getJob, mine)).name).toBe('jobs/mine');
    },
  );
});

describe('WatchJob', () => {
  it('tells a job from its snapshot to its end', async () => {
    const { client, jobs } = await start();
    const types: string[] = [];
    for await (const event of client.stream(job.watchJob, { ...mine, untilTerminal: true })) {
      types.push(`${WatchType[event.type]} ${JobState[event.job?.state ?? 0]}`);
      if (types.length === 1) jobs.transition('RUNNING');
      if (types.length === 2) jobs.transition('SUCCEEDED');
    }
    expect(types).toEqual(['SNAPSHOT PENDING', 'CHANGED RUNNING', 'CHANGED SUCCEEDED']);
  });

  it('ends with a bookmark and DAEMON_STOPPING when the server stops, then resumes', async () => {
    const first = await start();
    const stream = first.client.stream(job.watchJob, mine);
    const seen: bigint[] = [];
    const watch = (async () => {
      for await (const event of stream) {
        seen.push(event.revision);
        if (seen.length === 1) void first.api.close(2000);
      }
    })();
    const failure = await failureOf(watch);
    expect(failure).toMatchObject({ code: status.UNAVAILABLE, reason: 'DAEMON_STOPPING' });
    expect(seen).toEqual([1n, 1n]);

    const second = await start();
    second.jobs.transition('SUCCEEDED');
    const resumed = { ...mine, startRevision: seen.at(-1) ?? 0n, untilTerminal: true };
    const states: string[] = [];
    for await (const event of second.client.stream(job.watchJob, resumed)) {
      states.push(JobState[event.job?.state ?? 0] ?? '');
    }
    expect(states).toEqual(['SUCCEEDED']);
  });

  it('is forgotten when its client cancels', async () => {
    const { client, jobs, api, events } = await start();
    const stream = client.stream(job.watchJob, mine);
    await expect(
      (async () => {
        for await (const _ of stream) {
          expect(api.watchCount()).toBe(1);
          stream.cancel();
        }
      })(),
    ).rejects.toThrow();
    while (jobs.listenerCount > 0) await settled();
    while (api.watchCount() > 0) await settled();
    while (events.every((event) => event.kind !== 'handled')) await settled();
    const handled = events.find((event) => event.kind === 'handled');
    expect(handled).toMatchObject({ method: 'WatchJob', code: 'Canceled', reason: null });
  });

  it('writes no more than a reader that stalls can take', async () => {
    const { client, jobs, events } = await start();
    // 5,000 transitions of 20 kB are 100 MB, were they all written.
    for (let index = 0; index < 5000; index += 1) {
      jobs.transition('RUNNING', { message: 'm'.repeat(20_000) });
    }
    const stream = client.stream(job.watchJob, { ...mine, startRevision: 1n });
    const reader = stream[Symbol.asyncIterator]();
    await reader.next();
    const sent = () => events.filter((event) => event.kind === 'sent').length;
    let before = -1;
    // Written to the end of what the connection takes: no more after many turns of the loop.
    for (let still = 0; still < 50; still = sent() === before ? still + 1 : 0) {
      before = sent();
      for (let turn = 0; turn < 5; turn += 1) await settled();
    }
    expect(sent()).toBeLessThan(500);
    expect(jobs.eventReads).toBeLessThan(6);
    stream.cancel();
  });
});

describe('health', () => {
  const names = ['JobService', 'CheckpointService', 'DatasetService', 'HostService'];
  const services = ['', ...names.map((name) => `gnnd.v1.${name}`)];
  const { check, watch } = Health.method;

  it('serves when the daemon is ready, and not before or after', async () => {
    const { client, api } = await start();
    for (const ready of [true, false, true]) {
      api.setReady(ready);
      for (const service of services) {
        const answer = await client.call(check, { service });
        expect(answer.status).toBe(ready ? ServingStatus.SERVING : ServingStatus.NOT_SERVING);
      }
    }
  });

  it('does not know other services', async () => {
    const { client } = await start();
    const failure = await failureOf(client.call(check, { service: 'other' }));
    expect(failure.code).toBe(status.NOT_FOUND);
    for await (const answer of client.stream(watch, { service: 'other' })) {
      expect(answer.status).toBe(ServingStatus.SERVICE_UNKNOWN);
      break;
    }
  });

  it('tells every change, the end of the server last', async () => {
    const { client, api } = await start();
    const seen: string[] = [];
    const steps = [() => api.setReady(false), () => api.setReady(true), () => void api.close(2000)];
    const failure = await failureOf(
      (async () => {
        for await (const answer of client.stream(watch, {})) {
          seen.push(ServingStatus[answer.status] ?? '');
          steps[seen.length - 1]?.();
        }
      })(),
    );
    expect(seen).toEqual(['SERVING', 'NOT_SERVING', 'SERVING', 'NOT_SERVING']);
    expect(failure.code).toBe(status.UNAVAILABLE);
  });
});

describe('reflection', () => {
  const { serverReflectionInfo: info } = ServerReflection.method;

  it.each(['grpc.reflection.v1.ServerReflection', 'grpc.reflection.v1alpha.ServerReflection'])(
    'lists the services as %s',
    async (service) => {
      const { client } = await start();
      const request = { messageRequest: { case: 'listServices', value: '' } } as const;
      const [answer] = await client.exchange(info, [request], service);
      const response = answer?.messageResponse;
      if (response?.case !== 'listServicesResponse') throw new Error(`got ${response?.case}`);
      expect(response.value.service.map((one) => one.name)).toEqual([
        'gnnd.v1.JobService',
        'gnnd.v1.CheckpointService',
        'gnnd.v1.DatasetService',
        'gnnd.v1.HostService',
        'grpc.health.v1.Health',
        'grpc.reflection.v1.ServerReflection',
      ]);
    },
  );

  it('answers the files of symbols with all that they import', async () => {
    const { client } = await start();
    const symbols = ['gnnd.v1.JobService.CreateJob', 'gnnd.v1.Job', 'gnnd.v1.JobSpec.dataset'];
    const answers = await client.exchange(
      info,
      symbols.map((value) => ({
        messageRequest: { case: 'fileContainingSymbol', value } as const,
      })),
    );
    const files = answers.map(({ messageResponse: response }) => {
      if (response.case !== 'fileDescriptorResponse') throw new Error(`got ${response.case}`);
      return response.value.fileDescriptorProto.map((bytes) =>
        fromBinary(FileDescriptorProtoSchema, bytes),
      );
    });
    expect(files.map((list) => list.at(-1)?.name)).toEqual([
      'gnnd/v1/job_service.proto',
      'gnnd/v1/job.proto',
      'gnnd/v1/job_spec.proto',
    ]);
    for (const list of files) {
      const names = list.map((file) => file.name);
      for (const file of list) expect(names).toEqual(expect.arrayContaining(file.dependency));
    }
  });

  it('finds what fields of a spec say of themselves, by number and by name', async () => {
    const { client } = await start();
    const containingType = 'google.protobuf.FieldOptions';
    const extension = { containingType, extensionNumber: 50100 };
    const [numbers, byNumber, byName, none] = await client.exchange(info, [
      { messageRequest: { case: 'allExtensionNumbersOfType', value: containingType } },
      { messageRequest: { case: 'fileContainingExtension', value: extension } },
      { messageRequest: { case: 'fileContainingSymbol', value: 'gnnd.v1.field' } },
      { messageRequest: { case: 'allExtensionNumbersOfType', value: 'gnnd.v1.Job' } },
    ]);
    expect(numbers?.messageResponse.value).toMatchObject({ extensionNumber: [50100] });
    expect(none?.messageResponse.case).toBe('errorResponse');
    for (const answer of [byNumber, byName]) {
      const response = answer?.messageResponse;
      if (response?.case !== 'fileDescriptorResponse') throw new Error(`got ${response?.case}`);
      const files = response.value.fileDescriptorProto.map((bytes) =>
        fromBinary(FileDescriptorProtoSchema, bytes),
      );
      expect(files.at(-1)?.name).toBe('gnnd/v1/field.proto');
    }
  });

  it('says what it does not have', async () => {
    const { client } = await start();
    const answers = await client.exchange(info, [
      { messageRequest: { case: 'fileByFilename', value: 'google/protobuf/timestamp.proto' } },
      { messageRequest: { case: 'fileByFilename', value: 'etc/passwd' } },
      { messageRequest: { case: 'fileContainingSymbol', value: 'no.such.Thing' } },
      { messageRequest: { case: 'allExtensionNumbersOfType', value: 'gnnd.v1.Job' } },
      {},
    ]);
    expect(
      answers.map(({ messageResponse: response }) =>
        response.case === 'errorResponse' ? response.value.errorCode : response.case,
      ),
    ).toEqual([
      'fileDescriptorResponse',
      status.NOT_FOUND,
      status.NOT_FOUND,
      status.NOT_FOUND,
      status.INVALID_ARGUMENT,
    ]);
  });
});

describe('a TCP port', () => {
  it.each(['127.0.0.1:0', 'localhost:0'])('is served when asked for as %s', async (address) => {
    const { client, api } = await start({}, () => address);
    expect(api.addresses[0]).toMatch(/^(127\.0\.0\.1|localhost):[1-9][0-9]*$/);
    expect((await client.call(job.getJob, mine)).name).toBe('jobs/mine');
  });

  it('survives garbage of every kind', async () => {
    const { client, api } = await start({}, () => '127.0.0.1:0');
    const port = Number(api.addresses[0]?.split(':')[1]);
    const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
    const garbage = [
      'GET / HTTP/1.1\r\nHost: x\r\n\r\n',
      Buffer.alloc(100_000, 0xff),
      Buffer.from('\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 'latin1'),
      `${preface}${'\xff'.repeat(1000)}`,
      Buffer.concat([Buffer.from(preface), Buffer.alloc(9, 1)]),
      preface.slice(0, 5),
    ];
    for (const bytes of garbage) {
      const socket = connect({ host: '127.0.0.1', port });
      socket.on('error', () => {});
      await once(socket, 'connect');
      await new Promise<void>((resolve) => socket.write(bytes, () => resolve()));
      expect((await client.call(job.getJob, mine)).name).toBe('jobs/mine');
      socket.destroy();
    }
  });
});

describe('the gate', () => {
  it('refuses changes until the daemon is ready and again once it stops; reads go on', async () => {
    const { client, api } = await start();
    const changes = [
      () => client.call(job.createJob, { spec: {} }),
      () => client.call(job.cancelJob, mine),
      () => client.call(job.suspendJob, mine),
      () => client.call(job.resumeJob, mine),
      () => client.call(job.retryJob, mine),
      () => client.call(job.deleteJob, mine),
      () => client.call(HostService.method.collectGarbage, {}),
      () => client.call(DatasetService.method.deleteDataset, { name: 'datasets/a' }),
      () => client.call(DatasetService.method.importDataset, { datasetId: 'a', source: '/a' }),
      () => client.call(DatasetService.method.validateDataset, { name: 'datasets/a' }),
    ];
    for (const change of changes) await change();
    api.setReady(false);
    for (const change of changes) {
      const failure = await failureOf(change());
      expect(failure).toMatchObject({ code: status.UNAVAILABLE, reason: 'DAEMON_STOPPING' });
    }
    expect((await client.call(job.getJob, mine)).name).toBe('jobs/mine');
  });
});

describe('the end', () => {
  it('waits for a call in progress, and ends its waiting', async () => {
    const bell = createBell();
    const waiting = bell.next();
    const datasets: ReturnType<typeof fakeDatasets> = {
      ...fakeDatasets(),
      waitOperation: (_id, _timeoutMs, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason));
          bell.ring();
        }),
    };
    const { client, api } = await start({ datasets });
    const call = client.call(DatasetService.method.waitOperation, { name: 'operations/op-1' });
    await waiting;
    void api.close(60_000);
    expect(await failureOf(call)).toMatchObject({ reason: 'DAEMON_STOPPING' });
    await api.close(60_000);
  });

  it('cuts a call that does not end in time', async () => {
    const bell = createBell();
    const waiting = bell.next();
    const datasets: ReturnType<typeof fakeDatasets> = {
      ...fakeDatasets(),
      waitOperation: () => {
        bell.ring();
        return new Promise(() => {});
      },
    };
    const { client, api } = await start({ datasets });
    const call = client.call(DatasetService.method.waitOperation, { name: 'operations/op-1' });
    const failure = failureOf(call);
    await waiting;
    await api.close(1);
    expect((await failure).code).not.toBe(status.OK);
  });
});

describe('messages', () => {
  it('larger than 256 KiB are refused and harm nobody', async () => {
    const { client } = await start();
    const name = 'x'.repeat(300 * 1024);
    const failure = await failureOf(client.call(job.getJob, { name }));
    expect(failure.code).toBe(status.RESOURCE_EXHAUSTED);
    expect((await client.call(job.getJob, mine)).name).toBe('jobs/mine');
  });

  it('that cannot be encoded are an internal error, not a crash', async () => {
    const attempt = { number: 0.5, startAtMs: 0, endAtMs: null, message: '' };
    const broken = jobRecord({
      attempts: [{ ...attempt, endReason: 'NONE', executorRestarts: 0, exits: [], resumed: null }],
    });
    const { jobs } = await start();
    const { client } = await start({ jobs: { ...jobs, get: () => broken } });
    const failure = await failureOf(client.call(job.getJob, mine));
    expect(failure).toBeInstanceOf(CallError);
    expect(failure.reason).toBe('INTERNAL');
  });
});
