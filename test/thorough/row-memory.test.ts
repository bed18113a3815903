import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { beforeAll, expect, test } from 'vitest';
import { JobState } from '../../src/api/gen/gnnd/v1/job_pb.ts';
import type { JobSpecSchema } from '../../src/api/gen/gnnd/v1/job_spec_pb.ts';
import { ModelType, ModelVariant } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { executorPids, TestDaemon } from '../support/daemon.ts';
import { writeLargeGraph } from '../support/large-graph.ts';
import { int64 } from '../unit/datasets/workbench.ts';

/** What a job over rows is predicted to take bounds what its Trainer takes. */

type Spec = MessageInitShape<typeof JobSpecSchema>;

const workName = 'batches, and the work on them';
const { SGC, SIGN, HOGA } = ModelType;
const { CONCAT, DAC24 } = ModelVariant;

let daemon: TestDaemon;
/** Memory of a Trainer with next to no work. */
let leastBytes: number;

beforeAll(async () => {
  daemon = await TestDaemon.start({ cpuDevices: 1 });
  const source = join(daemon.folder, 'source');
  writeLargeGraph(source, { numNodes: 12_000, degree: 2, features: 64 });
  const ids = (from: number, count: number) =>
    int64(...Array.from({ length: count }, (_, at) => from + at));
  writeFileSync(join(source, 'train.npy'), ids(0, 6000));
  writeFileSync(join(source, 'val.npy'), ids(6000, 4096));
  writeFileSync(join(source, 'test.npy'), ids(10_096, 1904));
  await daemon.import('rows', source);
  leastBytes = (await run('least', { type: SGC }, 1000)).mostBytes;
});

/** The most memory that the job's Trainer had, as the kernel counted it, and what was planned. */
async function run(name: string, model: NonNullable<Spec['model']>, batchSize: number) {
  await daemon.createJob(name, {
    ...{ dataset: 'rows', propagation: { hops: 3 }, resources: { devices: 1 } },
    ...{ model, training: { epochs: 2, batchSize } },
  });
  let mostBytes = 0;
  const { memory } = await daemon.until(name, ({ state }) => {
    for (const pid of executorPids(daemon.process.pid ?? 0)) {
      mostBytes = Math.max(mostBytes, peakBytes(pid));
    }
    return state === JobState.SUCCEEDED;
  });
  return { mostBytes, memory };
}

/** 0 of a process that is gone. */
function peakBytes(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1');
    return 1024 * Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0);
  } catch {
    return 0;
  }
}

const deep = { type: HOGA, hiddenDim: 128, hopLayers: 2, layers: 2, heads: 4 };

test.each<[string, NonNullable<Spec['model']>, number]>([
  ['sign', { type: SIGN, hiddenDim: 512 }, 3000],
  ['sign-dropout', { type: SIGN, hiddenDim: 512, layers: 4, inputDropout: 0.1 }, 3000],
  ['sign-concat', { type: SIGN, variant: CONCAT, hiddenDim: 256 }, 3000],
  ['hoga', { type: HOGA, hiddenDim: 128, residual: true }, 2000],
  ['hoga-deep', deep, 2000],
  ['hoga-dac24', { type: HOGA, variant: DAC24, hiddenDim: 128 }, 2000],
])('%s takes what was planned at most, and more than a quarter', async (name, model, batchSize) => {
  const { mostBytes, memory } = await run(name, model, batchSize);
  const taken = mostBytes - leastBytes;
  const planned = Number(memory?.parts.find((part) => part.name === workName)?.bytes ?? 0);
  expect(taken).toBeLessThanOrEqual(planned);
  expect(taken).toBeGreaterThan(planned / 4);
  // Rows lie in the page cache, and count as a Trainer's where they are mapped.
  const rows = Number(memory?.rows?.bytes ?? 0);
  expect(mostBytes).toBeLessThanOrEqual(Number(memory?.atMostBytes) + rows);
});
