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

/** Each model as it is by default, and what computes in float32 on cora among all options. */
function specs(): Readonly<Record<string, SpecInit>> {
  const plain = { GRAPHSAGE, GCN, GAT, GATV2, GIN, TRANSFORMER, SGC, SIGN, HOGA };
  const models = Object.entries(plain).map(([name, type]) => [
    name.toLowerCase(),
    { dataset: 'cora', model: { type } },
  ]);
  const others = Object.entries(options)
    .filter(([, { training, dataset }]) => {
      return training?.precision !== Precision.BFLOAT16 && dataset !== 'ring';
    })
    .map(([id, option]) => [id, specOf(option)]);
  return Object.fromEntries([...models, ...others]);
}

test('parameters are those of every other processor', { timeout: 300_000 }, async () => {
  const found: Record<string, string> = {};
  for (const [id, spec] of Object.entries(specs())) {
    const training = { ...spec.training, epochs: 3, determinism: Determinism.PORTABLE };
    const job = await daemon.train(id, { ...spec, training, ...pair });
    found[id] = job.result?.parametersSha256 ?? '';
  }
  if (process.env['UPDATE_GOLDEN'] === '1') {
    writeFileSync(golden, `${JSON.stringify(found, null, 2)}\n`);
  }
  expect(found).toEqual(JSON.parse(readFileSync(golden, 'utf8')));
});
