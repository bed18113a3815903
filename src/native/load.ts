import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { builtPath } from '../base/built-path.ts';
import type { AcceleratorKind } from '../base/device-probe.ts';
import { setupCommand } from '../base/package-root.ts';
import type { CoreAddon, NativeCode, TrainAddon } from './contract.ts';

/** The only place that loads addons. */

/** Of the plug-in for a kind of devices (native/include/gnnd/device_plugin.h). */
export function devicePluginPath(kind: AcceleratorKind): string {
  return builtPath(`gnnd_${kind.toLowerCase()}.so`);
}

function loadAddon(name: string): unknown {
  const path = builtPath(`${name}.node`);
  if (!existsSync(path)) {
    throw new Error(`${path} is missing: run "${setupCommand}" to get it`);
  }
  return createRequire(import.meta.url)(path);
}

let core: CoreAddon | null = null;

/** Loads gnnd_core.node once. Throws a sentence with the command that builds it when missing. */
export function loadCore(): CoreAddon {
  core ??= loadAddon('gnnd_core') as CoreAddon;
  return core;
}

/** Loads gnnd_train.node, and with it libtorch: for Trainer processes only. */
export function loadTrain(): TrainAddon {
  return loadAddon('gnnd_train') as TrainAddon;
}

/** The code of a native failure; INTERNAL for anything else that was thrown. */
export function nativeCodeOf(error: unknown): NativeCode {
  const code = error instanceof Error ? (error as { code?: unknown }).code : undefined;
  return typeof code === 'string' ? (code as NativeCode) : 'INTERNAL';
}
