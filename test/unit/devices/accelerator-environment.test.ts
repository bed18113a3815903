import { afterEach, expect, test, vi } from 'vitest';
import type { Accelerator } from '../../../src/devices/seat.ts';
import type { Determinism } from '../../../src/spec/job-spec.ts';
import { executorEnvironment } from '../../../src/supervisor/executor-process.ts';

const gpu: Accelerator = {
  ...{
    kind: 'CUDA',
    uuid: 'GPU-7',
    product: 'NVIDIA H200',
    pci: '',
    peers: [],
    rates: { HOST: 10 },
    bits: '',
  },
  ...{ totalBytes: 150e9, budgetBytes: 50e9 },
};

function environment(accelerator?: Accelerator, torchBytes?: number, determinism = 'STRICT') {
  return executorEnvironment({
    ...{ threads: 1, instructionSet: 'AVX512', accelerator, torchBytes },
    determinism: determinism as Determinism,
    ...{ segmentFd: null, topologyFd: null, scratchFd: null, logPath: '' },
    signal: new AbortController().signal,
    start: {
      kind: 'start',
      version: 5,
      cores: [],
      role: 'CHECK',
      options: { folder: '' },
    } as never,
  });
}

afterEach(() => vi.unstubAllEnvs());

test('an executor on a GPU sees that one alone, and no more memory than it has', () => {
  expect(environment(gpu)).toMatchObject({
    CUDA_VISIBLE_DEVICES: 'GPU-7',
    CUDA_DEVICE_ORDER: 'PCI_BUS_ID',
    CUDA_CACHE_DISABLE: '1',
    CUBLAS_WORKSPACE_CONFIG: ':4096:8',
    PYTORCH_CUDA_ALLOC_CONF: 'per_process_memory_fraction:0.3333',
  });
});

test('an executor sees its own GPU first, and those whose memory it reads', () => {
  const peers = ['GPU-3', 'GPU-9'].map((uuid) => ({ name: uuid, uuid, link: 'NVLINK' as const }));
  const { CUDA_VISIBLE_DEVICES } = environment({ ...gpu, peers });
  expect(CUDA_VISIBLE_DEVICES).toBe('GPU-7,GPU-3,GPU-9');
});

test('PyTorch has a part of the device, not all of the budget once more', () => {
  expect(environment(gpu, 1.5e9)).toMatchObject({
    PYTORCH_CUDA_ALLOC_CONF: 'per_process_memory_fraction:0.0100',
  });
});

test('an executor on a CPU device sees no GPU, whatever the daemon inherited', () => {
  vi.stubEnv('CUDA_VISIBLE_DEVICES', '0,1');
  vi.stubEnv('PYTORCH_CUDA_ALLOC_CONF', 'backend:cudaMallocAsync');
  vi.stubEnv('NVIDIA_TF32_OVERRIDE', '1');
  const variables = environment();
  expect(variables['CUDA_VISIBLE_DEVICES']).toBe('');
  expect(variables).not.toHaveProperty('PYTORCH_CUDA_ALLOC_CONF');
  expect(variables).not.toHaveProperty('NVIDIA_TF32_OVERRIDE');
});

test('an executor on a simulated device sees that one, and its faults', () => {
  vi.stubEnv('GNND_SIM_FAULT', 'lost:100');
  const uuid = 'SIM-00000000-0000-0000-0000-000000000002';
  expect(environment({ ...gpu, kind: 'SIM', uuid, totalBytes: 4096 })).toMatchObject({
    CUDA_VISIBLE_DEVICES: '',
    GNND_SIM_VISIBLE: uuid,
    GNND_SIM_DEVICES: '64',
    GNND_SIM_MEMORY: '4096',
    GNND_SIM_FAULT: 'lost:100',
  });
});

test('a PORTABLE job has the kernels of processors with AVX2 on all others, too', () => {
  const kernels = { OPENBLAS_CORETYPE: 'Haswell', ONEDNN_MAX_CPU_ISA: 'AVX2' };
  const libraries = { ...kernels, MKL_CBWR: 'AVX2,STRICT', ATEN_CPU_CAPABILITY: 'avx2' };
  expect(environment(undefined, undefined, 'PORTABLE')).toMatchObject(libraries);
  expect(environment()).toMatchObject({ OPENBLAS_CORETYPE: 'SkylakeX' });
});
