import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { isWheel, packageRoot } from './package-root.ts';

/**
 * A wheel serves builds of PyTorch with CUDA and without: what links PyTorch is there twice, the
 * second time with its kernels of CUDA.
 */
const hasCudaTorch =
  isWheel && existsSync(join(packageRoot, '..', 'torch', 'lib', 'libtorch_cuda.so'));

/**
 * The path of a native file, whether it was built or not: in build/native, or in the folder that
 * GNND_ADDON_DIR names.
 */
export function builtPath(name: string, env: NodeJS.ProcessEnv = process.env): string {
  const folder = env['GNND_ADDON_DIR'] || join(packageRoot, 'build', 'native');
  const withCuda = join(folder, 'cuda', name);
  return hasCudaTorch && existsSync(withCuda) ? withCuda : join(folder, name);
}
