import { describe, expect, it } from 'vitest';
import { gpuFindings, notBuiltFinding } from '../../../src/cli/commands/gpu-findings.ts';
import { deviceProbe, probedDevice } from '../../support/probes.ts';

const because = (code: string, remedy: string) =>
  deviceProbe([], { answer: { code, message: 'words', remedy } });

describe('what the doctor says of GPUs', () => {
  it('is fine on a host without any', () => {
    expect(gpuFindings(because('NO_DRIVER', 'install'), null)).toEqual([
      { what: 'CUDA', verdict: 'ok', found: 'no driver: jobs run on CPU devices', command: '' },
    ]);
    expect(notBuiltFinding(null).verdict).toBe('ok');
  });

  it.each(['DRIVER_TOO_OLD', 'DRIVER_MISMATCH', 'NOT_READY', 'NO_DEVICE', 'NO_DRIVER'])(
    'has the remedy where there is a driver and %s',
    (code) => {
      const [finding, ...rest] = gpuFindings(because(code, 'do this'), '550.54');
      expect(rest).toEqual([]);
      expect(finding).toEqual({
        ...{ what: 'CUDA', verdict: 'advice', found: 'words', command: 'do this' },
      });
    },
  );

  it('names each GPU, what is worth knowing of it, and why another is not used', () => {
    const probe = deviceProbe([
      probedDevice(0, { computeMode: 3 }),
      probedDevice(1, { processes: [{ pid: 9, bytes: null }] }),
    ]);
    const findings = gpuFindings(probe, '580.65');
    expect(findings.map(({ what, verdict }) => `${what} ${verdict}`)).toEqual([
      ...['CUDA ok', 'cuda:0 ok', 'cuda:0 advice', 'cuda:1 advice'],
    ]);
    expect(findings[0]?.found).toContain('driver 580.65, CUDA 13.0');
    expect(findings[1]?.found).toContain('NVIDIA H200, sm_90, 132 SMs');
    expect(findings[3]?.found).toContain('process 9');
    expect(findings[3]?.command).toContain('share_gpus');
  });

  it('says when the driver does not answer, NVML is missing, or nvcc was', () => {
    expect(gpuFindings(null, '580.65')[0]?.verdict).toBe('advice');
    const blind = deviceProbe([probedDevice(0)], { monitor: 'cannot be loaded' });
    expect(gpuFindings(blind, '580.65')[1]).toMatchObject({ what: 'NVML', verdict: 'advice' });
    expect(notBuiltFinding('580.65').command).toContain('npm run setup');
  });
});
