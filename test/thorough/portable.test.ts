import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { ModelType } from '../../src/api/gen/gnnd/v1/model_pb.ts';
import { Determinism, Precision } from '../../src/api/gen/gnnd/v1/training_pb.ts';
import { pair, type SpecInit } from '../support/crews.ts';
import { repository, TestDaemon } from '../support/daemon.ts';
import { options, specOf } from '../support/options.ts';

/**
 * PORTABLE gives the bits of test/fixtures/portable.json on every x86-64 processor with AVX2: one
 * that computes others fails here. After a change that is meant to change every model
 * UPDATE_GOLDEN=1 writes what this processor computes.
 */

const golden = join(repository, 'test/fixtures/portable.json');
let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await TestDaemon.start({ cpuDevices: 2, datasets: ['cora'] });
});

const { GRAPHSAGE, GCN, GAT, GATV2, GIN, TRANSFORMER, SGC, SIGN, HOGA } = ModelType;

/**
 * Each model as it is by default, and what computes in float32 on cora among all options. What goes
 * by the graph is said, learning rate, weight decay and whether rows are standardised, so that
 * another default changes no digest.
 */
function specs(): Readonly<Record<string, SpecInit>> {
  const overBlocks = { GRAPHSAGE, GCN, GAT, GATV2, GIN, TRANSFORMER };
  const overRows = { SGC, SIGN, HOGA };
  const models = Object.entries({ ...overBlocks, ...overRows }).map(([name, type]) => [
    name.toLowerCase(),
    {
      dataset: 'cora',
      model: { type },
      ...(name in overRows ? { propagation: { standardize: true } } : {}),
      training: { optimizer: { learningRate: 0.003 } },
    },
  ]);
  const others = Object.entries(options)
    .filter(([, { training, dataset }]) => {
      return training?.precision !== Precision.BFLOAT16 && dataset !== 'ring';
    })
    .map(([id, option]) => [id, specOf(option)]);
  return Object.fromEntries([...models, ...others]);
}

const writes = process.env['UPDATE_GOLDEN'] === '1';
const digests: Record<string, string> = writes ? {} : JSON.parse(readFileSync(golden, 'utf8'));

test.each(Object.entries(specs()))('%s ends as on every other processor', async (id, spec) => {
  const optimizer = { weightDecay: 0, ...spec.training?.optimizer };
  const training = { ...spec.training, optimizer, epochs: 3, determinism: Determinism.PORTABLE };
  const job = await daemon.train(id, { ...spec, training, ...pair });
  const found = job.result?.parametersSha256 ?? '';
  if (writes) {
    digests[id] = found;
    writeFileSync(golden, `${JSON.stringify(digests, null, 2)}\n`);
  }
  expect(found).toBe(digests[id]);
});

test('every digest is of a spec', () => {
  expect(Object.keys(digests)).toEqual(Object.keys(specs()));
});
