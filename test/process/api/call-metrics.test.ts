import { connect, constants } from 'node:http2';
import { create, toBinary } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { rpcMethods } from '../../../src/api/api.ts';
import { DatasetService } from '../../../src/api/gen/gnnd/v1/dataset_service_pb.ts';
import { JobService } from '../../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { settled } from '../../support/api-fakes.ts';
import { createTestClient, failureOf } from './client.ts';
import { fakeDatasets, startApi as start } from './server.ts';

const job = JobService.method;
const mine = { name: 'jobs/mine' };

describe('metrics of calls', () => {
  it('are told for start, messages and end, under names that are known beforehand', async () => {
    const { client, events } = await start();
    await client.call(job.getJob, mine);
    await failureOf(client.call(job.getJob, { name: 'jobs/other' }));
    const common = { service: 'gnnd.v1.JobService', method: 'GetJob', type: 'unary' };
    expect(events).toMatchObject([
      { kind: 'started', ...common },
      { kind: 'received', ...common },
      { kind: 'sent', ...common },
      { kind: 'handled', ...common, code: 'OK', reason: null },
      { kind: 'started', ...common },
      { kind: 'received', ...common },
      { kind: 'handled', ...common, code: 'NotFound', reason: 'JOB_NOT_FOUND' },
    ]);
    expect(rpcMethods).toContainEqual(common);
    expect(rpcMethods).toHaveLength(36 + 2 + 2);
  });

  it('tell a passed deadline apart from a cancelled call', async () => {
    const waiting: ReturnType<typeof fakeDatasets>['waitOperation'] = (_id, _ms, signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
      });
    const { api, events } = await start(
      { datasets: { ...fakeDatasets(), waitOperation: waiting } },
      () => '127.0.0.1:0',
    );
    const handled = async (count: number) => {
      const ends = () => events.filter(({ kind }) => kind === 'handled');
      while (ends().length < count) await settled();
      return ends().at(-1);
    };
    // By HTTP/2 itself: a client of gRPC would end the call at its own deadline, at about the time
    // at which the server does.
    const session = connect(`http://${api.addresses[0]}`);
    const { input } = DatasetService.method.waitOperation;
    const request = toBinary(input, create(input, { name: 'operations/op-1' }));
    const lengthPrefix = Buffer.from([0, 0, 0, 0, request.length]);
    const call = (timeout: string) => {
      const stream = session.request({
        ':method': 'POST',
        ':path': '/gnnd.v1.DatasetService/WaitOperation',
        'content-type': 'application/grpc',
        te: 'trailers',
        'grpc-timeout': timeout,
      });
      return stream.on('error', () => {}).end(Buffer.concat([lengthPrefix, request]));
    };
    call('50m');
    expect(await handled(1)).toMatchObject({ kind: 'handled', code: 'DeadlineExceeded' });
    const given = call('1H');
    while (events.filter(({ kind }) => kind === 'received').length < 2) await settled();
    given.close(constants.NGHTTP2_CANCEL);
    expect(await handled(2)).toMatchObject({ kind: 'handled', code: 'Canceled' });
    session.destroy();
  });

  it('count the connections', async () => {
    const { client, api } = await start();
    await client.call(job.getJob, mine);
    const other = createTestClient(api.addresses[0] ?? '');
    await other.call(job.getJob, mine);
    expect(api.connectionCount()).toBeGreaterThanOrEqual(1);
    other.close();
  });
});
