import { describe, expect, it } from 'vitest';
import type { SpecDraft } from '../../../src/spec/job-spec.ts';
import { resolveJobSpec } from '../../../src/spec/resolve-job-spec.ts';
import { contextOf } from '../../support/spec-context.ts';

const looks: SpecDraft[] = [];
const context = contextOf({
  deviceNames: ['cpu:0', 'sim:0'],
  ...{ numNodes: 1000, trainNodes: 600, valNodes: 200, hasEdgeWeights: false },
  bestRowChunk: (spec: SpecDraft) => {
    looks.push(spec);
    return spec.resources.rowsFrom === 'DISK' ? spec.training.batchSize / 2 : 1;
  },
});

const job = { dataset: 'cora', model: { type: 'SIGN' }, training: { epochs: 1, batchSize: 64 } };

function resolve(fields: object) {
  const given = { ...job, ...fields } as Parameters<typeof resolveJobSpec>[0];
  const resolution = resolveJobSpec(given, context);
  return 'ok' in resolution ? resolution.ok : resolution.violations;
}

describe('what stays together of rows', () => {
  it('is what is best where they are read, of what is filled in, unless the job says it', () => {
    expect(resolve({})).toMatchObject({
      training: { rowChunk: 1 },
      resources: { rowsFrom: 'AUTO' },
    });
    expect(resolve({ resources: { rowsFrom: 'DISK' } })).toMatchObject({
      training: { rowChunk: 32 },
    });
    const training = { ...job.training, rowChunk: 7 };
    const asked = { training, resources: { rowsFrom: 'DISK' } };
    expect(resolve(asked)).toMatchObject({ training: { rowChunk: 7 } });
  });

  it('is frozen: what is resolved stays so where another would be best', () => {
    const resolved = resolve({ resources: { rowsFrom: 'DISK' } });
    const training = 'training' in resolved ? resolved.training : {};
    const again = resolve({ training, resources: { rowsFrom: 'HOST' } });
    expect(again).toMatchObject({ training: { rowChunk: 32 }, resources: { rowsFrom: 'HOST' } });
  });

  it('is that of devices only where those have memory of their own', () => {
    expect(resolve({ resources: { rowsFrom: 'DEVICE' } })).toMatchObject([
      { path: 'spec.resources.rows_from', description: expect.stringContaining('no memory of') },
    ]);
    const resources = { rowsFrom: 'DEVICE', deviceKind: 'SIM' };
    expect(resolve({ resources })).toMatchObject({ resources });
  });

  it('is not looked for where something is wrong, nor for models over blocks', () => {
    looks.length = 0;
    expect(resolve({ training: { epochs: 1, rowChunk: 0 } })).toMatchObject([
      { path: 'spec.training.row_chunk' },
    ]);
    expect(resolve({ model: { type: 'GRAPHSAGE' } })).toMatchObject({ training: { rowChunk: 0 } });
    expect(looks).toEqual([]);
  });
});

describe('where rows are read', () => {
  it('is not a device in this version, and is nothing that models over blocks have', () => {
    expect(resolve({ resources: { rowsFrom: 'DEVICE' } })).toEqual([
      {
        path: 'spec.resources.rows_from',
        description: expect.stringContaining('expected AUTO, HOST or DISK'),
      },
    ]);
    const blocks = { model: { type: 'GRAPHSAGE' }, resources: { rowsFrom: 'DISK' } };
    expect(resolve(blocks)).toMatchObject([{ path: 'spec.resources.rows_from' }]);
  });
});
