import type { Accelerator } from './seat.ts';

/**
 * What an executor's environment says about devices. Its own comes first, by its UUID, so that it
 * is number 0 for the plug-in and for torch alike. After it come those whose memory it reaches: a
 * driver promises nothing about memory of devices that a process does not see. To an executor on a
 * CPU device none is visible.
 */

/** Names that are the daemon's to set, whatever it inherited. */
export const acceleratorVariables =
  /^(CUDA_|CUBLAS_|CUDNN_|NVIDIA_TF32|PYTORCH_(CUDA_)?ALLOC_CONF|GNND_SIM_(VISIBLE|MEMORY))/;

/** `torchBytes`: most that PyTorch's allocator may hold (device-memory.ts). */
export function acceleratorEnvironment(
  accelerator: Accelerator | undefined,
  torchBytes: number,
): Readonly<Record<string, string>> {
  if (accelerator?.kind === 'SIM') {
    const { uuid, totalBytes } = accelerator;
    return {
      CUDA_VISIBLE_DEVICES: '',
      GNND_SIM_VISIBLE: uuid,
      // All that there can be, since peers are named by their numbers; one of them is seen.
      GNND_SIM_DEVICES: '64',
      GNND_SIM_MEMORY: String(totalBytes),
    };
  }
  if (accelerator === undefined) return { CUDA_VISIBLE_DEVICES: '' };
  const share = torchBytes / Math.max(1, accelerator.totalBytes);
  return {
    CUDA_VISIBLE_DEVICES: [accelerator, ...accelerator.peers].map(({ uuid }) => uuid).join(','),
    CUDA_DEVICE_ORDER: 'PCI_BUS_ID',
    // Without this, kernels that are compiled for this architecture go to the home folder.
    CUDA_CACHE_DISABLE: '1',
    CUDA_MODULE_LOADING: 'LAZY',
    // cuBLAS repeats its bits with a workspace of a fixed size only.
    CUBLAS_WORKSPACE_CONFIG: ':4096:8',
    // The fraction is of all of the device's memory.
    PYTORCH_CUDA_ALLOC_CONF: `per_process_memory_fraction:${Math.min(1, share).toFixed(4)}`,
  };
}
