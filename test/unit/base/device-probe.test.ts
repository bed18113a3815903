import { describe, expect, it } from 'vitest';
import { readProbe } from '../../../src/base/device-probe.ts';

describe('what a probe printed', () => {
  it('is read, with null for what nobody can tell', () => {
    const probe = readProbe(
      JSON.stringify({
        answer: { code: 'OK', message: '', remedy: '' },
        ...{ kind: 'cuda', build: 'b', driver_version: 13000, monitor: '' },
        devices: [
          {
            ...{ index: 0, answer: { code: 'OK', message: '', remedy: '' }, uuid: 'GPU-1' },
            ...{ free_bytes: null, processes: [{ pid: 7, bytes: null }], mig: null },
          },
        ],
        links: [
          { from: 0, to: 1, access: 1, rank: null, atomics: 0, kind: 1 },
          { from: 0, to: 2, access: 1, rank: null, atomics: 0, kind: null },
          { from: 1, to: 0, access: 0, rank: null, atomics: 0 },
        ],
      }),
    );
    expect(probe.answer.code).toBe('OK');
    expect(probe.devices).toHaveLength(1);
    expect(probe.devices[0]).toMatchObject({ uuid: 'GPU-1', freeBytes: null, mig: null });
    expect(probe.devices[0]?.processes).toEqual([{ pid: 7, bytes: null }]);
    expect(probe.devices[0]?.opened).toBeNull();
    expect(probe.links).toEqual([
      { from: 0, to: 1, kind: 'NVLINK' },
      { from: 0, to: 2, kind: null },
    ]);
  });

  it.each(['', 'Segmentation fault', '[]', '{"devices": 3}', 'null'])(
    'and is no answer says so: %j',
    (text) => {
      const probe = readProbe(text);
      expect(probe.answer.code).toBe('FAILED');
      expect(probe.devices).toEqual([]);
    },
  );
});
