import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { CheckpointService } from '../../src/api/gen/gnnd/v1/checkpoint_service_pb.ts';
import { DatasetService } from '../../src/api/gen/gnnd/v1/dataset_service_pb.ts';
import { HostService } from '../../src/api/gen/gnnd/v1/host_service_pb.ts';
import { JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import { JobService } from '../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { Reason } from '../../src/api/gen/gnnd/v1/types_pb.ts';
import { temporaryFolder } from '../support/at-end.ts';
import { repository, TestDaemon } from '../support/daemon.ts';
import { type PythonClient, pythonClient, pythonScripts, runPython } from '../support/python.ts';
import { skipped } from '../support/skipped.ts';

/** Clients in another language: Python's grpcio, with stubs from proto/ and without any. */

let daemon: TestDaemon;
let client: PythonClient | null = null;
const scratch = temporaryFolder('gnnd-python-');

beforeAll(async () => {
  daemon = await TestDaemon.start({ datasets: ['cora'] });
  client = await pythonClient();
  if (client === null) skipped('Python clients', 'no .cache/python-client');
});

interface Skipping {
  readonly skip: (note?: string) => never;
}

async function python({ skip }: Skipping, script: string, args: readonly string[]) {
  if (client === null) return skip('no Python client');
  return runPython(client.python, [script, ...args], { PYTHONPATH: client.stubs });
}

test('a client with stubs submits, watches, cancels and reads refusals', async (context) => {
  const script = join(pythonScripts, 'client.py');
  const seen = JSON.parse(await python(context, script, [daemon.address, 'cora']));

  const stored = await daemon.job('python-watched');
  expect(stored.state).toBe(JobState.SUCCEEDED);
  expect(seen.watched).toMatchObject({
    name: 'jobs/python-watched',
    first: 'WATCH_TYPE_SNAPSHOT',
    epochs: 3,
    sha256: stored.result?.parametersSha256,
  });
  expect(seen.watched.states.at(-1)).toBe('JOB_STATE_SUCCEEDED');
  expect(seen.watched.states).toContain('JOB_STATE_RUNNING');
  expect(seen.watched.revisions).toEqual([...seen.watched.revisions].sort((a, b) => a - b));

  expect(seen.cancelled).toEqual({
    intent: 'JOB_INTENT_CANCEL',
    state: 'JOB_STATE_CANCELLED',
    reason: Reason.USER_CANCELLED,
  });
  expect((await daemon.job('python-cancelled')).state).toBe(JobState.CANCELLED);

  expect(seen.refused).toMatchObject({
    code: 'INVALID_ARGUMENT',
    domain: 'gnnd',
    reason: 'SPEC_INVALID',
  });
  expect(seen.refused.fields).toEqual({
    'spec.model.dropout': expect.stringContaining('1.5'),
    'spec.sampling.fanouts[1]': expect.stringContaining('0'),
    'spec.training.epochs': expect.stringContaining('0'),
  });
});

test('a generic client lists the services by reflection and calls one', async (context) => {
  const script = join(pythonScripts, 'generic_client.py');
  const args = [daemon.address, HostService.typeName, 'ListDevices', '{}'];
  const seen = JSON.parse(await python(context, script, args));
  const ours = [JobService, CheckpointService, DatasetService, HostService];
  expect(seen.services).toEqual(
    expect.arrayContaining([
      ...ours.map(({ typeName }) => typeName),
      'grpc.health.v1.Health',
      'grpc.reflection.v1.ServerReflection',
    ]),
  );
  for (const { typeName, methods } of ours) {
    expect(seen.methods[typeName]).toEqual(methods.map(({ name }) => name).sort());
  }
  expect(seen.fields.momentum).toMatchObject({
    about: 'Momentum.',
    default: '0',
    gte: 0,
    lt: 1,
    bits: 'BITS_MODEL',
    onlyFor: { field: 'training.optimizer.type', values: ['SGD'] },
  });
  expect(seen.response.devices.map(({ name }: { name: string }) => name)).toEqual([
    'devices/cpu:0',
    'devices/cpu:1',
  ]);
});

test('the example of docs/clients.md runs as it stands there', async (context) => {
  const text = readFileSync(join(repository, 'docs', 'clients.md'), 'utf8');
  const example = /```python\n([\s\S]*?)```/.exec(text)?.[1] ?? '';
  expect(example).toContain('CreateJob');
  const script = join(scratch, 'example.py');
  writeFileSync(script, example);
  const printed = await python(context, script, [daemon.address]);
  expect(printed.trim().split('\n').at(-1)).toMatch(/^SUCCEEDED .*[0-9a-f]{64}$/);
  expect((await daemon.job('from-python')).state).toBe(JobState.SUCCEEDED);
});
