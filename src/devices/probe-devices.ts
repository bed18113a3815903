import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder, writeFileAtomic } from '../base/atomic-file.ts';
import { builtPath } from '../base/built-path.ts';
import {
  type AcceleratorKind,
  type DeviceProbe,
  failedProbe,
  needsTorch,
  readProbe,
  readRates,
  withTorch,
} from '../base/device-probe.ts';
import type { LinkRates } from '../base/link-classes.ts';
import { isClone, setupCommand } from '../base/package-root.ts';
import { devicePluginPath } from '../native/load.ts';

/**
 * Asks a plug-in what there is, in a child that lives for the answer: the daemon loads no driver,
 * and one that hangs is killed.
 */

const deadlineMs = 30_000;
/** Libtorch with CUDA is gigabytes of libraries, which a cold disk reads first. */
const torchDeadlineMs = 120_000;

const names = { CUDA: 'CUDA plug-in', SIM: 'simulated devices' } as const;

/** What gets a plug-in that is not there. */
const remedies = {
  CUDA: `for GPUs install their driver and the CUDA toolkit (nvcc), then ${setupCommand}`,
  SIM: isClone ? 'npm run setup -- --sim' : setupCommand,
} as const;

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
        message: `gnnd was built without its ${names[kind]}`,
        remedy: remedies[kind],
      },
    };
  }
  const answer = await answerOf('gnnd_probe', [plugin, '--open'], env);
  if ('failed' in answer) return failedProbe(answer.failed);
  const probe = readProbe(answer.text);
  if (!needsTorch(probe)) return probe;
  const torch = await answerOf('gnnd_torch_probe', [], env, torchDeadlineMs);
  return withTorch(probe, 'failed' in torch ? torch.failed : torch.text);
}

/** What a program beside the addons printed, or how it failed. */
function answerOf(
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  timeout = deadlineMs,
): Promise<{ readonly text: string } | { readonly failed: string }> {
  const options = { env, timeout, killSignal: 'SIGKILL', maxBuffer: 2 ** 24 } as const;
  return new Promise((resolve) => {
    execFile(builtPath(program), args, options, (error, stdout, stderr) => {
      resolve(error === null ? { text: stdout } : { failed: howItFailed(error, stderr, timeout) });
    });
  });
}

export interface LinkMeasuring {
  readonly probe: DeviceProbe;
  readonly env: NodeJS.ProcessEnv;
  /** Folder of derived files. */
  readonly folder: string;
}

/**
 * What links carry, measured in such a child and kept for this host and its devices: nothing where
 * no two devices read each other's memory, and as far as it could be measured elsewhere.
 */
export async function measureLinks(
  kind: AcceleratorKind,
  { probe, env, folder }: LinkMeasuring,
): Promise<Partial<LinkRates>> {
  if (probe.links.length === 0) return {};
  const { build, driverVersion, devices, links } = probe;
  const uuids = devices.map(({ uuid }) => uuid);
  const facts = JSON.stringify({ build, driverVersion, uuids, links });
  const key = createHash('sha256').update(facts).digest('hex').slice(0, 16);
  const path = join(folder, `${kind.toLowerCase()}-links-${key}.json`);
  if (kind !== 'SIM' && existsSync(path)) return readRates(readFileSync(path, 'utf8'));
  const answer = await answerOf('gnnd_probe', [devicePluginPath(kind), '--rates'], env);
  const text = 'text' in answer ? answer.text : '';
  const rates = readRates(text);
  // Rates of simulated devices are read, not measured.
  if (kind !== 'SIM' && Object.keys(rates).length > 0) {
    makeFolder(folder);
    await writeFileAtomic(path, [text]);
  }
  return rates;
}

function howItFailed(
  error: Error & { killed?: boolean; signal?: unknown },
  stderr: string,
  timeout: number,
): string {
  if (error.killed === true) return `no answer within ${timeout / 1000} s`;
  const last = stderr.trim().split('\n').at(-1) ?? '';
  return `asking failed: ${error.signal ?? error.message} ${last}`.trim();
}
