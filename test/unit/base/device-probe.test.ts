import { describe, expect, it } from 'vitest';
import { needsTorch, objectionTo, readProbe, withTorch } from '../../../src/base/device-probe.ts';
import { deviceProbe, probedDevice } from '../../support/probes.ts';

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

describe('what libtorch said', () => {
  const probe = deviceProbe([probedDevice(0), probedDevice(1)]);
  const fit = { code: 'OK', message: '' };
  const said = (change: object) =>
    JSON.stringify({ torch: '2.13.0', cuda: 13000, devices: [fit, fit], ...change });
  const reasons = (text: string) =>
    withTorch(probe, text).devices.map((device) => objectionTo(device, { mayShare: false, own }));
  const own = new Set<number>();

  it('is no objection where it computes', () => {
    expect(reasons(said({}))).toEqual([null, null]);
    expect(withTorch(probe, said({})).torch).toMatchObject({ version: '2.13.0', cuda: 13000 });
  });

  it('without CUDA takes all GPUs away, with the command that gets another', () => {
    const [first, second] = reasons(said({ cuda: 0, devices: [] }));
    expect(first?.message).toContain('PyTorch 2.13.0');
    expect(first?.message).toContain('a build without CUDA');
    expect(first?.remedy).toContain('pip install torch');
    expect(second).toEqual(first);
  });

  it('for a CUDA that the driver does not serve names both', () => {
    const old = { ...probe, driverVersion: 12080 };
    const [device] = withTorch(old, said({ devices: [] })).devices;
    expect(device?.torch?.message).toContain(
      'CUDA 13.0 does not see it; the driver serves CUDA 12.8',
    );
  });

  it('without kernels for one GPU takes that one away', () => {
    const failed = { code: 'FAILED', message: 'no kernel image is available' };
    const [first, second] = reasons(said({ devices: [fit, failed] }));
    expect(first).toBeNull();
    expect(second?.message).toContain('no kernel image');
    expect(second?.remedy).toContain('sm_90');
  });

  it.each(['', 'Segmentation fault', '[]', '{}', 'null'])('and is no answer is one: %j', (text) => {
    expect(reasons(text).map((reason) => reason?.code)).toEqual(['TORCH_FAILED', 'TORCH_FAILED']);
  });

  it('is not asked about memory of the host', () => {
    const simulated = deviceProbe([probedDevice(0, { hasOwnMemory: false })]);
    expect(needsTorch(simulated)).toBe(false);
    expect(withTorch(simulated, '').devices[0]?.torch).toBeNull();
    expect(needsTorch(probe)).toBe(true);
  });
});
