import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { parse } from 'yaml';
import { DatasetSchema, DatasetService } from '../../../src/api/gen/gnnd/v1/dataset_service_pb.ts';
import { DecidingMetric } from '../../../src/api/gen/gnnd/v1/evaluation_pb.ts';
import { JobService } from '../../../src/api/gen/gnnd/v1/job_service_pb.ts';
import { JobSpecSchema } from '../../../src/api/gen/gnnd/v1/job_spec_pb.ts';
import { ModelType } from '../../../src/api/gen/gnnd/v1/model_pb.ts';
import { PropagationOperator } from '../../../src/api/gen/gnnd/v1/propagation_pb.ts';
import { SamplingAlgorithm } from '../../../src/api/gen/gnnd/v1/sampling_pb.ts';
import { DatasetTask } from '../../../src/api/gen/gnnd/v1/types_pb.ts';
import { runCli } from '../../../src/cli/program.ts';
import { readSpec } from '../../../src/cli/read/spec-file.ts';
import { sampleJob } from '../../unit/cli/sample-job.ts';
import { createTestIo } from '../../unit/cli/test-io.ts';
import { FakeDaemon } from './fake-daemon.ts';

let daemon: FakeDaemon;
let folder: string;
let dataset: MessageInitShape<typeof DatasetSchema>;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gnnd-init-'));
  daemon = new FakeDaemon();
  dataset = { numNodes: 300n, numEdges: 4000n, numTrain: 34n, numClasses: 7 };
  daemon.unary(DatasetService.method.getDataset, ({ name }) =>
    create(DatasetSchema, { name, ...dataset }),
  );
  daemon.unary(JobService.method.createJob, ({ spec, validateOnly }) => {
    expect(validateOnly).toBe(true);
    const type = spec?.model?.type ?? ModelType.GRAPHSAGE;
    const isRows = type === ModelType.SIGN;
    return sampleJob({
      effectiveSpec: create(JobSpecSchema, {
        dataset: spec?.dataset ?? '',
        model: { type, layers: 2, hiddenDim: 256, heads: 1 },
        sampling: { algorithm: SamplingAlgorithm.KHOP_UNIFORM, fanouts: [10, 5] },
        ...(isRows ? { propagation: { operators: [PropagationOperator.PPR], hops: 3 } } : {}),
        evaluation: { metric: DecidingMetric.MAE },
        training: { epochs: spec?.training?.epochs ?? 12, optimizer: { learningRate: 0.01 } },
      }),
    });
  });
  await daemon.listen();
});
afterEach(async () => {
  await daemon.close();
  rmSync(folder, { recursive: true });
});

async function init(...args: readonly string[]) {
  const io = createTestIo({});
  const exitCode = await runCli(['--address', daemon.address, 'init', 'cora', ...args], io.io);
  return { exitCode, stdout: io.stdout(), stderr: io.stderr() };
}

test('a job file that can be read, and says what its fields are', async () => {
  const file = join(folder, 'job.yaml');
  const { exitCode, stderr } = await init('--file', file, '--epochs', '7');
  expect([exitCode, stderr]).toEqual([
    0,
    expect.stringContaining(`wrote ${file}; go on with: gnnctl job c`),
  ]);
  const text = readFileSync(file, 'utf8');
  expect(readSpec({ file, text }, [])).toHaveProperty('ok');
  expect(parse(text)).toEqual({
    spec: {
      dataset: 'cora',
      model: { type: 'GRAPHSAGE', layers: 2, hidden_dim: 256 },
      sampling: { fanouts: [10, 5], algorithm: 'KHOP_UNIFORM' },
      training: { epochs: 7, optimizer: { learning_rate: 0.01 } },
      evaluation: { metric: 'MAE' },
    },
  });
  expect(text).toMatch(/^# A job on cora: 300 nodes, 4,000 edges,\n/);
  const lines = text.split('\n');
  const uncommented = lines.filter(
    (line, i) => /^ +\w+: \S/.test(line) && !/^ +# /.test(lines[i - 1] ?? ''),
  );
  expect(uncommented).toEqual([]);
});

test('the task stands there, with the metrics that may decide', async () => {
  dataset = { numNodes: 1n, numClasses: 1, numTrain: 1n, task: DatasetTask.REGRESSION };
  const { stdout } = await init('--file', '-');
  expect(stdout).toContain('1 node, 0 edges,\n');
  expect(stdout).toContain('1 target, 1 node to train on.\n');
  expect(stdout).toContain('# Its task is regression: numbers.');
  expect(stdout).toMatch(/ One of MAE, RMSE\.\n +metric: MAE\n/);
  expect(readSpec({ file: 'job.yaml', text: stdout }, [])).toHaveProperty('ok');
});

test('a file that is there is kept, unless it may be lost', async () => {
  const file = join(folder, 'job.yaml');
  await init('--file', file);
  const again = await init('--file', file, '--epochs', '3');
  expect(again.exitCode).not.toBe(0);
  expect(again.stderr).toContain('is there already; --force writes over it');
  expect(readFileSync(file, 'utf8')).toContain('epochs: 12');
  expect((await init('--file', file, '--epochs', '3', '--force')).exitCode).toBe(0);
  expect(readFileSync(file, 'utf8')).toContain('epochs: 3');
});

test('a model over rows has hops in the place of fanouts', async () => {
  const { stdout } = await init('--file', '-', '--model', 'sign');
  expect(parse(stdout).spec).toMatchObject({ propagation: { operators: ['PPR'], hops: 3 } });
  expect(parse(stdout).spec).not.toHaveProperty('sampling');
  const unknown = await init('--model', 'mlp');
  expect(unknown.stderr).toContain('expected one of GRAPHSAGE, GCN');
});
