import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { idsOf } from '../../src/traces/job-traces.ts';
import { TestDaemon } from '../support/daemon.ts';

/** A job's life as a collector of OpenTelemetry gets it. */

interface SentSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { key: string; value: Record<string, unknown> }[];
  readonly status: { readonly code?: number; readonly message?: string };
}

const spans: SentSpan[] = [];
let collector: Server;
let daemon: TestDaemon;

beforeAll(async () => {
  collector = createServer(async (request, response) => {
    const { resourceSpans } = (await json(request)) as {
      resourceSpans: { scopeSpans: { spans: SentSpan[] }[] }[];
    };
    expect(request.url).toBe('/v1/traces');
    for (const { scopeSpans } of resourceSpans) {
      for (const scope of scopeSpans) spans.push(...scope.spans);
    }
    response.setHeader('content-type', 'application/json').end('{}');
  }).listen(0, '127.0.0.1');
  await once(collector, 'listening');
  const { port } = collector.address() as AddressInfo;
  const flags = ['--otlp-endpoint', `http://127.0.0.1:${port}/`];
  daemon = await TestDaemon.start({ datasets: ['cora'], flags });
});

afterAll(() => void collector.close());

const attributesOf = ({ attributes }: SentSpan) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));

test('a job is one trace: waits, attempts, phases, epochs, checkpoint', async () => {
  const training = { epochs: 3, batchSize: 20 };
  const spec = { dataset: 'cora', training, cache: { ratio: 0.1 } };
  const job = await daemon.train('good', spec);
  await daemon.createJob('bad', { ...spec, timeouts: { runMs: 1n } });
  await daemon.until('bad', ({ endTime }) => endTime !== undefined).catch(() => {});
  const bad = await daemon.job('bad');
  // All is sent before it has ended.
  expect(await daemon.stop()).toBe(0);

  const ids = idsOf(job.uid);
  const trace = spans.filter(({ traceId }) => traceId === ids.traceId);
  const byName = (name: string) => trace.filter((span) => span.name === name);
  const [root] = byName('job');
  expect(root).toMatchObject({ spanId: ids.spanId });
  expect(attributesOf(root as SentSpan)).toMatchObject({
    ...{ 'gnnd.job': 'good', 'gnnd.dataset': 'cora', 'gnnd.state': 'SUCCEEDED' },
  });
  const [attempt] = byName('attempt');
  const [train] = byName('train');
  for (const name of ['wait', 'attempt']) expect(byName(name)[0]?.parentSpanId).toBe(ids.spanId);
  for (const name of ['load', 'calibrate', 'train', 'finalize']) {
    expect(byName(name)[0]?.parentSpanId).toBe(attempt?.spanId);
  }
  expect(byName('checkpoint')).toHaveLength(1);
  const [load] = byName('load');
  for (const name of ['read dataset', 'pre-sample']) {
    expect(byName(name).map(({ parentSpanId }) => parentSpanId)).toEqual([load?.spanId]);
  }
  for (const name of ['propagate', 'list nodes', 'pin rows', 'probe model']) {
    expect(byName(name)).toEqual([]);
  }
  const epochs = byName('epoch').map((span) => Number(attributesOf(span)['gnnd.epoch']));
  expect(epochs).toEqual([0, 1, 2]);
  expect(byName('epoch').every(({ parentSpanId }) => parentSpanId === train?.spanId)).toBe(true);
  for (const { startTimeUnixNano, endTimeUnixNano } of trace) {
    expect(BigInt(endTimeUnixNano) >= BigInt(startTimeUnixNano)).toBe(true);
  }
  const failed = spans.find(({ spanId }) => spanId === idsOf(bad.uid).spanId);
  expect(failed?.status).toMatchObject({ code: 2 });
  expect(attributesOf(failed as SentSpan)).toMatchObject({ 'gnnd.reason': 'RUN_TIMEOUT' });
});
