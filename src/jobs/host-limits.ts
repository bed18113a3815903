import { hasBfloat16Products } from '../base/processor.ts';
import type { CrewDevice } from '../devices/seat.ts';
import type { InstructionSet } from '../native/contract.ts';
import { matrixLibraryOf } from '../supervisor/supervisor.ts';

/** Facts of a host that decide which jobs it takes and how their specs are resolved. */
export function hostLimits(
  devices: readonly CrewDevice[],
  instructionSet: InstructionSet,
  pluginsDir: string,
) {
  return {
    deviceNames: devices.map(({ name }) => name),
    deviceCores: devices.map(({ cores }) => cores.length),
    deviceBits: new Map(
      devices.flatMap(({ name, accelerator }) =>
        accelerator === undefined ? [] : [[name, accelerator.bits] as const],
      ),
    ),
    deviceBudgets: new Map(
      devices.flatMap(({ name, accelerator }) =>
        accelerator === undefined ? [] : [[name, accelerator.budgetBytes] as const],
      ),
    ),
    hasBfloat16: instructionSet === 'AVX512' && hasBfloat16Products(),
    matrixLibrary: matrixLibraryOf(instructionSet),
    pluginsDir,
  };
}
