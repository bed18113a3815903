import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import {
  type AcceleratorKind,
  type DeviceProbe,
  failedProbe,
  readProbe,
} from '../base/device-probe.ts';
import { builtPath, devicePluginPath } from '../native/load.ts';

/**
 * Asks a plug-in what there is, in a child that lives for the answer: the daemon loads no driver,
 * and one that hangs is killed.
 */

const deadlineMs = 30_000;

export async function probeDevices(
  kind: AcceleratorKind,
  env: NodeJS.ProcessEnv,
): Promise<DeviceProbe> {
  const plugin = devicePluginPath(kind);
  if (!existsSync(plugin)) {
    return {
      ...failedProbe(`gnnd was built without ${plugin}`),
      answer: {
        code: 'NOT_BUILT',
        message: 'gnnd was built without its CUDA plug-in',
        remedy: 'for GPUs install their driver and the CUDA toolkit (nvcc), then npm run setup',
      },
    };
  }
  return await new Promise((resolve) => {
    const options = {
      env,
      timeout: deadlineMs,
      killSignal: 'SIGKILL',
      maxBuffer: 2 ** 24,
    } as const;
    execFile(builtPath('gnnd_probe'), [plugin, '--open'], options, (error, stdout, stderr) => {
      if (error === null) resolve(readProbe(stdout));
      else resolve(failedProbe(howItFailed(error, stderr)));
    });
  });
}

function howItFailed(
  error: Error & { killed?: boolean; signal?: unknown },
  stderr: string,
): string {
  if (error.killed === true) return `the driver gave no answer within ${deadlineMs / 1000} s`;
  const last = stderr.trim().split('\n').at(-1) ?? '';
  return `asking the driver failed: ${error.signal ?? error.message} ${last}`.trim();
}
